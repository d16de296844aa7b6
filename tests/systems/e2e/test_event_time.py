"""A healthy application with event time two hours back, copied ten times under load: nothing is wrong, and all say so.

What is open at the end of a log is decided by the time the state is copied. By its client's clock it was late when it
was written.
"""

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.systems.e2e.broker import TRANSACTION_MAX_TIMEOUT_MS, Cluster
from tests.systems.e2e.hangs import HOUR_MS, now_ms
from tests.systems.e2e.kit import run_kit, write_tools
from tests.systems.e2e.raw_client import RawClient
from tests.systems.e2e.stage import COMPACT_STATE, on_node, staged
from tests.tools.sessions import no_session
from txn_analysis.judge.outcome import Answer, Outcome, outcome_of
from txn_analysis.pipeline import steps
from txn_analysis.report.model import AuditReport
from txn_analysis.settings import Settings
from txn_analysis.verdict import Verdict

pytestmark = pytest.mark.e2e

VERSION = "4.3.1"
COPIES = 10
PLACES = [("counts", number) for number in range(6)]
WRITERS = 3
PAUSE_S = 2
WRITES = 20
PACE_S = PAUSE_S / WRITES
REST_S = 1.25 * PAUSE_S


@dataclass
class Writer:
    """An application that writes, commits and rests, and dates all that it writes two hours back.

    It writes for as long as the copy waits between logs and state, and rests longer: however slow the machine is, some
    copies have the open transaction in their logs and its decision as the newest record of the state.
    """

    client: RawClient
    name: str
    has_committed: threading.Event = field(default_factory=threading.Event)
    is_over: threading.Event = field(default_factory=threading.Event)

    def goes_on(self) -> None:
        """Until it is told to stop; its last transaction is committed."""
        producer = self.client.init_producer_id(self.name)
        sequences = dict.fromkeys(PLACES, 0)
        while not self.is_over.is_set():
            for place in PLACES:
                self.client.add_partition(producer, place)
            for _ in range(WRITES):
                for place in PLACES:
                    self.client.write(producer, place, sequences[place], at_ms=now_ms() - 2 * HOUR_MS)
                    sequences[place] += 2
                self.is_over.wait(PACE_S)
            self.client.end(producer, commit=True)
            self.has_committed.set()
            self.is_over.wait(REST_S)


@pytest.fixture(scope="module")
def busy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Cluster, Path]]:
    folder = tmp_path_factory.mktemp("event-time")
    with staged(Cluster(VERSION, folder / "broker"), {**COMPACT_STATE, "counts": on_node(len(PLACES))}) as stage:
        write_tools(folder / "bin", VERSION)
        writers = []
        for number in range(WRITERS):
            writer = Writer(stage.raw_of(0), f"counts-{number}")
            thread = threading.Thread(target=writer.goes_on)
            thread.start()
            stage.running.callback(thread.join)
            stage.running.callback(writer.is_over.set)
            writers.append(writer)
        for writer in writers:  # a partition without any end marker says of nothing how young it is
            assert writer.has_committed.wait(60)
        yield stage.cluster, folder


def audited(folder: Path, name: str, **said: Any) -> AuditReport:
    known = {"warehouse": str(folder / f"{name}-warehouse"), "transaction_max_timeout_ms": TRANSACTION_MAX_TIMEOUT_MS}
    return steps.audit(no_session, [str(folder / name)], Settings.model_validate(known | said))


def test_no_copy_under_load_is_a_question(busy: tuple[Cluster, Path]) -> None:
    cluster, folder = busy
    answers, by_manifest, before, rows = [], [], [], 0
    for number in range(COPIES):
        name = f"copy-{number}"
        run_kit(cluster, folder / "bin", folder / name, "--pause", str(PAUSE_S), asks=False)
        report = audited(folder, name, as_of_ms=now_ms(), state_copied_last=True)
        answers.append(report.outcome.answer)
        by_manifest.append(audited(folder, name, state_copied_last=True).outcome.answer)
        questions = [(f.topic_partition, f.rule, f.txn_start_offset, f.evidence) for f in report.doubtful]
        assert not questions, questions
        told = report.findings.records(Answer)
        rows += len(report.being_written)
        before.append(outcome_of([one._replace(is_recent=None) for one in told], has_state=True))
        assert not report.findings.of_verdict(Verdict.HANGING, Verdict.SUSPECT)
        causes = {f.cause.name for f in report.being_written if f.cause is not None}
        assert causes <= {"transaction_in_progress"}
    in_doubt = [each.count(Outcome.COULD_NOT_TELL) for each in (answers, by_manifest, before)]
    said = f"{in_doubt[0]} could not be told, {in_doubt[1]} by manifests, {in_doubt[2]} without"
    print(f"{COPIES} copies: {said}; {rows} rows")
    assert in_doubt[:2] == [0, 0]
    assert in_doubt[2], "no copy has a row that event time makes late: there is too little load"
