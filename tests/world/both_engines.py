"""Histories judged by Spark's tasks, thousands as one job, and in this process: every answer must be the same."""

import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice

from tests.core.answer import answers_of
from tests.delta_jars import session_with_delta
from tests.world.evidence import Evidence
from txn_analysis.engine.on_spark import OnSpark

ENGINES = ("local", "spark")
AT_ONCE = 2_500
BUCKETS = 8
_MOST_SHOWN = 5


@dataclass
class Compared:
    """How many histories both engines judged, and what they say of those of which they do not say the same."""

    histories: int = 0
    findings: int = 0
    planned: int = 0
    differing: int = 0
    seconds: dict[str, float] = field(default_factory=lambda: dict.fromkeys(ENGINES, 0.0))
    problems: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        """In one line, with the first differences behind it."""
        here, there = (self.seconds[name] for name in ENGINES)
        said = (
            f"{self.histories} histories judged in this process ({here:.0f} s) and in Spark's tasks ({there:.0f} s): "
            f"{self.findings} findings, {self.planned} planned; {self.differing} differ"
        )
        return "\n".join([said, *self.problems])


def compared(told: Iterable[Evidence]) -> Compared:
    """Judge histories by both engines."""
    found, waiting = Compared(), iter(told)
    # Where one Python process runs several parts of the proof, its first session is the only one that chooses jars.
    engine = OnSpark(session_with_delta("local[2]", "txn-analysis-proof"), BUCKETS)
    while some := list(islice(waiting, AT_ONCE)):
        histories = [evidence.history() for evidence in some]
        began = time.monotonic()
        here = answers_of(histories)
        by_now = time.monotonic()
        there = answers_of(histories, engine)
        found.seconds["local"] += by_now - began
        found.seconds["spark"] += time.monotonic() - by_now
        found.histories += len(some)
        found.findings += sum(len(answer.findings) for answer in here)
        found.planned += sum(len(answer.plan) for answer in here)
        for evidence, own, other in zip(some, here, there, strict=True):
            if own != other:
                found.differing += 1
                if len(found.problems) < _MOST_SHOWN:
                    found.problems.append(f"{evidence}\n{own}\n{other}")
    return found
