"""`aborted_transactions`: the entries of transaction indexes."""

from txn_analysis.tables._checks import in_order
from txn_analysis.tables._schema import BIGINT, INT, STRING, Col, Table

ABORTED_TRANSACTIONS = Table(
    name="aborted_transactions",
    grain="one entry of one .txnindex file",
    key=("input_id", "section_index", "producer_id", "first_offset"),
    columns=(
        Col("ingest_id", STRING, "the ingest that read the content", nullable=False),
        Col("input_id", STRING, "fingerprint of the input", nullable=False),
        Col("section_index", INT, "`Dumping …` section of the input", nullable=False),
        Col("topic", STRING, "topic, from the dumped path", nullable=False),
        Col("partition", INT, "partition, from the dumped path", nullable=False),
        Col("producer_id", BIGINT, "producer id", nullable=False),
        Col("first_offset", BIGINT, "start of the transaction", nullable=False),
        Col("last_offset", BIGINT, "offset of the ABORT marker", nullable=False),
        Col("last_stable_offset", BIGINT, "last stable offset after the marker", nullable=False),
    ),
    partition_by=("ingest_id",),
    checks={"offsets_in_order": in_order("first_offset", "last_offset")},
)
