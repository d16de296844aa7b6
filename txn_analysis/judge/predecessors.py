"""What came before an open transaction: its producer's earlier ones on the partition, and its coordinator's epoch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from txn_analysis.ingest.sections import STATE_TOPIC
from txn_analysis.judge.coordinator import CANDIDATE_KEY, candidate_key

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Row = dict[str, Any]

NO_PREDECESSOR: Row = {
    "previous_last_timestamp_ms": None,
    "has_coordinator_epoch_fallen": False,
    "state_leader_epoch": None,
}


def predecessors(transactions: DataFrame) -> DataFrame:
    """What the ended transactions say about the open ones.

    In:  `transactions` of one run.
    Out: one row per open transaction whose producer has ended one on the same partition: the last timestamp of the
         newest of them, and whether its coordinator epoch is below an earlier one (KAFKA-9144).
    """
    opened = F.broadcast(transactions.where("outcome = 'open'").select(*CANDIDATE_KEY))
    ended = transactions.where("outcome != 'open'").join(opened, list(CANDIDATE_KEY), "left_semi")
    last_epoch = F.max_by("coordinator_epoch", "end_offset")
    return ended.groupBy(*CANDIDATE_KEY).agg(
        F.max_by("last_timestamp_ms", "end_offset").alias("previous_last_timestamp_ms"),
        F.coalesce(last_epoch < F.max("coordinator_epoch"), F.lit(False)).alias("has_coordinator_epoch_fallen"),
    )


def predecessor_of(opened: Row, coordinator: Row | None, known: dict[tuple[Any, ...], Row], health: list[Row]) -> Row:
    """What came before one open transaction; `known` are rows of `predecessors` by `candidate_key`."""
    number = None if coordinator is None else coordinator["state_partition"]
    leader_epochs = (
        row["leader_epoch"] for row in health if row["topic"] == STATE_TOPIC and row["partition"] == number
    )
    found = known.get(candidate_key(opened), {})
    own = {name: value for name, value in found.items() if name in NO_PREDECESSOR}
    return NO_PREDECESSOR | own | {"state_leader_epoch": next(leader_epochs, None)}
