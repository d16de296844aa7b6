"""Outputs that stand in README.md and docs/: what the commands print for the capture of `make demo`.

In the text each stands between `<!-- example NAME -->` and `<!-- /example -->`.
"""

import re
from itertools import islice

from tests.tools.docs.one_batch_line import walk
from tests.tools.repository import CASES, ROOT
from txn_analysis.questions import answers as queries
from txn_analysis.questions.filters import Filters
from txn_analysis.report.figures import Reader
from txn_analysis.report.markdown import markdown_report
from txn_analysis.report.model import AuditReport
from txn_analysis.runs.run_tables import RunTables

_TOP = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "data/README.md")
DOCUMENTS = sorted([*(ROOT / n for n in _TOP), *(ROOT / "docs").rglob("*.md")])
_OPTIONS = " --warehouse build/demo-warehouse"
READ_MS = 1_795_230_000_000  # the `--now` of `make demo`
_ORACLE = CASES / "kafka-4.2/capture-1/oracle"
_EXAMPLE = re.compile(r"(?<=<!-- example )([a-z-]+)( -->\n)```\n.*?```\n(?=<!-- /example -->)", re.DOTALL)


def outputs(report: AuditReport, tables: RunTables) -> dict[str, str]:
    """Every output by its name, of a report of the capture that `make demo` audits, and the tables of its run."""
    every, oracles = Filters(), sorted(_ORACLE.glob("find-hanging-*.txt"))
    describe = queries.describe(tables.current_states(), tables.as_of_ms, "inventory-sync")
    return {
        "demo-markdown": "".join(islice(markdown_report(report, Reader(_OPTIONS, now_ms=READ_MS)), 6)),
        "find-hanging": queries.find_hanging(tables.findings(), every).text(),
        "describe": describe.text(),
        "describe-producers": queries.describe_producers(tables, Filters(("payments",), (0,)), is_all=False).text(),
        "kafka-find-hanging": "".join(file.read_text(encoding="utf-8") for file in oracles),
        "one-batch-line": walk(tables),
    }


def with_examples(text: str, found: dict[str, str]) -> str:
    """The text with its examples as they are printed now."""
    return _EXAMPLE.sub(lambda match: f"{match[1]}{match[2]}```\n{plain(found[match[1]])}```\n", text)


def plain(output: str) -> str:
    """Without the spaces and tabs at the ends of lines, which editors take away."""
    return "".join(line.rstrip() + "\n" for line in output.splitlines())
