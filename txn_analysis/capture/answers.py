"""What brokers answer to a capture, what they refuse, and how long one that does not answer is asked again.

No byte of the network is known here. The clocks are those of this machine; tests have their own.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, TypeVar

from txn_analysis.errors import AuditError
from txn_analysis.kafka.transactions import TopicPartition


@dataclass(frozen=True)
class Leadership:
    """Who leads a partition.

    Attributes:
        place: the partition.
        topic_id: in Kafka's base 64; None of brokers before 2.8.
        leader_id: the broker; None while there is none.
        leader_epoch: None where the broker does not say.
    """

    place: TopicPartition
    topic_id: str | None
    leader_id: int | None
    leader_epoch: int | None


class ProducerAnswer(NamedTuple):
    """One active producer in an answer to DescribeProducers; None where the broker has no value."""

    producer_id: int
    producer_epoch: int
    coordinator_epoch: int | None
    current_txn_start_offset: int | None
    last_timestamp_ms: int | None
    last_sequence: int | None


class Cluster(NamedTuple):
    """The brokers that answer, by their ids, and the id of their cluster."""

    cluster_id: str | None
    broker_ids: tuple[int, ...]


class Brokers(Protocol):
    """What a capture asks of the brokers. Each call may raise what is below."""

    def cluster(self) -> Cluster:
        """The brokers that there are."""

    def leaders(self, topics: Collection[str] | None) -> list[Leadership]:
        """Of some topics, or of all that may be seen; the highest epoch that a few brokers answer."""

    def end_offsets(self, led: Iterable[Leadership], *, is_committed: bool) -> dict[TopicPartition, int | Exception]:
        """The high watermark of each, or with `is_committed` its last stable offset."""

    def start_offset(self, led: Leadership) -> int:
        """The log start offset."""

    def epoch_start(self, led: Leadership) -> int | None:
        """The offset at which the leader's epoch begins; None where nobody can say."""

    def producers(self, led: Leadership) -> list[ProducerAnswer] | None:
        """DescribeProducers; None of brokers that do not know the request (before 2.8)."""

    def fetch(self, led: Leadership, offset: int, max_bytes: int) -> bytes:
        """Record batches from an offset on as stored, at least one where there is one; the last may be cut."""

    def transactions(self) -> list[dict[str, object]] | None:
        """ListTransactions and DescribeTransactions of all coordinators; None where they do not know them."""

    def stored_bytes(self, places: Collection[TopicPartition]) -> dict[TopicPartition, int] | None:
        """The size of the largest replica of each; None where the brokers do not say."""


class CaptureError(AuditError):
    """A capture cannot be made, or not further; one line says where, why, and what to do."""


class RefusedError(CaptureError):
    """A right is missing; the message names the ACL."""

    def __init__(self, operation: str, resource: str, name: str, request: str) -> None:
        option = {"Topic": "--topic", "TransactionalId": "--transactional-id"}.get(resource)
        acl = f"{operation} {option} '{name}'" if option else f"{operation} --cluster"
        super().__init__(
            f"{name}: {request} is refused: the ACL {operation.upper()} on {resource}:{name} is missing."
            f" Grant it: kafka-acls.sh --add --allow-principal User:… --operation {acl}"
        )


class LeaderChangedError(Exception):
    """What was asked does not lead the partition any more, or under another epoch."""


class OffsetGoneError(Exception):
    """The log start has moved past the offset."""


class UnavailableError(Exception):
    """A broker cannot be reached, or cannot answer yet; it may in a moment."""


class NobodyAnswersError(UnavailableError):
    """No broker of the cluster can be reached."""


class ClusterGoneError(CaptureError):
    """Nobody answered for so long that nothing more is asked."""


class Clock:
    """Wall time, which somebody may set, and time that only grows; in milliseconds."""

    def wall_ms(self) -> int:
        """Epoch milliseconds by this machine."""
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> int:
        """Milliseconds since any moment."""
        return time.monotonic_ns() // 1_000_000

    def wait(self, ms: int) -> None:
        """Let time pass."""
        time.sleep(ms / 1000)


_Answer = TypeVar("_Answer")
_FIRST_PAUSE_MS, _LONGEST_PAUSE_MS = 200, 2000


@dataclass
class Patience:
    """How long what cannot be answered is asked again; once something was given up, everything is asked once.

    Attributes:
        clock: by which time passes.
        give_up_after_ms: since a call was first not answered.
        say: tells somebody that it waits, once for each reason.
        has_given_up: a call was.
    """

    clock: Clock
    give_up_after_ms: int
    say: Callable[[str], None]
    has_given_up: bool = False
    _announced: set[str] = field(default_factory=set)

    def ask(self, call: Callable[[], _Answer], again: Callable[[], None] = lambda: None) -> _Answer:
        """The answer to a call; `again` is called before each repetition, and may end it by an error.

        Raises:
            CaptureError: there was none in time; a ClusterGoneError where nobody answered.
        """
        began_ms = self.clock.monotonic_ms()
        pause_ms = _FIRST_PAUSE_MS
        while True:
            try:
                return call()
            except UnavailableError as error:
                waited_ms = self.clock.monotonic_ms() - began_ms
                if self.has_given_up or waited_ms >= self.give_up_after_ms:
                    self.has_given_up = True
                    kind = ClusterGoneError if isinstance(error, NobodyAnswersError) else CaptureError
                    raise kind(
                        f"{error}. Given up after {waited_ms // 1000} s (--give-up-after-ms {self.give_up_after_ms})"
                    ) from error
                if str(error) not in self._announced:
                    self._announced.add(str(error))
                    self.say(f"{error}: asked again for up to {self.give_up_after_ms // 1000} s")
            self.clock.wait(pause_ms)
            pause_ms = min(2 * pause_ms, _LONGEST_PAUSE_MS)
            again()
