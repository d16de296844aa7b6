"""Real cases beyond their verdicts: each node's copy alone, untrue assertions, what brokers and clients answered."""

import json
import shutil
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.systems.e2e import busy, mixed, rotation, upgrade
from tests.tools.captures import OF_MIXED, PARAMETERS, TRUE_WORDS
from tests.tools.harness import Answer as AnswerInRows
from tests.tools.harness import audit_files
from tests.tools.inputs import InputReader
from tests.tools.log_dirs.at_hand import answer_for, inputs_of
from tests.tools.repository import CASES
from tests.tools.stories.answer import Answer
from txn_analysis.settings import Settings

FENCED_EPOCH = 32_767
INVALID_PRODUCER_EPOCH, INVALID_TXN_STATE = 47, 48
NAMES = ("topic", "partition", "producer_id", "verdict", "rule")
Row = tuple[Any, ...]


@cache
def answered(case: str, node: str = "", **settings: Any) -> Answer:
    folder = CASES / case / "log-dirs" / node
    return answer_for(folder, Settings.model_validate(PARAMETERS | settings))


def known(file: str) -> Any:
    return json.loads((CASES / file).read_text())


def expected(case: str) -> set[Row]:
    return {tuple(row[name] for name in NAMES) for row in known(f"{case}/expected.json")["open_transactions"]}


def verdicts(answer: Answer) -> set[Row]:
    return {(f.topic, f.partition, f.producer_id, f.verdict.value, f.rule) for f in answer.findings}


def producers_of(answer: Answer) -> dict[tuple[str, int], list[dict[str, Any]]]:
    return {(row["topic"], row["partition"]): row["producers"] for row in answer.health}


def answer_of_brokers(case: str) -> list[tuple[str, int]]:
    """Topic and partition of each row of `find-hanging`."""
    lines = (CASES / case / "oracle/find-hanging.txt").read_text().splitlines()[1:]
    return [(topic, int(partition)) for topic, partition, *_ in map(str.split, lines)]


@pytest.mark.parametrize("capture", ["capture-1", "capture-2"])
@pytest.mark.parametrize("node", ["", "n1", "n2", "n3"], ids=["all-nodes", "n1", "n2", "n3"])
@pytest.mark.parametrize("case", ["kafka-4.2-lost-marker", "kafka-4.2-three-nodes"])
def test_a_nodes_copy_alone_says_the_same_of_what_the_node_knows(case: str, node: str, capture: str) -> None:
    """One that died does not know what began and ended later: what was going on then still is, and does not hang."""
    case = f"{case}/{capture}"
    of_case, found, whole = known(f"{case}/expected.json"), verdicts(answered(case, node)), expected(case)
    if node in of_case.get("nothing_open_alone", ()):
        assert found == set()
    elif node == of_case.get("dead_node"):
        assert found != whole
        assert {row[3] for row in found ^ whole} == {"coordinated"}
    else:
        assert found == whole


@pytest.mark.parametrize("capture", ["capture-1", "capture-2"])
def test_after_an_unclean_election_nobody_may_say_that_no_records_were_lost(capture: str) -> None:
    answer = answered(f"kafka-4.2-lost-marker/{capture}", no_records_lost=True)
    assert verdicts(answer) == expected(f"kafka-4.2-lost-marker/{capture}")
    assert list(answer.disproved) == ["no_records_lost"]


@pytest.mark.parametrize("capture", ["capture-1", "capture-2"])
def test_what_is_open_of_an_id_is_what_its_client_was_not_answered(capture: str) -> None:
    answers = known("kafka-4.2-three-nodes/clients.json")[capture]
    still_open = {name for name, answer in answers.items() if answer == "open"}
    found = answered(f"kafka-4.2-three-nodes/{capture}").findings
    assert {finding.transactional_id for finding in found} == still_open | {None}


@pytest.mark.parametrize("capture", ["capture-1", "capture-2"])
def test_decisions_that_an_older_leader_never_hears_of_wait_in_the_state_that_their_coordinator_said(
    capture: str,
) -> None:
    """KAFKA-20322. The transaction that wrote to both leaders is open on the older one, and ended on the other."""
    case = f"kafka-4.2-mixed/{capture}"
    answer = answered(case, **dict(OF_MIXED))
    states = known(f"{case}/oracle/transactions.json")
    assert {f.transactional_id: f.coordinator_state for f in answer.findings} == states
    assert {finding.topic for finding in answer.findings} == {"orders"}
    producer_id = answer.findings[mixed.BOTH_LEADERS].producer_id
    (ended,) = [row for row in producers_of(answer)[mixed.ON_NEW] if row["producer_id"] == producer_id]
    assert (ended["txn_start_offset"], ended["coordinator_epoch"]) == (None, 0)


def test_what_ended_at_the_last_epoch_is_not_open_though_its_marker_has_one_more() -> None:
    """Clients were refused from then on: a late write, and a commit of what the coordinator had aborted."""
    answers, producers = (
        known("kafka-4.2-rotation/clients.json"),
        producers_of(answered("kafka-4.2-rotation/capture-1")),
    )
    committer, sleeper = (answers[name] for name in (rotation.COMMITTER, rotation.SLEEPER))
    assert (committer["commit"], committer["late_write"]) == (0, INVALID_PRODUCER_EPOCH)
    assert sleeper["late_commit"] == INVALID_TXN_STATE
    for client, place in ((committer, rotation.COMMITTED), (sleeper, rotation.TIMED_OUT)):
        (producer,) = [row for row in producers[place] if row["producer_id"] == client["used_up"][0]]
        assert (producer["producer_epoch"], producer["txn_start_offset"]) == (FENCED_EPOCH, None)


