"""A capture from brokers in memory: what is fetched, in which order, and what the manifest says of it."""

import hashlib
import json
from collections import deque
from errno import ENOSPC
from pathlib import Path
from typing import Any

import pytest

from tests.tools.log_dirs.reading import plans
from tests.unit.capture.fake_brokers import STATE, FakeBrokers, FakeClock
from tests.unit.log_dir.test_segments import data, file_of, marker
from txn_analysis.capture.answers import CaptureError, NobodyAnswersError, RefusedError, UnavailableError
from txn_analysis.capture.capturing import Outcome, Wanted, capture, summary
from txn_analysis.kafka.names import COORDINATORS_FILE
from txn_analysis.kafka.transactions import TopicPartition

STUCK, FREE, STATE_0 = TopicPartition("orders", 0), TopicPartition("orders", 1), TopicPartition(STATE, 0)
# Producer 7 ended a transaction at 1, and 2 hangs; producer 9 writes on.
LOG = [data(0), marker(1), data(2), data(3, producer=9), marker(4, producer=9)]


def brokers(**known: Any) -> FakeBrokers:
    return FakeBrokers({STUCK: LOG, FREE: [data(0), marker(1)], STATE_0: []}, **known)


def captured(given: FakeBrokers, folder: Path, **wanted: Any) -> tuple[Outcome, dict[str, Any]]:
    said: list[str] = []
    outcome = capture(given, folder / "c", Wanted(**wanted), FakeClock(), said.append, "a test")
    return outcome, json.loads((folder / "c" / "txn-capture.json").read_text())


