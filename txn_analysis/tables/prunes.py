"""`prunes`: what age took out of a warehouse, so that whoever asks later is told what is missing, and since when."""

from __future__ import annotations

from typing import Annotated, NamedTuple

from txn_analysis.columns.records import Int32
from txn_analysis.tables.schema import Table, at_least, columns_of


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
