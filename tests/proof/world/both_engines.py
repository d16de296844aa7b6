"""Histories judged by Spark's tasks, thousands as one job, and in this process: every answer must be the same."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice

from tests.proof.part import Report, counted, never
from tests.tools.delta_jars import session_with_delta
from tests.tools.stories.answer import answers_of
from tests.tools.world.evidence import Evidence
from txn_analysis.engine.on_spark import OnSpark

AT_ONCE = 2_500
BUCKETS = 8
_MOST_SHOWN = 5


@dataclass
class Compared(Report):
    """What both engines say."""

    histories: int = counted("histories judged by both engines", least=1)
    findings: int = counted("findings", least=1)
    planned: int = counted("transactions planned", least=1)
    differing: int = never("histories of which the engines do not say the same")


def compared(told: Iterable[Evidence]) -> Compared:
    """Judge histories by both engines."""
    found, waiting = Compared(), iter(told)
    # Where one Python process runs several parts of the proof, its first session is the only one that chooses jars.
    engine = OnSpark(session_with_delta("local[2]", "txn-analysis-proof"), BUCKETS)
    while some := list(islice(waiting, AT_ONCE)):
        histories = [evidence.history() for evidence in some]
        here = answers_of(histories)
        there = answers_of(histories, engine)
        found.histories += len(some)
        found.findings += sum(len(answer.findings) for answer in here)
        found.planned += sum(len(answer.plan) for answer in here)
        for evidence, own, other in zip(some, here, there, strict=True):
            if own != other:
                found.differing += 1
                if len(found.problems) < _MOST_SHOWN:
                    found.problems.append(f"{evidence}\n{own}\n{other}")
    return found
