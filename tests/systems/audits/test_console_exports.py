"""Console exports carry no offsets: which of two speaks last for an id is told by the brokers' clock."""

from pathlib import Path

from tests.tools.forms.model import StateRecord, StateValue
from tests.tools.forms.state_writer import console_text
from tests.tools.sessions import no_session, opened
from txn_analysis.pipeline import steps as pipeline
from txn_analysis.runs.asked_states import current_states
from txn_analysis.runs.past_run import Evidence, PastRun
from txn_analysis.settings import Settings

NOON_MS, MINUTE_MS = 1_795_230_000_000, 60_000


def record(state: str, minute: int, *, name: str = "orders-tx", producer: int = 1) -> StateRecord:
    partitions = (("orders", 0),) if state == "Ongoing" else ()
    at_ms = NOON_MS + minute * MINUTE_MS
    return StateRecord(name, StateValue(producer, 0, state, partitions, at_ms, 60_000, at_ms if partitions else None))


def test_of_two_exports_in_one_capture_the_later_one_counts(warehouse: str, tmp_path: Path) -> None:
    others = [record("Empty", 1, name=f"other-{number}", producer=100 + number) for number in range(50)]
    earlier = [record("Ongoing", 0), *others, record("CompleteCommit", 2)]
    (tmp_path / "a-later.txt").write_text(console_text([record("Ongoing", 5)]))
    (tmp_path / "b-earlier.txt").write_text(console_text(earlier))
    settings = Settings(warehouse=warehouse, cluster="two exports")
    pipeline.ingest(no_session, [str(tmp_path)], settings)
    evidence = Evidence.of_capture(opened(warehouse), "two exports")
    settings = settings.model_copy(update={"transaction_state_partitions": 4})
    run = PastRun(evidence.warehouse, "of tonight", evidence, settings, None)
    found = current_states(run)
    current = dict(zip(found["transactional_id"].to_pylist(), found["state"].to_pylist(), strict=True))
    assert current["orders-tx"] == "Ongoing"
    assert len(current) == 51
