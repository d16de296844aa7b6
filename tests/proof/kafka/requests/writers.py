"""Clients of a broker as they see themselves: what they have, and which sequence comes next."""

from dataclasses import dataclass, field, replace

from tests.systems.e2e.requests import Producer
from tests.systems.e2e.wire import NO_ID, Place

GROUPS = ("readers", "writers")
NOBODY = Producer(None, NO_ID, NO_ID)

_LAST_EPOCH = 32_767


def with_epoch(producer: Producer, change: int) -> Producer:
    """The same at an epoch that is higher or lower."""
    return replace(producer, producer_epoch=min(max(producer.producer_epoch + change, 0), _LAST_EPOCH))


@dataclass
class Writer:
    """One producer of some client.

    Attributes:
        producer: as its coordinator named it; `NOBODY` writes without.
        transaction_version: which it speaks; 1 adds partitions itself, of 2 the broker does.
        timeout_ms: of its transactions.
        sequences: what it writes next, by partition.
        added: partitions and groups that its transaction has.
        is_in_transaction: it has begun one.
    """

    producer: Producer
    transaction_version: int = 1
    timeout_ms: int = 60_000
    sequences: dict[Place, int] = field(default_factory=dict)
    added: set[Place | str] = field(default_factory=set)
    is_in_transaction: bool = False

    @property
    def name(self) -> str | None:
        """Its transactional id."""
        return self.producer.transactional_id

    @property
    def speaks_2(self) -> bool:
        """It is a client of transaction version 2."""
        return self.transaction_version == 2

    def begin_anew(self, producer: Producer) -> None:
        """It has a new epoch, and nothing is open."""
        self.producer = producer
        self.sequences.clear()
        self.end()

    def end(self) -> None:
        """Its transaction has ended."""
        self.added.clear()
        self.is_in_transaction = False

    def wrote(self, place: Place, first_sequence: int, count: int) -> None:
        """A batch of it was taken."""
        self.sequences[place] = first_sequence + count
        self.added.add(place)
        self.is_in_transaction = True