def test_of_used_up_epochs_kafkas_tool_lists_what_hangs() -> None:
    hanging = [(f.topic, f.partition) for f in answered("kafka-4.2-rotation/capture-1").hanging]
    assert hanging == answer_of_brokers("kafka-4.2-rotation/capture-1") == [rotation.LEFT_OPEN]


def test_while_transaction_version_2_arrives_producers_are_those_that_the_broker_described() -> None:
    described, producers = known("kafka-4.4-upgrade/capture-1/oracle/producers.json"), dict[str, set[Row]]()
    for (topic, partition), rows in producers_of(answered("kafka-4.4-upgrade/capture-1")).items():
        names = ("producer_id", "producer_epoch", "coordinator_epoch", "txn_start_offset")
        producers[f"{topic}-{partition}"] = {tuple(row[name] for name in names) for row in rows}
    assert len(described) == len(upgrade.PLACES)
    for place, rows in described.items():
        none_is_minus_1 = ((i, epoch, *(None if n == -1 else n for n in rest)) for i, epoch, _, _, *rest in rows)
        assert producers[place] == set(none_is_minus_1)


def commits_of(folder: Path) -> Iterator[tuple[int, int | None]]:
    """The producer id of each COMMIT marker, and how far its epoch is above that of the data that it ends."""
    for file in inputs_of(folder):
        written: dict[int, int] = {}
        for row in (row for batches in file.batches for row in batches.rows().to_pylist()):
            producer_id, epoch = row["producer_id"], row["producer_epoch"]
            if row["marker"] == "COMMIT":
                yield producer_id, epoch - written[producer_id] if producer_id in written else None
            elif not row["is_control"] and producer_id is not None:
                written[producer_id] = epoch


def test_clients_went_on_under_version_2() -> None:
    """A COMMIT marker of version 1 has the epoch of the data that it ends, one of version 2 the next."""
    steps: dict[int, set[int | None]] = {}
    for producer_id, step in commits_of(CASES / "kafka-4.4-upgrade/capture-1/log-dirs"):
        steps.setdefault(producer_id, set()).add(step)
    assert sum(found >= {0, 1} for found in steps.values()) >= 4


SHALLOW = CASES / "kafka-4.3-wrong-order/capture-1/shallow"


def with_state(capture: str, **settings: Any) -> AnswerInRows:
    """Shallow dumps, and a state that was copied before them by mistake, or behind them."""
    files = [*SHALLOW.iterdir(), *(CASES / f"kafka-4.3-wrong-order/{capture}/state").iterdir()]
    given = {str(file): file.read_bytes() for file in files}
    said = Settings.model_validate(PARAMETERS | {"state_copied_last": True} | settings)
    return audit_files(InputReader.in_memory(), {"copy": given}, said)


@pytest.mark.parametrize(
    ("capture", "settings"),
    [
        pytest.param("capture-1", {}, id="end-markers-of-unknown-kind-disprove-the-wrong-assertion"),
        pytest.param("capture-1", {"state_copied_last": False}, id="without-it-the-answer-is-the-same"),
        pytest.param("capture-2", {}, id="in-the-right-order-the-coordinator-has-them"),
    ],
)
def test_a_state_that_was_copied_first_costs_no_live_transaction(capture: str, settings: dict[str, Any]) -> None:
    found = {(r["topic"], r["partition"], r["verdict"], r["rule"]) for r in with_state(capture, **settings).findings}
    assert found == {(*row[:2], *row[3:]) for row in expected(f"kafka-4.3-wrong-order/{capture}")}


def test_no_other_assertion_helps_a_state_that_was_copied_first() -> None:
    assert not with_state("capture-1", no_records_lost=True, transaction_state_complete=True).hanging


BUSY = CASES / "kafka-4.3-busy/capture-1/log-dirs"


def test_in_a_partition_that_fell_quiet_before_the_cleaner_came_nothing_is_proven() -> None:
    (rule,) = [row[4] for row in verdicts(answered("kafka-4.3-busy/capture-1")) if row[:2] == busy.QUIET]
    assert rule == "log_may_end_early"


def test_logs_of_a_busy_cluster_have_commits_that_no_record_of_the_state_can_confirm() -> None:
    """So it is on every such cluster, however healthy."""
    clients = known("kafka-4.3-busy/clients.json").values()
    used_up = {each["producer_id"]: each["committed"] for client in clients for each in client[: busy.USED_UP]}
    commits = Counter(producer_id for producer_id, _ in commits_of(BUSY))
    assert len(used_up) == 6
    assert {i: commits[i] for i in used_up} == {i: count * len(busy.TRAFFIC) for i, count in used_up.items()}
    records = [row for file in inputs_of(BUSY) for row in file.records]
    named = {row[name] for row in records for name in row if name.endswith("producer_id")}
    assert named.isdisjoint(client[0]["producer_id"] for client in clients)


@pytest.mark.parametrize("other", ["kafka-4.2-rotation", "kafka-4.3-find-hanging", "kafka-4.4-upgrade"])
def test_the_state_of_another_cluster_proves_nothing(tmp_path: Path, other: str) -> None:
    """Their ids are as many, and their producer ids overlap; both assertions are false of such a copy."""
    state = (CASES / other / "capture-1/log-dirs/n1").glob("__transaction_state-*")
    for folder in [*BUSY.glob("n1/orders-*"), *state]:
        shutil.copytree(folder, tmp_path / "n1" / folder.name)
    answer = answer_for(tmp_path, Settings.model_validate(PARAMETERS | dict(TRUE_WORDS)))
    assert len(answer.findings) == 5
    assert not answer.hanging
