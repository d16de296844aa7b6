"""How a function becomes a verb of the command line, or the command of a script in `jobs/`.

Its one argument is a dataclass of options, in `cli.options`; here are what all verbs share: options that are given once
and stand in groups, one-line errors, and an exit code.
"""

from __future__ import annotations

import inspect
import sys
import traceback
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from typing import Any, get_type_hints

import click

from txn_analysis.cli.old_words import of_today
from txn_analysis.cli.options import ENDING, HEADINGS, JUDGING, Forms, Request, output_options, setting_options
from txn_analysis.cli.output import note, quiet_pipe, targets_of
from txn_analysis.cli.spark import quietly
from txn_analysis.columns.memory import keep_little_memory, take_from_one_heap
from txn_analysis.errors import AuditError
from txn_analysis.judge.outcome import Outcome
from txn_analysis.settings import RUNNING, Settings
from txn_analysis.spark.driver_log import stderr_on_drivers_log
from txn_analysis.spark.interrupts import Interrupted, ending_at_once, is_interrupted
from txn_analysis.text import escape

Body = Callable[[Any], int]

LOOKS = {"help_option_names": ["-h", "--help"], "max_content_width": 110}


class Verb(click.Command):
    """A verb that refuses a second value of an option with room for one: the last one would win in silence.

    In its help the options stand under `options.HEADINGS`.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """The words behind the verb that are left over.

        Raises:
            UsageError: an option is there twice and not to be repeated; or the words are no command.
        """
        _, _, given = self.make_parser(ctx).parse_args(args=[*args])
        for param, times in Counter(given).items():
            if times > 1 and isinstance(param, click.Option) and not (param.multiple or param.is_flag or param.count):
                ctx.fail(f"Option '{param.opts[0]}' is given {times} times, but takes one value: give it once.")
        return super().parse_args(ctx, args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the options to the formatter."""
        sections: dict[str, list[tuple[str, str]]] = {name: [] for name in HEADINGS}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record is not None and isinstance(param, click.Option):
                sections[getattr(param, "heading", RUNNING)].append(record)
        for name, records in sections.items():
            if records:
                with formatter.section(name):
                    formatter.write_dl(records)


