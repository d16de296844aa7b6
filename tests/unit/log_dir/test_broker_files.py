"""Which files of a log directory are read, which are never evidence, and which are refused."""

from pathlib import Path
from typing import NoReturn

import pytest

from tests.tools.cases import cases
from tests.tools.log_dirs.encoder import encoded, snapshot_bytes
from tests.tools.log_dirs.reading import plans, sorted_files
from tests.tools.repository import CASES
from tests.unit.log_dir.test_segments import data
from txn_analysis.reading.inputs.broker_files import PassedOver, Sorted, whole_file
from txn_analysis.reading.inputs.find_files import find_files
from txn_analysis.reading.inputs.refusals import Refusal
from txn_analysis.reading.inputs.survey_files import survey_files
from txn_analysis.reading.text.section import Section

SEGMENT = encoded(data(17))
NAME = "00000000000000000017.log"
HEX = "0f" * 16


def found(root: Path, files: dict[str, bytes]) -> dict[str, Sorted]:
    """What each of some files under a folder is taken for."""
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(content)
    return {str(file.path)[len(str(root)) + 1 :]: what for file, what in sorted_files(root).items()}


def test_every_file_of_the_real_log_directories_is_known() -> None:
    for capture in ("kafka-4.2/capture-1", "kafka-4.2-edge/capture-1", "kafka-4.2-edge/capture-2"):
        what = sorted_files(CASES / capture / "log-dirs")
        assert [file.path for file, kind in what.items() if not isinstance(kind, Section | PassedOver)] == []


@cases(
    "name content kind",
    {
        "segment": (f"my-topic.v1-12/{NAME}", SEGMENT, "log"),
        "segment-that-has-just-been-rolled": (f"my-topic.v1-12/{NAME}", b"", "log"),
        "preallocated": (f"my-topic.v1-12/{NAME}", bytes(5000), "log"),
        "half-a-first-batch": (f"my-topic.v1-12/{NAME}", SEGMENT[:30], "log"),
        "state": (f"__transaction_state-12/{NAME}", SEGMENT, "state"),
    },
)
def test_segments_are_known_by_what_they_begin_with(tmp_path: Path, name: str, content: bytes, kind: str) -> None:
    (what,) = found(tmp_path, {name: content}).values()
    topic = name.partition("-12/")[0]
    assert what == whole_file(kind, name, len(content), topic, 12, 17)


@pytest.mark.parametrize("offset", [2**56, 2**63 - 2])
def test_a_segment_is_one_at_any_offset_of_64_bits(tmp_path: Path, offset: int) -> None:
    name, content = f"orders-0/{offset:020}.log", offset.to_bytes(8) + SEGMENT[8:]
    (what,) = found(tmp_path, {name: content}).values()
    assert what == whole_file("log", name, len(content), "orders", 0, offset)


def test_what_lies_beside_segments_is_known_by_its_name(tmp_path: Path) -> None:
    checkpoint = b"0\n1\norders 0 5\n"
    what = found(
        tmp_path,
        {
            f"orders-0/{NAME}": SEGMENT,
            "orders-0/00000000000000000017.snapshot": snapshot_bytes({}),
            "orders-0/00000000000000000017.txnindex": b"",
            "orders-0/leader-epoch-checkpoint": b"0\n0\n",
            "orders-0/partition.metadata": b"version: 0\ntopic_id: abc\n",
            "replication-offset-checkpoint": checkpoint,
            "log-start-offset-checkpoint": checkpoint,
            "meta.properties": b"cluster.id=x\n",
        },
    )
    kinds = {name.rpartition("/")[2]: kind.kind for name, kind in what.items() if isinstance(kind, Section)}
    assert kinds == {
        NAME: "log",
        "00000000000000000017.snapshot": "snapshot",
        "00000000000000000017.txnindex": "txnindex",
        "leader-epoch-checkpoint": "leader_epoch",
        "partition.metadata": "topic_id",
        "replication-offset-checkpoint": "high_watermark",
        "log-start-offset-checkpoint": "log_start",
        "meta.properties": "cluster_id",
    }


@pytest.mark.parametrize(
    "name",
    [
        "orders-0/00000000000000000017.index",
        "orders-0/00000000000000000017.timeindex",
        "orders-0/00000000000000000003.log.deleted",
        "orders-0/00000000000000000003.log.cleaned",
        "orders-0/00000000000000000003.log.swap",
        "orders-0/leader-epoch-checkpoint.tmp",
        f"orders-0/{5:020}.snapshot.tmp",
        "recovery-point-offset-checkpoint",
        "cleaner-offset-checkpoint",
        "bootstrap.checkpoint",
        "replication-offset-checkpoint.tmp",
        f"orders-1.{HEX}-delete/{NAME}",
        f"orders-1.{HEX}-future/{NAME}",
        f"orders-1.{HEX}-stray/00000000000000000017.snapshot",
        f"__cluster_metadata-0/{NAME}",
        "remote-log-index-cache/17_abc.index",
    ],
)
def test_what_is_never_evidence_is_passed_over_beside_a_log_and_only_there(tmp_path: Path, name: str) -> None:
    alone = found(tmp_path / "alone", {name: SEGMENT})[name]
    beside = found(tmp_path / "beside", {name: SEGMENT, f"orders-0/{NAME}": SEGMENT})
    assert isinstance(beside[name], PassedOver)
    assert isinstance(beside[f"orders-0/{NAME}"], Section)
    assert name.startswith("__cluster_metadata") or not isinstance(alone, PassedOver | Section)


