"""How a function becomes a verb of the command line, or the command of a script in `jobs/`.

With shared options that are given once and stand in groups, one-line errors, and an exit code.
"""

from __future__ import annotations

import copy
import inspect
import os
import re
import sys
import traceback
from collections import Counter
from collections.abc import Mapping
from contextlib import contextmanager
from dataclasses import replace
from itertools import takewhile
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, get_args, get_type_hints

import typer
import typer.main
from typer.completion import completion_init, shell_complete  # type: ignore[attr-defined]  # it says no __all__
from typer.core import TyperCommand

from txn_analysis.cli.old_words import COMPLETE, of_today
from txn_analysis.cli.options import ENDING, HEADINGS, JUDGING, Request, shared_parameters
from txn_analysis.cli.output import suffixes_of, targets_of
from txn_analysis.cli.spark import quietly
from txn_analysis.columns.memory import keep_little_memory, take_from_one_heap
from txn_analysis.errors import AuditError
from txn_analysis.settings import RUNNING, Settings
from txn_analysis.spark.driver_log import stderr_on_drivers_log
from txn_analysis.spark.interrupts import Interrupted, ending_at_once, is_interrupted
from txn_analysis.text import escape

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from txn_analysis.judge.outcome import Outcome

    Body = Callable[..., int]
    Command = Callable[..., None]

_App = TypeVar("_App", bound=typer.Typer)

_REMOVED = {"--depth": "leave it out"}
_WRITTEN_BY = {"--html": ".html", "--prometheus": ".prom"}  # as they were called before `-o` could do it
_OWN = "Options"
_TYPE = re.compile(r" <[^|>]*>$")  # as Typer says Python's type of a value, behind the name that we give it


class Verb(TyperCommand):
    """A verb that refuses a second value of an option with room for one: the last one would win in silence.

    An option of an earlier version is refused in words that say what to do. In its help the options stand under
    headings: its own first, then those of `options.HEADINGS`.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """The words behind the verb that are left over.

        Raises:
            UsageError: an option was removed, or is there twice and not to be repeated; or the words are no command.
        """
        args = [*self._by_output(ctx, args)]
        for name in takewhile("--".__ne__, (word.partition("=")[0] for word in args)):
            if name in _REMOVED:
                ctx.fail(f"{name} was removed: {_REMOVED[name]}")
        given: tuple[Any, Any, list[Any]] = self.make_parser(ctx).parse_args(args=list(args))
        for option, times in Counter(given[2]).items():
            takes_one = option.param_type_name == "option" and not (option.multiple or option.is_flag or option.count)
            if times > 1 and takes_one:
                ctx.fail(f"Option '{option.opts[0]}' is given {times} times, but takes one value: give it once.")
        return super().parse_args(ctx, args)

    def _by_output(self, ctx: Any, args: list[str]) -> Iterator[str]:
        """The same words with `-o FILE` in place of what once wrote a page or metrics, beside stdout."""
        words, is_alone = iter(args), not any(word.startswith(("-o", "--output")) for word in args)
        for word in words:
            name, is_joined, file = word.partition("=")
            if word == "--":
                yield from (word, *words)
            elif name not in _WRITTEN_BY:
                yield word
            else:
                file = file if is_joined else next(words, "")
                if not file.endswith(suffix := _WRITTEN_BY[name]):
                    ctx.fail(f"{name} {file}: its name must end with {suffix}: give -o FILE{suffix}")
                yield from ("-o", "-", "-o", file) if is_alone else ("-o", file)
                is_alone = False

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Writes arguments and options to the formatter."""
        sections: dict[str, list[tuple[str, str]]] = {name: [] for name in ("Arguments", _OWN, *HEADINGS)}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record is not None:
                sections[_heading(param)].append((_TYPE.sub("", record[0]), record[1]))
        for name, records in sections.items():
            if records:
                with formatter.section(name):
                    formatter.write_dl(records)


def _heading(param: Any) -> str:
    if param.param_type_name == "argument":
        return "Arguments"
    return RUNNING if param.name == "help" else param.rich_help_panel or _OWN


class CommandLine(typer.Typer):
    """A command line of many verbs, each made of its function once it is asked for: to make them all takes as long as
    an answer.
    """

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self._made_by: dict[str, Callable[[], Any]] = {}

    @property
    def group(self) -> Any:
        """The command of all verbs, as typer has it."""
        group: Any = typer.main.get_command(self)
        group.commands = _Verbs(self._made_by)
        return group

    def __call__(self, args: Sequence[str] | None = None, **kwargs: Any) -> Any:
        """Runs it, by the words of today, and by those of 1.0 that have changed."""
        words = of_today(sys.argv[1:] if args is None else args)
        if asked := os.environ.get(COMPLETE):
            raise SystemExit(_complete(self.group, asked))
        return self.group(words, **kwargs)

    def add(self, name: str, example: str, function: Callable[[], Command]) -> None:
        """Adds a verb, with an example at the end of its help; its options are read from the function's signature."""
        self._made_by[name] = lambda: typer.main.get_command(_alone(typer.Typer, name, example, function()))


def _complete(group: Any, asked: str) -> int:
    """Answers a shell; `bash_source` is Click's order of words, which Typer turns round."""
    completion_init()
    shell, _, what = asked.partition("_")
    is_clicks = what in {"source", "complete"}
    return shell_complete(group, {}, "txn-analysis", COMPLETE, f"{what}_{shell}" if is_clicks else asked)