def entries(manifest: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {entry["path"]: entry for entry in manifest["files"]}


def test_only_what_is_stuck_is_fetched_and_the_state(tmp_path: Path) -> None:
    given = brokers()
    outcome, _ = captured(given, tmp_path)
    assert outcome.stuck == [STUCK]
    assert {place for place, _ in given.fetched} == {STUCK}
    assert {each.place for each in outcome.captured} == {STUCK, STATE_0}


def test_it_is_fetched_from_the_producers_earlier_marker_on_byte_for_byte(tmp_path: Path) -> None:
    captured(brokers(), tmp_path)
    (segment,) = (tmp_path / "c" / "orders-0").glob("*.log")
    assert (segment.name, segment.read_bytes()) == (f"{0:020}.log", file_of(*LOG))


def test_without_a_look_back_it_begins_at_the_lowest_open_start(tmp_path: Path) -> None:
    captured(brokers(), tmp_path, look_back_bytes=0)
    (segment,) = (tmp_path / "c" / "orders-0").glob("*.log")
    assert (segment.name, segment.read_bytes()) == (f"{2:020}.log", file_of(*LOG[2:]))


def test_the_answer_says_from_which_offset_on_the_log_was_fetched(tmp_path: Path) -> None:
    captured(brokers(), tmp_path, look_back_bytes=0)
    answer = json.loads((tmp_path / "c" / "orders-0" / "described-producers.json").read_text())
    assert (answer["first_offset"], answer["high_watermark"], answer["last_stable_offset"]) == (2, 5, 2)
    assert [(p["producer_id"], p["current_txn_start_offset"]) for p in answer["producers"]] == [(7, 2), (9, None)]


def test_all_takes_every_partition_from_its_log_start(tmp_path: Path) -> None:
    outcome, _ = captured(brokers(), tmp_path, is_all=True)
    assert {each.place for each in outcome.captured} == {STUCK, FREE, STATE_0}


def test_where_nothing_is_stuck_nothing_is_written(tmp_path: Path) -> None:
    given = FakeBrokers({FREE: [data(0), marker(1)], STATE_0: []})
    outcome = capture(given, tmp_path / "c", Wanted(), FakeClock(), lambda _: None, "a test")
    assert not outcome.captured
    assert not (tmp_path / "c").exists()


def test_the_manifest_has_the_size_and_the_sum_of_every_file(tmp_path: Path) -> None:
    _, manifest = captured(brokers(), tmp_path)
    there = {
        str(path.relative_to(tmp_path / "c")): path.read_bytes()
        for path in (tmp_path / "c").rglob("*")
        if path.is_file() and path.name != "txn-capture.json"
    }
    assert {name: (len(content), hashlib.sha256(content).hexdigest()) for name, content in there.items()} == {
        name: (entry["size_bytes"], entry["sha256"]) for name, entry in entries(manifest).items()
    }


def test_the_manifest_says_who_led_and_where_reading_ended(tmp_path: Path) -> None:
    _, manifest = captured(brokers(), tmp_path)
    entry = entries(manifest)[f"orders-0/{0:020}.log"]
    head = {name: manifest[name] for name in ("format", "version", "clock", "cluster_id", "broker_id", "is_complete")}
    assert head == {
        "format": "txn-capture",
        "version": 1,
        "clock": "collector",
        "cluster_id": "a-cluster",
        "broker_id": None,
        "is_complete": True,
    }
    assert (entry["leader_id"], entry["leader_epoch"], entry["is_leader_confirmed"]) == (1, 0, True)
    assert (entry["first_offset"], entry["end_offset"], entry["is_end_confirmed"]) == (0, 5, True)
    assert entry["is_folder_whole"] is None  # no folder is seen
    assert [each["sequence"] for each in manifest["files"]] == [*range(len(manifest["files"]))]


def test_the_state_begins_later_than_every_log_ended_by_more_than_the_skew(tmp_path: Path) -> None:
    _, manifest = captured(brokers(), tmp_path, max_clock_skew_ms=1000)
    logs = [e["ended_ms"] for path, e in entries(manifest).items() if path.startswith("orders-0/0")]
    state = [e["began_ms"] for path, e in entries(manifest).items() if path.startswith(f"{STATE}-0/0")]
    assert min(state) - 1000 > max(logs)


def test_a_log_that_grows_while_it_is_fetched_is_followed_to_its_end(tmp_path: Path) -> None:
    given = brokers()
    given.logs[STUCK] = list(LOG)

    def grow(place: TopicPartition, _: int) -> None:
        if place == STUCK and len(given.logs[STUCK]) < 8:
            given.logs[STUCK].append(data(len(given.logs[STUCK]), producer=9))

    given.when_fetched = grow
    _, manifest = captured(given, tmp_path)
    assert entries(manifest)[f"orders-0/{0:020}.log"]["end_offset"] == len(given.logs[STUCK]) > len(LOG)


def test_it_begins_again_where_the_leader_changes(tmp_path: Path) -> None:
    given = brokers()

    def elect(place: TopicPartition, _: int) -> None:
        given.epochs.setdefault(place, 1)

    given.when_fetched = elect
    _, manifest = captured(given, tmp_path)
    entry = entries(manifest)[f"orders-0/{0:020}.log"]
    assert (entry["leader_epoch"], entry["is_leader_confirmed"]) == (1, True)
    assert given.calls.count(f"producers {STUCK}") == 2


def test_a_partition_whose_leader_never_stays_leaves_a_partial_capture(tmp_path: Path) -> None:
    given = brokers()

    def elect(place: TopicPartition, _: int) -> None:
        given.epochs[place] = given.epochs.get(place, 0) + 1

    given.when_fetched = elect
    outcome, manifest = captured(given, tmp_path)
    assert outcome.failures == ["orders-0: its leader changed 5 times while it was fetched. Capture it later"]
    assert manifest["is_complete"] is False
    assert not (tmp_path / "c" / "orders-0").exists()


def test_a_broker_that_does_not_answer_is_asked_again(tmp_path: Path) -> None:
    gone = [UnavailableError("broker 1: gone")] * 3
    outcome, _ = captured(brokers(failures={"fetch": deque(gone)}), tmp_path)
    assert outcome.is_complete


def test_one_that_stays_away_is_given_up_in_one_line(tmp_path: Path) -> None:
    gone = [UnavailableError("broker 1: gone")] * 1000
    outcome, manifest = captured(brokers(failures={"fetch": deque(gone)}), tmp_path, give_up_after_ms=5000)
    (failure,) = outcome.failures
    assert failure.startswith("broker 1: gone. Given up after ")
    assert manifest["is_complete"] is False


def test_where_nobody_answers_nothing_more_is_asked(tmp_path: Path) -> None:
    gone = [NobodyAnswersError("no broker answers")] * 1000
    given = brokers(failures={"fetch": deque(gone)})
    outcome, manifest = captured(given, tmp_path, is_all=True, give_up_after_ms=5000)
    assert len(outcome.failures) == 1
    assert not any(str(FREE) in call for call in given.calls)
    assert manifest["is_complete"] is False


def test_a_missing_right_is_named_by_its_acl(tmp_path: Path) -> None:
    refused = RefusedError("Read", "Topic", "orders", "Fetch")
    outcome, _ = captured(brokers(failures={"fetch": deque([refused])}), tmp_path)
    (failure,) = outcome.failures
    assert failure == (
        "orders: Fetch is refused: the ACL READ on Topic:orders is missing. Grant it: kafka-acls.sh --add"
        " --allow-principal User:… --operation Read --topic 'orders'"
    )


def test_a_folder_with_files_is_refused(tmp_path: Path) -> None:
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "file").touch()
    with pytest.raises(CaptureError, match="not empty"):
        captured(brokers(), tmp_path)


