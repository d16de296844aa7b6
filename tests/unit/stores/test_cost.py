"""Headers alone, or all of a segment: by the size of its batches, and by what requests took so far."""

import io
from pathlib import Path

import pytest

from benchmarks.log_dirs import write_log_dir
from tests.tools.s3_server import Bucket
from tests.tools.sessions import no_session
from tests.unit.stores.test_audits import LOG_DIR
from txn_analysis.pipeline.steps import audit
from txn_analysis.reading.inputs.find_files import find_files
from txn_analysis.reading.inputs.planning import plan_inputs
from txn_analysis.report.terminal import LineProgress
from txn_analysis.settings import Settings
from txn_analysis.stores.remote_file import Cost, cost_of

MIB = 1 << 20


def test_a_batch_is_read_whole_where_that_takes_less_time_than_one_more_request() -> None:
    assert Cost(request_s=0.03, byte_s=1e-8).bytes_per_request == 3_000_000
    assert Cost(request_s=0.001, byte_s=1e-8).bytes_per_request == 100_000


def test_short_requests_say_what_a_request_takes_and_long_ones_what_a_byte_does() -> None:
    cost = Cost()
    for _ in range(30):
        cost.learn(96, 0.03)
        cost.learn(4 * MIB, 0.03 + 4 * MIB * 2e-8)
    assert cost.request_s == pytest.approx(0.03)
    assert cost.byte_s == pytest.approx(2e-8, rel=0.01)


@pytest.mark.parametrize(("request_s", "are_headers_alone"), [(1e-6, True), (1.0, False)], ids=["fast", "slow"])
def test_of_large_batches_the_headers_alone_are_read_where_requests_are_fast(
    bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request_s: float, are_headers_alone: bool
) -> None:
    monkeypatch.setattr(Cost, "learn", lambda *_: None)
    monkeypatch.setattr(cost_of("s3://kept"), "request_s", request_s)
    write_log_dir(tmp_path, 2 * MIB, 16 << 10)
    bucket.put_folder(tmp_path, "copies")
    plan_inputs(no_session, find_files(["s3://kept/copies"]))
    assert (bucket.bytes_read < 0.06 * 2 * MIB) == are_headers_alone
    assert bucket.request_count < 200


def test_a_run_says_which_batches_were_read_whole(bucket: Bucket, tmp_path: Path) -> None:
    bucket.put_folder(LOG_DIR / "n1", "copies")
    said = io.StringIO()
    settings = {"warehouse": str(tmp_path / "w"), "transaction_state_partitions": 4}
    audit(no_session, ["s3://kept/copies"], Settings.model_validate(settings), LineProgress(said))
    (line,) = (line for line in said.getvalue().splitlines() if "segments of s3://kept" in line)
    assert " whole, of larger ones the headers alone, as a request takes " in line
