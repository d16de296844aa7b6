"""Reconstruction agrees with a plain state machine of the broker's rules on random logs, however the text is split."""

from dataclasses import asdict, replace

from hypothesis import given
from hypothesis import strategies as st

from tests.tools.compiling import NEVER, NOTHING, loading_takes
from tests.tools.forms.broker import Partition, replay
from tests.tools.forms.dump_writer import Tool
from tests.tools.forms.history import Producer, Step, histories, play
from tests.tools.forms.model import History
from tests.tools.log_evidence import LinkedPartition, history_evidence, link, link_history
from txn_analysis.tables import ProducerState

DEEP = (Tool(deep=True), Tool((2, 2), deep=True), Tool((2, 8), deep=True), Tool((3, 3), payload=True))
SPLITS = st.sampled_from((150, 700, 5_000, 1_000_000))


def open_by_producer(linked: LinkedPartition) -> dict[int, int]:
    return {t.producer_id: t.txn_start_offset for t in linked.transactions if t.outcome == "open"}


def problems(linked: LinkedPartition) -> list[str]:
    """What is wrong with the evidence, but for batches that compaction emptied: it has passed nothing that is open."""
    return [p.reason for p in linked.health.problems if p.kind != "empty_batch"]


def producers_of(partition: Partition) -> tuple[ProducerState, ...]:
    return tuple(
        ProducerState(
            producer_id,
            entry.producer_epoch,
            entry.coordinator_epoch,
            entry.last_sequence,
            entry.last_timestamp_ms,
            entry.txn_start_offset,
        )
        for producer_id, entry in sorted(partition.producers.items())
    )


@given(histories(), st.sampled_from(DEEP), SPLITS)
def test_producer_state_is_the_brokers(history: History, tool: Tool, range_bytes: int) -> None:
    truth = replay(history.batches, from_offset=history.segments[0].base_offset)
    linked = link_history(history, tool, range_bytes=range_bytes)
    assert linked.health.producers == producers_of(truth)
    assert linked.health.last_stable_offset == truth.last_stable_offset
    assert problems(linked) == []


@given(histories(), SPLITS)
def test_open_transactions_count_their_own_data(history: History, range_bytes: int) -> None:
    truth = replay(history.batches, from_offset=history.segments[0].base_offset)
    linked = link_history(history, DEEP[0], range_bytes=range_bytes)
    found = {t.producer_id: t for t in linked.transactions if t.outcome == "open"}
    expected = {p: asdict(e.txn) for p, e in truth.producers.items() if e.txn}
    assert {p: (t.record_count, t.size_bytes, t.last_offset) for p, t in found.items()} == {
        p: (t["record_count"], t["size_bytes"], t["last_offset"]) for p, t in expected.items()
    }


def newest_ended(history: History, producer_id: int) -> tuple[int | None, bool]:
    """The last timestamp of the producer's newest ended transaction, and whether its coordinator epoch has fallen."""
    last_ms, found, epochs = None, None, []
    for batch in (b for b in history.batches if b.producer_id == producer_id):
        if batch.is_end_marker and last_ms is not None:
            found, last_ms = last_ms, None
            epochs.append(batch.coordinator_epoch or 0)
        elif batch.is_transactional and not batch.is_control:
            last_ms = batch.max_timestamp_ms
    return found, bool(epochs) and epochs[-1] < max(epochs)


rounds = st.lists(st.tuples(st.integers(0, 1), st.booleans(), st.sampled_from((0, -5, 9)), st.booleans()), max_size=12)


def ends_and_one_more(rounds: list[tuple[int, bool, int, bool]], *, epochs_fall: bool) -> History:
    """Transactions of two producers that end, with coordinators that move, and one more of each that stays open."""
    steps = []
    for producer, moves, clock_ms, rolls in rounds:
        steps += [Step("coordinator_moves", producer)] * moves + [Step("roll", 0)] * rolls
        steps += [Step("data", producer, client_clock_ms=clock_ms), Step("commit", producer, wait_ms=7)]
    history = play([*steps, Step("data", 0), Step("data", 1)], (Producer(1000, 0, 0), Producer(1001, 0, 0)))
    return with_falling_epochs(history) if epochs_fall else history


