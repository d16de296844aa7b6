"""How a function of a request becomes a verb: shared options, one-line errors, exit code."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import os
import sys
import traceback
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_type_hints

import typer

from txn_analysis.cli.help_groups import GroupedOnceEach
from txn_analysis.cli.options import ENDING, JUDGING, Request
from txn_analysis.cli.output import check_output
from txn_analysis.cli.spark import quietly
from txn_analysis.errors import AuditError
from txn_analysis.spark.interrupts import Interrupted, is_interrupted
from txn_analysis.text.escape import escape

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from txn_analysis.judge.outcome import Outcome
    from txn_analysis.settings import Settings

    Body = Callable[..., int]
    Command = Callable[..., None]


def verb(
    app: typer.Typer, name: str, example: str, *, reads_files: bool = False, uses: Collection[str] = ()
) -> Callable[[Body], Body]:
    """Adds a function as a verb of the command line.

    Args:
        app: where it is added.
        name: the verb.
        example: a command line for the end of its help.
        reads_files: whether it reads more than the tables of a finished run.
        uses: of the options of judging and of the exit code those that mean something to it; no others are offered.

    Returns:
        A decorator for `function(request, **own_options) -> exit code`; the options come from its annotations. An
        option of its own stands in place of a shared one of the same name.
    """

    def add(body: Body) -> Body:
        own = _own_parameters(body)
        shared = [p for p in _shared_parameters() if p.name not in {own_one.name for own_one in own}]
        foreign = [p.name for p in shared if p.name in {*JUDGING, *ENDING}.difference(uses)]

        def command(**values: Any) -> None:
            request = Request(**{p.name: values.pop(p.name) for p in shared})
            with reported_errors(debug=request.debug), quietly(is_quiet=request.quiet):
                check_output(request.output)
                if not reads_files:
                    _keep_little_memory()
                _note_ignored(request, foreign, is_of_run=not reads_files)
                raise typer.Exit(body(request, **values))

        offered = [p.replace(annotation=_hidden(p.annotation)) if p.name in foreign else p for p in shared]
        command.__doc__ = body.__doc__
        command.__annotations__ = {p.name: p.annotation for p in (*own, *offered)}
        command.__signature__ = inspect.Signature([*own, *offered])  # type: ignore[attr-defined]  # typer reads it
        add_command(app, name, example)(command)
        return body

    return add


def add_command(app: typer.Typer, name: str, example: str) -> Callable[[Command], Command]:
    """A decorator that adds a function to the command line as it is, with an example at the end of its help."""
    return app.command(name, cls=GroupedOnceEach, epilog=f"\b\nExample:\n  {example}", no_args_is_help=False)


def _keep_little_memory() -> None:
    """Let Arrow give memory back between batches: of 12 million batches answers take 240 MB, and 340 as it comes.

    Arrow reads the variable when it is imported. Not all of its builds have jemalloc, but all for Linux.
    """
    if sys.platform == "linux":
        os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "jemalloc")


def exit_code(outcome: Outcome, settings: Settings) -> int:
    """The code that a verb ends with which asks about findings."""
    return outcome.exit_code(accept_inconclusive=settings.accept_inconclusive, exit_zero=settings.exit_zero)


@contextmanager
def reported_errors(*, debug: bool) -> Iterator[None]:
    """Errors that users can mend become `error: ...` lines and exit code 2; a bug keeps its traceback."""
    try:
        yield
    except AuditError as error:
        if is_interrupted():
            raise
        if debug:
            traceback.print_exc()
        for line in str(error).splitlines() or [type(error).__name__]:
            print(f"error: {escape(line)}", file=sys.stderr)
        raise typer.Exit(error.exit_code) from error
    except KeyboardInterrupt as error:
        raise Interrupted from error  # typer would make an error with exit code 1 of it


def _own_parameters(body: Body) -> list[inspect.Parameter]:
    hints = get_type_hints(body, include_extras=True)
    parameters = list(inspect.signature(body).parameters.values())[1:]
    return [p.replace(annotation=hints[p.name], kind=inspect.Parameter.KEYWORD_ONLY) for p in parameters]


@cache
def _shared_parameters() -> tuple[inspect.Parameter, ...]:
    hints = get_type_hints(Request, include_extras=True)
    return tuple(
        inspect.Parameter(
            field.name, inspect.Parameter.KEYWORD_ONLY, default=field.default, annotation=hints[field.name]
        )
        for field in dataclasses.fields(Request)
    )


def _hidden(annotation: Any) -> Any:
    kind, option = get_args(annotation)
    option = copy.copy(option)
    option.hidden = True
    return Annotated[kind, option]


def _note_ignored(request: Request, foreign: Sequence[str], *, is_of_run: bool) -> None:
    """Says which of the given options change nothing here."""
    judging, ending = ([name for name in names if name in foreign] for names in (JUDGING, ENDING))
    kept = "; the run keeps the settings it was made with" if is_of_run else ""
    for flags, why in ((request.given(judging), kept), (request.given(ending), "")):
        if flags:
            print(f"note: {', '.join(flags)}: no effect here{why}", file=sys.stderr)
