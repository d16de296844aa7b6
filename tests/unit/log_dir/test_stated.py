"""What checkpoint files say, and that it shows where consumers stand without deciding a verdict."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.tools.cases import cases
from tests.tools.forms.model import Batch, History
from tests.tools.forms.model import Segment as OracleSegment
from tests.tools.log_dirs.encoder import encoded
from tests.tools.log_dirs.reading import Segment, plans, sorted_files
from tests.tools.log_evidence import LinkedPartition, linked, section_row, snapshot_evidence
from tests.tools.records import sections_of
from tests.unit.log_dir.test_segments import data, file_of, marker
from txn_analysis.coordinator.fit import MarkerSums, fit_of
from txn_analysis.log.steps import LINKED_LOGS, PIECES, SNAPSHOT_COLUMNS, Linking, link_step, section_rows
from txn_analysis.reading.inputs.broker_survey import survey_broker_file
from txn_analysis.reading.inputs.planned_input import PlannedInput
from txn_analysis.reading.text.section import Section
from txn_analysis.tables import PRODUCER_SNAPSHOTS
from txn_analysis.tables.schema import ONLY, given_schema

Row = dict[str, Any]
FOLDER = "broker-1"
ORDERS = {"topic": "orders", "partition": 0}


def log_dir(root: Path, files: dict[str, bytes]) -> list[PlannedInput]:
    """The plans of a log directory with one partition and some files beside its segment."""
    segment = f"orders-0/{0:020}.log"
    for name, content in ({segment: encoded(data(0))} | files).items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(content)
    return [plan for plan in plans(root) if not plan.path.endswith(segment)]


def stated(plans: list[PlannedInput]) -> list[tuple[str, str, int, int, str | None]]:
    return [(s.kind, s.topic, s.partition, s.file_base_offset, s.stated) for p in plans for s in p.sections]


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        (
            "replication-offset-checkpoint",
            b"0\n2\norders 0 231\nmy-topic 12 5\n",
            [("high_watermark", "orders", 0, 231, None), ("high_watermark", "my-topic", 12, 5, None)],
        ),
        ("log-start-offset-checkpoint", b"0\n1\norders 0 300\n", [("log_start", "orders", 0, 300, None)]),
        ("log-start-offset-checkpoint", b"0\n0\n", []),
        ("orders-0/leader-epoch-checkpoint", b"0\n2\n0 0\n3 120\n", [("leader_epoch", "orders", 0, 120, "3")]),
        (
            "orders-0/partition.metadata",
            b"version: 0\ntopic_id: " + b"x" * 22,
            [("topic_id", "orders", 0, 0, "x" * 22)],
        ),
        (
            "meta.properties",
            b"#\n#Sat\nnode.id=2\ncluster.id=abc\n",
            [("cluster_id", "", -1, 0, "abc"), ("node_id", "", -1, 0, "2")],
        ),
        ("meta.properties", b"broker.id=2\n", [("node_id", "", -1, 0, "2")]),
        ("meta.properties", b"version=0\n", []),
    ],
)
def test_statements(tmp_path: Path, name: str, content: bytes, said: list[Any]) -> None:
    (plan,) = log_dir(tmp_path, {name: content})
    assert stated([plan]) == said
    assert (plan.problem, plan.rejects, plan.text_bytes) == (None, (), len(content))


@pytest.mark.parametrize("listed", [b"0\n1\norders 0 1\n", b"0\n2\norders 0 1234\norders 1 1\n"])
def test_a_checkpoint_that_was_replaced_since_it_was_listed_is_read_whole(tmp_path: Path, listed: bytes) -> None:
    """Brokers replace them every five seconds (`replica.high.watermark.checkpoint.interval.ms`), by longer ones too."""
    folder = {f"orders-0/{0:020}.log": encoded(data(0)), "replication-offset-checkpoint": listed}
    for name, content in folder.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(content)
    ((file, what),) = [(f, w) for f, w in sorted_files(tmp_path).items() if f.path.endswith("checkpoint")]
    assert isinstance(what, Section)
    replacement = b"0\n1\norders 0 1234\n"
    (tmp_path / "replication-offset-checkpoint").write_bytes(replacement)
    plan = survey_broker_file(what, file.path)
    assert stated([plan]) == [("high_watermark", "orders", 0, 1234, None)]
    assert (plan.problem, plan.text_bytes) == (None, len(replacement))


@pytest.mark.parametrize("cut", range(1, len(b"0\n2\norders 0 1234\norders 12 5678\n")))
def test_a_checkpoint_that_was_cut_says_nothing(tmp_path: Path, cut: int) -> None:
    (plan,) = log_dir(tmp_path, {"replication-offset-checkpoint": b"0\n2\norders 0 1234\norders 12 5678\n"[:cut]})
    assert stated([plan]) == []
    assert plan.problem is not None


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("replication-offset-checkpoint", b"0\n2\norders 0 231\n"),
        ("replication-offset-checkpoint", b"1\n1\norders 0 231\n"),
        ("replication-offset-checkpoint", b"0\n1\norders 0 99999999999999999999\n"),
        ("log-start-offset-checkpoint", b"0\n1\norders 0 -1\n"),
        ("orders-0/leader-epoch-checkpoint", b"0\n1\nx 1\n"),
        ("orders-0/partition.metadata", b"version: 1\n"),
        ("meta.properties", b"some text\n"),
    ],
)
def test_a_file_that_is_not_what_its_name_promises_is_refused(tmp_path: Path, name: str, content: bytes) -> None:
    (plan,) = log_dir(tmp_path, {name: content})
    assert plan.problem is not None
    assert f"not what a broker writes into {name}" in plan.problem


def test_only_a_broker_that_was_stopped_has_a_final_high_watermark(tmp_path: Path) -> None:
    checkpoint = {"replication-offset-checkpoint": b"0\n1\norders 0 1\n"}
    (running,) = log_dir(tmp_path, checkpoint)
    (tmp_path / ".kafka_cleanshutdown").write_bytes(b"")
    (stopped,) = log_dir(tmp_path, checkpoint)
    assert [s.stated for plan in (running, stopped) for s in plan.sections] == [None, "clean_shutdown"]
    assert running.input_id != stopped.input_id


def said(kind: str, offset: int = 0, word: str | None = None) -> Row:
    """A statement about the partition as reconstruction gets it."""
    place = {"input_id": f"{kind} {offset} {word}", "section_index": 0, "capture_rank": 0, "grammar": "binary"}
    return ORDERS | place | {"kind": kind, "file_base_offset": offset, "stated": word}


def link(*batches: Batch, stated: tuple[Row, ...] = ()) -> LinkedPartition:
    """The partition with these batches in one segment, and what checkpoints say of it."""
    found = Segment.of(file_of(*batches))
    section = section_row(found.plan.sections[0], input_id=found.plan.input_id) | {"grammar": "binary", "stated": None}
    section |= {"log_dir": FOLDER}
    return linked([section, *stated], found.scanned())


OPEN_AT_3 = (data(0), data(1), marker(2), data(3), data(4, producer=8), marker(5, producer=8))


@cases(
    "batches stated stable",
    {
        "smallest-open-start": (OPEN_AT_3, (), 3),
        "end-of-the-log": (OPEN_AT_3[:3], (), 3),
        "not-below-the-log-start": (OPEN_AT_3, (said("log_start", 5),), 5),
        "log-start-below-it": (OPEN_AT_3, (said("log_start", 2),), 3),
        "all-records-deleted-since": (OPEN_AT_3[:3], (said("log_start", 9),), 9),
        "log-start-above-a-final-mark": (
            OPEN_AT_3,
            (said("log_start", 5), said("high_watermark", 2, "clean_shutdown")),
            5,
        ),
        "not-above-a-final-mark": (OPEN_AT_3, (said("high_watermark", 2, "clean_shutdown"),), 2),
        "the-replica-that-knows-most": (
            OPEN_AT_3,
            (said("high_watermark", 1, "clean_shutdown"), said("high_watermark", 2, "clean_shutdown")),
            2,
        ),
        "nothing-open-final-mark": (OPEN_AT_3[:3], (said("high_watermark", 2, "clean_shutdown"),), 2),
        "a-mark-that-may-be-old": (OPEN_AT_3, (said("high_watermark", 2),), 3),
        "one-of-two-brokers-was-running": (
            OPEN_AT_3,
            (said("high_watermark", 2, "clean_shutdown"), said("high_watermark", 1)),
            3,
        ),
    },
)
def test_last_stable_offset(batches: tuple[Batch, ...], stated: tuple[Row, ...], stable: int) -> None:
    assert link(*batches, stated=stated).health.last_stable_offset == stable


@cases("grammar stable", {"a-brokers-folder-is-all-there-is": ("binary", 5), "dumps-may-lack-files": ("3.2+", 3)})
def test_a_last_stable_offset_is_not_below_the_first_file(grammar: str, stable: int) -> None:
    """Retention took the files in which the open transaction begins; a snapshot knows it."""
    older = (data(3, producer=9), data(4, producer=9))
    snapshot, producers = snapshot_evidence(History("orders", 0, (OracleSegment(3, older),)), 5)
    found = Segment.of(file_of(data(5)), base_offset=5)
    section = section_row(found.plan.sections[0], input_id=found.plan.input_id)
    section |= {"grammar": grammar, "stated": None, "log_dir": FOLDER}
    partition = linked([section, snapshot], found.scanned(), producers)
    assert min(open_starts(partition))[0] == 3
    assert partition.health.last_stable_offset == stable


def open_starts(partition: LinkedPartition) -> list[tuple[int, list[str]]]:
    opened = [t for t in partition.transactions if t.outcome == "open"]
    return [(t.txn_start_offset, list(t.evidence_gaps or ())) for t in opened]


def above_mark(partition: LinkedPartition) -> dict[int, bool | None]:
    """By producer, whether its open data may never have been replicated."""
    opened = [t for t in partition.transactions if t.outcome == "open"]
    return {t.producer_id: t.is_above_high_watermark for t in opened}


@pytest.mark.parametrize("word", [None, "clean_shutdown"])
@pytest.mark.parametrize("mark", range(7))
def test_an_end_marker_above_the_high_watermark_ends_its_transaction(mark: int, word: str | None) -> None:
    """The checkpoint may be older than the log; without that marker the transaction would look abandoned."""
    ended = (data(0), data(1), marker(2))
    assert open_starts(link(*ended, stated=(said("high_watermark", mark, word),))) == []


@pytest.mark.parametrize("word", [None, "clean_shutdown"])
@pytest.mark.parametrize(("mark", "is_above"), [(0, True), (3, True), (4, False), (6, False)])
def test_what_lies_above_the_mark_of_its_own_folder_may_be_a_dead_leaders_tail(
    mark: int, word: str | None, is_above: bool
) -> None:
    """The judge asks the coordinator about it; here it is said, and nothing is doubted."""
    found = link(*OPEN_AT_3, stated=(said("high_watermark", mark, word) | {"log_dir": FOLDER},))
    assert above_mark(found) == {7: is_above}
    assert open_starts(found) == [(3, [])]


def test_the_mark_of_another_folder_says_nothing_of_this_one() -> None:
    found = link(*OPEN_AT_3, stated=(said("high_watermark", 3) | {"log_dir": "broker-2"},))
    assert above_mark(found) == {7: False}


@pytest.mark.parametrize(("log_dir", "rank", "is_above"), [("broker-2", 0, False), (None, 0, False), (FOLDER, 1, True)])
def test_another_copy_of_the_data_shows_that_it_was_replicated(log_dir: str | None, rank: int, is_above: bool) -> None:
    """Of another broker, or a dump; an earlier copy of the same folder shows nothing."""
    copies = [Segment.of(file_of(*OPEN_AT_3)), Segment.of(file_of(*OPEN_AT_3, data(6, producer=8)))]
    rows = [
        section_row(copy.plan.sections[0], input_id=copy.plan.input_id, rank=r)
        | {"grammar": "binary", "log_dir": folder}
        for copy, folder, r in zip(copies, (FOLDER, log_dir), (0, rank), strict=True)
    ]
    mark = said("high_watermark", 3) | {"log_dir": FOLDER}
    found = linked([*rows, mark], [batches for copy in copies for batches in copy.scanned()])
    assert above_mark(found)[7] is is_above


@pytest.mark.parametrize("start", range(7))
def test_what_lies_below_the_log_start_still_counts(start: int) -> None:
    """A marker there ended its transaction, and data there is open until a marker comes (the broker keeps it)."""
    assert open_starts(link(*OPEN_AT_3, stated=(said("log_start", start),))) == [(3, [])]


def test_a_damaged_batch_of_an_open_transaction_breaks_its_evidence() -> None:
    damaged = replace(data(4), is_valid=False)
    assert open_starts(link(*OPEN_AT_3[:4], damaged)) == [
        (3, ["file 00000000000000000000.log: the batch that ends at offset 4 is invalid"])
    ]


def test_how_much_is_hidden_is_only_said_where_it_was_counted() -> None:
    counted, clamped = link(*OPEN_AT_3).health, link(*OPEN_AT_3, stated=(said("log_start", 5),)).health
    assert (counted.hidden_record_count, clamped.hidden_record_count) == (2, None)


@pytest.mark.parametrize(
    ("stated", "remark"),
    [
        (said("high_watermark", 9), "the high watermark stood at 9, this copy ends at 6: it was made earlier, or cut"),
        (said("leader_epoch", 8, "3"), "a leader epoch began at 8, this copy ends at 6: it was made earlier, or cut"),
        (
            said("high_watermark", 4, "clean_shutdown"),
            "offsets 4 to 5 are above the high watermark: they were not committed",
        ),
    ],
)
def test_what_differs_from_the_log_is_remarked_and_breaks_nothing(stated: Row, remark: str) -> None:
    found = link(*OPEN_AT_3, stated=(stated,))
    assert found.health.remarks == (remark,)
    assert open_starts(found) == [(3, [])]


def test_files_of_two_topics_of_one_name_are_no_log() -> None:
    """The topic was deleted and created again."""
    found = link(*OPEN_AT_3, stated=(said("topic_id", 0, "a"), said("topic_id", 0, "b")))
    assert open_starts(found) == [(3, ["the files are of several topics of this name: topic ids a and b"])]
    same = link(*OPEN_AT_3, stated=(said("topic_id", 0, "a"), said("topic_id", 0, "a") | {"input_id": "other"}))
    assert open_starts(same) == [(3, [])]


def test_log_directories_of_two_clusters_do_not_fit_each_other() -> None:
    def misfits(*cluster_ids: str) -> list[str]:
        fit = fit_of(MarkerSums(), misplaced=None, cluster_ids={*cluster_ids})
        return list(fit.misfits)

    assert misfits("abc", "abc") == []
    assert misfits("abc", "xyz") == ["the files are of several clusters: cluster.id abc and xyz"]


def test_of_a_partition_that_checkpoints_alone_name_nothing_is_linked() -> None:
    tables = {
        "sections": section_rows({ONLY: sections_of([said("high_watermark", 231)])}),
        "pieces": PIECES.empty_table(),
        "snapshots": given_schema(PRODUCER_SNAPSHOTS, *SNAPSHOT_COLUMNS).empty_table(),
    }
    assert link_step({ONLY: Linking(None, frozenset(), {})})(tables) == LINKED_LOGS.empty_table()