class Verbs(Mapping[str, click.Command]):
    """The verbs as `--help` lists them, each imported once it is asked for."""

    def __init__(self, modules: Mapping[str, str]) -> None:
        """Of the names of verbs, each with that of the module here that has it."""
        self._modules = modules

    def __getitem__(self, name: str) -> click.Command:
        module = import_module(f"{__package__}.{self._modules[name]}")
        return next(one for one in vars(module).values() if isinstance(one, click.Command) and one.name == name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __len__(self) -> int:
        return len(self._modules)


class CommandLine(click.Group):
    """A command line of many verbs, in the order in which they are given; words of 1.0 are understood."""

    def main(self, args: Sequence[str] | None = None, *more: Any, **about: Any) -> Any:
        """Runs it, and ends the process."""
        with _refusing_full_stdout():
            return super().main(of_today(sys.argv[1:] if args is None else args), *more, **about)

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 as Click asks
        """The verbs as `--help` lists them."""
        return [*self.commands]


@contextmanager
def _refusing_full_stdout() -> Iterator[None]:
    """What Click prints, such as help, meets a full disk as a report does: one line, and exit code 2."""
    try:
        with quiet_pipe(sys.stdout) as stream:
            try:
                yield
            except SystemExit:
                stream.flush()
                raise
    except AuditError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(error.exit_code)


class Script(Verb):
    """The only command of a script; an interrupted one ends as an interrupted `txn-analysis` does."""

    def main(self, *args: Any, **about: Any) -> Any:
        """Runs it, and ends the process."""
        with ending_at_once(), stderr_on_drivers_log(), _refusing_full_stdout():
            return super().main(*args, **about)


def verb(
    name: str,
    example: str,
    forms: Forms | None = None,
    *,
    reads_files: bool = False,
    uses: Collection[str] = (),
    kind: type[Verb] = Verb,
) -> Callable[[Body], Verb]:
    """Makes `function(asked) -> exit code` a verb; its options are the fields of the class of `asked`.

    Args:
        name: the verb.
        example: command lines for the end of its help, one a line.
        forms: in which it prints; None where there is but one.
        reads_files: whether it reads more than the tables of a finished run.
        uses: of the options of judging and of the exit code those that mean something to it; no others are offered.
        kind: of command.

    Returns:
        A decorator. An option of the verb's own stands in place of a shared one of the same name.
    """
    foreign = {*JUDGING, *ENDING}.difference(uses)

    def made(body: Body) -> Verb:
        asked_class: type[Request] = get_type_hints(body)["asked"]

        def run(*, form: str | None = None, output: tuple[str, ...], **values: Any) -> None:
            given = {str(param.name): values.pop(str(param.name)) for param in settings}
            flags = {name: None if value == () else value for name, value in given.items()}
            asked = asked_class(flags=flags, is_job=kind is Script, **values)
            with reported_errors(debug=asked.debug), quietly(is_quiet=asked.quiet):
                asked = replace(asked, targets=targets_of(asked.files(output), form, forms))
                (take_from_one_heap if reads_files else keep_little_memory)()
                note_ignored(asked, foreign, is_of_run=not reads_files)
                raise click.exceptions.Exit(body(asked))

        options, of_all = asked_class.parameters(), len(Request.parameters())
        names = {spelling for param in options for spelling in param.opts}
        settings = [*setting_options(names, foreign)]
        params = [*options[of_all:], *output_options(forms), *settings, *options[:of_all]]
        epilog = "\b\nExample:\n" + "\n".join(f"  {line}" for line in example.splitlines())
        return kind(name, params=params, callback=run, help=inspect.getdoc(body), epilog=epilog, context_settings=LOOKS)

    return made


def job(name: str, example: str, forms: Forms | None = None, uses: Collection[str] = JUDGING) -> Callable[[Body], Verb]:
    """Makes `function(asked) -> exit code` the only command of a script of `jobs/`; arguments as of `verb`."""
    return verb(name, f"spark-submit jobs/{name}.py {example}", forms, reads_files=True, uses=uses, kind=Script)


def exit_code(outcome: Outcome, settings: Settings) -> int:
    """The code that a verb ends with which asks about findings."""
    return outcome.exit_code(accept_inconclusive=settings.accept_inconclusive, exit_zero=settings.exit_zero)


@contextmanager
def reported_errors(*, debug: bool) -> Iterator[None]:
    """Errors that users can mend become `error: ...` lines and exit code 2; a bug keeps its traceback, and ends so too.

    Python's own 1 would say that something hangs.
    """
    try:
        yield
    except AuditError as error:
        if is_interrupted():
            raise
        if debug:
            traceback.print_exc()
        for line in str(error).splitlines() or [type(error).__name__]:
            print(f"error: {escape(line)}", file=sys.stderr)
        raise click.exceptions.Exit(error.exit_code) from error
    except KeyboardInterrupt as error:
        raise Interrupted from error  # Click would make an error with exit code 1 of it
    except (click.exceptions.Exit, click.ClickException, BrokenPipeError):
        raise
    except Exception as error:
        if is_interrupted():
            raise
        traceback.print_exc()
        raise click.exceptions.Exit(AuditError.exit_code) from error


def note_ignored(asked: Request, foreign: Collection[str], *, is_of_run: bool = False) -> None:
    """Says on stderr which of the given options change nothing here."""
    judging, ending = ([name for name in names if name in foreign] for names in (JUDGING, ENDING))
    kept = "; the run keeps the settings it was made with" if is_of_run else ""
    for flags, why in ((asked.given(judging), kept), (asked.given(ending), "")):
        if flags:
            note(f"{', '.join(flags)}: no effect here{why}")
