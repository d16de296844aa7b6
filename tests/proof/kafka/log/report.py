"""Kafka's own log code against the audit: random logs, and the scenarios of Kafka's own tests."""

import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.proof.kafka.log.audited import audit
from tests.proof.kafka.log.compare import compare
from tests.proof.kafka.log.program import tell
from tests.proof.kafka.log.random_stories import random_story
from tests.proof.kafka.log.requests import Story

AT_ONCE = 250


@dataclass
class KafkaLogReport:
    """What came of some logs; `differences` must be empty.

    Attributes:
        logs: how many there were.
        requests: how many requests Kafka carried out; `refused` counts the others by Kafka's reason.
        failed: and at how many stories Kafka's own code failed, by a fault that is known.
        opened: transactions that were open at the end.
        alike: producers by in which way the audit is right of them.
        differences: what the audit says otherwise than Kafka, in words.
    """

    logs: int = 0
    requests: int = 0
    failed: int = 0
    opened: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    alike: Counter[str] = field(default_factory=Counter)
    differences: list[str] = field(default_factory=list)


def report_of(version: str, stories: Sequence[Story]) -> KafkaLogReport:
    """Tell stories to one version of Kafka's log code, and audit the folders that it leaves.

    Raises:
        FetchError: the jars of that version are not to be had.
    """
    report = KafkaLogReport()
    for begin in range(0, len(stories), AT_ONCE):
        some = stories[begin : begin + AT_ONCE]
        with tempfile.TemporaryDirectory(prefix="kafka-log-", dir=memory()) as root:
            of_all = list(zip(some, tell(version, some, Path(root)), strict=True))
            of_some = [(story, one) for story, one in of_all if one is not None]
            answers = audit([story for story, _ in of_some], [one for _, one in of_some])
        report.failed += len(of_all) - len(of_some)
        for (story, one), audited in zip(of_some, answers, strict=True):
            found = compare(story, one, audited)
            report.logs += 1
            report.requests += one.done
            report.opened += sum(p.txn_start_offset >= 0 for p in one.living.producers.values())
            report.refused.update(one.refused)
            report.alike += found.alike
            report.differences += [f"Kafka {version}, {words}" for words in found.differences]
    return report


def memory() -> str | None:
    """A folder in memory, where the system has one: many small files are written."""
    return "/dev/shm" if Path("/dev/shm").is_dir() else None


def random_stories(count: int, seed: int, first: int = 0) -> list[Story]:
    """So many random lists of requests, numbered from `first`."""
    return [random_story(f"{seed}/{number}", str(number)) for number in range(first, first + count)]