@pytest.mark.parametrize("name", ["leader-epoch-checkpoint", "partition.metadata"])
def test_what_a_broker_has_not_yet_written_into_is_passed_over(tmp_path: Path, name: str) -> None:
    what = found(tmp_path, {f"orders-0/{NAME}": SEGMENT, f"orders-0/{name}": b""})
    assert what[f"orders-0/{name}"] == PassedOver("checkpoints without evidence")


def test_a_partition_without_a_segment_yet_is_passed_over(tmp_path: Path) -> None:
    """`LogManager` makes the folder and what is beside the segments first."""
    metadata = b"version: 0\ntopic_id: " + b"x" * 22 + b"\n"
    new = {
        "leader-epoch-checkpoint": b"",
        "partition.metadata": metadata,
        f"{0:020}.index": b"",
        f"{0:020}.timeindex": b"",
    }
    beside = {f"new-1/{name}": content for name, content in new.items()}
    assert {found(tmp_path / "beside", beside | {f"orders-0/{NAME}": SEGMENT})[name] for name in beside} == {
        PassedOver("files of partitions without a segment")
    }
    alone = found(tmp_path / "alone", beside)
    assert set(alone.values()) == {PassedOver("files of partitions without a segment")}


def test_the_folder_of_a_deleted_topic_with_a_long_name_is_cut_to_fit(tmp_path: Path) -> None:
    """`LocalLog.logDeleteDirName` cuts topic and partition, so that the name has at most 255 characters."""
    name = f"{'t' * 215}.{HEX}-delete/{NAME}"
    assert isinstance(found(tmp_path, {name: SEGMENT, f"orders-0/{NAME}": SEGMENT})[name], PassedOver)


@pytest.mark.parametrize("suffix", ["delete", "stray", "future"])
def test_a_folder_that_is_not_named_after_a_partition_is_none(tmp_path: Path, suffix: str) -> None:
    name = f"orders-0-{suffix}/{NAME}"
    assert found(tmp_path, {name: SEGMENT, f"orders-0/{NAME}": SEGMENT})[name] is None


def test_a_log_that_was_set_aside_is_refused_where_it_is_given_by_itself(tmp_path: Path) -> None:
    (what,) = found(tmp_path, {f"orders-1.{HEX}-stray/{NAME}": SEGMENT}).values()
    assert isinstance(what, Refusal)
    assert "stray log, not the partition's log" in what.reason


@cases(
    "name content",
    {
        "a-dump-under-a-logs-name": (f"orders-0/{NAME}", b"Dumping orders-0/00000000000000000017.log\n"),
        "binary-that-is-no-batch": (f"orders-0/{NAME}", b"\0\0binary, but no batch" + bytes(60)),
        "folder-that-is-no-partitions": (f"data/{NAME}", SEGMENT),
        "name-that-no-broker-gives": ("orders-0/17.log", SEGMENT),
        "name-of-no-segment": ("orders-0/00000000000000000017.bin", SEGMENT),
        "checkpoint-without-a-log": ("orders-0/leader-epoch-checkpoint", b"0\n0\n"),
    },
)
def test_a_name_alone_makes_no_file_a_brokers(tmp_path: Path, name: str, content: bytes) -> None:
    assert found(tmp_path, {name: content}) == {name: None}


def test_a_foreign_file_in_a_partitions_folder_is_not_passed_over(tmp_path: Path) -> None:
    what = found(tmp_path, {f"orders-0/{NAME}": SEGMENT, "orders-0/notes.txt": b"x", "notes.txt": b"x"})
    assert (what["orders-0/notes.txt"], what["notes.txt"]) == (None, None)


def test_what_is_beside_a_segment_must_be_what_it_is_named(tmp_path: Path) -> None:
    dumps = {f"orders-0/{18:020}.{suffix}": b"Dumping x\n" for suffix in ("log", "snapshot", "txnindex")}
    empty = f"orders-0/{19:020}.snapshot"
    what = found(tmp_path, {f"orders-0/{NAME}": SEGMENT, empty: b""} | dumps)
    assert [what[dump] for dump in dumps] == [None, None, None]
    assert what[empty] == PassedOver("empty .snapshot files")  # nothing was written yet: not "no producers"


def test_the_same_segment_of_two_brokers_is_one_input_and_of_two_partitions_two(tmp_path: Path) -> None:
    found(tmp_path, {f"{folder}/{NAME}": SEGMENT for folder in ("n1/orders-0", "n2/orders-0", "n2/orders-1")})
    assert len({plan.input_id for plan in plans(tmp_path)}) == 2


def test_of_empty_dumps_those_of_snapshots_alone_are_passed_over(tmp_path: Path) -> None:
    """A log's may be that of a tool that failed: a partition that nobody looked at must not pass."""
    what = found(tmp_path, dict.fromkeys(("orders-0.snapshot.txt", "n1.snapshot", "orders-0.txt"), b""))
    assert what == {
        "orders-0.snapshot.txt": PassedOver("empty dumps of .snapshot files"),
        "n1.snapshot": PassedOver("empty dumps of .snapshot files"),
        "orders-0.txt": None,
    }


def no_spark() -> NoReturn:
    """A session that must not be needed."""
    pytest.fail("Spark is started")


def test_small_segments_are_surveyed_here_by_what_is_read_of_them(tmp_path: Path) -> None:
    """To open a file takes as long as to read some kilobytes; no session of Spark is started for that."""
    folders = [tmp_path / f"orders-{k}" for k in range(4)]
    for folder in folders:
        folder.mkdir()
        (folder / f"{0:020}.log").write_bytes(bytes(100))
    plans, *_ = survey_files(no_spark, find_files([str(tmp_path)]), is_on_spark=lambda read_bytes: read_bytes > 400)
    assert len(plans) == 4
