"""What people say stays or goes: decisions about open transactions, which 1.0.0 kept in `accepted`, and `prunes`."""

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


class TakenContent(NamedTuple):
    """Content that an ingest read and that no capture has any more; fields as in `inputs`."""

    ingest_id: str
    input_id: str


class TakenPartition(NamedTuple):
    """A partition of whose logs, snapshots or coordinator's records files were taken; None of an export's."""

    topic: str
    partition: Int32 | None


class Prune(NamedTuple):
    """What one prune takes of one cluster; the columns of `prunes`. It is written first, before anything goes."""

    prune_id: Annotated[str, "the prune: digest of the cluster, of what goes, and of when"]
    cluster: Annotated[str, "the cluster's name"]
    pruned_ms: Annotated[int, "when it was done, by the clock of the machine that did it"]
    before_ms: Annotated[int, "captures and runs before this moment were old; by the brokers' clocks"]
    clear_from_ms: Annotated[int, "from then on its rows may be deleted: nobody who began before still reads them"]
    cleared_ms: Annotated[int | None, "when they were; NULL before"]
    last_run_number: Annotated[int, "the newest run of the warehouse then; later ones are judged without what it took"]
    newest_moment_ms: Annotated[int | None, "of the newest capture that was judged then: it decided what goes"]
    captures: Annotated[tuple[str, ...], "captures of which files were taken, oldest first; some may keep others"]
    runs: Annotated[tuple[str, ...], "runs that were taken"]
    contents: Annotated[tuple[TakenContent, ...], "content that was taken, where no other capture has it"]
    partitions: Annotated[tuple[TakenPartition, ...], "of which partitions logs or coordinator's records were taken"]


PRUNES = Table(
    name="prunes",
    grain="what one prune took of one cluster",
    key=("prune_id",),
    columns=columns_of(Prune),
    checks={"numbered_from_zero": at_least("last_run_number", 0)},
)
