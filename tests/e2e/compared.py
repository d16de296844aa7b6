"""Twelve open transactions on a real broker, what each tool says of them, and a plan sent by clients of two kinds.

`python -m tests.e2e.compared` writes its tables in docs/kafka-transactions.md anew, in two minutes. It needs Java,
Go (franz-go), kafka-python and confluent-kafka (`pip install -e '.[capture,kafka]'`).
"""

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import confluent_kafka
import kafka
from kafka.admin import AbortTransactionSpec, KafkaAdminClient
from kafka.structs import TopicPartition

from tests.e2e.broker import STATE_PARTITIONS, TRANSACTION_MAX_TIMEOUT_MS, Cluster
from tests.e2e.captures import wait_for_high_watermarks
from tests.e2e.copying import copy_nodes
from tests.e2e.twelve import LED, NODES, PROPERTIES, Key, on_the_first_node, twelve

VERSION = "4.3.1"
PAGE = Path(__file__).parents[2] / "docs/kafka-transactions.md"
_GROUPS = "__consumer_offsets"
_PLACES = [*LED, *((_GROUPS, number) for number in range(3))]
_KADM = Path(__file__).parent / "kadm"
_LATE_BY_ALL_MS = -300_000  # kafka-python adds 300000: every transaction in progress is then old enough


def main() -> None:
    """Make them, ask each tool, send the plan, and write the page."""
    with tempfile.TemporaryDirectory(prefix="compared-") as folder, ExitStack() as running:
        kadm = _built_kadm(Path(folder))
        cluster = Cluster(VERSION, Path(folder) / "cluster", nodes=NODES, properties=PROPERTIES)
        running.callback(cluster.stop)
        cluster.start(first_topic=on_the_first_node)
        cases = twelve(cluster, Path(folder))
        wait_for_high_watermarks(cluster)
        answers = {
            "kafka-transactions.sh find-hanging": _by_kafkas_tool(cluster),
            **_by_kafka_python(cluster),
            **_by_kadm(kadm, cluster),
            **_by_txn_analysis(cluster, Path(folder)),
        }
        table = _table(
            ("", *answers),
            (
                (f"{case.kind}: {case.words}", *(answer.get(case.key, "-") for answer in answers.values()))
                for case in cases
            ),
        )
        executed = _executed(cluster, Path(folder), kadm)
    text = PAGE.read_text(encoding="utf-8")
    made = {"versions": _versions(), "seen": table, "executed": executed}
    block = re.compile(r"(<!-- measured ([a-z]+) -->\n).*?(<!-- /measured -->)", re.DOTALL)
    PAGE.write_text(block.sub(lambda found: f"{found[1]}{made[found[2]]}{found[3]}", text), encoding="utf-8")


def _versions() -> str:
    (with_go,) = re.findall(r"pkg/kadm (\S+)", (_KADM / "go.mod").read_text())
    return (
        f"Brokers and `kafka-transactions.sh` of Kafka {VERSION}, kafka-python {kafka.__version__}, confluent-kafka "
        f"{confluent_kafka.version()} (librdkafka {confluent_kafka.libversion()[0]}), franz-go's kadm {with_go}.\n"
    )


def _by_kafkas_tool(cluster: Cluster) -> dict[Key, str]:
    printed = [line for node in (1, 2) for line in cluster.find_hanging(node).splitlines()[1:]]
    rows = [line.split() for line in printed if line.strip()]
    return {(row[0], int(row[1]), int(row[2])): "hanging" for row in rows}


def _by_kafka_python(cluster: Cluster) -> dict[str, dict[Key, str]]:
    """Its finder as it is, and as if each transaction were old enough; then its DescribeProducers of each partition."""
    admin = KafkaAdminClient(bootstrap_servers=cluster.bootstrap)
    finder, open_now = dict[str, dict[Key, str]](), dict[Key, str]()
    for name, limit_ms in (("as it is", TRANSACTION_MAX_TIMEOUT_MS), ("were all old enough", _LATE_BY_ALL_MS)):
        found = admin.find_hanging_transactions(max_transaction_timeout_ms=limit_ms)
        finder[f"kafka-python `find_hanging_transactions`, {name}"] = {
            (place.topic, place.partition, one["producer_id"]): f"hanging ({one['state']})"
            for one in found
            for place in one["topic_partitions"]
        }
    for topic, partition in _PLACES:
        place = TopicPartition(topic, partition)
        for producer in admin.describe_producers([place])[place].active_producers:
            if producer.current_transaction_start_offset >= 0:
                key = topic, partition, producer.producer_id
                open_now[key] = f"open from {producer.current_transaction_start_offset}"
    admin.close()
    return finder | {"kafka-python `describe_producers`": open_now}


