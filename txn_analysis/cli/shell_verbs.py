"""The verbs that read no warehouse: `version`, `doctor`, `help`, texts that are printed, and completion of words.

The scripts with which bash, zsh and fish complete a command line list verbs, options and values as they are when it is
printed: at a tab no Python starts, which would take a third of a second. What is hidden in `--help` is not offered.
"""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import typer

from txn_analysis import __version__
from txn_analysis.cli.options import Request, Schema
from txn_analysis.cli.output import deliver, deliver_text, emit

if TYPE_CHECKING:
    from collections.abc import Iterator

SCRIPT = Path(__file__).with_name("copy-kit.sh")
RUNBOOK = Path(__file__).with_name("runbook.md")
_FILES = frozenset({"FILE", "DIR", "PATH"})


Shell = Literal["bash", "zsh", "fish"]


class Option(NamedTuple):
    """An option of a verb: its spellings, the first sentence of its help, and what may follow it.

    `values` are its choices; without any a file follows where `is_file`, something else where `takes_value`.
    """

    flags: tuple[str, ...]
    help: str
    values: tuple[str, ...] = ()
    takes_value: bool = False
    is_file: bool = False


class Verb(NamedTuple):
    """A verb: the first line of its help, its options, and the words that may follow it; None for files."""

    name: str
    help: str
    options: tuple[Option, ...]
    words: tuple[str, ...] | None


def completion_script(group: Any, shell: Shell) -> str:
    """The script for one shell; `group` is the command line, as typer has it."""
    verbs = [_verb(name, command, [*group.commands]) for name, command in group.commands.items()]
    lines = {"bash": _bash, "zsh": _zsh, "fish": _fish}[shell](verbs)
    return "".join(f"{line}\n" for line in lines)


def _verb(name: str, command: Any, names: list[str]) -> Verb:
    context = command.make_context(name, [], resilient_parsing=True)
    options = [_option(p, context) for p in command.params if p.param_type_name == "option" and not p.hidden]
    words: tuple[str, ...] | None = ()
    for argument in (p for p in command.params if p.param_type_name == "argument"):
        words = tuple(names) if argument.metavar == "VERB" else _choices(argument, context) or None
    return Verb(name, command.get_short_help_str(200), (*options, Option(("-h", "--help"), "Show its help.")), words)


def _option(param: Any, context: Any) -> Option:
    flags = tuple(sorted((*param.opts, *param.secondary_opts), key=len))
    help_ = (param.help or "").partition(". ")[0].rstrip(".")
    if param.is_flag or param.count:
        return Option(flags, help_)
    return Option(flags, help_, _choices(param, context), takes_value=True, is_file=param.metavar in _FILES)


def _choices(param: Any, context: Any) -> tuple[str, ...]:
    """The values that it may have, as they are typed; none where there are too many to be named."""
    return tuple(str(item.value) for item in param.shell_complete(context, ""))


def _bash(verbs: list[Verb]) -> Iterator[str]:
    yield "# Completion of txn-analysis for bash:  source <(txn-analysis completion bash)"
    yield "_txn_analysis() {"
    yield "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} verb= each offered="
    yield '    for each in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do'
    yield "        case $each in -*) ;; *) verb=$each; break ;; esac"
    yield "    done"
    yield "    COMPREPLY=()"
    yield '    case "$verb $before" in'
    for verb in verbs:
        for option in (option for option in verb.options if option.takes_value):
            cases = " | ".join(f'"{verb.name} {flag}"' for flag in option.flags)
            yield f'        {cases}) offered="{" ".join(option.values)}" ;;'
    yield '        *) case "$verb $word" in'
    for verb in verbs:
        flags = " ".join(flag for option in verb.options for flag in option.flags)
        yield f'            "{verb.name} -"*) offered="{flags}" ;;'
        if verb.words:
            yield f'            "{verb.name} "*) offered="{" ".join(verb.words)}" ;;'
    yield '            " -"*) offered="--help --version --verbose" ;;'
    yield f'            " "*) offered="{" ".join(verb.name for verb in verbs)}" ;;'
    yield "        esac ;;"
    yield "    esac"
    yield '    COMPREPLY=($(compgen -W "$offered" -- "$word"))'
    yield "}"
    yield "complete -o default -F _txn_analysis txn-analysis"


def _zsh(verbs: list[Verb]) -> Iterator[str]:
    yield "#compdef txn-analysis"
    yield "# Completion of txn-analysis for zsh, behind compinit:  source <(txn-analysis completion zsh)"
    yield "_txn_analysis() {"
    yield "    local -a verbs=("
    for verb in verbs:
        yield f"        {shlex.quote(f'{verb.name}:{verb.help}')}"
    yield "    )"
    yield "    if (( CURRENT == 2 )); then"
    yield "        _describe verb verbs"
    yield "        return"
    yield "    fi"
    yield "    local verb=$words[2]"
    yield "    shift words"
    yield "    (( CURRENT-- ))"
    yield "    case $verb in"
    for verb in verbs:
        rest = "*:file:_files" if verb.words is None else f"1:word:({' '.join(verb.words)})" if verb.words else ""
        specs = [spec for option in verb.options for spec in _zsh_specs(option)] + ([rest] if rest else [])
        yield f"        {verb.name}) _arguments {' '.join(map(shlex.quote, specs))} ;;"
    yield "    esac"
    yield "}"
    yield "compdef _txn_analysis txn-analysis"


