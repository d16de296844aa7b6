"""Producer snapshots and transaction indexes as the broker wrote them; kafka-formats.md, 5.6."""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, NamedTuple

import google_crc32c

from txn_analysis.kafka.names import LAST_TIME_MS
from txn_analysis.read.inputs.window import Reject

if TYPE_CHECKING:
    from collections.abc import Iterator

    from txn_analysis.read.inputs.planned_input import Section
    from txn_analysis.read.inputs.text import Text


class ProducerStateEntry(NamedTuple):
    """One producer in one snapshot file: a row of `producer_snapshots` without its input."""

    topic: str
    partition: int
    snapshot_offset: int
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int | None
    current_txn_start_offset: int | None
    last_timestamp_ms: int | None
    last_sequence: int | None
    last_offset: int | None


class AbortedTxn(NamedTuple):
    """One entry of one transaction index: a row of `aborted_transactions` without its input."""

    topic: str
    partition: int
    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


SNAPSHOT_HEAD_BYTES, SNAPSHOT_ENTRY_BYTES, TXNINDEX_ENTRY_BYTES = 10, 46, 34
_VERSION = 1  # the only one in every release from 0.11 to 4.4
_CRC_START = 6
_HEAD = Struct(">hIi")
_ENTRY = Struct(">qhiqiqiq")
_TXNINDEX_ENTRY = Struct(">hqqqq")

CHANGED = "the file changed while it was read"


def snapshot_problem(data: bytes) -> str | None:
    """Why a `.snapshot` file is not to be believed; None where it is whole (`ProducerStateManager.readSnapshot`)."""
    if len(data) < SNAPSHOT_HEAD_BYTES:
        return "a producer snapshot that is cut short"
    version, crc, count = _HEAD.unpack_from(data)
    if version != _VERSION:
        return f"a producer snapshot of version {version}, which no broker up to 4.4 writes"
    if len(data) != SNAPSHOT_HEAD_BYTES + SNAPSHOT_ENTRY_BYTES * count:
        return "a producer snapshot that is cut short, or longer than it says"
    if int(google_crc32c.value(data[_CRC_START:])) != crc:
        return "a producer snapshot whose checksum is wrong"
    if any(entry[0] < 0 or entry[1] < 0 for entry in _ENTRY.iter_unpack(data[SNAPSHOT_HEAD_BYTES:])):
        return "a producer snapshot with a producer that cannot be"
    return None


def read_snapshot_file(text: Text, section: Section) -> Iterator[ProducerStateEntry | Reject]:
    """The entries of a snapshot, in file order.

    Where the file is no longer the whole snapshot that it was when it was planned, all of it is one `Reject`: what is
    missing in it would look like producers without a transaction.
    """
    data = text.read(section.text_start_bytes, section.text_end_bytes)
    if snapshot_problem(data) is not None:
        yield Reject(section.text_start_bytes, section.text_end_bytes - section.text_start_bytes, CHANGED)
        return
    for entry in _ENTRY.iter_unpack(data[SNAPSHOT_HEAD_BYTES:]):
        producer_id, epoch, last_sequence, last_offset, _, time_ms, coordinator_epoch, txn_start_offset = entry
        has_batch = last_offset >= 0
        yield ProducerStateEntry(
            topic=section.topic,
            partition=section.partition,
            snapshot_offset=section.file_base_offset,
            producer_id=producer_id,
            producer_epoch=epoch,
            coordinator_epoch=_known(coordinator_epoch),
            current_txn_start_offset=_known(txn_start_offset),
            last_timestamp_ms=time_ms if 0 <= time_ms <= LAST_TIME_MS else None,
            last_sequence=_known(last_sequence) if has_batch else None,
            last_offset=last_offset if has_batch else None,
        )


def read_txnindex_file(text: Text, section: Section) -> Iterator[AbortedTxn | Reject]:
    """The entries of a body of whole entries, in file order; else as for snapshots."""
    start, end = section.text_start_bytes, section.text_end_bytes
    data = text.read(start, end)
    whole = len(data) - len(data) % TXNINDEX_ENTRY_BYTES
    for at, (version, *numbers) in enumerate(_TXNINDEX_ENTRY.iter_unpack(data[:whole])):
        entry = AbortedTxn(section.topic, section.partition, *numbers)
        if version == 0 and min(numbers) >= 0 and entry.first_offset <= entry.last_offset:
            yield entry
        else:
            yield Reject(start + at * TXNINDEX_ENTRY_BYTES, TXNINDEX_ENTRY_BYTES, "not an entry of a txnindex")
    if start + whole < end:
        yield Reject(start + whole, end - start - whole, CHANGED)


def _known(value: int) -> int | None:
    return None if value < 0 else value