def with_falling_epochs(history: History) -> History:
    segments = []
    for segment in history.segments:
        batches = [replace(b, coordinator_epoch=99 - (b.coordinator_epoch or 0)) for b in segment.batches]
        segments.append(replace(segment, batches=tuple(batches)))
    return replace(history, segments=tuple(segments))


@given(rounds, SPLITS, st.booleans())
def test_what_came_before_is_known_however_the_text_is_split(
    rounds: list[tuple[int, bool, int, bool]], range_bytes: int, epochs_fall: bool
) -> None:
    history = ends_and_one_more(rounds, epochs_fall=epochs_fall)
    opened = [t for t in link_history(history, DEEP[0], range_bytes=range_bytes).transactions if t.outcome == "open"]
    assert len(opened) == 2
    for row in opened:
        found = row.previous_last_timestamp_ms, row.has_coordinator_epoch_fallen
        assert found == newest_ended(history, row.producer_id)


@given(histories(), SPLITS, st.data())
def test_a_snapshot_stands_for_deleted_segments(history: History, range_bytes: int, data: st.DataObject) -> None:
    first = data.draw(st.integers(0, len(history.segments) - 1), label="first segment that is left")
    offset = history.segments[first].base_offset
    linked = link_history(history, DEEP[0], range_bytes=range_bytes, snapshots=[offset], from_segment=first)
    truth = replay(history.batches, from_offset=history.segments[0].base_offset)
    assert linked.health.producers == producers_of(truth)
    assert all(t.is_txn_start_exact for t in linked.transactions if t.outcome == "open")
    assert problems(linked) == []


@given(histories(), SPLITS, st.data())
def test_snapshots_at_any_offset_agree(history: History, range_bytes: int, data: st.DataObject) -> None:
    bounds = [b.base_offset for b in history.batches] or [history.end_offset]
    offsets = data.draw(st.lists(st.sampled_from(bounds), max_size=3, unique=True), label="snapshots")
    linked = link_history(history, DEEP[0], range_bytes=range_bytes, snapshots=offsets)
    assert problems(linked) == []
    assert linked.health.producers == producers_of(replay(history.batches, from_offset=history.segments[0].base_offset))


@given(histories(), SPLITS, st.data())
def test_python_and_compiled_code_replay_alike(history: History, range_bytes: int, data: st.DataObject) -> None:
    """With snapshots, some of them of another log, and whatever files are left."""
    offsets = st.sampled_from([b.base_offset for b in history.batches] or [history.end_offset])
    segments = range(len(history.segments))
    first = data.draw(st.sampled_from(segments), label="first segment that is left")
    given = history_evidence(
        history,
        DEEP[0],
        range_bytes=range_bytes,
        snapshots=data.draw(st.lists(offsets, max_size=2, unique=True), label="snapshots"),
        from_segment=first,
        lost=data.draw(st.sets(st.sampled_from(segments)), label="lost segments") - {first},
    )
    for stated in given.stated.values():
        field = data.draw(st.sampled_from(["producer_epoch", "current_txn_start_offset"]), label="stated otherwise")
        stated[field][::2] += data.draw(st.integers(0, 2), label="by")
    with loading_takes(NEVER):
        plain = link(given)
    with loading_takes(NOTHING):
        assert link(given) == plain


@given(histories(), SPLITS, st.data())
def test_a_snapshot_that_disagrees_is_named(history: History, range_bytes: int, data: st.DataObject) -> None:
    truth = replay(history.batches, from_offset=history.segments[0].base_offset)
    if not truth.open_starts():
        return
    linked = link_history(history, DEEP[0], range_bytes=range_bytes, snapshots=[history.end_offset])
    assert open_by_producer(linked) == truth.open_starts()


@given(histories(), SPLITS)
def test_a_missing_middle_segment_breaks_what_began_before_it(history: History, range_bytes: int) -> None:
    whole = [s for s in history.segments if s.batches]
    if len(whole) < 3:
        return
    cut = History(history.topic, history.partition, (whole[0], *whole[2:]))
    linked = link_history(cut, DEEP[0], range_bytes=range_bytes)
    began_before = [t for t in linked.transactions if t.outcome == "open" and t.txn_start_offset < whole[2].base_offset]
    assert all(t.evidence_gaps for t in began_before)
