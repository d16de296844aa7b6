"""`group_offsets`: the consumer groups whose offsets stand in `__consumer_offsets`, and what was read for them."""

from txn_analysis.tables._checks import in_order
from txn_analysis.tables._schema import BIGINT, INT, STRING, Col, Table

GROUP_OFFSETS = Table(
    name="group_offsets",
    grain="one consumer group with offsets committed by one producer in one range of a dumped segment of "
    "`__consumer_offsets`, or, without a group, such a range: the keys of all of its records were read",
    key=("input_id", "section_index", "text_start_bytes", "group_id", "producer_id"),
    columns=(
        Col("ingest_id", STRING, "the ingest that read the content", nullable=False),
        Col("input_id", STRING, "fingerprint of the input", nullable=False),
        Col("section_index", INT, "`Dumping …` section of the input", nullable=False),
        Col("partition", INT, "partition of `__consumer_offsets`", nullable=False),
        Col("text_start_bytes", BIGINT, "where the range begins in the text", nullable=False),
        Col("text_end_bytes", BIGINT, "where it ends", nullable=False),
        Col("group_id", STRING, "the consumer group; NULL in the row of the range itself"),
        Col("producer_id", BIGINT, "who committed the offsets; NULL without a transaction, and without a group"),
        Col("last_offset", BIGINT, "last offset of the last batch with such offsets", nullable=False),
    ),
    partition_by=("ingest_id",),
    checks={"text_in_order": in_order("text_start_bytes", "text_end_bytes")},
)
