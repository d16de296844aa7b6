"""Log directories are audited as they are, also while their brokers go on writing."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.tools.captures import VARIANTS, AuditOf, by_place, rows_of, run_audit
from tests.tools.log_dirs.encoder import encoded
from tests.tools.log_dirs.scenes import PARTITIONS, live_log_dir
from tests.tools.sessions import no_session
from tests.unit.log_dir.test_segments import data
from txn_analysis.pipeline import steps as pipeline
from txn_analysis.report.terminal import Progress
from txn_analysis.settings import Settings
from txn_analysis.tables import PartitionHealth

# Each capture has its own run, and its own name in the warehouse.
OF_RUN = {"finding_id"}


def test_findings_are_those_of_dumps_to_the_last_field(audit_of: AuditOf) -> None:
    dumps, log_dirs = (
        next(v for v in VARIANTS if v.capture == "kafka-4.2/capture-1" and parts <= set(v.parts))
        for parts in ({"segments"}, {"log-dirs"})
    )
    found, expected = by_place(rows_of(audit_of(log_dirs))), by_place(rows_of(audit_of(dumps)))
    assert found.keys() == expected.keys()
    for place, row in expected.items():
        assert found[place] | dict.fromkeys(OF_RUN) == row | dict.fromkeys(OF_RUN)


class WhileScanning(Progress):
    """Lets something happen to the files after they were planned, before they are scanned."""

    def __init__(self, happen: Callable[[], None]) -> None:
        self._happen = happen

    @contextmanager
    def stage(self, name: str, detail: str = "", total_bytes: int | None = None) -> Iterator[None]:  # noqa: ARG002 the names of the real one
        if name == "reading":
            self._happen()
        yield


def problems(partition: PartitionHealth) -> list[str]:
    return [problem.reason for problem in partition.problems]


def test_a_broker_that_runs(warehouse: str, tmp_path: Path) -> None:
    """Between plan and scan retention deletes, a topic goes away, a segment grows, and another one is cut."""
    log_dir = live_log_dir(tmp_path)

    def happen() -> None:
        (log_dir / "orders-0" / f"{0:020}.log").unlink()
        (log_dir / "orders-1" / f"{5:020}.log").unlink()
        with (log_dir / "orders-2" / f"{5:020}.log").open("ab") as active:
            active.write(encoded(data(7, producer=5))[:-3])
        (log_dir / "orders-3" / f"{5:020}.snapshot").unlink()
        last = log_dir / "orders-4" / f"{5:020}.log"
        last.write_bytes(last.read_bytes()[:100])

    settings = Settings.model_validate({"warehouse": warehouse, "cluster": "live"})
    report = pipeline.audit(no_session, [str(log_dir)], settings, WhileScanning(happen))
    oldest_gone, last_gone, grown, snapshot_gone, last_cut = report.partitions  # and none that is only named
    assert (oldest_gone.first_offset, oldest_gone.end_offset, problems(oldest_gone)) == (3, 7, [])
    for lost in (last_gone, last_cut):
        assert problems(lost) == ["file 00000000000000000005.log: the text after offset 4 was not understood"]
        assert {f.verdict for f in report.findings if f.partition == lost.partition} == {"inconclusive"}
    assert (grown.end_offset, problems(grown), grown.remarks) == (7, [], ())
    assert (snapshot_gone.end_offset, problems(snapshot_gone), snapshot_gone.witnesses) == (7, [], ())
    assert grown.witnesses == ("snapshot 5 agrees with the batches below it",)
    assert all(i.parsed_bytes + i.rejected_bytes == i.size_bytes for i in report.inputs)
    rejected = {i.path.removeprefix(f"{log_dir}/") for i in report.inputs if i.rejected_bytes}
    assert rejected == {f"orders-{partition}/{5:020}.log" for partition in (1, 4)}
    # What was lost is there again: what was not read the first time counts for nothing now.
    again = run_audit(no_session, warehouse, [str(live_log_dir(log_dir))], cluster="live")
    assert [(p.first_offset, p.end_offset, problems(p)) for p in again.partitions] == [(0, 7, [])] * PARTITIONS
