"""`abort_plan`: the end markers that a run recommends."""

from txn_analysis.tables._checks import always, earlier, not_negative, one_of
from txn_analysis.tables._schema import BIGINT, BOOLEAN, INT, STRING, Col, Table, array
from txn_analysis.tables.transactions import COORDINATOR_EPOCH_BASES

ABORT_PLAN = Table(
    name="abort_plan",
    grain="one abort marker for one partition that one run recommends",
    key=("run_id", "topic", "partition", "producer_id"),
    columns=(
        Col("run_id", STRING, "the run", nullable=False),
        Col("finding_id", STRING, "the finding it would repair", nullable=False),
        Col("plan_fingerprint", STRING, "digest over all records of the plan", nullable=False),
        Col("topic", STRING, "topic", nullable=False),
        Col("partition", INT, "partition", nullable=False),
        Col("producer_id", BIGINT, "producer id", nullable=False),
        Col("producer_epoch", INT, "epoch of the producer's last batch here", nullable=False),
        Col("coordinator_epoch", INT, "epoch to send: 0 where none was seen; NULL where it is unknown"),
        Col("coordinator_epoch_basis", STRING, "marker, snapshot, none_seen or unknown", nullable=False),
        Col("transaction_result", BOOLEAN, "false: abort. Never a commit", nullable=False),
        Col("transaction_version", INT, "0: the legacy epoch rule, which accepts an equal epoch", nullable=False),
        Col("txn_start_offset", BIGINT, "start of the open transaction", nullable=False),
        Col("is_txn_start_exact", BOOLEAN, "an executor can look it up on the broker", nullable=False),
        Col(
            "last_timestamp_ms", BIGINT, "the producer's last timestamp there: a later one on the broker is newer data"
        ),
        Col("rule", STRING, "the rule that found it hanging", nullable=False),
        Col("evidence", array(STRING), "the facts that the rule used, and a remark as in `findings`", nullable=False),
        Col("transactional_id", STRING, "id that has, or had, this producer id; NULL if none is known"),
        Col("not_before_ms", BIGINT, "not to be executed before this time", nullable=False),
        Col("not_after_ms", BIGINT, "not to be executed after this time", nullable=False),
        Col("producer_is_live", BOOLEAN, "the producer id has a transaction in progress elsewhere", nullable=False),
        Col(
            "producer_may_return",
            BOOLEAN,
            "it is the current producer id of an id: its client may write there again",
            nullable=False,
        ),
        Col("precondition", STRING, "what an executor must check first, in words", nullable=False),
    ),
    partition_by=("run_id",),
    checks={
        "only_aborts": always("transaction_result", value=False),
        "legacy_epoch_rule": always("transaction_version", 0),
        "epochs_not_negative": not_negative("producer_epoch", "coordinator_epoch"),
        "known_basis": one_of("coordinator_epoch_basis", COORDINATOR_EPOCH_BASES),
        "window_in_order": earlier("not_before_ms", "not_after_ms"),
    },
)
