"""Ctrl-C: two seconds later nothing of ours lives, and nothing half-written counts, at whatever stage it comes."""

import fcntl
import os
import signal
import struct
import termios
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.proof.faults.interrupts import Command, Interrupted, in_tasks, python, txn_analysis
from tests.tools.scene import LATER, WORDS, Scene
from txn_analysis.spark.interrupts import INTERRUPTED

PIPE_BYTES = 4096  # the least that Linux has; any report is longer

HELD_UP = {
    "by-its-threads": """
from concurrent.futures import ThreadPoolExecutor
import time, sys
with ThreadPoolExecutor() as pool:
    pool.submit(time.sleep, 60)
    pool.submit(print, "ready", file=sys.stderr, flush=True)
""",
    "by-machine-code": """
import ctypes, sys
lock, mutex = ctypes.CDLL(None).pthread_mutex_lock, ctypes.create_string_buffer(64)
lock(mutex)
print("ready", file=sys.stderr, flush=True)
lock(mutex)
""",
    "by-what-it-tidies-up": """
import sys, time
try:
    print("ready", file=sys.stderr, flush=True)
    time.sleep(60)
finally:
    time.sleep(60)
""",
    "by-processes-of-processes": """
import subprocess, sys
subprocess.run(["sh", "-c", "trap '' INT TERM; sleep 60 & sleep 60 & echo ready >&2; wait; wait"])
""",
}


@pytest.mark.parametrize("program", HELD_UP.values(), ids=HELD_UP)
def test_a_command_ends_whatever_holds_it_up(program: str, tmp_path: Path) -> None:
    command = python(program, tmp_path / "temp")
    command.until_it_says("ready")
    ended = command.interrupt()
    assert (ended.code, ended.said) == (130, ["ready", INTERRUPTED])


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_command_ends_when_it_is_told_to_or_its_terminal_closes(number: int, code: int, tmp_path: Path) -> None:
    command = python(HELD_UP["by-processes-of-processes"], tmp_path / "temp")
    command.until_it_says("ready")
    ended = command.interrupt(number)
    assert (ended.code, ended.said) == (code, ["ready", INTERRUPTED])


def test_a_command_ends_while_nobody_reads_its_report(tmp_path: Path) -> None:
    ended = interrupted_while_nobody_reads(lambda pipe: python("print('x' * 100_000)", tmp_path / "temp", pipe))
    assert (ended.code, ended.said) == (130, [INTERRUPTED])


def test_what_was_ignored_stays_so(tmp_path: Path) -> None:
    """As under `nohup`, or where a script starts it in the background."""
    program = "import os, signal, sys; os.kill(0, signal.SIGHUP); print('ready', file=sys.stderr, flush=True)"
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        command = python(program + "\nsignal.pause()", tmp_path / "temp")
    finally:
        signal.signal(signal.SIGHUP, before)
    command.until_it_says("ready")
    assert command.interrupt().code == 130


@pytest.mark.cluster
def test_while_spark_starts(tmp_path: Path) -> None:
    command = in_tasks(audit_into(tmp_path / "warehouse"), tmp_path / "temp")
    command.until(command.has_java, "Java to start")
    ended = command.interrupt()
    assert (ended.code, ended.said[-1], ended.left_in_temp) == (130, INTERRUPTED, [])
    assert not (tmp_path / "warehouse").exists()


def test_a_small_audit_that_needs_no_spark(tmp_path: Path) -> None:
    ended = interrupted_after("finding files", txn_analysis(audit_into(tmp_path / "warehouse"), tmp_path / "temp"))
    assert_at_once(ended, 130, "finding files")


@pytest.mark.cluster
def test_a_supervisor_ends_an_audit_that_reads(scene: Scene, tmp_path: Path) -> None:
    warehouse = scene.copied_to(tmp_path / "warehouse")
    ended = interrupted_after("starting Spark", in_tasks(audit_into(warehouse), tmp_path / "temp"), signal.SIGTERM)
    assert_at_once(ended, 143, "starting Spark")
    scene.audit(warehouse)
    assert scene.problems_after(warehouse) == []


# A stage tells that it is over, so that the next one has begun.
@pytest.mark.cluster
@pytest.mark.parametrize(
    "stage", ["starting Spark", "recognising files", "reading", "noting inputs", "linking logs", "judging"]
)
def test_at_each_stage_of_an_audit(stage: str, scene: Scene, tmp_path: Path) -> None:
    warehouse = scene.copied_to(tmp_path / "warehouse")
    ended = interrupted_after(stage, in_tasks(audit_into(warehouse), tmp_path / "temp"))
    assert_at_once(ended, 130, stage)
    assert scene.problems_before(warehouse) == []
    scene.audit(warehouse)
    assert scene.problems_after(warehouse) == []


@pytest.mark.cluster
def test_while_mail_does_not_read_the_report(scene: Scene, tmp_path: Path) -> None:
    warehouse = scene.copied_to(tmp_path / "warehouse")
    asked = ["report", "--warehouse", str(warehouse), "--cluster", "earlier", "--format", "html"]
    ended = interrupted_while_nobody_reads(lambda pipe: txn_analysis(asked, tmp_path / "temp", pipe))
    assert (ended.code, ended.said[-1], ended.left_in_temp) == (130, INTERRUPTED, [])


def audit_into(warehouse: Path) -> list[str]:
    return ["audit", *LATER, "--warehouse", str(warehouse), *WORDS]


def interrupted_after(stage: str, command: Command, number: int = signal.SIGINT) -> Interrupted:
    command.until_it_says(f"txn-analysis: {stage}")
    return command.interrupt(number)


def assert_at_once(ended: Interrupted, code: int, stage: str) -> None:
    *stages, line = ended.said
    assert (ended.code, line, ended.left_in_temp) == (code, INTERRUPTED, [])
    # A stage that takes no time may be over, too, before the signal is there.
    assert any(words.startswith(f"txn-analysis: {stage}") for words in stages[-2:])


def interrupted_while_nobody_reads(start: Callable[[int], Command]) -> Interrupted:
    read_end, write_end = os.pipe()
    fcntl.fcntl(write_end, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
    command = start(write_end)
    os.close(write_end)
    command.until(lambda: waiting_bytes(read_end) == PIPE_BYTES, "a full pipe")
    ended = command.interrupt()
    os.close(read_end)
    return ended


def waiting_bytes(read_end: int) -> int:
    count: int
    (count,) = struct.unpack("i", fcntl.ioctl(read_end, termios.FIONREAD, bytes(4)))
    return count