def _built_kadm(folder: Path) -> Path:
    subprocess.run(["go", "build", "-o", folder / "kadm", "."], cwd=_KADM, check=True)
    return folder / "kadm"


def _by_kadm(kadm: Path, cluster: Cluster) -> dict[str, dict[Key, str]]:
    words = [str(kadm), cluster.bootstrap, "seen", *dict(_PLACES)]
    said = json.loads(subprocess.run(words, capture_output=True, text=True, check=True).stdout)
    states = {one["producer_id"]: one["state"] for one in said["listed"]}
    return {
        "kadm `ListTransactions`, `DescribeProducers`": {
            (one["topic"], one["partition"], one["producer_id"]): f"open from {one['txn_start_offset']}, "
            f"{states.get(one['producer_id'], 'no id')}"
            for one in said["open"]
        }
    }


def _txn_analysis(folder: Path, *words: str | Path) -> str:
    command = [sys.executable, "-m", "txn_analysis", *words, "--warehouse", folder / "warehouse"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


def _by_txn_analysis(cluster: Cluster, folder: Path) -> dict[str, dict[Key, str]]:
    copy_nodes(cluster, folder / "copy", (0, 1))
    settings = {
        "--transaction-max-timeout-ms": TRANSACTION_MAX_TIMEOUT_MS,
        "--transaction-state-partitions": STATE_PARTITIONS,
        "--max-clock-skew-ms": 0,
    }
    words = [str(word) for pair in settings.items() for word in pair]
    said = _txn_analysis(
        folder, "audit", folder / "copy", *words, "--state-copied-last", "--no-records-lost", "--format", "json"
    )
    return {
        "txn-analysis": {
            (one["topic"], one["partition"], one["producer_id"]): f"{one['verdict']} (`{one['rule']}`)"
            for one in json.loads(said)["findings"]
        }
    }


def _executed(cluster: Cluster, folder: Path, kadm: Path) -> str:
    """The plan's records, sent in turns by kafka-python and by kadm: the broker's answers, and what is open then.

    The first record whose partition has seen a coordinator epoch is sent without it before, as kafka-python does unless
    it is given.
    """
    plan = [json.loads(line) for line in _txn_analysis(folder, "abort-plan", "--format", "ndjson").splitlines()]
    admin = KafkaAdminClient(bootstrap_servers=cluster.bootstrap)
    seen_epoch = next(record for record in plan if record["coordinator_epoch_basis"] != "none_seen")
    rows = list[tuple[str, ...]]()

    def send(record: dict[str, Any], name: str, answer: str) -> None:
        place = f"{record['topic']}-{record['partition']} from offset {record['txn_start_offset']}"
        rows.append((place, name, answer, "open" if _is_open(admin, record) else "ended"))

    for number, record in enumerate(plan):
        if record is seen_epoch:
            send(record, "kafka-python, `coordinator_epoch` left at -1", _sent(admin, record, -1))
        if number % 2:
            send(record, "kadm", _sent_by_kadm(kadm, cluster, record))
        else:
            send(record, "kafka-python", _sent(admin, record, record["coordinator_epoch"]))
    admin.close()
    return _table(("record of the plan", "sent by", "the broker's answer", "afterwards"), rows)


def _sent(admin: Any, record: dict[str, Any], coordinator_epoch: int) -> str:
    place = TopicPartition(record["topic"], record["partition"])
    try:
        admin.abort_transaction(
            AbortTransactionSpec(place, record["producer_id"], record["producer_epoch"], coordinator_epoch)
        )
    except kafka.errors.KafkaError as refused:
        return type(refused).__name__
    return "written"


def _sent_by_kadm(kadm: Path, cluster: Cluster, record: dict[str, Any]) -> str:
    words = [str(kadm), cluster.bootstrap, "abort"]
    done = subprocess.run(words, input=json.dumps(record), capture_output=True, text=True, check=True)
    return done.stdout.strip()


def _is_open(admin: Any, record: dict[str, Any]) -> bool:
    place = TopicPartition(record["topic"], record["partition"])
    producers = admin.describe_producers([place])[place].active_producers
    starts = {p.producer_id: p.current_transaction_start_offset for p in producers}
    return bool(starts.get(record["producer_id"], -1) >= 0)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|", *(f"| {' | '.join(row)} |" for row in rows)]
    return "".join(f"{line}\n" for line in lines)


if __name__ == "__main__":
    main()
