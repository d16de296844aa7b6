"""Brokers that keep logs in memory, answer as Kafka does, and fail where a test says so."""

from collections import deque
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field

from tests.tools.forms.broker import replay
from tests.tools.forms.model import Batch
from tests.tools.log_dirs.encoder import encoded
from txn_analysis.capture.answers import Clock, Cluster, LeaderChangedError, Leadership, OffsetGoneError, ProducerAnswer
from txn_analysis.kafka.transactions import TopicPartition

STATE = "__transaction_state"


class FakeClock(Clock):
    """Time passes by waiting alone, and a millisecond with each look at a clock."""

    def __init__(self) -> None:
        self.now_ms = 1_000_000
        self.waited_ms = 0

    def wall_ms(self) -> int:
        self.now_ms += 1
        return self.now_ms

    def monotonic_ms(self) -> int:
        return self.wall_ms()

    def wait(self, ms: int) -> None:
        self.now_ms += ms
        self.waited_ms += ms


@dataclass
class FakeBrokers:
    """A cluster of one broker. `failures` are raised one after another by the calls that they are kept for."""

    logs: dict[TopicPartition, list[Batch]]
    log_starts: dict[TopicPartition, int] = field(default_factory=dict)
    epochs: dict[TopicPartition, int] = field(default_factory=dict)
    failures: dict[str, deque[Exception]] = field(default_factory=dict)
    when_fetched: Callable[[TopicPartition, int], None] = lambda _place, _offset: None
    fetched: list[tuple[TopicPartition, int]] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)

    def _called(self, name: str, led: Leadership | None = None) -> None:
        self.calls.append(name if led is None else f"{name} {led.place}")
        if self.failures.get(name):
            raise self.failures[name].popleft()
        if led is not None and led.leader_epoch != self.epochs.get(led.place, 0):
            raise LeaderChangedError(str(led.place))

    def cluster(self) -> Cluster:
        self._called("cluster")
        return Cluster("a-cluster", (1,))

    def leaders(self, topics: Collection[str] | None) -> list[Leadership]:
        self._called("leaders")
        return [
            Leadership(place, "x" * 22, 1, self.epochs.get(place, 0))
            for place in sorted(self.logs)
            if topics is None or place.topic in topics
        ]

    def _end(self, place: TopicPartition) -> int:
        return max((batch.last_offset + 1 for batch in self.logs[place]), default=0)

    def end_offsets(self, led: Iterable[Leadership], *, is_committed: bool) -> dict[TopicPartition, int | Exception]:
        self._called("end_offsets")
        found: dict[TopicPartition, int | Exception] = {}
        for each in led:
            starts = [p.current_txn_start_offset for p in self._producers(each.place)]
            known = [start for start in starts if start is not None]
            found[each.place] = min([*known, self._end(each.place)]) if is_committed else self._end(each.place)
        return found

    def start_offset(self, led: Leadership) -> int:
        self._called("start_offset", led)
        return self.log_starts.get(led.place, 0)

    def epoch_start(self, led: Leadership) -> int | None:
        self._called("epoch_start", led)
        return 0

    def _producers(self, place: TopicPartition) -> list[ProducerAnswer]:
        return [
            ProducerAnswer(
                producer_id,
                entry.producer_epoch,
                entry.coordinator_epoch,
                entry.txn_start_offset,
                entry.last_timestamp_ms,
                entry.last_sequence,
            )
            for producer_id, entry in replay(self.logs[place]).snapshot().items()
        ]

    def producers(self, led: Leadership) -> list[ProducerAnswer] | None:
        self._called("producers", led)
        return self._producers(led.place)

    def fetch(self, led: Leadership, offset: int, max_bytes: int) -> bytes:
        self._called("fetch", led)
        self.fetched.append((led.place, offset))
        if offset < self.log_starts.get(led.place, 0):
            raise OffsetGoneError(str(led.place))
        self.when_fetched(led.place, offset)
        behind = [encoded(batch) for batch in self.logs[led.place] if batch.last_offset >= offset]
        data = b"".join(behind)
        return data[: max(max_bytes, len(behind[0]) if behind else 0)]

    def transactions(self) -> list[dict[str, object]] | None:
        self._called("transactions")
        return []

    def stored_bytes(self, places: Collection[TopicPartition]) -> dict[TopicPartition, int] | None:
        self._called("stored_bytes")
        return {place: sum(len(encoded(batch)) for batch in self.logs[place]) for place in places}
