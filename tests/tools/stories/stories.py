"""Stories of one morning for the pure core, told by the clock: who wrote, who decided, what was copied.

Producer 7 of the id `billing` writes to orders-0; producer 9 of `others` commits in every partition now and then, so
that all brokers' clocks speak. Everything but what a story says is as it should be.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from tests.tools.stories.answer import Answer, answer_of
from tests.tools.stories.histories import World, data, marker, record
from txn_analysis.kafka.names import java_hash, state_partition
from txn_analysis.settings import Settings

Row = dict[str, Any]

MIDNIGHT_MS = 1_800_000_000_000 // 86_400_000 * 86_400_000
ORDERS_0, ORDERS_1 = ("orders", 0), ("orders", 1)


def at(clock: str) -> int:
    """A time of that day, such as `10:00`, `10:00:01` or `10:00:01.250`; hours above 23 are of the next days."""
    hours, minutes, *seconds = clock.split(":")
    return (
        MIDNIGHT_MS
        + 3_600_000 * int(hours)
        + 60_000 * int(minutes)
        + round(1_000 * float(seconds[0] if seconds else 0))
    )


def places(*listed: tuple[str, int]) -> list[Row]:
    """Partitions as a record of the coordinator lists them."""
    return [{"topic": topic, "partition": number} for topic, number in listed]


@dataclass
class Story:
    """What happened, in order; `world` is what was copied of it."""

    world: World = field(default_factory=lambda: World(Settings(transaction_state_partitions=1), {ORDERS_0: []}))
    leader_epoch: int = 0
    state_leader_epoch: int = 0

    def log(self, place: tuple[str, int] = ORDERS_0) -> list[Row]:
        """The log of a partition, from now on copied."""
        return self.world.logs.setdefault(place, [])

    def says(self, **settings: Any) -> Story:
        """What the operator says, or is set."""
        self.world.settings = self.world.settings.model_copy(update=settings)
        return self

    def writes(self, clock: str, producer_id: int = 7, place: tuple[str, int] = ORDERS_0, **changes: Any) -> Story:
        """A batch of transactional data."""
        self.log(place).append(data(producer_id, at(clock), leader_epoch=self.leader_epoch) | changes)
        return self

    def marks(
        self, clock: str, word: str = "COMMIT", producer_id: int = 7, place: tuple[str, int] = ORDERS_0, **changes: Any
    ) -> Story:
        """An end marker."""
        placed = {"leader_epoch": self.leader_epoch, "coordinator_epoch": self.state_leader_epoch}
        self.log(place).append(marker(producer_id, at(clock), word, **placed) | changes)
        return self

    def records(
        self,
        clock: str,
        state: str | None,
        *,
        name: str = "billing",
        producer_id: int | None = 7,
        on: Iterable[tuple[str, int]] = (ORDERS_0,),
        **changes: Any,
    ) -> Story:
        """A record of the coordinator; one that is in progress or decided lists partitions."""
        is_live = state in {"Ongoing", "PrepareCommit", "PrepareAbort"}
        known = {"topic_partitions": places(*on) if is_live else [], "leader_epoch": self.state_leader_epoch}
        self.world.record(record(name, state, producer_id, at(clock)) | known | changes)
        return self

    def begins(self, clock: str, **changes: Any) -> Story:
        """The id adds the partition to its transaction; its first record says that the id is new."""
        if not any(self.world.states.values()):
            self.records("8:00", "Empty", **{n: v for n, v in changes.items() if n in {"name", "producer_id"}})
        return self.records(clock, "Ongoing", start_ms=at(clock), **changes)

    def decides(self, word: str, prepared: str, completed: str, **changes: Any) -> Story:
        """The coordinator decides and completes; whether a marker was written is told apart."""
        self.records(prepared, f"Prepare{word}", **changes)
        return self.records(completed, f"Complete{word}", **changes)

    def others_commit(self, clock: str, *logs: tuple[str, int]) -> Story:
        """Another id commits in every partition, or in those that are named."""
        of_others: Row = {"name": "others", "producer_id": 9, "on": logs or tuple(self.world.logs)}
        self.records(clock, "PrepareCommit", **of_others)
        for place in logs or tuple(self.world.logs):
            self.writes(clock, producer_id=9, place=place).marks(clock, producer_id=9, place=place)
        return self.records(clock, "CompleteCommit", **of_others)

    def compacts_the_state(self) -> Story:
        """The cleaner keeps the last record of each id where it is (`LogCleaner`)."""
        for number, rows in self.world.states.items():
            last = {row["transactional_id"]: offset for offset, row in enumerate(rows)}
            placed = [{"offset": offset} | row for offset, row in enumerate(rows)]
            self.world.states[number] = [row for row in placed if last[row["transactional_id"]] == row["offset"]]
        return self

    def answer(self) -> Answer:
        """What the audit says."""
        return answer_of(self.world.history())

    def rule(self, producer_id: int = 7) -> str:
        """The rule that decides about a producer's open data on orders-0, and that only what hangs is planned."""
        answer = self.answer()
        planned = {(r.topic, r.partition, r.producer_id) for r in answer.plan}
        assert planned == {(f.topic, f.partition, f.producer_id) for f in answer.hanging}
        found = {(f.topic, f.partition, f.producer_id): f.rule for f in answer.findings}
        return found.get((*ORDERS_0, producer_id), "not open")


def exported(story: Story) -> Story:
    """Its state as a console consumer prints it: Complete records with the time of the decision."""
    decided: dict[str, int] = {}
    for rows in story.world.states.values():
        for row in rows:
            name, state = row["transactional_id"], row["state"] or ""
            if state.startswith("Prepare"):
                decided[name] = row["last_update_ms"]
            update_ms = decided.get(name) if state.startswith("Complete") else None
            story.world.export.append(row | ({"last_update_ms": update_ms} if update_ms else {}))
    story.world.states = {}
    return story


def removed(story: Story, *, is_text: bool) -> Story:
    """An exported state whose last line removes billing: in text, some id that ends so."""
    story = exported(story.records("13:00", None, producer_id=None))
    story.world.export[-1] |= {"last_update_ms": None}
    story.world.is_export_text = is_text
    return story.says(transaction_state_complete=True, state_copied_last=True, no_records_lost=True)


def holder(name: str, count: int) -> int:
    """The partition of the state that an id hashes to."""
    return state_partition(java_hash(name), count)


def begun() -> Story:
    """Producer 7 writes in its transaction, after others have committed; all clocks speak."""
    return Story().begins("9:50").others_commit("9:55").writes("9:59")
