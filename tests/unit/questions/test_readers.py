"""What lies ahead of a consumer, against a walk over every single offset."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from txn_analysis.questions.readers import Ahead, Fate, Run, longest

BATCH = pa.schema(
    [
        ("base_offset", pa.int64()),
        ("last_offset", pa.int64()),
        ("record_count", pa.int32()),
        ("producer_id", pa.int64()),
        ("is_transactional", pa.bool_()),
        ("is_control", pa.bool_()),
        ("size_bytes", pa.int32()),
    ]
)
ENDED = pa.schema(
    [
        ("producer_id", pa.int64()),
        ("txn_start_offset", pa.int64()),
        ("end_offset", pa.int64()),
        ("outcome", pa.string()),
    ]
)
OUTCOMES = {"COMMIT": Fate.DELIVERED, "ABORT": Fate.ABORTED, "ended": Fate.UNKNOWN}


class Batch(NamedTuple):
    """One batch of a history; what becomes of it is its `fate`."""

    base_offset: int
    last_offset: int
    record_count: int
    producer_id: int | None
    is_transactional: bool
    is_control: bool
    size_bytes: int
    fate: Fate


class Log:
    """As much of a `LinkedLog` as is asked: its batches, two at a time, the last ones first."""

    def __init__(self, batches: list[Batch]) -> None:
        self._batches = batches

    def batches(self, from_offset: int, *names: str) -> Iterator[pa.RecordBatch]:
        reaching = [batch for batch in self._batches if batch.last_offset >= from_offset]
        for start in reversed(range(0, len(reaching), 2)):
            rows = [batch._asdict() for batch in reaching[start : start + 2]]
            yield pa.RecordBatch.from_pylist(rows, BATCH).select([*names])


class History(NamedTuple):
    """Batches in order, the transactions among them, and the last stable offset."""

    batches: list[Batch]
    transactions: list[tuple[int, int, int | None, str]]
    last_stable_offset: int
    end_offset: int


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["data", "plain", "COMMIT", "ABORT", "ended", "hole"]), st.integers(0, 3), st.integers(1, 4)
    ),
    max_size=25,
)


@st.composite
def histories(draw: st.DrawFn) -> History:
    """Producers write, end their transactions in every way, or leave them open; compaction leaves holes."""
    offset, opened, batches, transactions = (
        0,
        dict[int, list[int]](),
        list[Batch](),
        list[tuple[int, int, int | None, str]](),
    )

    def add(count: int, producer: int | None, fate: Fate, *, control: bool = False) -> None:
        nonlocal offset
        batches.append(
            Batch(offset, offset + count - 1, count, producer, producer is not None, control, 10 * count, fate)
        )
        offset += count

    for what, producer, count in draw(STEPS):
        if what == "data":
            opened.setdefault(producer, []).append(len(batches))
            add(count, producer, Fate.OPEN)
        elif what == "plain":
            add(count, None, Fate.DELIVERED)
        elif what == "hole":
            offset += count
        else:
            own = opened.pop(producer, [])
            for index in own:
                batches[index] = batches[index]._replace(fate=OUTCOMES[what])
            if own:
                transactions.append((producer, batches[own[0]].base_offset, offset, what))
            add(1, producer, Fate.NO_RECORD, control=True)
    starts = {producer: batches[own[0]].base_offset for producer, own in opened.items()}
    transactions += [(producer, start, None, "open") for producer, start in starts.items()]
    return History(batches, transactions, min(starts.values(), default=offset), offset)


def ahead_of(history: History, from_offset: int) -> Ahead:
    rows = [dict(zip(ENDED.names, row, strict=True)) for row in history.transactions]
    ended = pa.Table.from_pylist([row for row in rows if row["outcome"] != "COMMIT"], ENDED)
    log: Any = Log(history.batches)  # has what `Ahead` asks of a `LinkedLog`
    return Ahead.of(log, ended, from_offset, history.last_stable_offset)


def runs_by_offset(history: History, from_offset: int) -> list[Run]:
    """The same, offset by offset; the bytes are those of the batches that begin in a run, or reach into it."""
    gives = {
        offset
        for batch in history.batches
        if batch.fate is Fate.DELIVERED
        for offset in range(batch.base_offset, batch.last_offset + 1)
    }
    runs: list[list[int]] = []
    for offset in range(from_offset, history.last_stable_offset):
        if offset in gives:
            runs.append([])
        else:
            runs = runs or [[]]
            runs[-1].append(offset)
    found = []
    for run in filter(None, runs):
        sizes = [b.size_bytes for b in history.batches if b.base_offset <= run[-1] and b.last_offset >= run[0]]
        found.append(Run(run[0], run[-1], sum(sizes)))
    return found


@given(histories(), st.integers(0, 40))
def test_runs_without_a_record_are_those_of_a_walk_over_every_offset(history: History, from_offset: int) -> None:
    assert [*ahead_of(history, from_offset).runs()] == runs_by_offset(history, from_offset)


@given(histories(), st.integers(0, 40))
def test_what_is_hidden_is_counted_by_its_fate(history: History, from_offset: int) -> None:
    hidden = ahead_of(history, from_offset).hidden
    above = [batch for batch in history.batches if batch.base_offset >= history.last_stable_offset]
    for fate in (Fate.DELIVERED, Fate.ABORTED, Fate.UNKNOWN, Fate.OPEN):
        assert hidden[fate] == sum(batch.record_count for batch in above if batch.fate is fate)


@given(histories(), st.integers(0, 40))
def test_the_first_transaction_that_ended_nobody_knows_how_is_named(history: History, from_offset: int) -> None:
    unknown = [
        max(batch.base_offset, from_offset)
        for batch in history.batches
        if batch.fate is Fate.UNKNOWN
        and from_offset <= batch.last_offset
        and batch.base_offset < history.last_stable_offset
    ]
    assert ahead_of(history, from_offset).unknown_offset == min(unknown, default=None)


def test_a_transaction_that_is_committed_inside_of_an_aborted_one_is_delivered() -> None:
    own = [1, 7, 1, 7]
    data = [Batch(at, at, 1, producer, True, False, 10, Fate.OPEN) for at, producer in enumerate(own)]
    for aborted, delivered in ((1, [1, 3]), (7, [0, 2])):
        history = History(data, [(aborted, 0, 9, "ABORT")], 4, 4)
        runs = [*ahead_of(history, 0).runs()]
        assert [run.first_offset for run in runs] == [offset for offset in range(4) if offset not in delivered]


def test_the_longest_of_several_runs_is_the_first_one() -> None:
    assert longest([Run(0, 1, 5), Run(4, 6, 7), Run(9, 11, 8)]) == Run(4, 6, 7)
    assert longest([]) is None
