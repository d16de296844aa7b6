"""From recommendation to repair on one broker: what happens between the first copy and the last, in order."""

import json
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.systems.e2e.captures import Audits, Capture, by_place, dump, take_capture
from tests.systems.e2e.driver import KafkaError
from tests.systems.e2e.executor import (
    by_admin,
    by_four_fields,
    by_request,
    by_script,
    by_start_offset,
    must_be_unchecked,
    refusals,
)
from tests.systems.e2e.hangs import LATE_JOINER, now_ms
from tests.systems.e2e.scene import OFFSETS, PLACES, Scene, set_scene
from txn_analysis.plan.plan_file import read_plan
from txn_analysis.plan.repair import Outcome
from txn_analysis.questions.verify import nights, verify
from txn_analysis.report.model import AuditReport
from txn_analysis.runs.run_tables import run_tables
from txn_analysis.tables import AbortRecord
from txn_analysis.warehouse.opening import open_warehouse

Place = tuple[str, int, int]

LATE_CAUSE = "ended later by its coordinator"
IN_PROGRESS = "fraud-scorer"
TOOLS = ("3.9.1", "4.2.0")


@dataclass
class FirstNight:
    """The scene, and its first capture: everything hangs, nothing is old by the brokers' clocks."""

    scene: Scene
    capture: Capture
    folder: Path


def first_night(version: str, folder: Path) -> FirstNight:
    """Set the scene and copy it, with a transaction in progress; then end one of the hanging ones properly."""
    scene = set_scene(version, folder)
    scene.driver.begin(IN_PROGRESS)
    scene.driver.send(IN_PROGRESS, ("orders", 0))
    scene.stop_load()
    capture = take_capture(scene, folder / "night-1")
    scene.driver.commit(IN_PROGRESS)
    scene.start_load()
    latecomer = scene.hang(LATE_CAUSE)
    assert latecomer.transactional_id is not None
    producer = scene.producer_of(latecomer)
    scene.raw.add_partition(producer, (latecomer.topic, latecomer.partition))
    scene.raw.end(producer, commit=False)
    return FirstNight(scene, capture, folder)


@dataclass
class Night:
    """One capture and the audit of its log directory."""

    capture: Capture
    report: AuditReport


@dataclass
class LateExecution:
    """A record that was executed after its live producer had added the partition."""

    record: AbortRecord
    refusals_before: list[str]
    refusals_after: list[str]
    live_offsets: list[int]
    script: subprocess.CompletedProcess[str]
    abort: subprocess.CompletedProcess[str]
    seen: list[int]


@dataclass
class Story:
    """What happened on one broker; tests ask it."""

    scene: Scene
    nights: list[Night] = field(default_factory=list)
    second_of_dumps: AuditReport | None = None
    plan: tuple[AbortRecord, ...] = ()
    check: subprocess.CompletedProcess[str] | None = None
    too_early: list[list[str]] = field(default_factory=list)
    ripe_ms: int = 0
    stuck: dict[tuple[str, int], dict[str, Any]] = field(default_factory=dict)
    freed: dict[tuple[str, int], dict[str, Any]] = field(default_factory=dict)
    late: LateExecution | None = None
    refused: dict[Place, list[str]] = field(default_factory=dict)
    executed: dict[Place, str] = field(default_factory=dict)
    again: dict[str, str] = field(default_factory=dict)
    hanging_after: set[Place] | None = None
    afterwards: dict[str, bool] = field(default_factory=dict)
    lost: set[tuple[str, int]] = field(default_factory=set)
    verified: list[dict[str, Any]] = field(default_factory=list)
    verify_code: int | None = None
    verified_second: list[Outcome] = field(default_factory=list)


def begin(first: FirstNight, audits: Audits) -> Story:
    """Audit the first night, whose plan may not be executed yet."""
    story = Story(first.scene)
    story.nights.append(_audited(first.capture, audits))
    warehouse = open_warehouse(audits.spark, audits.warehouse)
    run = story.nights[0].report.run
    assert run.as_of_ms is not None
    first_plan = run_tables(warehouse, audits.cluster("log-dir"), run.run_id).abort_plan()
    # When the files were copied: on a busy machine the audits take longer than the rest of the time limit.
    story.too_early = [refusals(first.scene, record, run.as_of_ms) for record in first_plan]
    story.ripe_ms = max(record.not_before_ms for record in first_plan)
    return story


