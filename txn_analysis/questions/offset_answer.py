"""The answer about one offset, as data and as text: what is there, what a consumer gets, and what holds it."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import Annotated, NamedTuple

from txn_analysis.kafka.address import Address
from txn_analysis.kafka.names import LOG_APPEND_TIME, is_brokers_time, is_brokers_topic
from txn_analysis.questions.readers import Run
from txn_analysis.report.finding_text import explain_command
from txn_analysis.report.model import InJson, Item
from txn_analysis.report.terminal import Paragraph, text_of
from txn_analysis.text import clip, count, escape, iso_utc, size


class Found(StrEnum):
    """What is at an offset."""

    DATA = "data"  # outside of transactions
    COMMITTED_DATA = "committed_data"
    ABORTED_DATA = "aborted_data"
    ENDED_DATA = "ended_data"  # of a transaction that ended; the dump does not say how
    OPEN_DATA = "open_data"
    END_MARKER = "end_marker"
    CONTROL_BATCH = "control_batch"  # of another kind
    COMPACTED = "compacted"  # nothing: compaction removed what was there
    DELETED = "deleted"  # nothing: it is below the log start
    NOT_IN_FILES = "not_in_files"
    BEYOND_END = "beyond_end"


class Gets(StrEnum):
    """What a `read_committed` consumer gets that stands at an offset."""

    RECORD = "record"
    NOTHING_YET = "nothing_yet"  # it waits at the last stable offset
    SKIPS = "skips"  # its position moves on, to a later record or to the last stable offset
    OUT_OF_RANGE = "out_of_range"  # OffsetOutOfRange, and what auto.offset.reset says
    UNKNOWN = "unknown"


class BatchAt(NamedTuple):
    """The batch that holds an offset; `record_count` are those that compaction left."""

    base_offset: int
    last_offset: int
    record_count: int | None
    producer_id: int | None
    producer_epoch: int | None
    is_transactional: bool
    is_control: bool
    marker: str | None
    coordinator_epoch: int | None
    max_timestamp_ms: int | None
    timestamp_type: str | None
    size_bytes: int
    is_valid: bool | None
    is_contested: bool
    may_be_header_keys: bool

    @property
    def is_doubted(self) -> bool:
        """Its bytes are damaged, or may be text of a client."""
        return self.is_valid is False or self.is_contested or self.may_be_header_keys

    @property
    def is_whole(self) -> bool:
        """No record of it was removed."""
        return self.record_count == self.last_offset - self.base_offset + 1


class TransactionAt(NamedTuple):
    """The transaction whose data or end marker is at an offset; `end_offset` is None while it is open."""

    producer_id: int
    txn_start_offset: int
    end_offset: int | None
    outcome: str
    transactional_ids: tuple[str, ...]


class Blocker(NamedTuple):
    """The open transaction that holds the last stable offset, with its verdict."""

    producer_id: int
    transactional_id: str | None
    txn_start_offset: int
    verdict: str
    rule: str


class BoundedReader(NamedTuple):
    """What a reader misses that stops at the end offset which a broker gives for `read_committed`.

    It ends at `ends_at_offset`, without an error; None where the start of the open transaction is not in the files, nor
    the log start that took its place. Above lie `committed_record_count` records that are outside of
    transactions or committed, `aborted_record_count` that nobody is ever given, `open_record_count` whose transactions
    are open, and `unknown_record_count` of transactions that ended nobody knows how; None where batches do not say how
    many records they hold. Where `is_whole` is false, some of what lies above is not in the files: the counts are of
    what is.
    """

    ends_at_offset: int | None
    committed_record_count: int | None
    aborted_record_count: int | None
    open_record_count: int | None
    unknown_record_count: int | None
    is_whole: bool


class OffsetAnswer(Item):
    """What is at one offset, and what a `read_committed` consumer gets that stands there; None where it is not known.

    `is_told` is false where the files leave it open, and `missing` says what would tell. `lag_to_end` is what lag
    exporters show, `lag_to_last_stable` what the consumer itself reports. `next_record_offset` is the first one at or
    above the offset that holds, or may hold, a record for it; `longest_run` is the longest run of offsets from there
    to the last stable offset that give it none, None also where the files do not say of all of them.
    """

    run_id: str
    topic: str
    partition: int
    offset: int
    found: Found
    gets: Gets
    is_told: bool
    batch: Annotated[BatchAt, InJson(BatchAt)] | None = None
    transaction: Annotated[TransactionAt, InJson(TransactionAt)] | None = None
    first_offset: int | None
    log_start_offset: int | None
    end_offset: int | None
    last_stable_offset: int | None
    lag_to_end: int | None = None
    lag_to_last_stable: int | None = None
    next_record_offset: int | None = None
    longest_run: Annotated[Run, InJson(Run)] | None = None
    blocked_by: Annotated[Blocker, InJson(Blocker)] | None = None
    bounded_reader: Annotated[BoundedReader, InJson(BoundedReader)] | None = None
    missing: tuple[str, ...] = ()

    @property
    def is_all_read(self) -> bool:
        """No record is left for the consumer, and no transaction holds it: its lag stays, and nothing hangs."""
        return (
            self.gets is Gets.SKIPS
            and self.next_record_offset is None
            and self.last_stable_offset == self.end_offset
            and self.blocked_by is None
        )


_ID_WIDTH = 80

_WHAT = {
    Found.DATA: "data outside of transactions",
    Found.COMMITTED_DATA: "data of a committed transaction",
    Found.ABORTED_DATA: "data of an aborted transaction",
    Found.ENDED_DATA: "data of a transaction that ended; the files do not say how",
    Found.OPEN_DATA: "data of an open transaction",
    Found.END_MARKER: "an end marker",
    Found.CONTROL_BATCH: "a control batch",
    Found.COMPACTED: "nothing: compaction removed it",
    Found.DELETED: "nothing: it is below the log start",
    Found.NOT_IN_FILES: "in no file",
    Found.BEYOND_END: "beyond the end of the copied log",
}


def offset_text(answer: OffsetAnswer, options: str = "") -> str:
    """The answer as text.

    Args:
        answer: about one offset.
        options: they complete the commands in it, such as ` --warehouse /data/audit`.
    """
    place = Address(answer.topic, answer.partition, answer.offset, is_transaction=False)
    return f"{escape(str(place))}: {_WHAT[answer.found]}\n{text_of(_paragraphs(answer, options))}"


def _paragraphs(answer: OffsetAnswer, options: str) -> Iterator[Paragraph]:
    if answer.batch is not None:
        yield Paragraph("there", _batch(answer, answer.batch))
    yield Paragraph("reader", _reader(answer))
    yield Paragraph("missing", facts=tuple(map(escape, answer.missing)))
    if answer.lag_to_end is not None:
        yield Paragraph("lag", _lag(answer))
    if answer.longest_run is not None:
        run = answer.longest_run
        many = f"{count(run.offset_count, 'offset')}, {size(run.size_bytes)}"
        yield Paragraph("run", f"the longest one ahead without a record: from offset {run.first_offset} on, {many}")
    if answer.blocked_by is not None:
        yield Paragraph("blocked", _blocked(answer.blocked_by))
    if answer.bounded_reader is not None:
        yield Paragraph("bounded", bounded_sentence(answer.bounded_reader))
    if answer.blocked_by is not None:
        address = Address(answer.topic, answer.partition, answer.blocked_by.txn_start_offset)
        yield Paragraph("explain", command=explain_command(address, answer.run_id, options))


def _batch(answer: OffsetAnswer, batch: BatchAt) -> str:
    records = "" if batch.is_control or batch.record_count is None else f", {count(batch.record_count, 'record')}"
    if not batch.is_control and batch.record_count is not None and not batch.is_whole:
        records += " left by compaction, perhaps not this one"
    kind = f"{batch.marker or 'end marker'} of " if batch.is_control and batch.producer_id is not None else ""
    is_one = batch.base_offset == batch.last_offset
    where = f"offset {batch.base_offset}" if is_one else f"offsets {batch.base_offset} to {batch.last_offset}"
    parts = [f"{where}{records}, {size(batch.size_bytes)}"]
    if batch.producer_id is not None:
        epoch = "" if batch.producer_epoch is None else f", epoch {batch.producer_epoch}"
        parts.append(f"{kind}producer id {batch.producer_id}{epoch}")
    one = answer.transaction
    if one is not None:
        ids = " or ".join(clip(name, _ID_WIDTH) for name in one.transactional_ids)
        parts.append(f"transactional id {ids}" if ids else "no transactional id is known")
        end = "" if one.end_offset is None else f", its end marker is at offset {one.end_offset}"
        parts.append(f"the transaction begins at offset {one.txn_start_offset}{end}")
    if batch.max_timestamp_ms is not None:
        whose = "" if _is_brokers(answer.topic, batch) else " (client)"
        parts.append(f"written {iso_utc(batch.max_timestamp_ms)}{whose}")
    return "; ".join(parts)


def _is_brokers(topic: str, batch: BatchAt) -> bool:
    return is_brokers_time(
        is_control=batch.is_control,
        is_append_time=batch.timestamp_type == LOG_APPEND_TIME,
        is_brokers_topic=is_brokers_topic(topic),
    )


def _reader(answer: OffsetAnswer) -> str:
    """What a `read_committed` consumer gets that stands there."""
    if not answer.is_told:
        return "it could not be told what a read_committed consumer gets there"
    stable = answer.last_stable_offset
    if answer.gets is Gets.OUT_OF_RANGE:
        return (
            f"a consumer that asks for it gets OffsetOutOfRange, and goes on where auto.offset.reset says: the log "
            f"starts at offset {answer.log_start_offset}"
        )
    if answer.gets is Gets.NOTHING_YET:
        where = ", below what was copied," if stable is None else f" {stable}"
        return f"a read_committed consumer waits: it gets nothing from the last stable offset{where} on"
    if answer.gets is Gets.RECORD:
        return (
            "a read_committed consumer gets it: no transaction holds it there. If it comes no further, its own "
            "handling of the record is the reason"
        )
    return _skips(answer)


def _skips(answer: OffsetAnswer) -> str:
    begins = "a read_committed consumer gets no record there, and its position moves on"
    if answer.next_record_offset is not None:
        skipped = count(answer.next_record_offset - answer.offset, "offset")
        return f"{begins}: polls return nothing for {skipped}, up to the record at offset {answer.next_record_offset}"
    if answer.is_all_read:
        lag = count(answer.lag_to_end or 0, "offset")
        return (
            f"{begins} to the end. It has read everything: a lag of {lag}, counted from the last record that it "
            "committed, stays until somebody writes again, and nothing hangs"
        )
    return f"{begins} to the last stable offset {answer.last_stable_offset}, where it waits"


def _lag(answer: OffsetAnswer) -> str:
    to_end = f"{answer.lag_to_end} to the end {answer.end_offset}, as lag exporters do"
    if answer.lag_to_last_stable is None:
        return to_end
    to_stable = f"{answer.lag_to_last_stable} to the last stable offset {answer.last_stable_offset}"
    whose = f"as a read_committed consumer at {answer.offset} reports it"
    return f"{to_stable}, {whose}; {to_end}"


def _blocked(txn: Blocker) -> str:
    named = "no transactional id" if txn.transactional_id is None else clip(txn.transactional_id, _ID_WIDTH)
    whose = f"producer id {txn.producer_id}, {named}"
    return f"from offset {txn.txn_start_offset} on, by the open transaction of {whose}: {txn.verdict} ({txn.rule})"


def bounded_sentence(bounded: BoundedReader) -> str:
    """What a reader misses that stops at the `read_committed` end offset."""
    where = "below what was copied" if bounded.ends_at_offset is None else f"at {bounded.ends_at_offset}"
    whose = "a reader that stops at the read_committed end offset, as a batch job or a restore does,"
    ends = f"{whose} ends {where} without an error"
    if bounded.committed_record_count is None:
        return f"{ends}; how many committed records lie above is not known"
    least = "" if bounded.is_whole else "at least "
    above = f"{ends}; {least}{count(bounded.committed_record_count, 'committed record')} above it"
    is_one = bounded.committed_record_count == 1
    lies = f"{above} {'is' if is_one else 'are'} missing from what it read"
    more = bounded.unknown_record_count
    return f"{lies}, and perhaps {more} more, whose dump does not say how they ended" if more else lies
