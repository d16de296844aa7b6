"""Random lists of requests to one log, each from a seed of its own."""

import random
from dataclasses import dataclass, field

from tests.proof.kafka.log.requests import BEGAN_MS, NO_PRODUCER, SEGMENT_BYTES, Step, Story, data, do, empty, marker

_HOUR_MS = 3_600_000
_MOST_STEPS = 40
_LAST_EPOCH = 32_767
_WEIGHTS = {
    "data": 40,
    "marker": 22,
    "empty": 1,
    "roll": 8,
    "snapshot": 2,
    "delete": 2,
    "truncate": 2,
    "restart": 0.4,
    "clean": 5,
    "load": 4,
    "checkpoint": 2,
    "wait": 9,
}


@dataclass
class _Writer:
    """One producer as it sees itself."""

    producer: int
    is_transactional: bool
    epoch: int


@dataclass
class _Teller:
    source: random.Random
    is_compact: bool
    is_leader: bool
    is_rude: bool
    now_ms: int = BEGAN_MS
    leader_epoch: int = 0
    coordinator_epoch: int = 0
    writers: list[_Writer] = field(default_factory=list)

    def step(self) -> Step:
        kind = self.source.choices(list(_WEIGHTS), list(_WEIGHTS.values()))[0]
        if kind == "data":
            return self._data()
        if kind == "marker":
            return self._marker()
        if kind == "empty":
            return self._empty()
        if kind == "wait":
            return self._wait()
        if kind == "load":
            return self._load()
        return self._of_log(kind)

    def _chance(self, share: float) -> bool:
        return self.source.random() < share

    def _time(self) -> int:
        """A client's clock: mostly right."""
        if self._chance(0.85):
            return self.now_ms
        return self.source.choice((self.now_ms - self.source.randrange(2 * _HOUR_MS), self.now_ms - 1, self.now_ms + 1))

    def _place(self) -> Step:
        if self._chance(0.05):
            self.leader_epoch += 1
        return {"leader_epoch": self.leader_epoch, "leader": self.is_leader} | self._gap()

    def _gap(self) -> Step:
        is_gap = not self.is_leader and self.is_compact and self._chance(0.05)
        return {"gap": self.source.randrange(1, 4)} if is_gap else {}

    def _data(self) -> Step:
        keys = [self.source.choice("abcdef") for _ in range(self.source.randrange(1, 5))]
        more: Step = self._place() | ({"tombstones": True} if self.is_compact and self._chance(0.1) else {})
        if self._chance(0.15):
            return data(NO_PRODUCER, *keys, at_ms=self._time(), **more)
        writer = self.source.choice(self.writers)
        if self._chance(0.06):
            writer.epoch = min(writer.epoch + 1, _LAST_EPOCH)
        epoch = max(0, writer.epoch - 1) if self.is_rude and self._chance(0.08) else writer.epoch
        if self._chance(0.1):
            more["gzip"] = True
        return data(
            writer.producer, *keys, epoch=epoch, transactional=writer.is_transactional, at_ms=self._time(), **more
        )

    def _marker(self) -> Step:
        writer = self.source.choice(self.writers)
        if self._chance(0.1):
            self.coordinator_epoch += self.source.randrange(1, 3)
        coordinator = self.coordinator_epoch
        if self.is_rude and self._chance(0.1):
            coordinator = max(0, coordinator - 1)
        if self._chance(0.3):
            # Fenced, or of transaction version 2, which raises the epoch with every marker.
            writer.epoch = min(writer.epoch + 1, _LAST_EPOCH)
        epoch = max(0, writer.epoch - 1) if self.is_rude and self._chance(0.08) else writer.epoch
        return marker(
            writer.producer,
            commit=self._chance(0.5),
            epoch=epoch,
            coordinator_epoch=coordinator,
            at_ms=self.now_ms,
            **self._place(),
        )

    def _empty(self) -> Step:
        if self.is_leader:
            return self._data()
        writer, is_control = self.source.choice(self.writers), self._chance(0.5)
        return empty(
            writer.producer,
            control=is_control,
            count=1 if is_control else self.source.randrange(1, 4),
            epoch=writer.epoch,
            at_ms=self.now_ms,
            leader_epoch=self.leader_epoch,
        )

    def _wait(self) -> Step:
        ms = self.source.choice((1, 100, 5000, 60_001, 400_000, 2 * _HOUR_MS))
        self.now_ms += ms
        return do("wait", ms=ms)

    def _load(self) -> Step:
        if self._chance(0.4):
            return do("load", clean=True)
        return do("load", clean=False, cut=self.source.choice((0, 0, 1, 30, 100)))

    def _of_log(self, kind: str) -> Step:
        if kind == "delete":
            return do("delete", at=self.source.random(), segments=self._chance(0.6))
        if kind == "truncate":
            self.leader_epoch += 1
            return do("truncate", at=self.source.choice((self.source.random(), 0.99)))
        if kind == "restart":
            return do("restart", ahead=self.source.randrange(10))
        if kind == "clean" and not self.is_compact:
            return do("delete", at=0.0, segments=True)
        return do(kind)


def random_story(seed: str, name: str) -> Story:
    """A story of up to 40 requests; the same for the same seed."""
    source = random.Random(seed)
    is_compact, is_leader = source.random() < 0.4, source.random() < 0.6
    # No leader takes an older epoch; a follower that fetched one, and whose cleaner then took it, is not told.
    is_rude = source.random() < 0.5 and (is_leader or not is_compact)
    teller = _Teller(source, is_compact, is_leader, is_rude)
    teller.writers = [
        _Writer(producer, source.random() < 0.8, source.choice((0, 0, 3, 32_760)))
        for producer in source.sample(range(1, 5000), source.randrange(1, 5))
    ]
    steps = tuple(teller.step() for _ in range(source.randrange(1, _MOST_STEPS + 1)))
    return Story(
        name,
        steps,
        _config(source, is_compact=is_compact),
        max_timeout_ms=source.choice((1000, 900_000)),
        expiration_ms=source.choice((86_400_000, 86_400_000, 86_400_000, 5000)),
        is_closed=source.random() < 0.3,
    )


def _config(source: random.Random, *, is_compact: bool) -> dict[str, str]:
    config = {"file.delete.delay.ms": source.choice(("0", "60000"))}
    if is_compact:
        config |= {"cleanup.policy": "compact", "delete.retention.ms": source.choice(("0", "1000", "86400000"))}
        # The cleaner puts no more into one file, so that snapshots between its files stay.
        config[SEGMENT_BYTES] = source.choice(("300", "1000", "1000000"))
    elif source.random() < 0.2:
        config["retention.bytes"] = str(source.randrange(100, 800))
    if source.random() < 0.15:
        config["message.timestamp.type"] = "LogAppendTime"
    return config
