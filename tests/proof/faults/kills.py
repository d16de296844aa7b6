"""Kills audits at random moments, runs them again, and compares."""

from __future__ import annotations

import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from subprocess import TimeoutExpired
from unittest.mock import patch

from tests.proof.part import Report, counted, never
from tests.tools.processes import file_count, kill_group, kill_workers, start_audit, wait_until
from tests.tools.scene import LATER, WORDS, Scene
from txn_analysis.engine import memory
from txn_analysis.errors import AuditError
from txn_analysis.tables import Table
from txn_analysis.warehouse.errors import storage_error

# Of five kills two hit a driver, the rest a Python worker: a driver takes longer to start than to do its work.
_IS_OF_DRIVER = (False, True, False, True, False)
_LONGEST_DELAY_S = 0.4

Attempt = tuple[bool, list[str]]


@dataclass
class KillReport(Report):
    """What came of kills; those of drivers may come when the audit is done."""

    tried: int = counted("kills tried")
    struck: int = counted("kills that cut an audit short", least=1)
    lost: int = never("kills not survived")


def run_kills(count: int, seed: int, scene: Scene) -> KillReport:
    """Kill `count` audits at random moments, each with a warehouse of its own, and see what is left.

    Args:
        count: audits to kill.
        seed: chooses the moments; the same seed chooses the same, as far as processes repeat themselves.
        scene: whose later audit is killed.
    """
    kills = [_random_kill(scene, n, seed) for n in range(count)]
    with ThreadPoolExecutor(1) as drivers:
        # Drivers are processes of their own: they start, and die, while the workers of this session do.
        cut = {kill: drivers.submit(kill.cut_driver) for kill in kills if kill.is_of_driver}
        found = [kill.consequences(kill.cut_worker()) for kill in kills if not kill.is_of_driver]
        found += [kill.consequences(attempt.result()) for kill, attempt in cut.items()]
    problems = [problem for _, problems in found for problem in problems]
    struck, lost = (sum(map(bool, each)) for each in zip(*found, strict=True))
    return KillReport(count, struck, lost, problems=problems)


def _random_kill(scene: Scene, number: int, seed: int) -> Kill:
    """When a random number of files is written, and a little later."""
    source = random.Random(f"{seed}/{number}")
    warehouse = scene.warehouse(f"kill-{number}")
    is_of_driver = _IS_OF_DRIVER[number % len(_IS_OF_DRIVER)]
    new_files = source.randrange(scene.new_file_count)
    delay_s = source.uniform(0, _LONGEST_DELAY_S)
    victim = "driver" if is_of_driver else "worker"
    name = f"seed {seed}, kill {number}: {victim} after {new_files} files and {delay_s * 1000:.0f} ms"
    return Kill(scene, warehouse, name, _more_files(warehouse, new_files), delay_s, is_of_driver=is_of_driver)


def kill_at_first_file(scene: Scene, table: Table, *, is_of_driver: bool) -> Kill:
    """As soon as the later audit has written a file of some table, which no commit names yet."""
    name = f"{'driver' if is_of_driver else 'worker'} at the first file of {table.name}"
    warehouse = scene.warehouse(name.replace(" ", "-"))
    return Kill(scene, warehouse, name, _more_files(warehouse, 1, "*.parquet", table.name), is_of_driver=is_of_driver)


def _more_files(warehouse: Path, count: int, pattern: str = "*", table: str = "") -> Callable[[], bool]:
    """Whether there are so many more files in a warehouse, or in one table of it, than there are now."""
    before = file_count(warehouse / table, pattern)
    return lambda: file_count(warehouse / table, pattern) >= before + count


@dataclass(frozen=True, eq=False)
class Kill:
    """One audit that is killed when something is there, and a little later."""

    scene: Scene
    warehouse: Path
    name: str
    is_due: Callable[[], bool]
    delay_s: float = 0
    is_of_driver: bool = False

    def cut_driver(self) -> Attempt:
        """Kills Python and Java of an audit; True if it was still at work."""
        process = start_audit(LATER, self.warehouse, *WORDS)
        try:
            wait_until(lambda: self.is_due() or process.poll() is not None, "the files of an audit")
            with suppress(TimeoutExpired):
                process.wait(self.delay_s)
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
        in_tasks = patch.object(memory, "MEMORY_BYTES", -1)  # so little would be read in this process
        with in_tasks, ThreadPoolExecutor(1) as pool:
            audited = pool.submit(self.scene.audit, self.warehouse)
            wait_until(lambda: self.is_due() or audited.done(), "the files of an audit")
            wait([audited], self.delay_s)

            def is_over() -> bool:
                kill_workers()
                return audited.done()

            wait_until(is_over, "an audit whose workers are killed")
            error = audited.exception()
        if error is None or isinstance(error, AuditError) or storage_error(error, str(self.warehouse)):
            return error is not None, []
        return True, [f"not a clear error: {str(error)[:1000]}"]

    def consequences(self, attempt: Attempt) -> Attempt:
        """What readers see after the kill, and after the same audit was run again."""
        is_struck, problems = attempt
        problems = problems + self.scene.problems_before(self.warehouse)
        self.scene.audit(self.warehouse)
        problems += self.scene.problems_after(self.warehouse)
        self.scene.remove(self.warehouse)
        return is_struck, [f"{self.name}: {problem}" for problem in problems]
