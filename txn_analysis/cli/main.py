"""The command line `txn-analysis`."""

from __future__ import annotations

import click

from txn_analysis.cli.verbs import LOOKS, CommandLine, Verbs

_MODULES = {
    "audit": "audit_verbs",
    "report": "audit_verbs",
    "find-hanging": "query_verbs",
    "list": "query_verbs",
    "describe": "query_verbs",
    "describe-producers": "query_verbs",
    "explain": "why_verbs",
    "ended": "why_verbs",
    "query": "query_verbs",
    "abort-plan": "plan_verbs",
    "verify": "plan_verbs",
    "accept": "keeping_verbs",
    "captures": "audit_verbs",
    "forget": "keeping_verbs",
    "copy-kit": "shell_verbs",
    "demo": "demo",
    "doctor": "shell_verbs",
}
_EXAMPLE = """\b
Example:
  txn-analysis audit segments/ transaction-state/
Your shell completes verbs and options after (or with zsh_source, fish_source):
  eval "$(_TXN_ANALYSIS_COMPLETE=bash_source txn-analysis)"
"""


@click.group(
    "txn-analysis",
    cls=CommandLine,
    commands=Verbs(_MODULES),
    invoke_without_command=True,
    epilog=_EXAMPLE,
    context_settings=LOOKS,
)
@click.option("--version", is_flag=True, help="Print the version.")
@click.option(
    "--verbose", is_flag=True, help="Print what a report of a bug needs as well: packages, Python, system, Java."
)
@click.pass_context
def app(context: click.Context, *, version: bool, verbose: bool) -> None:
    """Find hanging Kafka transactions in files copied off the brokers, and what would end them.

    First audit, then ask: the other verbs ask the cluster's last run. orders-0@161 is the transaction that begins at
    offset 161 of partition 0 of orders, and orders-0:205 an offset. Nothing here connects to a broker. The report goes
    to stdout, everything else to stderr. Exit codes: 0 nothing hangs, 1 something does, 2 something could not be read
    or done, 3 it could not be told, 130 interrupted.
    """
    if version:
        from txn_analysis.cli import shell_verbs  # no verb needs it but its own

        shell_verbs.version(is_verbose=verbose)
        context.exit()
    if verbose:
        raise click.BadParameter("it says more of --version: give both", param_hint="--verbose")
    if context.invoked_subcommand is None:
        print(context.get_help())
