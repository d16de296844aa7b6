"""The command line `txn-analysis`."""

from __future__ import annotations

from typing import Annotated

import typer

from txn_analysis.cli import audit_verbs, capture_verbs, explain_verbs, plan_verbs, query_verbs, shell_verbs

app = typer.Typer(
    name="txn-analysis",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)


@app.callback(invoke_without_command=True, epilog="\b\nExample:\n  txn-analysis audit segments/ transaction-state/")
def txn_analysis(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version.", is_eager=True)] = False,
) -> None:
    """Find hanging Kafka transactions in files copied off the brokers, and what would end them.

    Nothing here connects to a broker. The report goes to stdout, everything else to stderr. Exit codes: 0 nothing
    hangs, 1 something does, 2 something could not be read or done, 3 it could not be told, 130 interrupted.
    """
    if version:
        shell_verbs.version()
    elif context.invoked_subcommand is None:
        print(context.get_help())
    else:
        return
    raise typer.Exit


for _verbs in (audit_verbs, query_verbs, explain_verbs, plan_verbs, capture_verbs, shell_verbs):
    _verbs.add_to(app)
