"""Random requests to a broker, polite and rude, each list from a seed of its own.

The requests depend on the seed and on what the broker answers; its own work beside them (markers, timeouts, cleaning)
has its own time, so that a seed repeats the requests and not each answer.
"""

import random
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial

from tests.proof.kafka.requests.writers import GROUPS, NOBODY, Writer, with_epoch
from tests.systems.e2e.hangs import HOUR_MS, now_ms
from tests.systems.e2e.requests import EARLIEST, LATEST, Producer, Requests
from tests.systems.e2e.wire import NO_ID, Place, batch

_WEIGHTS = {
    "write": 50,
    "end": 24,
    "fence": 4,
    "offsets": 4,
    "new": 4,
    "idempotent": 2,
    "marker": 3,
    "unknown": 2,
    "plain": 4,
    "delete": 2,
}
_MOST_WRITERS = 8
_PAUSE_S = 0.002
_ATTEMPTS = 150
_TRY_AGAIN = {14, 15, 16, 51}  # coordinator loading, not available, moved; concurrent transactions
_IN_VAIN = 1000  # none of Kafka's codes: the coordinator was waited for, and still writes its markers
# After these a client begins anew: its sequence, epoch or state is not what the broker knows.
_LOST = {45, 47, 48, 49, 59, 67, 90}


