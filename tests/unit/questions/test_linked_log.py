"""The log of one partition, put together of the copies that several brokers held."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import pyarrow as pa
import pytest

from txn_analysis.questions.linked_log import Gap, LinkedLog, LinkedPiece

BATCH = pa.schema(
    [("input_id", pa.string()), ("section_index", pa.int32()), ("position", pa.int64()), ("base_offset", pa.int64()),
     ("last_offset", pa.int64()), ("leader_epoch", pa.int32())]
)  # fmt: skip


class Batch(NamedTuple):
    """One batch of two offsets, of one copy."""

    broker: str
    base_offset: int
    leader_epoch: int


class Run:
    """As much of a run as is asked: the batches of its evidence, copy by copy, and no sections."""

    def __init__(self, batches: list[Batch]) -> None:
        self.evidence, self._batches = self, batches

    def batches(self, _: Any, *names: str, input_id: list[str], **__: Any) -> Iterator[pa.RecordBatch]:
        for broker in sorted(input_id):
            own = [b for b in self._batches if b.broker == broker]
            rows = [(broker, 0, b.base_offset, b.base_offset, b.base_offset + 1, b.leader_epoch) for b in own]
            columns = zip(*rows, strict=True)
            arrays = [pa.array(c, f.type) for c, f in zip(columns, BATCH, strict=True)]
            yield pa.RecordBatch.from_arrays(arrays, schema=BATCH).select([*names])


def copies(batches: list[Batch], end_offset: int) -> LinkedLog:
    """Each broker's batches are one piece."""
    pieces = []
    for broker in sorted({b.broker for b in batches}):
        own = sorted(b.base_offset for b in batches if b.broker == broker)
        pieces.append(LinkedPiece("i", broker, 0, own[0], own[-1] + 2, own[0], own[-1] + 1, None, None, 0))
    pieces.sort(key=lambda piece: piece.first_offset)
    return LinkedLog(Run(batches), "orders", 0, tuple(pieces), end_offset)  # type: ignore[arg-type]


def taken(log: LinkedLog, from_offset: int = 0) -> list[tuple[int, int]]:
    """Base offset and leader epoch of the batches of the log."""
    rows = [row for batch in log.batches(from_offset, "base_offset", "leader_epoch") for row in batch.to_pylist()]
    return sorted((row["base_offset"], row["leader_epoch"]) for row in rows)


@pytest.mark.parametrize("old_leader", ["a", "z"])
def test_what_a_new_leader_truncated_is_not_in_the_log(old_leader: str) -> None:
    """The old leader wrote up to offset 9 alone; the new one goes on from offset 6."""
    batches = [Batch(old_leader, at, 0) for at in range(0, 10, 2)]
    batches += [Batch("n", at, 0 if at < 6 else 1) for at in range(0, 14, 2)]
    expected = [(0, 0), (2, 0), (4, 0), (6, 1), (8, 1), (10, 1), (12, 1)]
    assert taken(copies(batches, 14)) == expected


def test_each_offset_of_two_copies_counts_once_and_one_fills_what_the_other_lacks() -> None:
    batches = [Batch("a", at, 0) for at in range(0, 8, 2)] + [Batch("b", at, 0) for at in range(4, 12, 2)]
    log = copies(batches, 12)
    assert taken(log) == [(at, 0) for at in range(0, 12, 2)]
    assert taken(log, 7) == [(6, 0), (8, 0), (10, 0)]
    assert log.gaps == ()


def test_the_log_ends_where_the_run_says() -> None:
    """A dead leader's tail that nobody else holds, and that the run did not count."""
    assert taken(copies([Batch("a", at, 0) for at in range(0, 10, 2)], 6)) == [(0, 0), (2, 0), (4, 0)]


def test_offsets_that_no_copy_holds_are_a_gap() -> None:
    log = copies([Batch("a", 0, 0), Batch("b", 6, 0), Batch("c", 2, 0)], 8)
    assert (log.gaps, log.gap_at(5), log.gap_at(2)) == ((Gap(4, 5),), Gap(4, 5), None)
