"""Kafka's word against the audit's, log by log."""

from collections import Counter
from dataclasses import dataclass, field, replace

from tests.proof.kafka.log.audited import Audited
from tests.proof.kafka.log.program import NONE, Producer, Said, Told
from tests.proof.kafka.log.requests import Story

LIVING = "as the log that was living"
LOADED = "as Kafka loads the same files, where that differs"
FORGOTTEN = "of which the files hold what the broker forgot"


@dataclass
class Comparison:
    """How many producers were alike, by in which way, and in words each thing that was not."""

    alike: Counter[str] = field(default_factory=Counter)
    differences: list[str] = field(default_factory=list)


def compare(story: Story, told: Told, audited: Audited) -> Comparison:
    """Whether the audit says of the files of one log what Kafka says of the log, and takes them for whole.

    Two differences are right. What is not in the files, because the cleaner took it or the log start passed it, is
    compared with what Kafka itself makes of the same files. And what a broker forgets (a producer that was idle for
    `producer.id.expiration.ms`; what is below the log start, when it loads its state anew), the audit still reads.
    """
    found = Comparison()
    living, loaded = told.living, told.loaded
    for name, ours, *theirs in (
        ("log start offset", audited.log_start_offset, living.log_start_offset),
        ("log end offset", audited.log_end_offset, living.log_end_offset),
        ("last stable offset", audited.last_stable_offset, _stable(living), _stable(loaded)),
        ("late", audited.has_late_transaction, living.has_late_transaction, loaded.has_late_transaction),
    ):
        if ours not in theirs:
            found.differences.append(f"{story.name}: {name} is {theirs[0]} in Kafka and {ours} in the audit")
    for producer_id in sorted(audited.producers.keys() | living.producers.keys()):
        said, known = audited.producers.get(producer_id), living.producers.get(producer_id)
        way = _alike(said, known, told, producer_id)
        if way is None:
            found.differences.append(f"{story.name}: {_shown(known)} in Kafka, {_shown(said)} in the audit")
        else:
            found.alike[way] += 1
    if not _may_be_doubted(story, told):
        found.differences += [f"{story.name}: the audit doubts what Kafka wrote: {why}" for why in audited.doubts]
    return found


def _may_be_doubted(story: Story, told: Told) -> bool:
    """Snapshots of a log start that was lost in a crash disagree; a follower's empty data may begin a transaction."""
    return told.is_start_lost or any(step["do"] == "empty" for step in story.steps)


def _stable(said: Said) -> int:
    """Where the log start is inside a batch that is open, Kafka 4.2 and newer answer with the start of that batch."""
    return max(said.last_stable_offset, said.log_start_offset)


def _alike(ours: Producer | None, living: Producer | None, told: Told, producer_id: int) -> str | None:
    """In which way the audit is right of one producer; None where it is not."""
    if ours == living:
        return LIVING
    if ours == told.loaded.producers.get(producer_id):
        return LOADED
    if ours is None or producer_id not in told.forgotten:
        return None
    return FORGOTTEN if _is_more(ours, living, told.living.log_start_offset) else None


def _is_more(ours: Producer, living: Producer | None, log_start_offset: int) -> bool:
    """Beside what the broker knows there is only what it has forgotten; nothing of that is open above the log start."""
    if living is None:
        return ours.txn_start_offset < log_start_offset
    names = ("producer_epoch", "coordinator_epoch", "last_sequence", "last_timestamp_ms")
    return replace(ours, **{name: NONE for name in names if getattr(living, name) == NONE}) == living


def _shown(producer: Producer | None) -> str:
    return "no such producer" if producer is None else str(producer)
