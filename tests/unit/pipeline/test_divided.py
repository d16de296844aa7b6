"""However an audit divides its work, its answer is the same; and files of the state are divided by what they print."""

from pathlib import Path

import pyarrow as pa
import pytest

from tests.tools.captures import SEGMENTS, run_audit
from tests.tools.repository import CASES
from tests.tools.sessions import no_session, opened
from txn_analysis.tables import ABORT_PLAN, FINDINGS

CAPTURE = CASES / "kafka-4.2/capture-1"
PATHS = [str(CAPTURE / part) for part in SEGMENTS]


def test_nothing_depends_on_how_much_is_judged_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole, divided = str(tmp_path / "whole"), str(tmp_path / "divided")
    report = run_audit(no_session, whole, PATHS)
    monkeypatch.setattr("txn_analysis.pipeline.judging.MOST_AT_ONCE", 1)
    monkeypatch.setattr("txn_analysis.pipeline.run.bucket_count", lambda _: 5)
    assert run_audit(no_session, divided, PATHS) == report
    for table in (FINDINGS, ABORT_PLAN):
        rows, others = (
            pa.Table.from_batches(opened(each).batches(table)).sort_by("finding_id").to_pylist()
            for each in (whole, divided)
        )
        assert rows == others


def test_a_brokers_files_of_the_state_are_divided_as_finely_as_their_dumps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    printed_bytes = dict[str, int]()
    for part in ("transaction-state", "log-dirs"):

        def bucket_count(size_bytes: int, part: str = part) -> int:
            printed_bytes[part] = max(size_bytes, printed_bytes.get(part, 0))
            return 1

        monkeypatch.setattr("txn_analysis.pipeline.run.bucket_count", bucket_count)
        run_audit(no_session, str(tmp_path / part), [*map(str, (CAPTURE / part).rglob("*__transaction_state-*"))])
    assert 0.8 < printed_bytes["log-dirs"] / printed_bytes["transaction-state"] < 1.25
