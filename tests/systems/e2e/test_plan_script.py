"""The script of a plan, run against real brokers at the wrong time, by the wrong person, and after the producer came
back: it refuses or does what its text says, and nothing that was acknowledged is lost."""

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.proof.kafka.requests.librdkafka import IS_INSTALLED
from tests.systems.e2e.broker import Cluster, free_port
from tests.systems.e2e.captures import ASSURANCES, PARAMETERS
from tests.systems.e2e.driver import Driver
from tests.systems.e2e.executor import put_tool, with_recorded_epochs
from tests.systems.e2e.hangs import Hang, now_ms
from tests.systems.e2e.raw_client import Producer, RawClient
from tests.systems.e2e.stage import Stage, on_node, staged
from tests.tools.kafka_jars import kafka_jars
from tests.tools.processes import wait_until
from txn_analysis.pipeline import steps as pipeline
from txn_analysis.plan.script import commands
from txn_analysis.runs.run_tables import run_tables
from txn_analysis.settings import Settings
from txn_analysis.tables import AbortRecord
from txn_analysis.warehouse.opening import open_warehouse

pytestmark = pytest.mark.e2e

VERSIONS = ("2.8.2", "4.3.1")
TOPIC = "orders"
# The partitions, by what becomes of the producer: four are fenced, each by another line that the script prints.
NOBODY, RETURNED, RENEWED, RUNNING, *ENDED = range(8)
IDS = {partition: f"billing-{partition}" for partition in range(1, 8)}
WAYS = ("kafka-transactions.sh", "jshell", "python3", "kafka-producer-perf-test.sh")
TOOLS = {"2.8.2": "3.9.1"}  # before 3.0 there is no kafka-transactions.sh

Done = subprocess.CompletedProcess[str]
Variables = Mapping[str, str]
_NONE: Variables = {}


@dataclass
class Told:
    """What the scripts said, by what was tried; and the offsets that must be visible in the end."""

    version: str
    said: dict[str, Done] = field(default_factory=dict)
    acknowledged: dict[int, list[int]] = field(default_factory=dict)
    seen: dict[int, list[int]] = field(default_factory=dict)
    open_after: dict[int, list[int]] = field(default_factory=dict)


@dataclass
class Operator:
    """Somebody with a plan and a shell, at a moment (epoch seconds) of some clock."""

    plan: dict[int, AbortRecord]
    cluster: Cluster
    folder: Path

    def runs(self, partition: int, *words: str, at_s: int | None = None, variables: Variables = _NONE) -> Done:
        """Runs the script of one record, inside its window unless another moment is asked for."""
        record = self.plan[partition]
        return self.types(
            commands([record]), *words, at_s=at_s or record.not_before_ms // 1000 + 60, variables=variables
        )

    def types(self, script: str, *words: str, at_s: int = 0, variables: Variables = _NONE) -> Done:
        """Runs a script with Kafka's own tool and a clock of ours on the PATH."""
        clock = self.folder / "date"
        clock.write_text(f"#!/bin/sh\necho {at_s}\n")
        clock.chmod(0o755)
        path = f"{self.folder}:{os.environ['PATH']}"
        environment = {**os.environ, "PATH": path, "BROKERS": self.cluster.bootstrap, "PAUSE_SECONDS": "0", **variables}
        command = ["sh", "-c", script, "plan.sh", *words]
        return subprocess.run(
            command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )

    def types_what_it_prints(self, refused: Done, program: str) -> Done:
        """Runs the one line of a refusal that calls this program, with Kafka's jars and its newer tools at hand."""
        lines = (line for line in refused.stderr.splitlines() if line.startswith("  "))
        (line,) = (line for line in lines if f"{program} " in line.rpartition(" && ")[2])
        path = f"{self.folder}/newer:{self.folder}:{os.environ['PATH']}"
        return self.types(line, variables={"PATH": path, "KAFKA_HOME": str(self.folder / "kafka"), "BROKERS": ""})


@pytest.fixture(scope="module", params=VERSIONS)
def told(
    request: pytest.FixtureRequest, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Told]:
    """All of it on one broker, in order."""
    folder = tmp_path_factory.mktemp("script")
    cluster = Cluster(request.param, folder / "broker", has_guests=True)
    with staged(cluster, {TOPIC: on_node(8)}) as stage:
        raw, driver = stage.raw, stage.driver
        hangs = _let_hang(stage)
        stage.written_down(TOPIC, 8)
        _put_tools(folder / "bin", request.param)
        operator = Operator(_plan(cluster, spark, folder), cluster, folder / "bin")
        yield _tell(Told(request.param), operator, raw, driver, hangs)


