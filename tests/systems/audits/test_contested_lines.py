"""A run that may have missed an open transaction is never green: lines of a dump that a client may have written."""

from dataclasses import replace
from pathlib import Path

from tests.tools.captures import run_audit
from tests.tools.forms.dump_writer import Tool, log_section
from tests.tools.forms.model import Batch, Segment
from tests.tools.repository import CASES
from tests.tools.sessions import no_session
from tests.unit.log.test_header_keys import DEEP, SHALLOW, data, marker
from txn_analysis.judge.outcome import Outcome
from txn_analysis.report.headline import headline
from txn_analysis.report.model import AuditReport

STATE = str(CASES / "kafka-4.2/capture-1/transaction-state")
ENDED = data(0, 1, size_bytes=200), marker(1, 1)
HIDING = replace(data(2, 3, headers="trace"), is_transactional=False)
"""A record with a header key, whose batch has room for all lines behind it."""
OPENS, OPENS_NOTHING = data(3, 4), replace(data(3, 4), is_transactional=False)


def audited(folder: Path, last: Batch, *tools: Tool) -> AuditReport:
    """A segment that ends with a batch behind the hiding one, as some tools print it, beside a real state."""
    for number, tool in enumerate(tools):
        text = log_section("orders-0", Segment(0, (*ENDED, HIDING, last)), tool)
        (folder / f"{number}.txt").write_text(text)
    return run_audit(no_session, str(folder / "warehouse"), [str(folder / "*.txt"), STATE])


def test_lines_that_would_open_a_transaction_leave_the_answer_open(tmp_path: Path) -> None:
    report = audited(tmp_path, OPENS, DEEP)
    assert (report.outcome.answer, len(report.findings)) == (Outcome.COULD_NOT_TELL, 0)
    assert headline(report).text.startswith("COULD NOT TELL: lines of a dump that may be text of a client")
    assert "without --deep-iteration" in report.outcome.settled_by[0].text


def test_lines_that_open_nothing_hide_nothing(tmp_path: Path) -> None:
    assert audited(tmp_path, OPENS_NOTHING, DEEP).outcome.answer is Outcome.CLEAN


def test_a_shallow_dump_of_the_segment_settles_it(tmp_path: Path) -> None:
    (found,) = audited(tmp_path, OPENS, DEEP, SHALLOW).findings
    assert found.producer_id == 4
