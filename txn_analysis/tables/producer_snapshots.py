"""`producer_snapshots`: the producer state that brokers wrote beside their segments."""

from txn_analysis.tables._checks import not_negative
from txn_analysis.tables._schema import BIGINT, INT, STRING, Col, Table

PRODUCER_SNAPSHOTS = Table(
    name="producer_snapshots",
    grain="one producer in one snapshot file",
    key=("input_id", "section_index", "producer_id"),
    columns=(
        Col("ingest_id", STRING, "the ingest that read the content", nullable=False),
        Col("input_id", STRING, "fingerprint of the input", nullable=False),
        Col("section_index", INT, "`Dumping …` section of the input", nullable=False),
        Col("topic", STRING, "topic, from the dumped path", nullable=False),
        Col("partition", INT, "partition, from the dumped path", nullable=False),
        Col("snapshot_offset", BIGINT, "the state covers records below this offset", nullable=False),
        Col("producer_id", BIGINT, "producer id", nullable=False),
        Col("producer_epoch", INT, "its latest epoch on the partition", nullable=False),
        Col("coordinator_epoch", INT, "coordinator epoch of its last end marker; NULL if none was seen"),
        Col("current_txn_start_offset", BIGINT, "start of its open transaction; NULL if none is open"),
        Col("last_timestamp_ms", BIGINT, "timestamp of its last append; NULL if not printed"),
        Col("last_sequence", INT, "sequence of its last data batch; NULL if not printed"),
        Col("last_offset", BIGINT, "offset of its last data batch; NULL if not printed"),
    ),
    partition_by=("ingest_id",),
    checks={"epochs_not_negative": not_negative("producer_epoch", "coordinator_epoch")},
)
