"""The habits of a shell: `help` and `version` as commands, and completion of words."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from txn_analysis import __version__
from txn_analysis.cli.completion import Shell, completion_script
from txn_analysis.cli.output import emit
from txn_analysis.cli.verbs import add_command


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


def version() -> None:
    """Print the version."""
    emit(f"txn-analysis {__version__}\n", None)


def completion(
    context: typer.Context, shell: Annotated[Shell, typer.Argument(metavar="SHELL", help="bash, zsh or fish.")]
) -> None:
    """Print a script with which a shell completes words.

    bash and zsh: `source <(txn-analysis completion bash)` in .bashrc, or with zsh, behind compinit, in .zshrc. fish:
    `txn-analysis completion fish > ~/.config/fish/completions/txn-analysis.fish`.
    """
    emit(completion_script(context.find_root().command, shell), None)


def add_to(app: typer.Typer) -> None:
    """Adds these verbs to the command line."""
    add_command(app, "help", "txn-analysis help audit")(help_)
    add_command(app, "version", "txn-analysis version")(version)
    add_command(app, "completion", "txn-analysis completion bash")(completion)
