"""Pairs of twins: the logs of one cluster with the state of another that has the same ids and producer ids.

Both words are said of them, and half have logs that hold no COMMIT marker; a plan that aborts what the logs' own
cluster has in progress, or acknowledged, is wrong. Beside them the true hangs are counted that are found by logs with
their own state: as texts, and where one `cluster.id` names both.

Every third twin is a clone: it was the same cluster until others ended their transactions. It is counted by itself,
since it may truly have made the decision behind a marker that is as late as the open data: then nothing in the files
tells the two apart (docs/limits.md).
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import count

from tests.proof.part import Report, counted, never
from tests.tools.stories.answer import answers_of
from tests.tools.world.evidence import Evidence, truth_of
from tests.tools.world.faults import FAULTY, FOREIGN, TWIN
from tests.tools.world.files import ONE_FILE
from tests.tools.world.model import World
from tests.tools.world.random_worlds import Plot, random_plot

AT_ONCE = 250
_SHOWN = 5
_ABORTED = {"PrepareCommit": "PrepareAbort", "CompleteCommit": "CompleteAbort"}


@dataclass(frozen=True)
class Pair:
    """One history with the state of another cluster, and with its own, as it is copied as text and with `cluster.id`.

    Attributes:
        plot: of the logs' cluster.
        world: what is true of it.
        of_twin: its logs with the twin's state.
        as_text: its logs with its own state.
        by_cluster_id: the same, where both are said to be of one cluster.
    """

    plot: Plot
    world: World
    of_twin: Evidence
    as_text: Evidence
    by_cluster_id: Evidence

    @property
    def given(self) -> tuple[Evidence, Evidence, Evidence]:
        """All that is judged of it."""
        return self.of_twin, self.as_text, self.by_cluster_id


@dataclass
class TwinsReport(Report):
    """What so many pairs come to; `problems` are the stories of the first wrong plans."""

    pairs: int = counted("pairs of twins judged, both words said")
    without_commits: int = counted("of these, with logs without a COMMIT marker", least=1)
    wrong: int = never("pairs with a wrong plan")
    clones: int = counted("of these, with the state of a clone", least=1)
    wrong_of_clones: int = counted(
        "wrong plans by clones that nothing tells apart", most=lambda report: report.clones // 1000 + 1
    )
    wrong_of_own: int = never("wrong plans of logs with their own state")
    hanging: int = counted("true hangs of logs with their own state")
    found_as_text: int = counted("of these found as texts", least=1)
    found_by_cluster_id: int = counted("of these found with one cluster.id", least=1)


def pair(seed: str, number: int) -> Pair:
    """A random one; every second has no COMMIT marker in its logs, every third twin is a clone with a common past."""
    plot, world = next(_copied_as_texts(f"twins {seed}/{number}", has_commits=number % 2 == 0))
    own = plot.evidence(world)
    own = own if number % 2 == 0 else _without_commits(own)
    fault = TWIN if _is_clone(number) else FOREIGN
    of_twin = FAULTY[fault](replace(own, state_copied_last=True, no_records_lost=True), plot, world)
    return Pair(plot, world, of_twin, own, replace(own, cluster_id="one cluster"))


def _is_clone(number: int) -> bool:
    return number % 3 == 2


def _copied_as_texts(seed: str, *, has_commits: bool) -> Iterator[tuple[Plot, World]]:
    """Random plots with both words; without commits nobody's data is committed in them."""
    for number in count():
        plot = random_plot(f"{seed}, {number}", is_faulty=False)
        if any(plot.is_shallow):
            continue
        plot = replace(plot, says_last=True, says_nothing_lost=True, cluster_id=None, files=ONE_FILE)
        if not has_commits:
            plot = replace(plot, steps=tuple(s._replace(kind="abort") if s.kind == "commit" else s for s in plot.steps))
        world = plot.world()
        if has_commits or all(each.decision != "Commit" for each in world.transactions):
            yield plot, world


def _without_commits(given: Evidence) -> Evidence:
    """The same, where what others did in one go was aborted as well."""
    logs = tuple(tuple(b._replace(word=b.word and "ABORT") for b in log) for log in given.logs)
    states = tuple(tuple(r._replace(state=_ABORTED.get(r.state or "", r.state)) for r in rows) for rows in given.states)
    return replace(given, logs=logs, states=states)


def report_of(pairs: int, seed: int) -> TwinsReport:
    """Judge so many pairs."""
    report = TwinsReport()
    for begin in range(0, pairs, AT_ONCE):
        some = [pair(str(seed), number) for number in range(begin, min(begin + AT_ONCE, pairs))]
        answers = iter(answers_of([given.history() for each in some for given in each.given]))
        for number, each in enumerate(some, begin):
            of_twin, as_text, by_cluster_id = (
                truth_of(each.world, answer, given.logs) for given, answer in zip(each.given, answers, strict=False)
            )
            report.pairs += 1
            has_commits = any(b.word == "COMMIT" for log in each.of_twin.logs for b in log)
            report.without_commits += not has_commits
            is_clone = _is_clone(number)
            report.wrong += bool(of_twin.wrong) and not is_clone
            report.clones += is_clone
            report.wrong_of_clones += bool(of_twin.wrong) and is_clone
            report.hanging += len(as_text.hanging)
            report.found_as_text += len(as_text.found)
            report.found_by_cluster_id += len(by_cluster_id.found)
            report.wrong_of_own += bool(as_text.wrong or by_cluster_id.wrong)
            if (of_twin.wrong or as_text.wrong or by_cluster_id.wrong) and len(report.problems) < _SHOWN:
                report.problems.append(f"{of_twin.wrong} {as_text.wrong} {each.plot}\n{each.of_twin}")
    return report