def _zsh_specs(option: Option) -> Iterator[str]:
    said = option.help.replace("[", "(").replace("]", ")").replace(":", ",")
    value = ""
    if option.takes_value:
        value = (
            f":value:({' '.join(option.values)})" if option.values else ":file:_files" if option.is_file else ":value: "
        )
    return (f"*{flag}[{said}]{value}" for flag in option.flags)


def _fish(verbs: list[Verb]) -> Iterator[str]:
    yield "# Completion of txn-analysis for fish: put it into ~/.config/fish/completions/txn-analysis.fish"
    yield "complete -c txn-analysis -n __fish_use_subcommand -f"
    yield "complete -c txn-analysis -n __fish_use_subcommand -l version -d 'Print the version'"
    for verb in verbs:
        yield f"complete -c txn-analysis -n __fish_use_subcommand -a {verb.name} -d {_fish_word(verb.help)}"
    for verb in verbs:
        condition = f"complete -c txn-analysis -n '__fish_seen_subcommand_from {verb.name}'"
        if verb.words is not None:
            yield f"{condition} -f" + (f" -a {_fish_word(' '.join(verb.words))}" if verb.words else "")
        for option in verb.options:
            yield f"{condition} {_fish_option(option)}"


def _fish_option(option: Option) -> str:
    flags = " ".join(f"-l {flag[2:]}" if flag.startswith("--") else f"-s {flag[1:]}" for flag in option.flags)
    value = ""
    if option.takes_value:
        value = (
            f" -x -a {_fish_word(' '.join(option.values))}" if option.values else " -r -F" if option.is_file else " -x"
        )
    return f"{flags}{value} -d {_fish_word(option.help)}"


def _fish_word(text: str) -> str:
    """In single quotes fish knows two escapes alone."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def help_(
    context: typer.Context,
    verb: Annotated[str | None, typer.Argument(metavar="VERB", help="The verb; without one, all are listed.")] = None,
) -> None:
    """Show all verbs, or the help of one."""
    group: Any = context.find_root()
    if verb is None:
        emit(group.get_help() + "\n", None)
        return
    name, command, _ = group.command.resolve_command(group, [verb])
    with command.make_context(name, [], parent=group, resilient_parsing=True) as of_verb:
        emit(of_verb.get_help() + "\n", None)


def copy_kit() -> None:
    """Print the script that copies log directories.

    `txn-analysis copy-kit > copy-kit.sh`, and on each broker `sh copy-kit.sh --to DIR LOG_DIR...`. It needs a POSIX
    shell and coreutils there, or busybox; `sh copy-kit.sh --help` lists its options.
    """
    emit(SCRIPT.read_text(encoding="utf-8"), None)


def runbook() -> None:
    """Print how a hanging transaction is ended.

    It is docs/runbook.md of this version, in Markdown.
    """
    emit(RUNBOOK.read_text(encoding="utf-8"), None)


def completion(
    context: typer.Context, shell: Annotated[Shell, typer.Argument(metavar="SHELL", help="bash, zsh or fish.")]
) -> None:
    """Print a script with which a shell completes words.

    bash and zsh: `source <(txn-analysis completion bash)` in .bashrc, or with zsh, behind compinit, in .zshrc. fish:
    `txn-analysis completion fish > ~/.config/fish/completions/txn-analysis.fish`.
    """
    emit(completion_script(context.find_root().command, shell), None)


Verbose = Annotated[
    bool, typer.Option("--verbose", help="Print what a report of a bug needs as well: packages, Python, system, Java.")
]


def version(verbose: Verbose = False) -> None:
    """Print the version."""
    emit(f"txn-analysis {__version__}\n", None)
    if verbose:
        from txn_analysis.engine.machine import versions  # the first line needs nothing of it

        emit("".join(f"{name:13}{found}\n" for name, found in versions(os.environ)), None)


def doctor(request: Request, schema: Schema = False) -> int:
    """Show what is here for audits, and what is missing.

    Python's packages, memory, disk, Java and Spark; up to how much this process judges; what a cluster of Spark would
    need as well. Spark is not started, and no store and no cluster is asked.

    Exit code: 0 audits run here, if only of what this process may hold; 2 none does.
    """
    settings = request.settings()
    from txn_analysis.engine.machine import Machine, machine, machine_text
    from txn_analysis.errors import AuditError
    from txn_analysis.questions.answers import json_text, schema_text

    if schema:
        deliver_text(request.targets, schema_text(Machine))
        return 0
    found = machine(settings, os.environ, __version__)
    deliver(request.targets, {"json": lambda: json_text(found), "text": lambda: machine_text(found)})
    return 0 if found.can_audit else AuditError.exit_code
