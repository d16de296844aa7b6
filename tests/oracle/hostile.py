"""Record keys and values that imitate the dump around them."""

from collections.abc import Iterator
from dataclasses import replace

from hypothesis import strategies as st

from tests.oracle.dump_writer import Tool, batch_line, record_line
from tests.oracle.model import Batch, History, Record, Segment, batch_bytes

FORGED = "{forged}"
HOSTILE_TEXTS = (
    "plain",
    "",
    "two\nlines",
    "\r",
    "\u2028\x85\x0b\x1c",
    " payload: x",
    "] key: y",
    "Dumping t-0/0.log",
    FORGED,
)


def hostile_texts() -> st.SearchStrategy[list[str]]:
    """Texts for `with_payloads`."""
    return st.lists(st.sampled_from(HOSTILE_TEXTS), min_size=1, max_size=6)


def forged_markers(history: History, after: Batch, position: int, tool: Tool) -> str:
    """Dump lines of an ABORT for every producer of the history.

    They stand at the offset and position where the dump goes on after that batch: the worst that its payload can say.
    """
    epochs = {batch.producer_id: batch.producer_epoch for batch in history.batches if batch.producer_id is not None}
    lines: list[str] = []
    for offset, (producer, epoch) in enumerate(sorted(epochs.items()), after.last_offset + 1):
        marker = Batch(
            offset,
            offset,
            1,
            producer,
            epoch,
            is_transactional=True,
            is_control=True,
            marker="ABORT",
            coordinator_epoch=9,
        )
        (record,) = marker.all_records()
        lines += [batch_line(marker, position, tool), record_line(record, marker, position, tool)]
        position += marker.size_bytes
    return "\n".join(["x", *lines])


def with_payloads(history: History, texts: list[str], *, tool: Tool) -> History:
    """The history with keys and values to print: the texts in turn, forged dump lines for a value of `{forged}`.

    Only text and record sizes change where a value is forged: the batch keeps its size, as if it were compressed, so
    that the positions in the forged lines are right.
    """
    segments: list[Segment] = []
    turns = _endless(texts)
    for segment in history.segments:
        sized = replace(segment, batches=tuple(_filled(batch, turns) for batch in segment.batches))
        forged = [
            _with_forged_values(batch, forged_markers(history, batch, position + batch.size_bytes, tool))
            for position, batch in sized.with_positions()
        ]
        segments.append(replace(segment, batches=tuple(forged)))
    return replace(history, segments=tuple(segments))


def _endless(texts: list[str]) -> Iterator[str]:
    while True:
        yield from texts


def _filled(batch: Batch, turns: Iterator[str]) -> Batch:
    if batch.is_control:
        return batch
    records = tuple(_with_text(record, next(turns), next(turns)) for record in batch.all_records())
    return replace(
        batch, records=records, size_bytes=batch_bytes((record.key_bytes, record.value_bytes) for record in records)
    )


def _with_text(record: Record, key: str, payload: str) -> Record:
    return replace(record, key=key, key_bytes=len(key.encode()), payload=payload, value_bytes=len(payload.encode()))


def _with_forged_values(batch: Batch, text: str) -> Batch:
    if batch.records is None:
        return batch
    records = (
        _with_text(record, record.key or "", text) if record.payload == FORGED else record for record in batch.records
    )
    return replace(batch, records=tuple(records))
