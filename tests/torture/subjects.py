"""What is tortured: real captures and random simulated clusters, each with the truth about its transactions."""

import json
import random
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cache
from typing import Any

from tests.acceptance.captures import CASES, PARAMETERS
from tests.oracle.cluster import LAST_PRODUCER_EPOCH, Cluster
from tests.oracle.copies import Copy, Truth
from tests.oracle.dump_writer import Tool
from tests.oracle.model import Batch, History, Segment, StateRecord, TopicPartition, state_partition
from tests.oracle.recipes import HOUR_MS, RECIPES, TOPICS, Client, new_cluster
from tests.oracle.state_writer import STATE_TOPIC
from tests.oracle.stories import NAMES, play, random_actions
from tests.oracle.truth import moment_of, truth_at
from tests.torture.harness import Answer

Row = dict[str, Any]
Files = dict[str, bytes]

CONSOLE = "console"
VERSIONS = ((2, 8), (3, 3), (3, 7), (4, 0), (4, 1), (4, 2))
PARTITIONS: tuple[TopicPartition, ...] = tuple((topic, n) for topic, count in TOPICS.items() for n in range(count))
STATE_PARTITIONS = 4


class Meaning(StrEnum):
    """What a `hanging` verdict is worth, by the truth."""

    RIGHT = "right"
    ADMINISTRATOR = "an administrator's marker lies in the part that was cut off"
    ADOPTED = "an orphan as far as the evidence reaches, and adopted by a transaction after it"
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
        return Meaning.ADMINISTRATOR if key in self.repaired else Meaning.RIGHT


@dataclass
class Simulated(Subject):
    """A simulated cluster at its present moment, and copies of its files."""

    cluster: Cluster = field(default_factory=new_cluster)
    is_compacted: bool = False

    def meaning(self, row: Row, answer: Answer) -> Meaning:
        """By the simulator: at present, and at the moment up to which the evidence reaches."""
        where, producer, start = (row["topic"], row["partition"]), row["producer_id"], row["txn_start_offset"]
        now = self.cluster.truth(where, producer, start)
        if truth_at(self.cluster, where, producer, start, self._reached(where, producer, answer)).is_abort_wrong:
            return Meaning.WRONG
        if now.is_abort_wrong:
            return Meaning.ADOPTED
        return Meaning.ADMINISTRATOR if now is Truth.ENDED_BY_ADMINISTRATOR else Meaning.RIGHT

    def _reached(self, where: TopicPartition, producer: int, answer: Answer) -> int:
        """The last moment that this log, or the coordinator's records of the producer's ids, show."""
        end = next(h["end_offset"] for h in answer.health if (h["topic"], h["partition"]) == where)
        moments = [moment_of(self.cluster.logs[where], end - 1)]
        for number, log in enumerate(self.cluster.states):
            records = [(at, r.state.value) for at, b in log.batches for r in b.all_records() if r.state]
            if any(value and value.producer_id == producer for _, value in records):
                seen_to_ms = answer.state_seen_to_ms.get(number, -1)
                moments += [at for at, value in records if value and value.last_update_ms <= seen_to_ms]
        return max(moments)


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
    """A random cluster with a past, copied one or two times in a random order of partitions."""
    source = random.Random(seed)
    skew_ms = source.choice((0, 0, 1000))
    cluster = _cluster(source, skew_ms)
    tool = Tool(version=source.choice(VERSIONS), deep=source.random() < 0.7, payload=source.random() < 0.3)
    form = source.choice(("dump", "dump", "dump", "text", "json"))
    earlier = cluster.moment // 2 + source.randrange(cluster.moment // 2)
    how = source.choice(("present", "present", "logs first", "state first", "scattered"))
    copies = {"2-new": _copy(source, how, cluster, earlier)}
    if source.random() < 0.6:
        copies = {"1-old": cluster.copy(_all_at(cluster, earlier, earlier))} | copies
    settings: Row = {"transaction_state_partitions": STATE_PARTITIONS, "max_clock_skew_ms": skew_ms}
    settings["transaction_state_complete"] = form != "dump"
    settings["state_copied_last"] = how in {"present", "logs first"} and source.random() < 0.5
    is_compacted = source.random() < 0.4
    if is_compacted:
        copies["2-new"] = compacted(copies["2-new"], source)
    captures = {name: files_of(copy, tool, form) for name, copy in copies.items()}
    return Simulated(f"simulated {seed}", captures, settings, {"2-new": cluster.now_ms}, cluster, is_compacted)


