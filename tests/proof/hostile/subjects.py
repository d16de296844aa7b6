"""What is tortured: real captures and random worlds, each with the truth about its transactions."""

import json
import random
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cache
from typing import Any

from tests.tools.captures import PARAMETERS
from tests.tools.forms.dump_writer import Tool
from tests.tools.harness import Answer
from tests.tools.repository import CASES
from tests.tools.world.evidence import SKEW_MS, TOPIC, is_acknowledged, is_owned
from tests.tools.world.files import ONE_FILE
from tests.tools.world.model import NOBODYS, Batch, World
from tests.tools.world.random_worlds import Plot, random_plot
from tests.tools.world.steps import after
from tests.tools.world.teller import copies
from tests.tools.world.texts import Copy, copy_of, rolled

Row = dict[str, Any]
Files = dict[str, bytes]

VERSIONS = ((2, 8), (3, 3), (3, 7), (4, 0), (4, 1), (4, 2))


class Meaning(StrEnum):
    """What a `hanging` verdict is worth, by the truth."""

    RIGHT = "right"
    LATER = "an orphan as far as the evidence reaches, and ended by an administrator or a transaction after it"
    WRONG = "wrong"


@dataclass
class Subject:
    """Captures of one cluster, oldest first, and the settings that are true of them.

    `settings` hold operators' words only where they are true of every single capture as it stands; `as_of_ms` is the
    moment at which a capture was copied, where that is known.
    """

    name: str
    captures: dict[str, Files]
    settings: Row
    as_of_ms: dict[str, int] = field(default_factory=dict)

    def meaning(self, row: Row, answer: Answer) -> Meaning:
        """What the verdict `hanging` on this row is worth."""
        raise NotImplementedError


@dataclass
class RealCase(Subject):
    """Captures of real brokers; what hangs was made on purpose and is written down."""

    orphans: dict[tuple[str, int, int], int] = field(default_factory=dict)
    repaired: set[tuple[str, int, int]] = field(default_factory=set)

    def meaning(self, row: Row, answer: Answer) -> Meaning:  # noqa: ARG002 - what hangs is written down
        """Right for what any capture expects to hang, from its own start on."""
        key = (row["topic"], row["partition"], row["producer_id"])
        if key not in self.orphans or row["txn_start_offset"] < self.orphans[key]:
            return Meaning.WRONG
        return Meaning.LATER if key in self.repaired else Meaning.RIGHT


@dataclass
class Simulated(Subject):
    """A world at its end, and copies that were made of it; `moments` are the worlds on the way there."""

    moments: tuple[World, ...] = ()
    is_compacted: bool = False

    def meaning(self, row: Row, answer: Answer) -> Meaning:
        """By what is true in the end, and at the moment up to which the evidence reaches."""
        number, producer, start = row["partition"], row["producer_id"], row["txn_start_offset"]
        now, reached_ms = self.moments[-1], self._reached_ms(number, producer, answer)
        then = next((world for world in self.moments if world.now_ms > reached_ms), now)
        data = {b for b in self._data(number, producer) if start <= b.offset <= row["last_offset"]}
        is_lost = any(is_acknowledged(now, number, batch) for batch in data)
        if is_lost or is_owned(then, number, producer) or _is_ended(then, number, data):
            return Meaning.WRONG
        is_open = any(batch.offset == start for batch in now.logs[number].open_data(producer))
        return Meaning.RIGHT if is_open and not is_owned(now, number, producer) else Meaning.LATER

    def _data(self, number: int, producer: int) -> set[Batch]:
        logs = (world.logs[number].batches for world in self.moments)
        return {b for batches in logs for b in batches if b.producer_id == producer and not b.word}

    def _reached_ms(self, number: int, producer: int, answer: Answer) -> int:
        """The last moment that this log, or the coordinator's records of the producer's ids, show."""
        end = next(h["end_offset"] for h in answer.health if h["partition"] == number and h["topic"] == TOPIC)
        logs = (world.logs[number].batches for world in self.moments)
        moments = {batch.at_ms for batches in logs for batch in batches if batch.offset < end}
        for place in range(len(self.moments[-1].states)):
            seen_to_ms = answer.state_seen_to_ms.get(place, -1)
            rows = {row for world in self.moments for row in world.states[place].rows}
            moments |= {r.at_ms for r in rows if r.producer_id == producer and r.update_ms <= seen_to_ms}
        return max(moments)


def _is_ended(world: World, number: int, data: set[Batch]) -> bool:
    """A marker of its own transaction ended some of it; one of an administrator, or of a later transaction, did not."""
    markers = [batch for batch in world.logs[number].batches if batch.word]
    return any(
        marker.producer_id == batch.producer_id and marker.offset > batch.offset and batch.txn != NOBODYS
        for batch in data
        for marker in markers
    )