def test_on_a_disk_without_room_everything_that_failed_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_room(_self: Path, _data: bytes) -> int:
        raise OSError(ENOSPC, "No space left on device")

    (tmp_path / "c").mkdir()
    monkeypatch.setattr(Path, "write_bytes", no_room)
    outcome, manifest = captured(brokers(), tmp_path)
    named = [failure.split(":")[0].removeprefix(f"{tmp_path}/c/") for failure in outcome.failures]
    assert named == ["orders-0/partition.metadata", f"{STATE}-0/partition.metadata", "meta.properties"]
    assert manifest["is_complete"] is False


def test_an_interrupted_capture_says_that_it_is_not_complete(tmp_path: Path) -> None:
    given = brokers()

    def interrupt(place: TopicPartition, _offset: int) -> None:
        if place == FREE:
            raise KeyboardInterrupt

    given.when_fetched = interrupt
    with pytest.raises(KeyboardInterrupt):
        captured(given, tmp_path, is_all=True)
    manifest = json.loads((tmp_path / "c" / "txn-capture.json").read_text())
    assert manifest["is_complete"] is False
    there = {str(path.relative_to(tmp_path / "c")) for path in (tmp_path / "c").glob("*/*")}
    assert there == set(entries(manifest))


def test_a_log_whose_start_was_deleted_in_a_batch_is_named_by_that_batch(tmp_path: Path) -> None:
    given = brokers(log_starts={STUCK: 1})
    given.logs[STUCK] = [data(0, records=2), *[data(2), data(3)]]
    captured(given, tmp_path)
    assert [path.name for path in (tmp_path / "c" / "orders-0").glob("*.log")] == [f"{0:020}.log"]


def test_the_audit_knows_every_file_of_a_capture(tmp_path: Path) -> None:
    captured(brokers(), tmp_path)
    (tmp_path / "c" / "txn-capture.json").unlink()
    assert (tmp_path / "c" / COORDINATORS_FILE).exists()
    kinds = {section.kind for plan in plans(tmp_path / "c") for section in plan.sections}
    assert kinds == {
        "log", "state", "described_producers", "topic_id", "leader_epoch", "cluster_id", "log_start", "high_watermark"
    }  # fmt: skip


def test_what_it_cost_is_said_beside_what_is_stored(tmp_path: Path) -> None:
    outcome, _ = captured(brokers(), tmp_path, look_back_bytes=0)
    assert summary(outcome, tmp_path).splitlines()[0].startswith("fetched 418 B of 666 B stored, 63%: orders (1")
