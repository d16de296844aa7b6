"""`accepted`: what people decided about open transactions, and the evidence that they saw when they did."""

from __future__ import annotations

from typing import Annotated, NamedTuple

from txn_analysis.columns.records import Int32
from txn_analysis.tables.schema import Table, at_least, columns_of, one_of
from txn_analysis.verdict import Verdict


class Decision(NamedTuple):
    """A finding that somebody accepted until a date, with what it rested on then; the columns of `accepted`."""

    finding_id: Annotated[str, "the finding: digest of cluster, partition, producer id and start"]
    decision_number: Annotated[int, "of one finding the highest number counts; one command has one number"]
    cluster: Annotated[str, "the cluster's name"]
    topic: Annotated[str, "topic"]
    partition: Annotated[Int32, "partition"]
    producer_id: Annotated[int, "producer id"]
    txn_start_offset: Annotated[int, "start of the open transaction"]
    until_ms: Annotated[int | None, "runs of files that were copied before this moment; NULL: accepted no more"]
    reason: Annotated[str, "why, in the words of who decided"]
    accepted_by: Annotated[str | None, "who decided; NULL where nobody is named"]
    run_id: Annotated[str, "the run whose finding was looked at"]
    verdict: Annotated[Verdict, "its verdict then"]
    rule: Annotated[str, "its rule then"]
    producer_epoch: Annotated[Int32 | None, "epoch of the producer's last batch then"]
    last_offset: Annotated[int | None, "last offset of its last data batch then"]
    transactional_id: Annotated[str | None, "id that had this producer id then; NULL if none was known"]
    must_end_producer: Annotated[bool, "its client could have written there again"]

    @property
    def place(self) -> tuple[str, int, int, int]:
        """Topic, partition, producer id and start offset: which transaction it is about."""
        return self.topic, self.partition, self.producer_id, self.txn_start_offset


ACCEPTED = Table(
    name="accepted",
    grain="one decision about one finding",
    key=("finding_id", "decision_number"),
    columns=columns_of(Decision),
    checks={
        "decided_from_one": at_least("decision_number", 1),
        "known_verdict": one_of("verdict", (verdict.value for verdict in Verdict)),
    },
)
