"""What kind of text a file holds, decided by the first of its text and never by its name; or what was done to it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import google_crc32c

from txn_analysis.kafka.batch_headers import UP_TO_MAGIC_BYTES
from txn_analysis.kafka.names import CONSOLE_JSON, CONSOLE_TEXT
from txn_analysis.reading.grammar.forms import (
    ABORTED_TRANSACTION,
    BATCH,
    CONSOLE_AFTER_ID,
    CONSOLE_JSON_START,
    CONSOLE_TEXT_START,
    DUMPING_START,
    LEGACY_BATCH,
    PRODUCER,
    RECORD,
    STARTING_OFFSET,
)
from txn_analysis.reading.grammar.noise import MARKS_OF_RECORDS, noise_end, says_stop
from txn_analysis.reading.inputs.refusals import Refusal, Refused
from txn_analysis.reading.log_dir.producer_files import SNAPSHOT_ENTRY_BYTES, SNAPSHOT_HEAD_BYTES, TXNINDEX_ENTRY_BYTES
from txn_analysis.text import escape

_MARK = re.compile(
    rb"Dumping [^\n ]{1,4000}\.(?:log|snapshot|txnindex)\b|\bbaseOffset: \d+ lastOffset: |\| offset: \d+ "
    rb'|\bproducerId: \d+ producerEpoch: |\{"key":\{"|::TransactionMetadata\(transactionalId='
)
# Without it an export would look whole.
_PART_OF_RECORD = re.compile(rb"[}\]]\}|\}\s*\Z|(?:\A|\d)\)\n|\"\w+\":|, \w+=|Timestamp=\d|::NULL\n")
_TABLE = re.compile(
    rb"(?m)^[A-Za-z()| \t]*(?:ProducerId[ \t|]+(?:ProducerEpoch|TransactionState)|CurrentTransactionStartOffset)"
)
_PRETTY = re.compile(rb'[\s\[]*\{\s*"(?:key|value)"\s*:\s*\{\s*"(?:type|version|data)"\s*:')
_BYTE_ORDER_MARK, _COLOUR = b"\xef\xbb\xbf", re.compile(rb"\x1b\[[0-9;]*[mK]")
_NUMBER = re.compile(rb" *\d+[:\t ] ?")
_MOST_SHOWN = 40
_MOST_PIECES = 8
_COLOURS_IN_LINES = Refused.COLOURS.of("in its lines")


def altered_text(head: bytes) -> Refusal | None:
    """What stands in a text that begins with `head` where its first line should; None where no line of Kafka's is seen.

    No text is shown but what two lines begin with alike.
    """
    if head.startswith(_BYTE_ORDER_MARK):
        return Refused.BYTE_ORDER_MARK.of()
    if _PRETTY.match(head, noise_end(head, 0, len(head))):
        return Refused.FORMATTED_JSON.of()
    mark = _MARK.search(head)
    if mark is None:
        is_table = _TABLE.match(head, noise_end(head, 0, len(head)))
        return Refused.TABLE.of() if is_table else None
    return _before_mark(head, mark)


def _before_mark(head: bytes, mark: re.Match[bytes]) -> Refusal | None:
    """What stands in front of the first line of Kafka's that is seen."""
    at = _marked_at(head, mark)
    start = head.rfind(b"\n", 0, at) + 1
    number, before = head.count(b"\n", 0, start) + 1, head[start:at]
    is_text_export, is_export = mark[0].startswith(b":"), mark[0].startswith((b":", b"{"))
    if is_export and (_PART_OF_RECORD.search(head, 0, at) or (is_text_export and at == mark.start())):
        return Refused.NO_FIRST_RECORD.of()
    if before:
        return _in_front(head, start, number, before)
    if _DUMP_LINE.match(head, at):
        return Refused.NO_FIRST_LINE.of()
    has_stopped = any(says_stop(line, 0, len(line)) for line in head[:start].splitlines())
    kind = Refused.STOPPED_IN_FRONT if has_stopped else Refused.LINES_IN_FRONT
    return kind.of(number, how=f"Take them off: tail -n +{number} FILE > NEW_FILE") if number > 1 else None


def _marked_at(head: bytes, mark: re.Match[bytes]) -> int:
    """Where the line of a mark begins; a record of an export as text begins with its id, which it prints once more."""
    name = head[mark.end() : head.find(CONSOLE_AFTER_ID, mark.end())]
    return mark.start() - len(name) * (mark[0].startswith(b"::") and head.endswith(name, 0, mark.start()))


