"""The command line `txn-analysis`."""

from __future__ import annotations

from typing import Annotated

import typer

from txn_analysis.cli import audit_verbs, demo, keeping_verbs, plan_verbs, query_verbs, shell_verbs, why_verbs
from txn_analysis.cli.options import (
    ENDING,
    JUDGING,
    AuditFormat,
    DecisionFormat,
    Format,
    Rendering,
    ReportFormat,
    RowFormat,
)
from txn_analysis.cli.verbs import CommandLine, verb

app = CommandLine(
    name="txn-analysis",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)


_EXAMPLE = """\b
Example:
  txn-analysis audit segments/ transaction-state/
Your shell completes verbs and options after (or with zsh_source, fish_source):
  eval "$(_TXN_ANALYSIS_COMPLETE=bash_source txn-analysis)"
"""


@app.callback(invoke_without_command=True, epilog=_EXAMPLE)
def txn_analysis(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version.", is_eager=True)] = False,
    verbose: shell_verbs.Verbose = False,
) -> None:
    """Find hanging Kafka transactions in files copied off the brokers, and what would end them.

    Nothing here connects to a broker. The report goes to stdout, everything else to stderr. Exit codes: 0 nothing
    hangs, 1 something does, 2 something could not be read or done, 3 it could not be told, 130 interrupted.
    """
    if version:
        shell_verbs.version(verbose)
    elif verbose:
        raise typer.BadParameter("it says more of --version: give both", param_hint="--verbose")
    elif context.invoked_subcommand is None:
        print(context.get_help())
    else:
        return
    raise typer.Exit


_COULD_NOT_TELL = ("exit_zero", "accept_inconclusive")  # of verbs that answer, but not whether something hangs
_asserted = (
    "txn-analysis audit segments/ transaction-state/ --state-copied-last\n"
    "  txn-analysis audit copies/ --topic orders --partition 0\n"
    "  kafka-dump-log.sh --files orders-0/00000000000000000000.log | txn-analysis audit --no-judge --capture tonight -"
)
verb(app, "audit", _asserted, form=AuditFormat, reads_files=True, uses=(*JUDGING, *ENDING))(audit_verbs.audit)
_told_again = "txn-analysis report --topic orders\n  txn-analysis report --anonymize -o for-a-vendor.html"
verb(app, "report", _told_again, form=ReportFormat, uses=ENDING)(audit_verbs.report)
verb(app, "find-hanging", "txn-analysis find-hanging --topic orders", form=RowFormat, uses=ENDING)(
    query_verbs.find_hanging
)
verb(app, "list", "txn-analysis list --state Ongoing --duration-filter 60000", form=RowFormat)(query_verbs.list_)
verb(app, "describe", "txn-analysis describe --transactional-id billing-worker-17", form=RowFormat)(
    query_verbs.describe
)
_of_one = "txn-analysis describe-producers --topic orders --partition 0"
verb(app, "describe-producers", _of_one, form=RowFormat)(query_verbs.describe_producers)
_addresses = (
    "txn-analysis explain orders-0@161\n  txn-analysis explain orders-0:205\n"
    "  txn-analysis explain --group billing-readers"
)
verb(app, "explain", _addresses, form=Format, uses=_COULD_NOT_TELL)(why_verbs.explain)
_causes = (
    "txn-analysis ended --topic orders --cause coordinator_timeout\n"
    "  txn-analysis ended --by id --since 2026-11-20T00:00:00Z"
)
verb(app, "ended", _causes, form=RowFormat)(why_verbs.ended)
_each_topic = 'txn-analysis query "SELECT topic, count(*) AS hanging FROM findings GROUP BY topic ORDER BY topic"'
verb(app, "query", _each_topic, form=RowFormat)(query_verbs.query)
_planned = "txn-analysis abort-plan --format commands -o plan.sh\n  txn-analysis abort-plan orders-0@161"
verb(app, "abort-plan", _planned, form=Rendering)(plan_verbs.abort_plan)
verb(app, "verify", "txn-analysis verify --history", form=RowFormat, uses=(*_COULD_NOT_TELL, "accepted"))(
    plan_verbs.verify
)
_told = "txn-analysis accept orders-0@161 --until 2026-12-24 --reason 'gone with the topic'"
verb(app, "accept", _told, form=DecisionFormat)(keeping_verbs.accept)
_held = "txn-analysis captures --warehouse txn-warehouse\n  txn-analysis captures -o nights.csv"
verb(app, "captures", _held, form=RowFormat, uses=("accepted",))(audit_verbs.captures)
_gone = (
    "txn-analysis forget --capture capture-127d9c186fa3\n"
    "  txn-analysis forget --warehouse txn-warehouse --older-than 90d --dry-run"
)
verb(app, "forget", _gone, form=Format, reads_files=True)(keeping_verbs.forget)
app.add("copy-kit", "txn-analysis copy-kit > copy-kit.sh", lambda: shell_verbs.copy_kit)
app.add("demo", "txn-analysis demo --to /tmp/hanging", lambda: demo.demo)
verb(app, "doctor", "txn-analysis doctor --warehouse s3://audits/txn-warehouse", form=Format, uses=("master",))(
    shell_verbs.doctor
)
