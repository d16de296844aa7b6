"""Producer snapshots and transaction indexes: one line of kafka-dump-log is one entry of the file."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from txn_analysis.columns.arrays import ABSENT, known
from txn_analysis.kafka.names import LAST_TIME_MS
from txn_analysis.read.dump.forms import ABORTED_TRANSACTION, PRODUCER, PRODUCER_BATCH, PRODUCER_TIME
from txn_analysis.read.dump.line_form import LineForm
from txn_analysis.read.inputs.window import Window, merged
from txn_analysis.read.log_dir.producer_files import AbortedTxn, ProducerStateEntry

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from txn_analysis.read.inputs.planned_input import Section
    from txn_analysis.read.inputs.text import Text
    from txn_analysis.read.inputs.window import Record, Reject

_INT64_MAX = 2**63 - 1

_SNAPSHOT_LINE = re.compile(
    PRODUCER.bounded("producer_id", "producer_epoch", "coordinator_epoch")
    + b" (?:"
    + PRODUCER_TIME.bounded(*PRODUCER_TIME.names)
    + rb"(?: |(?=\n)))?(?:"
    + PRODUCER_BATCH.bounded(*PRODUCER_BATCH.names)
    + rb")?\n"
)
_SNAPSHOT_FORM = LineForm(PRODUCER.fields + PRODUCER_TIME.fields + PRODUCER_BATCH.fields)
_TXNINDEX_LINE = re.compile(ABORTED_TRANSACTION.bounded(*ABORTED_TRANSACTION.names[1:]) + rb"\n")


def read_snapshot_section(text: Text, section: Section) -> Iterator[ProducerStateEntry | Reject]:
    """The entries of the body of a `.snapshot` section, in file order, tools 1.1 to 4.3.

    A line that is not wholly an entry becomes a `Reject`; every other byte of the body is parsed.
    """
    return merged(_read_lines(text, section, _snapshot_entry, "not an entry of a snapshot"))


def read_txnindex_section(text: Text, section: Section) -> Iterator[AbortedTxn | Reject]:
    """The entries of the body of a `.txnindex` section, in file order; else as for snapshots."""
    return merged(_read_lines(text, section, _aborted_txn, "not an entry of a txnindex"))


def _read_lines(
    text: Text, section: Section, read: Callable[[bytes, Section], Record | None], reason: str
) -> Iterator[Record | Reject]:
    window = Window(text.read, section.text_start_bytes, section.text_end_bytes)
    while window.remaining > 0:
        length = window.line_end()
        entry = read(window.peek(0, length), section) if length else None
        if entry is None:
            yield window.reject_line(reason)
        else:
            window.advance(length)
            yield entry


def _numbers(found: re.Match[bytes] | None, form: LineForm) -> dict[str, int] | None:
    """The numbers of a line, -1 where one is not printed; None where one is outside its field's range in Kafka."""
    if found is None:
        return None
    numbers = {name: ABSENT if word is None else int(word) for name, word in found.groupdict().items()}
    is_in_range = form.holds(numbers) and all(ABSENT <= number <= _INT64_MAX for number in numbers.values())
    return numbers if is_in_range else None


def _snapshot_entry(line: bytes, section: Section) -> ProducerStateEntry | None:
    n = _numbers(_SNAPSHOT_LINE.fullmatch(line), _SNAPSHOT_FORM)
    if n is None:
        return None
    times = {n["last_timestamp"], n["timestamp"]} - {ABSENT}
    if len(times) > 1:  # both print the same stored field
        return None
    return ProducerStateEntry(
        topic=section.topic,
        partition=section.partition,
        snapshot_offset=section.file_base_offset,
        producer_id=n["producer_id"],
        producer_epoch=n["producer_epoch"],
        coordinator_epoch=known(n["coordinator_epoch"]),
        current_txn_start_offset=known(max(n["scala_offset"], n["java_offset"])),
        last_timestamp_ms=next((time for time in times if time <= LAST_TIME_MS), None),
        last_sequence=known(n["last_sequence"]),
        last_offset=known(n["last_offset"]),
    )


def _aborted_txn(line: bytes, section: Section) -> AbortedTxn | None:
    n = _numbers(_TXNINDEX_LINE.fullmatch(line), ABORTED_TRANSACTION)
    if n is None or n["last_offset"] < n["first_offset"]:
        return None
    return AbortedTxn(section.topic, section.partition, **n)
