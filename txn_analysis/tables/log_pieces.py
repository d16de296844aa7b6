"""`log_pieces`: the folds of the dumped segments; what reconstruction needs of them, and no batch more.

Two neighbouring pieces combine to what one piece over both would say, so that only pieces are ever shuffled.
"""

from txn_analysis.tables._checks import in_order
from txn_analysis.tables._schema import BIGINT, BOOLEAN, INT, STRING, Col, Table, array, inner_array, struct

BARE_MARKER = struct(offset=BIGINT, marker=STRING, timestamp_ms=BIGINT, producer_epoch=INT, coordinator_epoch=INT)
FRAGMENT = struct(
    start_offset=BIGINT,
    first_epoch=INT,
    max_epoch=INT,
    last_offset=BIGINT,
    last_sequence=INT,
    record_count=BIGINT,
    size_bytes=BIGINT,
    last_timestamp_ms=BIGINT,
    first_after_ms=BIGINT,
    first_before_ms=BIGINT,
    last_after_ms=BIGINT,
    last_before_ms=BIGINT,
    hidden_record_count=BIGINT,
    hidden_bytes=BIGINT,
    end_offset=BIGINT,
    end_marker=STRING,
    end_timestamp_ms=BIGINT,
    end_epoch=INT,
    end_coordinator_epoch=INT,
)
PRODUCER_EDGES = struct(
    producer_id=BIGINT,
    lead=FRAGMENT,
    tail=FRAGMENT,
    first_batch_epoch=INT,
    is_one_epoch=BOOLEAN,
    producer_epoch=INT,
    last_sequence=INT,
    last_timestamp_ms=BIGINT,
    marker_offset=BIGINT,
    marker_timestamp_ms=BIGINT,
    marker_coordinator_epoch=INT,
    # Of the transactions that are whole inside: where the newest one ends, what it says, and the largest epoch of all.
    ended_offset=BIGINT,
    ended_last_timestamp_ms=BIGINT,
    ended_coordinator_epoch=INT,
    max_ended_coordinator_epoch=INT,
    # Its end markers without data before them; its last one that is, or may be, a COMMIT.
    bare_markers=inner_array(BARE_MARKER),
    last_commit_offset=BIGINT,
)

LOG_PIECES = Table(
    name="log_pieces",
    grain="one contiguous piece of one dumped segment, folded",
    key=("input_id", "section_index", "first_position"),
    columns=(
        Col("ingest_id", STRING, "the ingest that read the content", nullable=False),
        Col("input_id", STRING, "fingerprint of the input", nullable=False),
        Col("section_index", INT, "`Dumping …` section of the input", nullable=False),
        Col("topic", STRING, "topic", nullable=False),
        Col("partition", INT, "partition", nullable=False),
        Col("first_position", BIGINT, "position of its first batch in the segment", nullable=False),
        Col("end_position", BIGINT, "position after its last batch", nullable=False),
        Col("first_offset", BIGINT, "base offset of its first batch", nullable=False),
        Col("last_offset", BIGINT, "last offset of its last batch", nullable=False),
        Col("text_start_bytes", BIGINT, "where its first batch line begins", nullable=False),
        Col("text_end_bytes", BIGINT, "where the proven text of its last batch ends", nullable=False),
        Col("text_gaps", array(struct(offset_bytes=BIGINT, length_bytes=BIGINT)), "text inside that nothing proves"),
        Col("last_hole_offset", BIGINT, "last offset inside that no batch covers; compaction leaves such holes"),
        Col("last_invalid_offset", BIGINT, "last offset of the last batch whose checksum is wrong"),
        Col("contested_offset", BIGINT, "base offset of the first batch that two lines claim; all of the piece is"),
        Col("doubtful_offset", BIGINT, "base offset of the first batch that may be header keys of a record; all may"),
        Col("lacking_batch_count", BIGINT, "batches without proof of all their record lines", nullable=False),
        Col("lacking_offset", BIGINT, "base offset of the first such batch"),
        Col("is_marker_printed", BOOLEAN, "end markers show their coordinator epoch; NULL without any marker"),
        Col("record_count", BIGINT, "data records", nullable=False),
        Col("size_bytes", BIGINT, "bytes of its batches", nullable=False),
        Col("first_moment_ms", BIGINT, "first broker-clock timestamp by offset"),
        Col("last_moment_ms", BIGINT, "last broker-clock timestamp by offset"),
        Col("max_moment_ms", BIGINT, "largest broker-clock timestamp, of batches that are certainly no client's text"),
        Col("last_timestamp_ms", BIGINT, "last positive timestamp by offset, any clock"),
        Col("max_timestamp_ms", BIGINT, "largest timestamp, any clock"),
        Col("first_leader_epoch", INT, "first partition leader epoch that is known"),
        Col("leader_epoch", INT, "largest partition leader epoch"),
        Col("content_digest", BIGINT, "sum of digests of its batches; the same in any copy of these offsets"),
        Col("producers", array(PRODUCER_EDGES), "every producer seen: first and last fragment, last epochs"),
        Col("last_empty_offset", BIGINT, "last offset of the last batch without a record; compaction leaves such"),
        Col("first_epoch_fall_offset", BIGINT, "base offset of the first batch below an earlier one's leader epoch"),
    ),
    partition_by=("ingest_id",),
    checks={
        "offsets_in_order": in_order("first_offset", "last_offset"),
        "positions_in_order": in_order("first_position", "end_position"),
    },
)
