"""Two audits at once on one warehouse, again and again.

In turn two threads that make the same run, and two processes whose captures share content, from the first table on.
"""

import json
import random
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from tests.proof.part import Report, counted
from tests.tools.processes import start_audit, wait_until
from tests.tools.scene import EARLIER, LATER, WORDS, Scene, Tables, differences, duplicates, settings
from txn_analysis.pipeline import steps as pipeline
from txn_analysis.tables import INPUTS, LOG_BATCHES, RUNS

_LONGEST_DELAY_S = 2.0
_CONTENTS, _SHARED_CONTENTS = 7, 5  # of LATER, and of EARLIER, which are all in LATER


@dataclass
class PairReport(Report):
    """What came of pairs of audits."""

    tried: int = counted("pairs of audits tried")


def run_pairs(count: int, seed: int, scene: Scene) -> PairReport:
    """Let `count` pairs of audits meet, each in a warehouse of its own, with a random head start for one of them."""
    report = PairReport()
    for number in range(count):
        delay_s = random.Random(f"{seed}/{number}").uniform(0, _LONGEST_DELAY_S)
        meet = two_processes if number % 2 else two_threads
        warehouse = scene.folder / f"pair-{number}"
        found = meet(scene, warehouse, delay_s)
        scene.remove(warehouse)
        report.tried += 1
        what = meet.__name__.replace("_", " ")
        report.problems += [f"seed {seed}, pair {number}, {what} {delay_s:.1f} s apart: {p}" for p in found]
    return report


def two_threads(scene: Scene, warehouse: Path, delay_s: float = 0) -> list[str]:
    """What is wrong after the same audit was made twice at once, beside an earlier run."""
    scene.copied_to(warehouse)

    def made(after_s: float) -> object:
        time.sleep(after_s)
        return scene.audit(warehouse)

    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(made, (0, delay_s))
    return [*(["the reports differ"] if first != second else []), *differences(scene.rows(warehouse), scene.after)]


def two_processes(scene: Scene, warehouse: Path, delay_s: float = 0) -> list[str]:
    """What is wrong after two captures that share content were audited at once, in a warehouse that both make."""
    other = start_audit(EARLIER, warehouse, "--cluster", "other", *WORDS)
    wait_until(
        lambda: any(warehouse.glob("*/_delta_log/0*.json")) or other.poll() is not None, "the other audit's first table"
    )
    time.sleep(delay_s)
    pipeline.audit(scene.spark, LATER, settings(warehouse))
    _, errors = other.communicate()
    if other.returncode:
        return [f"the other audit failed: {errors[-2000:]}"]
    found = scene.rows(warehouse)
    return [*duplicates(found), *_miscounted(found)]


def _miscounted(found: Tables) -> list[str]:
    inputs = [json.loads(row) for row in found[INPUTS.name]]
    contents = {(row["input_id"], row["ingest_id"]) for row in inputs}
    reads = {json.loads(row)["ingest_id"] for row in found[LOG_BATCHES.name]}
    numbers = sorted(json.loads(row)["run_number"] for row in found[RUNS.name])
    expected = {
        f"runs are numbered {numbers}": numbers == [1, 2],
        f"{len(inputs)} inputs": len(inputs) == _CONTENTS + _SHARED_CONTENTS,
        f"{len(contents)} readings of {_CONTENTS} contents count": len(contents) == _CONTENTS,
        "batches of a reading that does not count": reads <= {ingest_id for _, ingest_id in contents},
    }
    return [problem for problem, is_right in expected.items() if not is_right]