def _in_front(head: bytes, start: int, number: int, before: bytes) -> Refusal:
    where = f"in front of what line {number} says"
    if _COLOUR.search(before):
        return Refused.COLOURS.of(where)
    if not before.strip():
        return Refused.INDENTED.of(where)
    if _NUMBER.fullmatch(before):
        return Refused.NUMBERED.of(where)
    following = head[head.find(b"\n", start) + 1 :].partition(b"\n")[0]
    length = len(before.decode(errors="replace"))
    is_alike = following.startswith(before) and length <= _MOST_SHOWN
    what = f"`{escape(before.decode(errors='replace'))}` stands" if is_alike else f"{length} characters stand"
    cut = f"Cut them off: sed -E 's/^.{{{length}}}//' FILE > NEW_FILE"
    return Refused.PREFIXED.of(what, where, how=cut if is_alike or number == 1 else f"{cut}, if each line has so many")


def altered_lines(body: bytes, is_line: Callable[[bytes], bool]) -> Refusal | None:
    """What was done to the first line of a section's body, which is none; None where nothing is known.

    Args:
        body: the first lines of it.
        is_line: whether some bytes are a whole line of this section.
    """
    lines = body.split(b"\n", _MOST_PIECES + 1)[: _MOST_PIECES + 1]
    first = lines[0]
    if is_line(first.rstrip(b" \t\r")):
        return Refused.SPACES_BEHIND.of()
    if is_line(_COLOUR.sub(b"", first)):
        return _COLOURS_IN_LINES
    for joint in (b"", b" "):
        if any(is_line(joint.join(lines[:count])) for count in range(2, len(lines) + 1)):
            return Refused.BROKEN_LINES.of()
    for at in range(1, min(len(first), 200)):
        if is_line(first[at:]):
            shown = escape(first[:at].decode(errors="replace"))
            is_alike = at <= _MOST_SHOWN and (len(lines) < 2 or not lines[1] or lines[1].startswith(first[:at]))
            what = f"`{shown}` stands" if is_alike else f"{at} bytes stand"
            cut = f"Cut them off: sed -E '/^(Dumping|Log starting|Starting) /!s/^.{{{at}}}//' FILE > NEW_FILE"
            return Refused.PREFIXED.of(what, "in front of its lines", how=cut)
    if (number := next((number for number, line in enumerate(lines) if is_line(line)), 0)) > 0:
        what = "a line" if number == 1 else f"{number} lines"
        return Refused.LINES_OF_OTHERS.of(f"{what} of others stand{'s' if number == 1 else ''}")
    return None


def glued_path(line: bytes) -> Refusal | None:
    """What is wrong with a `Dumping` line that names no file of a broker's; None where nothing is known."""
    if line != line.rstrip(b" \t\r"):
        return Refused.SPACES_BEHIND.of()
    if _COLOUR.search(line):
        return _COLOURS_IN_LINES
    if re.search(rb"\.(?:log|snapshot|txnindex)(?=[A-Z]?[a-z]+[A-Z ]\w*[ :])", line):
        return Refused.GLUED_LINES.of()
    return None


HEAD_BYTES = (1 << 16) + (1 << 10)  # a console export's first record prints its id twice, of 32,767 bytes at most
# In POSIX and GNU tar the word lies behind the name and the numbers of the first file; zip begins so (APPNOTE 4.3.7).
_ARCHIVES = (
    ("a tar", 257, b"ustar"),
    ("a zip", 0, b"PK\x03\x04"),
    ("a gzip", 0, b"\x1f\x8b"),  # these are what was in a compressed text, or compressed otherwise
    ("a zstd", 0, b"\x28\xb5\x2f\xfd"),
    ("a bzip2", 0, b"BZh"),
    ("an xz", 0, b"\xfd7zXZ\x00"),
    ("an lz4", 0, b"\x04\x22\x4d\x18"),
    ("a 7z", 0, b"7z\xbc\xaf\x27\x1c"),
)
_UTF_16 = b"\xff\xfe", b"\xfe\xff", b"D\0u\0m\0p\0"
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
    if text := CONSOLE_TEXT_START.match(head, start):
        is_cr_lf = head.endswith(b"\r\n", 0, head.find(b"\n", text.end()) + 1)
        return Refused.CR_LF.of() if is_cr_lf else Recognition(CONSOLE_TEXT, start, "0.11-3.9")
    if _DEFAULT_FORMATTER.match(head, start):
        return Refused.DEFAULT_FORMATTER.of()
    return None


def _binary_refusal(head: bytes, text_bytes: int) -> Refusal | None:
    if head.startswith(_UTF_16):
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