def go_on(story: Story, first: FirstNight, audits: Audits) -> Story:
    """Everything from the second copy to the last `verify`; waits until a plan may be executed."""
    _wait_until(story.ripe_ms)
    _second_night(story, first, audits)
    _execute(story, first.folder)
    _third_night(story, first, audits)
    return story


def _audited(capture: Capture, audits: Audits) -> Night:
    return Night(capture, audits.of(capture.log_dir, "log-dir"))


def _plan(audits: Audits, night: Night, file: Path) -> tuple[AbortRecord, ...]:
    """The plan as the command prints it."""
    done = _command(audits, "abort-plan", "--format", "ndjson", "--run", night.report.run.run_id, "-o", str(file))
    assert done.returncode == 0, done.stderr
    return read_plan(file.read_text(), str(file))


def _command(audits: Audits, verb: str, *words: str) -> subprocess.CompletedProcess[str]:
    where = ("--warehouse", audits.warehouse, "--cluster", audits.cluster("log-dir"))
    command = [sys.executable, "-m", "txn_analysis", verb, *where, *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def _wait_until(time_ms: int) -> None:
    while now_ms() < time_ms:
        time.sleep(min(5.0, max(0.0, (time_ms - now_ms()) / 1000)))


def _second_night(story: Story, first: FirstNight, audits: Audits) -> None:
    scene = story.scene
    scene.stop_load()
    story.nights.append(_audited(take_capture(scene, first.folder / "night-2"), audits))
    dumps = dump(scene.cluster, story.nights[1].capture.log_dir, first.folder / "dumps")
    story.second_of_dumps = audits.of(dumps, "dumps")
    file = first.folder / "plan-2.ndjson"
    story.plan = _plan(audits, story.nights[1], file)
    story.check = _command(audits, "abort-plan", "--check", str(file))
    scene.start_load()
    for place in sorted({(record.topic, record.partition) for record in story.plan}):
        story.stuck[place] = scene.consume(place, 1500)


def _execute(story: Story, folder: Path) -> None:
    scene = story.scene
    # In progress while the markers are written, on partitions that have hanging transactions.
    scene.driver.begin("live-through-it")
    held = [(place, offset) for place in PLACES for offset in scene.driver.send("live-through-it", place)]
    records = {(r.topic, r.partition, r.producer_id): r for r in story.plan}
    late = next(place for place, record in records.items() if record.transactional_id == LATE_JOINER)
    story.late = _execute_late(story, records.pop(late), folder)
    for number, (place, record) in enumerate(sorted(records.items())):
        if record.must_end_producer:
            _end_producer(scene, record)
        story.refused[place] = refusals(scene, record, now_ms(), is_producer_ended=True)
        story.executed[place] = _execute_one(scene, record, number, folder)
    scene.driver.commit("live-through-it")
    for (topic, partition), offset in held:
        scene.committed.setdefault(f"{topic}-{partition}", set()).add(offset)
    _execute_again(story, records, folder)


def _end_producer(scene: Scene, record: AbortRecord) -> None:
    """What the record says must be done first: the application is stopped, and a newer instance fences its id."""
    assert record.transactional_id is not None
    if pulse := scene.pulses.get(record.transactional_id):
        pulse.stop()
        scene.raw.end(pulse.producer, commit=True)
    scene.raw.init_producer_id(record.transactional_id)


def _execute_one(scene: Scene, record: AbortRecord, number: int, folder: Path) -> str:
    """The first records by every other form, the rest by the Admin client."""
    forms = ["script 3.9.1", "script 4.2.0", "four fields", "request"]
    form = forms[number] if number < len(forms) else "admin"
    _by_form(scene, record, form, folder)
    return form


def _by_form(scene: Scene, record: AbortRecord, form: str, folder: Path) -> str:
    """Executes a record; returns what was said."""
    if form == "admin":
        by_admin(scene, record)
        return "accepted"
    if form == "request":
        codes = {version: by_request(scene, record, version) for version in _api_versions(scene)}
        assert all(code == 0 for found in codes.values() for code in found.values()), codes
        return "accepted"
    tool = form.removeprefix("script ") if form.startswith("script") else TOOLS[-1]
    if form.startswith("script"):
        done = by_script(scene, record, tool, folder / "bin", is_unchecked=must_be_unchecked(scene, record))
    else:
        done = by_four_fields(scene, record, tool, folder / "bin")
    if done.returncode:
        raise KafkaError(done.stdout + done.stderr, -1)
    return "nothing to do" if "nothing to do" in done.stderr else "accepted"


def _api_versions(scene: Scene) -> tuple[int, ...]:
    return (1, 2) if scene.version.startswith("4.") else (0, 1)


def _execute_again(story: Story, records: dict[Place, AbortRecord], folder: Path) -> None:
    done: dict[str, Place] = {}
    for place, form in story.executed.items():
        done.setdefault(form, place)
    for form, place in done.items():
        try:
            story.again[form] = _by_form(story.scene, records[place], form, folder)
        except KafkaError as refused:
            story.again[form] = str(refused)


def _execute_late(story: Story, record: AbortRecord, folder: Path) -> LateExecution:
    """What the runbook warns of: the producer adds the partition after the plan was made, and writes."""
    scene, place = story.scene, (record.topic, record.partition)
    pulse, producer = scene.pulses[LATE_JOINER], scene.pulses[LATE_JOINER].producer
    pulse.stop()
    before = refusals(scene, record, now_ms())
    scene.raw.add_partition(producer, place)
    first = scene.raw.write(producer, place, 2, at_ms=now_ms())
    after = refusals(scene, record, now_ms())
    script = by_script(scene, record, TOOLS[-1], folder / "bin")
    abort = by_start_offset(scene, record, TOOLS[-1], folder / "bin")
    scene.raw.end(producer, commit=True)
    return LateExecution(record, before, after, [first, first + 1], script, abort, scene.consume(place)["offsets"])


def _third_night(story: Story, first: FirstNight, audits: Audits) -> None:
    scene = story.scene
    scene.stop_load()
    for record in story.plan:
        if record.transactional_id is not None and record.topic != OFFSETS[0][0]:
            story.afterwards[record.transactional_id] = _works_again(scene, record)
    for place in sorted({(record.topic, record.partition) for record in story.plan}):
        story.freed[place] = scene.consume(place)
    for name, offsets in scene.committed.items():
        topic, _, partition = name.rpartition("-")
        got = scene.consume((topic, int(partition)))
        assert got["position"] == got["end"], name
        seen = set(got["offsets"])
        story.lost |= {(name, offset) for offset in offsets - seen}
    capture = take_capture(scene, first.folder / "night-3")
    story.hanging_after = capture.hanging_by_the_broker
    story.nights.append(_audited(capture, audits))
    first_run, second_run = (night.report.run.run_id for night in story.nights[:2])
    done = _command(audits, "verify", "--format", "json", "--since", second_run)
    story.verified, story.verify_code = json.loads(done.stdout), done.returncode
    warehouse = open_warehouse(audits.spark, audits.warehouse)
    story.verified_second = verify(nights(warehouse, audits.cluster("log-dir"), second_run), first_run)


def _works_again(scene: Scene, record: AbortRecord) -> bool:
    """The coordinator can still commit for the same producer id: no epoch was raised above its own."""
    assert record.transactional_id is not None
    producer = scene.raw.init_producer_id(record.transactional_id)
    place = (record.topic, record.partition)
    scene.raw.add_partition(producer, place)
    offset = scene.raw.write(producer, place, 0, at_ms=now_ms())
    scene.raw.end(producer, commit=True)
    is_same = producer.producer_id == record.producer_id
    return is_same and offset in scene.consume(place)["offsets"]


def differences(night: Night) -> tuple[set[Place], set[Place]]:
    """What only the broker's own tool calls hanging, and what only the audit does."""
    ours = {place for place, finding in by_place(night.report).items() if finding.verdict == "hanging"}
    theirs = night.capture.hanging_by_the_broker or set()
    return theirs - ours, ours - theirs