def _put_tools(folder: Path, version: str) -> None:
    """What an operator has on the PATH; the tools that fence may be newer or older than the brokers."""
    put_tool(folder, TOOLS.get(version, version))
    put_tool(folder / "newer", "4.3.1")
    put_tool(folder, "3.9.1", "kafka-producer-perf-test.sh")
    (folder / "python3").write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    (folder / "python3").chmod(0o755)
    (folder / "kafka").mkdir()
    (folder / "kafka" / "libs").symlink_to(kafka_jars(TOOLS.get(version, version)))


def _let_hang(stage: Stage) -> dict[int, Hang]:
    driver, hanger = stage.driver, stage.hanger
    hangs = {n: hanger.late_write_after_the_abort(name, (TOPIC, n)) for n, name in IDS.items()}
    hangs[NOBODY] = hanger.unknown_producer((TOPIC, NOBODY))
    driver.transact("witness", [(TOPIC, partition) for partition in range(8)])
    # Its markers are written after the answer, and say by the broker's clock when the hanging data was there.
    wait_until(lambda: all(len(ids) == 1 for ids in _open_in(driver).values()), "the markers of the witness")
    return hangs


def _open_in(driver: Driver) -> dict[int, list[int]]:
    """Producer ids with an open transaction, by partition."""
    return {partition: [*driver.open_in((TOPIC, partition))] for partition in range(8)}


def _plan(cluster: Cluster, spark: SparkSession, folder: Path) -> dict[int, AbortRecord]:
    warehouse, copy = str(folder / "warehouse"), cluster.copy_logs(folder / "copy")
    settings: dict[str, Any] = {**PARAMETERS, **ASSURANCES, "warehouse": warehouse}
    report = pipeline.audit(spark, [str(copy)], Settings.model_validate(settings))
    tables = run_tables(open_warehouse(spark, warehouse), "default", report.run.run_id)
    planned = {record.partition: record for record in tables.abort_plan()}
    found = {(f.partition, f.producer_id): (f.rule, f.missing_evidence) for f in report.findings}
    assert sorted(planned) == [NOBODY, *IDS], found
    return planned


def _tell(told: Told, operator: Operator, raw: RawClient, driver: Driver, hangs: dict[int, Hang]) -> Told:
    _at_the_wrong_time(told, operator)
    _by_the_wrong_person(told, operator)
    _while_the_broker_hangs(told, operator)
    _while_they_may_return(told, operator, raw, hangs)
    _after_it_came_back(told, operator, raw, hangs)
    told.said["dry run"] = operator.runs(NOBODY, "--dry-run")
    told.said["sent"] = operator.runs(NOBODY, "--yes")
    told.said["sent again"] = operator.runs(NOBODY, "--yes")
    told.open_after = _open_in(driver)
    for partition in range(8):
        told.seen[partition] = driver.consume((TOPIC, partition), 3000)["offsets"]
    return told


