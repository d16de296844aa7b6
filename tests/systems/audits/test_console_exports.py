"""Console exports carry no offsets: which of two speaks last for an id is told by the brokers' clock, and a record that
one of them repeats is one.
"""

from pathlib import Path

import pytest

from tests.tools.forms.dump_writer import Tool
from tests.tools.forms.model import StateRecord, StateValue
from tests.tools.forms.state_writer import console_text
from tests.tools.sessions import no_session, opened
from tests.tools.stories import histories
from tests.tools.world.texts import copy_of
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


def copied(folder: Path, form: str, until_ms: int) -> list[str]:
    """An id committed, and wrote on right after its marker; until then others commit every hour."""
    place, listed = ("orders", 0), [{"topic": "orders", "partition": 0}]
    world = histories.World(logs={place: []})

    def commit(name: str, producer_id: int, at_ms: int) -> None:
        states = ("Empty", 0), ("Ongoing", 10), ("PrepareCommit", 20), ("CompleteCommit", 40)
        for state, after_ms in states:
            of_it = listed if after_ms in {10, 20} else []
            world.record(histories.record(name, state, producer_id, at_ms + after_ms, topic_partitions=of_it))
        world.logs[place] += [histories.data(producer_id, at_ms + 15), histories.marker(producer_id, at_ms + 30)]

    commit("a", 1, NOON_MS)
    world.logs[place].append(histories.data(1, NOON_MS + 35))
    for number, at_ms in enumerate(range(NOON_MS + 60 * MINUTE_MS, until_ms, 60 * MINUTE_MS)):
        commit(f"other-{number}", 10 + number, at_ms)
    folder.mkdir()
    for name, text in copy_of(world).files(Tool((3, 7), deep=True), form).items():
        (folder / name).write_bytes(text)
    return [str(folder)]


@pytest.mark.parametrize("forms", [("text", "text"), ("json", "json"), ("json", "dump"), ("text", "dump")])
def test_a_commit_that_an_export_repeats_is_one(warehouse: str, tmp_path: Path, forms: tuple[str, str]) -> None:
    """Its second copy stood for another commit, whose marker was lost: from then on what hangs had no answer, or was
    suspect alone, with exit code 0.
    """
    words = {"transaction_state_partitions": 1, "transaction_state_complete": True, "no_records_lost": True}
    settings = Settings.model_validate({"warehouse": warehouse, "cluster": f"given as {' and '.join(forms)}"} | words)
    for night, form in enumerate(forms):
        files = copied(tmp_path / f"night-{night}", form, NOON_MS + (3 + 2 * night) * 60 * MINUTE_MS)
        report = pipeline.audit(no_session, files, settings)
        assert report.findings.column("rule").to_pylist() == ["partition_not_in_transaction"]
