"""What became of a transaction, asked at any moment of a simulated cluster's past."""

from tests.oracle.cluster import Cluster
from tests.oracle.copies import Log, Truth
from tests.oracle.model import StateRecord, TopicPartition


def truth_at(cluster: Cluster, where: TopicPartition, producer_id: int, offset: int, moment: int) -> Truth:
    """What was true at `moment` of the transaction of that producer that covers the offset.

    `Cluster.truth` answers for the present. Between the two an orphan can be adopted: the producer's next transaction
    adds the partition, and its marker ends the old data as well.
    """
    log = cluster.logs[where]
    for ended in log.state.ended:
        covers = ended.producer_id == producer_id and ended.start_offset <= offset < ended.end_offset
        if covers and moment_of(log, ended.end_offset) <= moment:
            is_administrator = ended.end_offset in log.administrator_markers
            return Truth.ENDED_BY_ADMINISTRATOR if is_administrator else Truth.ENDED_BY_COORDINATOR
    for decided_at, record in current_records(cluster, moment):
        value = record.value
        if value is None or value.producer_id != producer_id or where not in value.partitions:
            continue
        if value.state == "Ongoing":
            return Truth.LIVE
        if value.state.startswith("Prepare") and not _is_marked(log, producer_id, decided_at, moment):
            return Truth.PENDING
    return Truth.HANGING


def current_records(cluster: Cluster, moment: int) -> list[tuple[int, StateRecord]]:
    """The last record of each transactional id at that moment, with the moment of its append."""
    last: dict[str, tuple[int, StateRecord]] = {}
    for log in cluster.states:
        for at, batch in log.batches:
            for record in batch.all_records():
                if at <= moment and record.state:
                    last[record.state.transactional_id] = at, record.state
    return list(last.values())


def moment_of(log: Log, offset: int) -> int:
    """When the batch that holds the offset was appended; 0 for an offset below the log's first batch."""
    return max((at for at, batch in log.batches if batch.base_offset <= offset), default=0)


def _is_marked(log: Log, producer_id: int, since: int, until: int) -> bool:
    return any(
        since <= at <= until and batch.is_end_marker and batch.producer_id == producer_id for at, batch in log.batches
    )