class _Verbs(Mapping[str, Any]):
    """The verbs by name, as typer's commands."""

    def __init__(self, made_by: Mapping[str, Callable[[], Any]]) -> None:
        self._made_by = made_by
        self._made: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._made:
            self._made[name] = self._made_by[name]()
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._made_by)

    def __len__(self) -> int:
        return len(self._made_by)


def _alone(kind: type[_App], name: str, example: str, function: Command) -> _App:
    """A command line of one command."""
    app = kind(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
    app.command(name, cls=Verb, epilog=f"\b\nExample:\n  {example}", no_args_is_help=False)(function)
    return app


def verb(
    app: CommandLine,
    name: str,
    example: str,
    *,
    form: Any = None,
    reads_files: bool = False,
    uses: Collection[str] = (),
) -> Callable[[Body], Body]:
    """Adds a function as a verb of the command line.

    Args:
        app: where it is added.
        name: the verb.
        example: a command line for the end of its help.
        form: the option that says in which form it prints, such as `options.Format`; None where there is but one.
        reads_files: whether it reads more than the tables of a finished run.
        uses: of the options of judging and of the exit code those that mean something to it; no others are offered.

    Returns:
        A decorator for `function(request, **own_options) -> exit code`; the options come from its annotations. An
        option of its own stands in place of a shared one of the same name.
    """

    def add(body: Body) -> Body:
        app.add(name, example, lambda: _command(body, form, uses, reads_files=reads_files))
        return body

    return add


def _command(body: Body, form: Any, uses: Collection[str], *, reads_files: bool, is_job: bool = False) -> Command:
    """The function that typer calls; its arguments are as of `verb`."""
    own = _own_parameters(body)
    forms = () if form is None else _choices(form)
    if form is not None:
        own.append(inspect.Parameter("form", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=form))
    shared = [p for name, p in shared_parameters().items() if name not in {one.name for one in own}]
    foreign = [p.name for p in shared if p.name in {*JUDGING, *ENDING}.difference(uses)]

    def command(**values: Any) -> None:
        asked = {p.name: values.pop(p.name) for p in shared}
        flags = {name: asked.pop(name) for name in Settings.model_fields if name in asked}
        request = Request(flags=flags, is_job=is_job, **asked)
        with reported_errors(debug=request.debug), quietly(is_quiet=request.quiet):
            request = replace(request, targets=targets_of(request.output, values.pop("form", None), forms))
            (take_from_one_heap if reads_files else keep_little_memory)()
            note_ignored(request, foreign, is_of_run=not reads_files)
            raise typer.Exit(body(request, **values))

    offered = [p.replace(annotation=_hidden(p.annotation)) if p.name in foreign else p for p in shared]
    if suffixes := suffixes_of(forms):
        said = f"Write to FILE ({', '.join(suffixes)}), whole or not at all; - is stdout; may be repeated. [stdout]"
        offered = [
            p.replace(annotation=_changed(p.annotation, help=said)) if p.name == "output" else p for p in offered
        ]
    command.__doc__ = body.__doc__
    command.__annotations__ = {p.name: p.annotation for p in (*own, *offered)}
    command.__signature__ = inspect.Signature([*own, *offered])  # type: ignore[attr-defined]  # typer reads it
    return command


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


def _choices(annotation: Any) -> tuple[str, ...]:
    """The values of an option that has a few, or is not given."""
    return tuple(value for kind in get_args(get_args(annotation)[0]) for value in get_args(kind))


def _hidden(annotation: Any) -> Any:
    return _changed(annotation, hidden=True)


def _changed(annotation: Any, **about: Any) -> Any:
    """The annotation of an option, of which something is told in another way."""
    kind, option = get_args(annotation)
    option = copy.copy(option)
    for name, value in about.items():
        setattr(option, name, value)
    return Annotated[kind, option]


def note_ignored(request: Request, foreign: Collection[str], *, is_of_run: bool = False) -> None:
    """Says on stderr which of the given options change nothing here."""
    judging, ending = ([name for name in names if name in foreign] for names in (JUDGING, ENDING))
    kept = "; the run keeps the settings it was made with" if is_of_run else ""
    for flags, why in ((request.given(judging), kept), (request.given(ending), "")):
        if flags:
            print(f"note: {', '.join(flags)}: no effect here{why}", file=sys.stderr)


class _Script(typer.Typer):
    """The only command of a script; an interrupted one ends as an interrupted `txn-analysis` does."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        with ending_at_once(), stderr_on_drivers_log():
            return super().__call__(*args, **kwargs)


def job(name: str, example: str, uses: Collection[str] = JUDGING, form: Any = None) -> Callable[[Body], typer.Typer]:
    """Makes `function(request, **own_options) -> exit code` the only command of a script.

    Args:
        name: the script, without `.py`.
        example: options and paths for the end of its help.
        uses: as of `verb`.
        form: the same.

    Returns:
        A decorator that leaves the command in place of the function; calling it runs the script.
    """

    def command(body: Body) -> typer.Typer:
        function = _command(body, form, uses, reads_files=True, is_job=True)
        return _alone(_Script, name, f"spark-submit jobs/{name}.py {example}", function)

    return command
