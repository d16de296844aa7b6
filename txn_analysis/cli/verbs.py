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

from txn_analysis.cli.once import OnceEach
from txn_analysis.cli.options import JUDGING, Request
from txn_analysis.cli.output import check_output
from txn_analysis.cli.spark import quietly
from txn_analysis.errors import AuditError
from txn_analysis.spark.interrupts import Interrupted, is_interrupted
from txn_analysis.text.escape import escape

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from txn_analysis.judge.outcome import Outcome
    from txn_analysis.settings import Settings

    Body = Callable[..., int]


def verb(app: typer.Typer, name: str, example: str, *, judges: bool = False) -> Callable[[Body], Body]:
    """Adds a function as a verb of the command line.

    Args:
        app: where it is added.
        name: the verb.
        example: a command line for the end of its help.
        judges: whether it starts a run; other verbs only note that the flags of judging change nothing.

    Returns:
        A decorator for `function(request, **own_options) -> exit code`; the options come from its annotations.
    """

    def add(body: Body) -> Body:
        own = _own_parameters(body)

        def command(**values: Any) -> None:
            request = Request(**{f.name: values.pop(f.name) for f in dataclasses.fields(Request)})
            with reported_errors(debug=request.debug), quietly(is_quiet=request.quiet):
                check_output(request.output)
                if not judges:
                    _keep_little_memory()
                    _note_ignored(request)
                raise typer.Exit(body(request, **values))

        shared = _shared_parameters(judges=judges)
        command.__doc__ = body.__doc__
        command.__annotations__ = {p.name: p.annotation for p in (*own, *shared)}
        command.__signature__ = inspect.Signature([*own, *shared])  # type: ignore[attr-defined]  # typer reads it
        app.command(name, cls=OnceEach, epilog=f"\b\nExample:\n  {example}", no_args_is_help=False)(command)
        return body

    return add


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
def _shared_parameters(*, judges: bool) -> tuple[inspect.Parameter, ...]:
    hints = get_type_hints(Request, include_extras=True)
    return tuple(
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=field.default,
            annotation=hints[field.name] if judges or field.name not in JUDGING else _hidden(hints[field.name]),
        )
        for field in dataclasses.fields(Request)
    )


def _hidden(annotation: Any) -> Any:
    kind, option = get_args(annotation)
    option = copy.copy(option)
    option.hidden = True
    return Annotated[kind, option]


def _note_ignored(request: Request) -> None:
    given = request.judging_flags()
    if given:
        print(f"note: {', '.join(given)}: no effect here; the run keeps the settings it was made with", file=sys.stderr)