def _cluster(source: random.Random, skew_ms: int) -> Cluster:
    """Some known ways to leave transactions open between random events; at the end time passes and others go on."""
    partitions = [*PARTITIONS, *((STATE_TOPIC, n) for n in range(STATE_PARTITIONS))]
    skews = {where: source.randint(0, skew_ms) for where in partitions} if skew_ms else {}
    cluster = new_cluster(transaction_version=source.choice((0, 0, 2)), skew_ms=skews)
    if source.random() < 0.2:
        cluster.init_producer(NAMES[0], first_epoch=LAST_PRODUCER_EPOCH - source.randrange(3))
    play(random_actions(source.randrange(1 << 30), source.randrange(40)), cluster)
    if source.random() < 0.7:
        cluster.stopped_coordinators.clear()
        cluster.unreachable.clear()
        cluster.write_markers()
        RECIPES[source.choice(sorted(RECIPES))](cluster)
    play(random_actions(source.randrange(1 << 30), source.randrange(40)), cluster)
    if source.random() < 0.7:
        cluster.sleep(2 * HOUR_MS)
        cluster.unreachable -= {where for where in sorted(cluster.unreachable) if source.random() < 0.5}
        heartbeat(cluster)
    play(random_actions(source.randrange(1 << 30), source.randrange(15)), cluster)
    if source.random() < 0.5:
        heartbeat(cluster)
    return cluster


def heartbeat(cluster: Cluster) -> None:
    """One committed transaction of each coordinator in every partition that can be reached: all clocks speak."""
    for number in range(STATE_PARTITIONS):
        name = next(n for k in range(100) if state_partition(n := f"beat-{k}", STATE_PARTITIONS) == number)
        client = Client(cluster, name).init()
        for where in sorted(set(cluster.logs) - cluster.unreachable) if client.producer_id >= 0 else ():
            client.transact(where)
        client.end("Commit")


def _all_at(cluster: Cluster, logs_at: int, state_at: int) -> dict[TopicPartition, int]:
    states: dict[TopicPartition, int] = {(log.topic, log.partition): state_at for log in cluster.states}
    return dict.fromkeys(cluster.logs, logs_at) | states


def _copy(source: random.Random, how: str, cluster: Cluster, earlier: int) -> Copy:
    """A copy that began at `earlier` and ended at present."""
    now = cluster.moment
    if how == "scattered":
        names = sorted(_all_at(cluster, now, now))
        return cluster.copy({name: source.randint(earlier, now) for name in names})
    logs_at, state_at = {"present": (now, now), "logs first": (earlier, now), "state first": (now, earlier)}[how]
    return cluster.copy(_all_at(cluster, logs_at, state_at))


def compacted(copy: Copy, source: random.Random) -> Copy:
    """The copy after the log cleaner has been at each partition of `__transaction_state`, up to some offset."""
    return replace(copy, states=tuple(_cleaned(history, source) for history in copy.states))


def _cleaned(history: History, source: random.Random) -> History:
    """A first segment with the last record of each id only, and the others; old tombstones may be gone."""
    first_dirty = source.randint(0, history.end_offset)
    clean = [batch for batch in history.batches if batch.base_offset < first_dirty]
    if not clean or len(clean) == len(history.batches):
        return history
    last = {record.transactional_id: batch for batch in history.batches for record in _states_of(batch)}
    keeps_tombstones = source.random() < 0.5
    kept = [
        batch
        for batch in clean
        for record in _states_of(batch)
        if last[record.transactional_id] is batch and (record.value or keeps_tombstones)
    ]
    if not kept or kept[-1] is not clean[-1]:
        # LogCleaner keeps the last batch of what it cleaned, without its records.
        kept.append(replace(clean[-1], record_count=0, records=()))
    dirty = tuple(batch for batch in history.batches if batch.base_offset >= first_dirty)
    return replace(history, segments=(Segment(0, tuple(kept)), Segment(first_dirty, dirty)))


def _states_of(batch: Batch) -> list[StateRecord]:
    return [record.state for record in batch.all_records() if record.state]


def files_of(copy: Copy, tool: Tool, form: str) -> Files:
    """The copy's files; `form` is how the state was exported: dump, text or json."""
    files = copy.files(tool)
    if form == "dump":
        return files
    kept = {name: data for name, data in files.items() if not name.startswith(STATE_TOPIC)}
    return kept | {f"{CONSOLE}.txt": copy.console(as_json=form == "json")}
