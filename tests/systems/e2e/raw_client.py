"""A deliberately rude Kafka client: it writes transactional batches that no correct client would write."""

import time
from collections.abc import Callable

from tests.systems.e2e.requests import Producer, RefusedError, Requests, refuse
from tests.systems.e2e.wire import Place, batch

__all__ = ["Producer", "RawClient", "RefusedError"]

# Coordinator loading, not available, moved; concurrent transactions; a topic that the broker does not know or lead yet.
_TRY_AGAIN = {14, 15, 16, 51, 3, 6}
_ATTEMPTS = 100
_PAUSE_S = 0.2


class RawClient:
    """One connection to one broker, which leads and coordinates everything; what it refuses is an exception."""

    def __init__(self, port: int) -> None:
        self._requests = Requests(port)

    def close(self) -> None:
        """Close the connection."""
        self._requests.close()

    def init_producer_id(self, transactional_id: str, timeout_ms: int = 180_000) -> Producer:
        """A producer id; for an id that has one, the next epoch."""
        given: list[Producer] = []

        def ask() -> int:
            code, producer = self._requests.init_producer_id(transactional_id, timeout_ms)
            given.append(producer)
            return code

        _until_accepted("FindCoordinator", lambda: self._requests.find_coordinator(transactional_id))
        _until_accepted("InitProducerId", ask)
        return given[-1]

    def add_partition(self, producer: Producer, place: Place) -> None:
        """Tell the coordinator that a partition is part of the transaction."""
        _until_accepted("AddPartitionsToTxn", lambda: self._requests.add_partition(producer, place))

    def end(self, producer: Producer, *, commit: bool) -> None:
        """End the transaction."""
        _until_accepted("EndTxn", lambda: self._requests.end(producer, commit=commit))

    def write(self, producer: Producer, place: Place, sequence: int, *, at_ms: int, count: int = 2) -> int:
        """Write one transactional batch without asking the coordinator; returns its base offset."""
        records = [(None, b"value %d" % number) for number in range(count)]
        written = batch(producer.producer_id, producer.producer_epoch, sequence, records, at_ms=at_ms)
        offsets: list[int] = []

        def ask() -> int:
            code, offset = self._requests.produce(producer.transactional_id, place, written)
            offsets.append(offset)
            return code

        _until_accepted(f"Produce {place}", ask)
        return offsets[-1]

    def commit_group_offset(self, producer: Producer, group: str, place: Place, offset: int) -> None:
        """Write a group's offset without adding the group to the transaction (TxnOffsetCommit)."""
        _until_accepted("FindCoordinator", lambda: self._requests.find_coordinator(group, of_group=True))
        _until_accepted("TxnOffsetCommit", lambda: self._requests.commit_group_offset(producer, group, place, offset))


def _until_accepted(what: str, call: Callable[[], int]) -> None:
    for _ in range(_ATTEMPTS):
        code = call()
        if code == 0:
            return
        if code not in _TRY_AGAIN:
            break
        time.sleep(_PAUSE_S)
    refuse(what, code)
