"""Executors that fail while an audit goes from a bucket into a bucket: a master and two workers, on loopback.

All is done in Spark's tasks, as if it were much. What happens to an executor happens when the first data file of the
audit is in the bucket, which no commit names yet.
"""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tests.faults.interrupts import IN_TASKS
from tests.reach.cells import CASES, IN_BUCKET, TEXTS, THERE, WORDS, Cells, stored
from tests.reach.gateway import BUCKET, gateway
from tests.reach.processes import ROOT, Ran, run, start_program
from tests.wide.standalone import standalone_cluster
from txn_analysis.stores.store import store_at

if TYPE_CHECKING:
    from collections.abc import Callable

_BACKEND = b"CoarseGrainedExecutorBackend"
_LOOK_AGAIN_S = 0.01
_LONGEST_S = 400
_OPTIONS = {
    "spark.executor.memory": "1g",
    "spark.executor.heartbeatInterval": "2s",
    "spark.network.timeout": "30s",  # two minutes by default, until one that stands still counts as lost
    "spark.network.timeoutInterval": "5s",
    "spark.speculation": "true",
    "spark.speculation.interval": "200ms",
    "spark.speculation.quantile": "0.5",
    "spark.speculation.task.duration.threshold": "3s",
}


class _Fault(NamedTuple):
    what: str
    does: Callable[[subprocess.Popen[bytes], list[int]], None]


def _nothing(_: subprocess.Popen[bytes], __: list[int]) -> None:
    pass


def _killed(_: subprocess.Popen[bytes], executors: list[int]) -> None:
    os.kill(executors[0], signal.SIGKILL)


def _stopped(_: subprocess.Popen[bytes], executors: list[int]) -> None:
    os.kill(executors[0], signal.SIGSTOP)


FAULTS = (
    _Fault("no fault", _nothing),
    _Fault("an executor killed", _killed),
    _Fault("an executor that stands still", _stopped),
)


def executors(folder: Path, _: int = 1) -> list[str]:
    """An audit for each fault; what did not hold."""
    cells = Cells()
    print("\n| what | outcome | s | CPU s | requests | MiB read |\n|---|---|---:|---:|---:|---:|")
    with gateway(folder, 7180) as server:
        os.environ.update(server.environment)
        store_at.cache_clear()
        for part in TEXTS:
            for path in (CASES / part).iterdir():
                store_at(THERE).put(f"cases/{path.relative_to(CASES)}", path.read_bytes())
        words = ["audit", *(f"{IN_BUCKET}/{part}" for part in TEXTS), *WORDS, "--warehouse"]
        assert run(server.environment, *words, f"{folder}/here").code == 0
        expected = stored(f"{folder}/here", IN_BUCKET)
        environment = {
            "PYTHONPATH": str(ROOT),
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_LOCAL_IP": "127.0.0.1",
            "PYSPARK_SUBMIT_ARGS": shlex.join(
                [*(w for k, v in _OPTIONS.items() for w in ("--conf", f"{k}={v}")), "pyspark-shell"]
            ),
        }
        with standalone_cluster(folder, os.environ | environment) as master:
            for number, fault in enumerate(FAULTS):
                server.counts()
                name = f"executors-{number}"
                command = [sys.executable, "-c", IN_TASKS, *words, f"{THERE}/{name}", "--master", master]
                ran = _with(fault, environment, command, folder, folder / "objects" / BUCKET / name)
                is_right = ran.code == 0 and stored(f"{THERE}/{name}", IN_BUCKET) == expected
                cells.row(f"by two executors, {fault.what}", ran, server.counts(), is_right=is_right)
    return cells.wrong


def _with(fault: _Fault, environment: dict[str, str], command: list[str], folder: Path, here: Path) -> Ran:
    """The audit that the fault happens to."""
    log = folder / f"{here.name}.log"
    began = time.monotonic()
    with open(log, "wb") as out:
        driver = start_program(environment, command, out.fileno(), out.fileno())
    while driver.poll() is None and next(here.glob("log_batches/**/part-*"), None) is None:
        time.sleep(_LOOK_AGAIN_S)
    own = _executors(folder)
    assert driver.poll() is not None or len(own) == 2, log.read_text()[-2000:]
    if driver.poll() is None:
        fault.does(driver, own)
    try:
        code = driver.wait(_LONGEST_S)
    except subprocess.TimeoutExpired:
        driver.kill()
        code = driver.wait()
    finally:
        for process in own:  # one that stands still goes on, and finds that its driver is gone
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGCONT)
    return Ran(code, "", log.read_text(), time.monotonic() - began, 0.0)


def _executors(folder: Path) -> list[int]:
    """The executors that run in the workers' folders."""
    found = []
    for entry in Path("/proc").iterdir():
        with suppress(OSError):
            words = (entry / "cmdline").read_bytes() if entry.name.isdigit() else b""
            if _BACKEND in words and (entry / "cwd").resolve().is_relative_to(folder):
                found.append(int(entry.name))
    return found
