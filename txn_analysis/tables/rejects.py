"""`rejects`: the spans of inputs that were not understood, never their text."""

from txn_analysis.tables._checks import at_least
from txn_analysis.tables._schema import BIGINT, INT, STRING, Col, Table

REJECTS = Table(
    name="rejects",
    grain="one span of one input that was not understood",
    key=("input_id", "offset_bytes"),
    columns=(
        Col("ingest_id", STRING, "the ingest that read the content", nullable=False),
        Col("input_id", STRING, "fingerprint of the input", nullable=False),
        Col("section_index", INT, "section of the input; NULL outside any section"),
        Col("offset_bytes", BIGINT, "where the span begins in the text", nullable=False),
        Col("length_bytes", BIGINT, "how long it is", nullable=False),
        Col("reason", STRING, "why it was not understood", nullable=False),
    ),
    partition_by=("ingest_id",),
    checks={"span_not_empty": at_least("length_bytes", 1)},
)
