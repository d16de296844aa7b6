"""The answer about one offset as data: what is there, what a consumer gets, and what holds it."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, NamedTuple

from txn_analysis.questions.readers import Run  # noqa: TC001 pydantic reads the fields of `OffsetAnswer`
from txn_analysis.report.model import InJson, Item


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
    batch: Annotated[BatchAt, InJson("BatchAt")] | None = None
    transaction: Annotated[TransactionAt, InJson("TransactionAt")] | None = None
    first_offset: int | None
    log_start_offset: int | None
    end_offset: int | None
    last_stable_offset: int | None
    lag_to_end: int | None = None
    lag_to_last_stable: int | None = None
    next_record_offset: int | None = None
    longest_run: Annotated[Run, InJson("Run")] | None = None
    blocked_by: Annotated[Blocker, InJson("Blocker")] | None = None
    bounded_reader: Annotated[BoundedReader, InJson("BoundedReader")] | None = None
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
