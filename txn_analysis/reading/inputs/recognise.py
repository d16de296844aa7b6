"""What kind of text a file holds, decided by the first of its text and never by its name."""

from __future__ import annotations

import re
from dataclasses import dataclass

import google_crc32c

from txn_analysis.kafka.batch_headers import UP_TO_MAGIC_BYTES
from txn_analysis.kafka.names import CONSOLE_JSON, CONSOLE_TEXT
from txn_analysis.reading.grammar.forms import (
    ABORTED_TRANSACTION,
    BATCH,
    DUMPING_START,
    LEGACY_BATCH,
    PRODUCER,
    RECORD,
    STARTING_OFFSET,
)
from txn_analysis.reading.grammar.noise import MARKS_OF_RECORDS, noise_end
from txn_analysis.reading.grammar.state_forms import CONSOLE_JSON_START, CONSOLE_TEXT_START
from txn_analysis.reading.inputs.altered import altered_text, glued_path
from txn_analysis.reading.inputs.refusals import Refusal, Refused
from txn_analysis.reading.log_dir.producer_files import SNAPSHOT_ENTRY_BYTES, SNAPSHOT_HEAD_BYTES, TXNINDEX_ENTRY_BYTES

HEAD_BYTES = (1 << 16) + (1 << 10)  # a console export's first record prints its id twice, of 32,767 bytes at most
# In POSIX and GNU tar the word lies behind the name and the numbers of the first file; zip begins so (APPNOTE 4.3.7).
_ARCHIVES = (("tar", 257, b"ustar"), ("zip", 0, b"PK\x03\x04"))
# Other brokers' files: BookKeeper's (`EntryLogger`), and Redpanda's (`model/record_utils.cc`), whose batch headers are
# in little-endian order and begin with a CRC-32C of the rest.
_BOOKKEEPER_MAGIC = b"BKLO"
_REDPANDA_HEADER_BYTES, _REDPANDA_CRC_BYTES = 61, 4

DUMP = "dump"


@dataclass(frozen=True)
class Recognition:
    """The kind of a file's text: `dump`, `console_text` or `console_json`.

    `start` is the byte of its first own line, after lines that the tool's environment printed before it. `grammar` is
    the span of tool versions, known here for console exports only.
    """

    kind: str
    start: int
    grammar: str | None = None


_MOST_TRIED = 64
_DEFAULT_FORMATTER = re.compile(
    rb"(?:(?:CreateTime|LogAppendTime):-?\d+|NO_TIMESTAMP|Partition:\d+|Offset:\d+|NO_HEADERS)\t"
)
_DUMP_LINE = re.compile(
    b"|".join(
        (
            STARTING_OFFSET.loose() + rb"\n",
            BATCH.label("base_offset") + rb"\d",
            RECORD.label("offset") + rb"\d",
            LEGACY_BATCH.part("last_offset").loose() + b" ",
            PRODUCER.part("producer_id").loose(producer_id=rb"\d+") + PRODUCER.label("producer_epoch"),
            ABORTED_TRANSACTION.part("version").bounded() + ABORTED_TRANSACTION.label("producer_id"),
        )
    )
)
_CHECKPOINT = re.compile(rb"0\n\d+\n(?:[^\s]+ \d+ -?\d+\n|\d+ \d+\n)*\Z")
_BROKER_FILE = re.compile(rb"version: 0\ntopic_id: |#\n#[^\n]*\n(?:[\w.]+=[^\n]*\n)*(?:cluster|node)\.id=")


def recognise(head: bytes, text_bytes: int) -> Recognition | Refusal:
    """The kind of a text of `text_bytes` bytes that begins with `head` (64 KiB of it, or all), or why it is refused."""
    if not head:
        return Refused.EMPTY.of()
    start = noise_end(head, 0, len(head))
    if head.startswith(DUMPING_START, start):
        if head[start : head.find(b"\n", start) + 1].endswith(b"\r\n"):
            return Refused.CR_LF.of()
        if altered := glued_path(head[start:].partition(b"\n")[0]):
            return altered
        return Recognition(DUMP, start)
    return (
        _recognised_export(head, _first_record(head, start))
        or _binary_refusal(head, text_bytes)
        or _text_refusal(head, start)
    )


