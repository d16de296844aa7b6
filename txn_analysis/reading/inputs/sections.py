"""What a `Dumping …` line and the first lines after it say about a section of a dump.

The grammar is that of `kafka-dump-log` (DumpLogSegments), 0.11 to 4.4.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from txn_analysis.kafka.names import INT32_MAX, LOG, NO_LINES, OFFSET_MAX, SNAPSHOT, STATE, STATE_TOPIC, TXNINDEX
from txn_analysis.reading.grammar.forms import (
    ABORTED_TRANSACTION,
    BATCH,
    BATCH_FORMS,
    LEGACY_BATCH,
    LEGACY_FORMS,
    OLD_DEEP,
    OLD_RECORD,
    OLD_RECORD_CRC,
    PRODUCER_FORMS,
    STARTING_OFFSET,
)
from txn_analysis.reading.grammar.line_form import FIRST, NEWEST, OPTIONAL, REST_OF_LINE, SCALA_OPTION, either
from txn_analysis.reading.grammar.noise import noise_end
from txn_analysis.reading.inputs.recognise import altered_lines
from txn_analysis.reading.inputs.refusals import Refusal, Refused

_FILE_NAME = re.compile(r"(\d{1,20})\.(log|snapshot|txnindex|index|timeindex)")
_OTHER_FILE = re.compile(
    r"\d+(?:-\d+)?\.checkpoint|bootstrap\.checkpoint|leader-epoch-checkpoint|partition\.metadata"
    r"|\d+\.\w+\.(?:deleted|cleaned|swap)"
)
_FOLDER = re.compile(r"([a-zA-Z0-9._-]{1,249})-(\d{1,10})")
# Of long topics the name is cut, so that it has at most 255 characters (`LocalLog.logDeleteDirName`).
_SET_ASIDE = re.compile(r".+\.[0-9a-f]{32}-(delete|future|stray)")
_HEADER = re.compile(STARTING_OFFSET.bounded("base_offset") + rb"\n")


@dataclass(frozen=True)
class DumpedFile:
    """The file that a `Dumping …` line names. `kind` is its suffix: log, snapshot or txnindex."""

    kind: str
    topic: str
    partition: int
    base_offset: int


@dataclass(frozen=True)
class Body:
    """What the first lines of a section show: its kind, and the span of tool versions that print such lines."""

    kind: str
    grammar: str


def parse_dump_path(path: str) -> DumpedFile | Refusal | None:
    r"""The partition and file of a dumped path; None where the name is not one that a broker gives to a file.

    Topic and partition stand only in the parent folder, split at its last `-`. Both `/` and `\` separate folders.
    """
    *folders, name = re.split(r"[/\\]", path)
    file = _FILE_NAME.fullmatch(name)
    if file is None:
        kind = Refused.KRAFT if name.endswith(".checkpoint") else Refused.NOT_DUMPED
        return kind.of(name) if _OTHER_FILE.fullmatch(name) else None
    suffix = file[2]
    if suffix in {"index", "timeindex"}:
        return Refused.INDEX.of(name)
    folder = folders[-1] if folders else ""
    if aside := set_aside(folder):
        return aside
    if not is_partition_folder(folder):
        return Refused.NO_PARTITION.of(path)
    if int(file[1]) > OFFSET_MAX:
        return Refused.NO_OFFSET.of(name)
    topic, _, partition = folder.rpartition("-")
    return DumpedFile(suffix, topic, int(partition), int(file[1]))


def is_partition_folder(folder: str) -> bool:
    """Whether a broker gives such a name, `<topic>-<partition>`, to the folder of a partition's log."""
    named = _FOLDER.fullmatch(folder)
    return named is not None and named[1] not in {".", ".."} and int(named[2]) <= INT32_MAX


def set_aside(folder: str) -> Refusal | None:
    """Why a partition's folder is not its log, by the suffix that the broker gave it; None where it has none."""
    set_aside = _SET_ASIDE.fullmatch(folder)
    if set_aside is None:
        return None
    what = {"delete": "deleted", "future": "future", "stray": "stray"}[set_aside[1]]
    return Refused.SET_ASIDE.of(folder, what)


def read_header(text: bytes, at: int, base_offset: int) -> int | None:
    """Where the body begins after a `.log` section's header line at `at`; None where that line does not stand there.

    The number is the file's name once more, not the partition's log start offset.
    """
    header = _HEADER.match(text, at)
    return header.end() if header and int(header["base_offset"]) == base_offset else None


_OF_2_0, _OF_2_1 = (2, 0), (2, 1)
_PRE_2_1_BATCH = re.compile(BATCH.of(FIRST, _OF_2_0).part("base_offset", "is_valid").loose(is_valid=REST_OF_LINE))
_OLD_RECORD = re.compile(
    OLD_RECORD.part("offset", "codec").loose(magic=b"[012]")
    + either(
        OLD_RECORD_CRC.loose(),
        OLD_RECORD.part("producer_id", "producer_epoch").loose("producer_epoch") + OLD_RECORD.label("sequence"),
    )
    + REST_OF_LINE
)
_WITHOUT_METADATA = re.compile(rb"\| key: | payload: ")
_DECODED = re.compile(rb"\| [^\n]*? key: [^\0\n]")  # the key itself begins with its version, 0
_COUNT = re.compile(rb" count: (\d+)")
_LEAST_BLANK_RECORDS = 3  # fewer blank lines at the end of a text are noise
_ANY_BATCH = re.compile(b"(?m)^" + BATCH.label("base_offset") + REST_OF_LINE)
_FULL_BATCH = re.compile(
    b"(?m)^"
    + BATCH.of(_OF_2_1, NEWEST).part("base_offset", "record_count").loose(record_count=rb"[1-9][^\n]*")
    + rb"\n"
)
_EARLY_LEGACY_BATCH = re.compile(
    REST_OF_LINE + LEGACY_BATCH.at(_OF_2_1).part("is_valid").loose() + LEGACY_BATCH.label("size")
)
_PRODUCER = PRODUCER_FORMS.forms[0]
_TXN_START = b"(?:(?P<scala>" + SCALA_OPTION.loose + b")|" + OPTIONAL.loose + b")"
_SNAPSHOT_LINE = re.compile(
    _PRODUCER.part("producer_id", "txn_start_offset").loose(txn_start_offset=_TXN_START)
    + (b"(?P<time>" + _PRODUCER.part("last_timestamp").loose() + b")?")
    + (b"(?:" + _PRODUCER.label("first_sequence") + REST_OF_LINE + rb"| |(?<=\d))")
)
_TXNINDEX_LINE = re.compile(ABORTED_TRANSACTION.loose())


def describe_body(file: DumpedFile, body: bytes) -> Body | Refusal:
    """Kind and grammar of a section from the first lines of its body (or all of it), which end at a newline."""
    line = _first_line(body)
    if line is None:
        is_state = file.kind == LOG and file.topic == STATE_TOPIC
        return Body(STATE if is_state else file.kind, NO_LINES)  # nothing that a decoder should have printed is missing
    if file.kind == SNAPSHOT:
        return _snapshot_body(body, line)
    if file.kind == TXNINDEX:
        known = _TXNINDEX_LINE.fullmatch(line)
        return Body(TXNINDEX, "0.11+") if known else Refused.UNKNOWN_LINE.of("transaction index")
    return _log_body(file, body, line)


def _first_line(body: bytes) -> bytes | None:
    at = noise_end(body, 0, len(body))
    return body[at:].partition(b"\n")[0] if at < len(body) else None


def _snapshot_body(body: bytes, line: bytes) -> Body | Refusal:
    known = _SNAPSHOT_LINE.fullmatch(line)
    if known is None and (altered := altered_lines(body, lambda one: _SNAPSHOT_LINE.fullmatch(one) is not None)):
        return altered
    if known is None and line.startswith(b"producerId: "):
        return Refused.OLD_SNAPSHOT.of()
    if known is None:
        return Refused.UNKNOWN_LINE.of("producer snapshot")
    if known["time"] is None:
        return Body(SNAPSHOT, "1.1-3.0")
    return Body(SNAPSHOT, "3.1-3.4" if known["scala"] else "3.5+")


def _log_body(file: DumpedFile, body: bytes, line: bytes) -> Body | Refusal:
    if _WITHOUT_METADATA.match(line):
        return Refused.NO_METADATA.of()
    if _PRE_2_1_BATCH.fullmatch(line):
        return Refused.OLD_SHALLOW.of()
    if old := _OLD_RECORD.fullmatch(line):
        return _old_deep_body(file, line, old)
    if LEGACY_FORMS.read(line):
        return _legacy_body(file, body)
    grammar = _grammar_of(line)
    if grammar is None:
        altered = altered_lines(body, lambda one: _grammar_of(one) is not None)
        return altered or Refused.UNKNOWN_LINE.of("log segment")
    return _batch_body(file, body, grammar)


def _old_deep_body(file: DumpedFile, line: bytes, old: re.Match[bytes]) -> Body | Refusal:
    # Record lines replace the batch lines; a decoded state record still says all that matters.
    if file.topic == STATE_TOPIC and old["producer_epoch"] is not None and b" key: transactionalId=" in line:
        return Body(STATE, OLD_DEEP)
    return Refused.OLD_DEEP.of()


def _legacy_body(file: DumpedFile, body: bytes) -> Body | Refusal:
    """A log that begins with message format 0 or 1; the first batch of format 2 names the grammar, if it is near."""
    batch = _ANY_BATCH.search(body)
    if batch and (grammar := _grammar_of(batch[0])):
        return _batch_body(file, body, grammar)
    return Body(LOG, "2.1" if _EARLY_LEGACY_BATCH.match(body) else "2.2-3.1")


def _grammar_of(line: bytes) -> str | None:
    return next((name for name, form in BATCH_FORMS.items() if form.pattern.fullmatch(line)), None)


def _batch_body(file: DumpedFile, body: bytes, grammar: str) -> Body | Refusal:
    batch = _FULL_BATCH.search(body)
    if batch and _has_blank_records(body, batch):
        return Refused.NO_METADATA.of()
    first_record = body[noise_end(body, batch.end(), len(body)) :] if batch else b""
    if _WITHOUT_METADATA.match(first_record):
        return Refused.NO_METADATA.of()
    if file.topic != STATE_TOPIC:
        return Body(LOG, grammar)
    # A body of nothing but empty batches has no record that a decoder could have left out.
    is_decoded = batch is None or _DECODED.match(first_record) is not None
    return Body(STATE if is_decoded else LOG, grammar)


def _has_blank_records(body: bytes, batch: re.Match[bytes]) -> bool:
    """Whether a blank line stands for each record of a batch, as without metadata and content; one can be noise."""
    at = batch.end()
    while body.startswith(b"\n", at):
        at += 1
    blank_count, record_count = at - batch.end(), int(_COUNT.findall(batch[0])[0])
    return blank_count == record_count and record_count >= (_LEAST_BLANK_RECORDS if at == len(body) else 2)
