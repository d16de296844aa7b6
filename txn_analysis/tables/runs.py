"""`runs`: what was asked, of which evidence, and how it came out."""

from txn_analysis.tables._checks import at_least, one_of
from txn_analysis.tables._schema import BIGINT, COUNTS, INT, STRING, Col, Table, array

RUNS = Table(
    name="runs",
    grain="one run",
    key=("run_id",),
    columns=(
        Col("run_id", STRING, "digest of the evidence and the parameters", nullable=False),
        Col("run_number", BIGINT, "order of first completion in this warehouse", nullable=False),
        Col("cluster", STRING, "the cluster's name", nullable=False),
        Col("capture", STRING, "the capture that was judged", nullable=False),
        Col("earlier_captures", array(STRING), "captures behind it, oldest first"),
        Col("as_of_ms", BIGINT, "moment at which the files were copied; NULL without any broker's clock"),
        Col("as_of_basis", STRING, "given, or newest_broker_timestamp"),
        Col("parameters", STRING, "the effective settings, as JSON", nullable=False),
        Col("input_count", INT, "inputs of the capture", nullable=False),
        Col("table_versions", COUNTS, "Delta version of each table that was read"),
        Col("verdict_counts", COUNTS, "findings by verdict"),
        Col("state_coverage", STRING, "what was seen of `__transaction_state`, as JSON", nullable=False),
        Col(
            "warnings",
            STRING,
            "what does not hang yet and will, as JSON; of each kind the worst applications",
            nullable=False,
        ),
        Col("outcome", STRING, "findings where something hangs, clean, or could_not_tell", nullable=False),
    ),
    checks={
        "numbered_from_one": at_least("run_number", 1),
        "known_outcome": one_of("outcome", ("clean", "findings", "could_not_tell")),
        "known_basis": one_of("as_of_basis", ("given", "newest_broker_timestamp")),
    },
)