def _first_record(head: bytes, start: int) -> int:
    """Where an export as text begins: ids are printed raw, so that its first lines can look like noise."""
    if not MARKS_OF_RECORDS.search(head):
        return start
    at = 0
    for tried in range(start):
        if at >= start:
            break
        line_end = head.index(b"\n", at) + 1
        if MARKS_OF_RECORDS.search(head, at, line_end) or (tried < _MOST_TRIED and CONSOLE_TEXT_START.match(head, at)):
            return at
        at = line_end
    return start


def _recognised_export(head: bytes, start: int) -> Recognition | Refusal | None:
    if json := CONSOLE_JSON_START.match(head, start):
        return Recognition(CONSOLE_JSON, start, "3.9" if json[1] == b"version" else "4.0+")
    if CONSOLE_TEXT_START.match(head, start):
        return Recognition(CONSOLE_TEXT, start, "0.11-3.9")
    if _DEFAULT_FORMATTER.match(head, start):
        return Refused.DEFAULT_FORMATTER.of()
    return None


def _binary_refusal(head: bytes, text_bytes: int) -> Refusal | None:
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return Refused.UTF_16.of()
    if (other := _other_broker(head)) is not None:
        return other
    for what, starts_at, magic in _ARCHIVES:
        if head.startswith(magic, starts_at):
            return Refused.ARCHIVE.of(what)
    if b"\x00" not in head:
        return None if _is_text(head) else Refused.BINARY.of()
    kind = _broker_binary(head, text_bytes)
    return Refused.BINARY.of() if kind is None else Refused.BROKERS_BINARY.of(kind)


def _other_broker(head: bytes) -> Refusal | None:
    """Files of brokers that speak Kafka's protocol and store something else."""
    header, crc = head[_REDPANDA_CRC_BYTES:_REDPANDA_HEADER_BYTES], head[:_REDPANDA_CRC_BYTES]
    is_whole = len(head) >= _REDPANDA_HEADER_BYTES and any(header)
    if is_whole and int(google_crc32c.value(header)) == int.from_bytes(crc, "little"):
        return Refused.REDPANDA.of()
    return Refused.BOOKKEEPER.of() if head.startswith(_BOOKKEEPER_MAGIC) else None


def _is_text(head: bytes) -> bool:
    try:
        head.decode()
    except UnicodeDecodeError as error:
        return len(head) == HEAD_BYTES and error.end == len(head)  # a character cut by the end of the head
    return True


def _broker_binary(head: bytes, text_bytes: int) -> str | None:
    """Which of the broker's binary files this is (kafka-formats.md, 5.5 and 5.6)."""
    version = int.from_bytes(head[:2], "big")
    entries = int.from_bytes(head[6:10], "big")
    if version == 1 and text_bytes == SNAPSHOT_HEAD_BYTES + SNAPSHOT_ENTRY_BYTES * entries:
        return "producer snapshot (.snapshot)"
    size = int.from_bytes(head[8:12], "big", signed=True)
    has_batch = len(head) >= UP_TO_MAGIC_BYTES and head[0] == 0 and size > 0
    if has_batch and head[16] in {0, 1, 2} and size <= max(text_bytes, len(head)):
        return "log segment (.log)"
    if version == 0 and text_bytes % TXNINDEX_ENTRY_BYTES == 0:
        return "transaction index (.txnindex)"
    return None


def _text_refusal(head: bytes, start: int) -> Refusal:
    if _DUMP_LINE.match(head, start):
        return Refused.NO_FIRST_LINE.of()
    if altered := altered_text(head):
        return altered
    if _CHECKPOINT.match(head) or _BROKER_FILE.match(head):
        return Refused.BROKERS_TEXT.of()
    return Refused.UNKNOWN_TEXT.of()