@dataclass
class RandomRequests:
    """Sends one random request after another.

    Attributes:
        source: of all that is random.
        broker: where requests go.
        places: partitions that are written.
        name: what its transactional ids begin with.
        rudeness: how much of what a polite client never does is done; 0 to 1.
        may_speak_2: the broker takes clients of transaction version 2.
        answers: requests by what came of them.
        ids: transactional ids that were asked for.
        stuck: those whose coordinator cannot write its markers any more.
        behind_ms: by how much the clocks of all clients are behind.
    """

    source: random.Random
    broker: Requests
    places: list[Place]
    name: str
    rudeness: float
    may_speak_2: bool
    writers: list[Writer] = field(default_factory=list)
    answers: Counter[str] = field(default_factory=Counter)
    ids: list[str] = field(default_factory=list)
    stuck: set[str] = field(default_factory=set)
    behind_ms: int = 0
    at_once = 250

    def step(self) -> None:
        """One request, with those that it needs first."""
        if not self.writers:
            self._new_writer()
        kind = self.source.choices(list(_WEIGHTS), list(_WEIGHTS.values()))[0]
        steps: dict[str, Callable[[], object]] = {
            "write": self._write,
            "end": self._end,
            "fence": self._fence,
            "offsets": self._offsets,
            "new": self._new_writer,
            "idempotent": self._idempotent,
            "marker": self._marker,
            "unknown": self._unknown,
            "plain": self._plain,
            "delete": self._delete,
        }
        steps[kind]()

    @property
    def count(self) -> int:
        """How many requests were answered."""
        return self.answers.total()

    def close(self) -> None:
        """Nothing to close: the connection is the caller's."""

    def _give_up(self, writer: Writer) -> None:
        """Its coordinator cannot end what it has open: a marker of nobody's was newer than the coordinator's own."""
        if writer.name is not None:
            self.stuck.add(writer.name)
            self.writers = [other for other in self.writers if other.name != writer.name]

    def _is_rude(self, share: float) -> bool:
        return self.source.random() < share * self.rudeness

    def _ask(self, what: str, call: Callable[[], int]) -> int:
        """A request, repeated while the coordinator is at work; a rude client does not wait for it."""
        code, attempts = call(), 0
        most = 0 if self._is_rude(0.3) else _ATTEMPTS
        while code in _TRY_AGAIN and attempts < most:
            time.sleep(_PAUSE_S)
            code, attempts = call(), attempts + 1
        self.answers[what if code == 0 else f"{what} refused by {code}"] += 1
        return _IN_VAIN if attempts == _ATTEMPTS else code

    def _transactional(self) -> Writer:
        found = [writer for writer in self.writers if writer.name is not None]
        return self.source.choice(found) if found else self._new_writer()

    def _new_writer(self) -> Writer:
        if len(self.writers) >= _MOST_WRITERS:
            self.writers.pop(self.source.randrange(len(self.writers)))  # what it has open, nobody ends
        name = f"{self.name}-{len(self.ids)}"
        self.ids.append(name)
        version = self.source.choice((1, 2)) if self.may_speak_2 else 1
        timeout_ms = self.source.choice((60_000, 60_000, 60_000, 120_000, 1000))
        writer = Writer(Producer(name, NO_ID, NO_ID), version, timeout_ms)
        self._begin_anew(writer)
        self.writers.append(writer)
        return writer

    def _begin_anew(self, writer: Writer, known: Producer = NOBODY) -> int:
        given = known

        def ask() -> int:
            nonlocal given
            code, given = self.broker.init_producer_id(
                writer.name, writer.timeout_ms, known.producer_id, known.producer_epoch
            )
            return code

        code = self._ask("InitProducerId", ask)
        if code == 0:
            writer.begin_anew(given)
        return code

    def _idempotent(self) -> None:
        writer = Writer(NOBODY)
        if self._begin_anew(writer) == 0:
            self.writers.append(writer)

    def _fence(self) -> None:
        """A new instance takes over; now and then the old one goes on, as a zombie."""
        writer = self._transactional()
        if self._is_rude(0.5):
            zombie = replace(writer, sequences=dict(writer.sequences), added=set(writer.added))
            self.writers.append(zombie)
        known = writer.producer if self.source.random() < 0.3 else NOBODY
        self._recover(writer, self._begin_anew(writer, known))

    def _write(self) -> None:
        writer, place = self.source.choice(self.writers), self.source.choice(self.places)
        is_added = writer.name is None or writer.speaks_2 or place in writer.added
        if not is_added and not self._is_rude(0.2):
            add = partial(self.broker.add_partition, writer.producer, place)
            if not self._add(writer, place, "AddPartitionsToTxn", add):
                return
        producer, sequence = self._twisted(writer, place)
        is_transactional = (writer.name is None) == self._is_rude(0.02)
        code = self._produce(writer, producer, place, sequence, is_transactional=is_transactional)
        if code:
            self._recover(writer, code)

    def _add(self, writer: Writer, part: Place | str, what: str, call: Callable[[], int]) -> bool:
        """Whether a partition or a group is part of the transaction now."""
        code = self._ask(what, call)
        if code:
            self._recover(writer, code)
            return False
        writer.added.add(part)
        writer.is_in_transaction = True
        return True

    def _twisted(self, writer: Writer, place: Place) -> tuple[Producer, int]:
        """Epoch and sequence, which are wrong now and then."""
        producer, sequence = writer.producer, writer.sequences.get(place, 0)
        if self._is_rude(0.08):
            producer = with_epoch(producer, self.source.choice((-1, 1, 1, 5)))
            sequence = self.source.choice((0, sequence))
        if self._is_rude(0.08):
            sequence = self.source.choice((0, sequence + 5, max(0, sequence - 1)))
        return producer, sequence

    def _produce(
        self, writer: Writer, producer: Producer, place: Place, sequence: int, *, is_transactional: bool
    ) -> int:
        count = self.source.randrange(1, 4)
        records = [(self.source.choice((b"a", b"b", b"c", b"d")), b"value") for _ in range(count)]
        numbers = producer.producer_id, producer.producer_epoch, sequence
        written = batch(*numbers, records, at_ms=self._time_ms(), is_transactional=is_transactional)
        produce = self.broker.produce_2 if writer.speaks_2 else self.broker.produce
        name = producer.transactional_id or (f"{self.name}-nobody" if is_transactional else None)
        code = self._ask("Produce", lambda: produce(name, place, written)[0])
        if code == 0 and producer.producer_id != NO_ID:
            writer.wrote(place, sequence, count)
        return code

    def _time_ms(self) -> int:
        """A client's clock: mostly right. What is far apart rolls segments."""
        now = now_ms() - self.behind_ms
        if self.source.random() < 0.8:
            return now
        return now + self.source.choice((-3 * HOUR_MS, -HOUR_MS, -5000, -1, 1, HOUR_MS // 2))

    def _recover(self, writer: Writer, code: int) -> None:
        if code == _IN_VAIN:
            self._give_up(writer)
        if code in _LOST and not self._is_rude(0.5):
            self._begin_anew(writer)

    def _end(self) -> None:
        writer, commit = self._transactional(), self.source.random() < 0.6
        if not writer.is_in_transaction and not self._is_rude(0.5):
            return  # nothing to end
        producer = writer.producer
        if self._is_rude(0.1):
            producer = with_epoch(producer, self.source.choice((-1, 1)))
        if writer.speaks_2:
            code = self._end_2(writer, producer, commit=commit)
        else:
            code = self._ask("EndTxn", lambda: self.broker.end(producer, commit=commit))
        if code == 0:
            writer.end()
        else:
            self._recover(writer, code)

    def _end_2(self, writer: Writer, producer: Producer, *, commit: bool) -> int:
        given = producer

        def ask() -> int:
            nonlocal given
            code, given = self.broker.end_2(producer, commit=commit)
            return code

        code = self._ask("EndTxn of version 2", ask)
        if code == 0:
            writer.begin_anew(given)
        return code

    def _offsets(self) -> None:
        """A group's offsets in a transaction of a client of version 1."""
        writer, group = self._transactional(), self.source.choice(GROUPS)
        if writer.speaks_2:
            return
        if group not in writer.added and not self._is_rude(0.3):
            add = partial(self.broker.add_group, writer.producer, group)
            if not self._add(writer, group, "AddOffsetsToTxn", add):
                return
        place, offset = self.source.choice(self.places), self.source.randrange(100)
        commit = partial(self.broker.commit_group_offset, writer.producer, group, place, offset)
        self._recover(writer, self._ask("TxnOffsetCommit", commit))

    def _marker(self) -> None:
        """A marker of nobody's: an administrator's, or of a coordinator that was deposed."""
        if not self._is_rude(1):
            return
        writer, place = self._transactional(), self.source.choice(self.places)
        producer = with_epoch(writer.producer, self.source.choice((0, 0, 0, 1, -1)))
        coordinator_epoch = self.source.choice((0, 0, 0, 0, 0, 0, 1, 3))
        if coordinator_epoch:
            self._give_up(writer)
        commit = self.source.random() < 0.4
        write = partial(self.broker.write_marker, producer, place, commit=commit, coordinator_epoch=coordinator_epoch)
        self._ask("WriteTxnMarkers", write)

    def _unknown(self) -> None:
        """Data of a producer id that no coordinator gave."""
        if not self._is_rude(1):
            return
        producer = Producer(f"{self.name}-nobody", self.source.randrange(10**9, 10**9 + 3), self.source.randrange(3))
        place = self.source.choice(self.places)
        self._produce(Writer(producer), producer, place, 0, is_transactional=True)

    def _plain(self) -> None:
        """Data without a producer."""
        self._produce(Writer(NOBODY), NOBODY, self.source.choice(self.places), NO_ID, is_transactional=False)

    def _delete(self) -> None:
        place = self.source.choice(self.places)
        first, end = self.broker.offset(place, EARLIEST), self.broker.offset(place, LATEST)
        before = self.source.randint(first, end)
        self._ask("DeleteRecords", lambda: self.broker.delete_records(place, before))