@cache
def real_cases() -> tuple[RealCase, ...]:
    """Every real case, in the forms in which it was copied."""
    dumps = ("segments", "transaction-state", "producer-snapshots")
    forms: Mapping[str, tuple[tuple[str, ...], ...]] = {
        "kafka-2.8": (dumps, ("segments", "../console")),
        "kafka-4.2": (dumps, ("shallow", "transaction-state"), ("segments", "producer-snapshots", "../console")),
        "kafka-4.2-edge": (dumps,),
        "kafka-4.2-tv2": (dumps,),
    }
    return tuple(_real_case(case, parts) for case, found in forms.items() for parts in found)


def _real_case(case: str, parts: tuple[str, ...]) -> RealCase:
    has_console = "../console" in parts
    captures: dict[str, Files] = {}
    orphans: dict[tuple[str, int, int], int] = {}
    repaired: set[tuple[str, int, int]] = set()
    for folder in sorted((CASES / case).glob("capture-*")):
        files = {
            f"{part.removeprefix('../')}/{file.name}": file.read_bytes()
            for part in parts
            for file in sorted((folder / part).resolve().glob("*"))
        }
        expected = json.loads((folder / "expected.json").read_text())["open_transactions"]
        hanging = {
            (row["topic"], row["partition"], row["producer_id"]): row["txn_start_offset"]
            for row in expected
            if row["verdict"] == "hanging"
        }
        repaired = {key for key in orphans if key not in hanging} | repaired
        orphans |= {key: min(start, orphans.get(key, start)) for key, start in hanging.items()}
        # The console exports were taken with one capture of their case each.
        if (not has_console or _has_console(case, folder.name)) and files.keys() & _logs(files):
            captures[folder.name] = files
    settings = dict(PARAMETERS) | ({"transaction_state_complete": True} if has_console else {})
    name = f"{case}: {' + '.join(part.removeprefix('../') for part in parts)}"
    return RealCase(name, captures, settings, {}, orphans, repaired)


def _has_console(case: str, capture: str) -> bool:
    return (case, capture) in {("kafka-2.8", "capture-1"), ("kafka-4.2", "capture-2")}


def _logs(files: Files) -> set[str]:
    return {name for name in files if name.startswith(("segments/", "shallow/"))}


def simulated(seed: str) -> Simulated:
    """A random world, copied one or two times in a random order, as one version of the tools prints it."""
    source = random.Random(seed)
    plot = replace(random_plot(f"{seed}, tortured", is_faulty=False), files=ONE_FILE, is_shallow=(), cluster_id=None)
    moments = _moments(plot)
    tool = Tool(version=source.choice(VERSIONS), deep=source.random() < 0.7, payload=source.random() < 0.3)
    form = source.choice(("dump", "dump", "dump", "text", "json"))
    world = moments[-1]
    made = {"2-new": _copied(plot, world, seed, may_delete=True)}
    begun = [one for one in moments if all(log.batches for log in one.logs) and not _is_being_copied(one)]
    if begun and source.random() < 0.6:
        whole = _with_copies(source.choice(begun))
        made = {"1-old": _copied(plot, whole, seed, may_delete=False)} | made
    settings: Row = {"transaction_state_partitions": plot.states, "max_clock_skew_ms": SKEW_MS if plot.clocks_ms else 0}
    settings["transaction_state_complete"] = form != "dump"
    settings["state_copied_last"] = world.is_state_last and source.random() < 0.5
    captures = {name: copy.files(tool, form) for name, copy in made.items()}
    is_compacted = any(step.kind in {"compact", "busy"} for step in world.steps)
    return Simulated(f"simulated {seed}", captures, settings, {"2-new": world.now_ms}, moments, is_compacted)


def _moments(plot: Plot) -> tuple[World, ...]:
    """The world before its first step, and after each that happens."""
    moments = [plot.start()]
    for step in (*plot.steps, *copies(moments[0])):
        moments.append(after(moments[-1], step) or moments[-1])
    return tuple(moments)


def _is_being_copied(world: World) -> bool:
    return any(log.copy is not None for log in world.logs) or any(state.copy is not None for state in world.states)


def _with_copies(world: World) -> World:
    """As if all of it had been copied at one moment."""
    logs = tuple(replace(log, copy=log.batches) for log in world.logs)
    return replace(world, logs=logs, states=tuple(replace(state, copy=state.rows) for state in world.states))


def _copied(plot: Plot, world: World, seed: str, *, may_delete: bool) -> Copy:
    return rolled(copy_of(plot.evidence(world).copies()), seed, may_delete=may_delete)
