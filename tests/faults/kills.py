"""Kills audits at random moments, runs them again, and compares: `python -m tests.faults.kills --count 50 --seed 7`."""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from subprocess import TimeoutExpired
from typing import TYPE_CHECKING

from tests.faults.processes import file_count, kill_group, kill_workers, start_audit, wait_until
from tests.faults.scene import LATER, WORDS, Scene
from txn_analysis.errors import AuditError
from txn_analysis.session import RunLength, session
from txn_analysis.storage_errors import storage_error

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession

# Of five kills two hit a driver, the rest a Python worker: a driver takes longer to start than to do its work.
_IS_OF_DRIVER = (False, True, False, True, False)
_LONGEST_DELAY_S = 0.4

Attempt = tuple[bool, list[str]]


@dataclass(frozen=True)
class KillReport:
    """How many audits were to be killed, how many of them were cut short by it, and what was wrong afterwards."""

    tried: int
    struck: int
    survived: int
    problems: tuple[str, ...]

    def __str__(self) -> str:
        lines = [f"{self.tried} kills tried, {self.struck} cut an audit short, {self.survived} survived"]
        return "\n".join([*lines, *self.problems])


def run_kills(count: int, seed: int, spark: SparkSession | None = None, folder: Path | None = None) -> KillReport:
    """Kill `count` audits at random moments, each with a warehouse of its own, and see what is left.

    Args:
        count: audits to kill.
        seed: chooses the moments; the same seed chooses the same, as far as processes repeat themselves.
        spark: the session to compare in, one of its own if None.
        folder: where the warehouses are made; a temporary folder if None.
    """
    spark = spark or session("local[2]", "txn-analysis-kills", length=RunLength.SHORT)
    with tempfile.TemporaryDirectory(dir=folder) as scratch, ThreadPoolExecutor(1) as drivers:
        scene = Scene(spark, Path(scratch))
        kills = [Kill(scene, n, seed) for n in range(count)]
        # Drivers are processes of their own: they start, and die, while the workers of this session do.
        cut = {kill: drivers.submit(kill.cut_driver) for kill in kills if kill.is_of_driver}
        found = [kill.consequences(kill.cut_worker()) for kill in kills if not kill.is_of_driver]
        found += [kill.consequences(attempt.result()) for kill, attempt in cut.items()]
    problems = [problem for _, problems in found for problem in problems]
    return KillReport(
        count, sum(is_struck for is_struck, _ in found), sum(not problems for _, problems in found), tuple(problems)
    )


class Kill:
    """One audit that is killed when it has written a random number of files, and a little later."""

    def __init__(self, scene: Scene, number: int, seed: int) -> None:
        moment = random.Random(f"{seed}/{number}")
        self._scene = scene
        self._warehouse = scene.warehouse(f"kill-{number}")
        self.is_of_driver = _IS_OF_DRIVER[number % len(_IS_OF_DRIVER)]
        new_files = moment.randrange(scene.new_file_count)
        self._file_count = file_count(self._warehouse) + new_files
        self._delay_s = moment.uniform(0, _LONGEST_DELAY_S)
        victim = "driver" if self.is_of_driver else "worker"
        self._name = f"seed {seed}, kill {number}: {victim} after {new_files} files and {self._delay_s * 1000:.0f} ms"

    def cut_driver(self) -> Attempt:
        """Kills Python and Java of an audit; True if it was still at work."""
        process = start_audit(LATER, self._warehouse, *WORDS)
        try:
            wait_until(lambda: self._is_due() or process.poll() is not None, "the files of an audit")
            with suppress(TimeoutExpired):
                process.wait(self._delay_s)
        finally:
            is_struck = process.poll() is None
            if is_struck:
                kill_group(process)
            _, errors = process.communicate()
        if not is_struck and process.returncode != 0:
            return False, [f"exit code {process.returncode} before the kill: {errors[-500:]}"]
        return is_struck, []

    def cut_worker(self) -> Attempt:
        """Kills the Python workers of an audit in this session until one was at work; True if there was one."""
        with ThreadPoolExecutor(1) as pool:
            audited = pool.submit(self._scene.audit, self._warehouse)
            wait_until(lambda: self._is_due() or audited.done(), "the files of an audit")

            def is_over() -> bool:
                kill_workers()
                return audited.done()

            wait_until(is_over, "an audit whose workers are killed")
            error = audited.exception()
        if error is None or isinstance(error, AuditError) or storage_error(error, str(self._warehouse)):
            return error is not None, []
        return True, [f"not a clear error: {str(error)[:1000]}"]

    def _is_due(self) -> bool:
        return file_count(self._warehouse) >= self._file_count

    def consequences(self, attempt: Attempt) -> Attempt:
        """What readers see after the kill, and after the same audit was run again."""
        is_struck, problems = attempt
        problems = problems + self._scene.problems_before(self._warehouse)
        self._scene.audit(self._warehouse)
        problems += self._scene.problems_after(self._warehouse)
        self._scene.remove(self._warehouse)
        return is_struck, [f"{self._name}: {problem}" for problem in problems]


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints the report; the exit code is 1 if anything was wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args(arguments)
    report = run_kills(given.count, given.seed)
    print(f"seed {given.seed}: {report}")
    return int(bool(report.problems))


if __name__ == "__main__":
    sys.exit(main())