def _at_the_wrong_time(told: Told, operator: Operator) -> None:
    record = operator.plan[NOBODY]
    told.said["too early"] = operator.runs(NOBODY, "--yes", at_s=record.not_before_ms // 1000 - 60)
    told.said["too late"] = operator.runs(NOBODY, "--yes", at_s=record.not_after_ms // 1000 + 60)


def _by_the_wrong_person(told: Told, operator: Operator) -> None:
    told.said["no terminal"] = operator.runs(NOBODY)
    guest, hasty = operator.folder / "guest.properties", operator.folder / "hasty.properties"
    guest.write_text(operator.cluster.guest_config)
    at_guests = {"BROKERS": operator.cluster.guest_bootstrap, "COMMAND_CONFIG": str(guest)}
    told.said["no rights"] = operator.runs(NOBODY, "--yes", variables=at_guests)
    hasty.write_text("default.api.timeout.ms=3000\nrequest.timeout.ms=2000\n")
    away = {"BROKERS": f"127.0.0.1:{free_port()}", "COMMAND_CONFIG": str(hasty)}
    told.said["broker away"] = operator.runs(NOBODY, "--yes", variables=away)


def _while_the_broker_hangs(told: Told, operator: Operator) -> None:
    (node,) = operator.cluster.nodes
    node.pause()
    told.said["broker hangs"] = operator.runs(NOBODY, "--yes", variables={"TIMEOUT_SECONDS": "4"})
    node.go_on()


def _while_they_may_return(told: Told, operator: Operator, raw: RawClient, hangs: dict[int, Hang]) -> None:
    """Each has a transaction in progress elsewhere that nobody will commit: `--owner-gone` prints what ends it."""
    for way, partition in zip(WAYS, ENDED, strict=True):
        name, hang = IDS[partition], hangs[partition]
        raw.add_partition(Producer(name, hang.producer_id, hang.producer_epoch), (TOPIC, NOBODY))
        told.said[f"{way}: not said to be ended"] = operator.runs(partition, "--yes")
        words = ("--yes", "--ended", name)
        told.said[f"{way}: not fenced"] = operator.runs(partition, *words)
        refused = operator.runs(partition, "--yes", "--owner-gone", name)
        if way != "python3" or IS_INSTALLED:
            told.said[f"{way}: fences"] = operator.types_what_it_prints(refused, way)
        else:
            raw.init_producer_id(name)
        told.said[f"{way}: fenced"] = operator.runs(partition, *words)
        unchecked = ("--unchecked", operator.plan[partition].finding_id)
        told.said[f"{way}: fenced, unchecked"] = operator.runs(partition, *words, *unchecked)


def _after_it_came_back(told: Told, operator: Operator, raw: RawClient, hangs: dict[int, Hang]) -> None:
    """The same instance, a newer one, and a newer one whose data comes between the look and the abort."""
    same = Producer(IDS[RETURNED], hangs[RETURNED].producer_id, hangs[RETURNED].producer_epoch)
    for partition, producer in ((RETURNED, same), *((n, raw.init_producer_id(IDS[n])) for n in (RENEWED, RUNNING))):
        sequence = 4 if producer is same else 0
        raw.add_partition(producer, (TOPIC, partition))
        first = raw.write(producer, (TOPIC, partition), sequence, at_ms=now_ms())
        told.acknowledged[partition] = [first, first + 1]
        words = ("--yes", "--ended", IDS[partition], "--unchecked", operator.plan[partition].finding_id)
        if partition == RUNNING:
            told.said["recorded epochs"] = operator.types(with_recorded_epochs(operator.plan[partition]))
        else:
            told.said["returned" if producer is same else "renewed"] = operator.runs(partition, *words)
        raw.end(producer, commit=True)


@pytest.mark.parametrize(
    ("tried", "code", "says"),
    [
        ("too early", 1, "too early: wait "),
        ("too late", 1, "too late: it expired 1 min ago"),
        ("no terminal", 2, "no terminal to ask at"),
        ("no rights", 1, "describe-producers` failed: "),
        ("broker away", 1, "failed: "),
        ("broker hangs", 1, "`kafka-transactions.sh describe-producers` has not answered within 4 s"),
        ("kafka-transactions.sh: not said to be ended", 1, "its producer may return"),
        ("returned", 1, "after the copy's"),
        ("renewed", 1, "someone wrote since the copy"),
        ("recorded epochs", 1, "epoch"),
        ("dry run", 0, "would be sent: orders-0@"),
        ("sent", 0, "sent: orders-0@"),
        ("sent again", 0, "nothing to do: orders-0@"),
    ],
)
def test_it_says_why(told: Told, tried: str, code: int, says: str) -> None:
    done = told.said[tried]
    assert (done.returncode, says in done.stderr) == (code, True), done.stderr


@pytest.mark.parametrize("way", WAYS)
def test_the_line_that_it_prints_fences_and_the_script_goes_on(told: Told, way: str) -> None:
    asked_too_much = told.version == "2.8.2"
    refused, fenced, unchecked = (told.said[f"{way}: {when}"] for when in ("not fenced", "fenced", "fenced, unchecked"))
    assert refused.returncode == 1
    says = "too old for `kafka-transactions.sh describe`" if asked_too_much else "its id has a transaction in progress"
    assert says in refused.stderr
    assert fenced.returncode == (1 if asked_too_much else 0), fenced.stderr
    assert ("sent: " if asked_too_much else "nothing to do: ") in unchecked.stderr


@pytest.mark.parametrize("way", WAYS)
def test_the_line_that_it_prints_ends_as_it_says(told: Told, way: str) -> None:
    if way == "python3" and not IS_INSTALLED:
        pytest.skip("confluent-kafka is not installed: pip install -e '.[kafka]'")
    done = told.said[f"{way}: fences"]
    if way == "kafka-producer-perf-test.sh":
        assert "java.lang.ArithmeticException: / by zero" in done.stderr
    else:
        assert done.returncode == 0, done.stderr


def test_nothing_that_was_acknowledged_is_lost(told: Told) -> None:
    assert {n: [o for o in offsets if o not in told.seen[n]] for n, offsets in told.acknowledged.items()} == {
        RETURNED: [],
        RENEWED: [],
        RUNNING: [],
    }


def test_nothing_is_open_any_more(told: Told) -> None:
    assert {partition: ids for partition, ids in told.open_after.items() if ids} == {}
