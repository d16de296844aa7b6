"""What a question to a finished run costs, beside Kafka's own tool and an earlier version: each a whole process.

`python -m benchmarks.questions` audits a real capture, and makes a warehouse of 30 runs, the last of 4 GiB of dumps; it
writes its section of `benchmarks/RESULTS.md`. `--before FOLDER` has the checkout of an earlier version answer as well.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks import results
from benchmarks.audits import audit
from benchmarks.bench import GIB
from benchmarks.dumps import write_dumps
from benchmarks.kafka_tool import BROKER_VERSION, find_hanging, transactions_help
from benchmarks.processes import fastest
from benchmarks.report import machine, table, today
from benchmarks.steps import OF_TINY, PARTITIONS, TINY
from benchmarks.versions import THIS, Version
from tests.systems.e2e.broker import Cluster

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from benchmarks.processes import Finished

    Actions = Mapping[str, Callable[[], Finished]]

_MIB = 2**20
_TEXT = """## Questions

Written by `{command}`{before} on {day}, on {machine}. Each is a whole process, from its start to its end, with the
most memory that it had: the fastest of its runs. Small: a real capture of 0.8 MB. Large: {runs} runs, the last of
{gib:g} GiB of dumps. Kafka's tool asks a broker of Kafka {broker} on the same machine."""


def questions(warehouse: Path) -> dict[str, list[str]]:
    """The words of each question; what is asked about one transaction is about the first finding of the last run."""
    report = json.loads(THIS.run("report", "--format", "json", "--warehouse", warehouse, "--exit-zero").stdout)
    first = report["findings"][0]
    place = ["--topic", first["topic"], "--partition", str(first["partition"])]
    known_id = next((f["transactional_id"] for f in report["findings"] if f["transactional_id"]), None)
    words = {
        "find-hanging": [],
        "list": [],
        "describe": ["--transactional-id", known_id] if known_id else None,
        "describe-producers": place,
        "explain": [f"{first['topic']}-{first['partition']}@{first['txn_start_offset']}"],
        "query": ["SELECT topic, outcome, count(*) AS n FROM ended GROUP BY topic, outcome"],
        "ended": [],
        "ended --outcome any": [],
        "ended --stale": [],
        "abort-plan": [],
        "verify": [],
        "report": [],
        "report --format json": [],
        "report --format html": ["--output", str(warehouse.with_suffix(".html"))],
    }
    return {name: [*name.split(), *own] for name, own in words.items() if own is not None}


def large_warehouse(folder: Path, gib: float, runs: int) -> Path:
    """A warehouse of so many runs: small ones of one capture, and at last one of large dumps."""
    warehouse, dumps = folder / "large", folder / "dumps"
    write_dumps([(dumps, int(gib * GIB))], PARTITIONS)
    for number in range(runs - 1):
        audit(TINY, warehouse, *OF_TINY, str(number))  # by another skew it is another run
    audit([dumps], warehouse)
    return warehouse


def asked(words: Mapping[str, list[str]], warehouse: Path, by: Version, repeats: int) -> dict[str, Finished]:
    """The fastest run of each question."""
    of = ("--warehouse", warehouse, "--exit-zero")
    # The captures are old; earlier versions print the plan all the same.
    late = {"abort-plan": ["--expired"]} if by is THIS else {}
    return fastest({name: partial(by.run, *own, *late.get(name, ()), *of) for name, own in words.items()}, repeats)


def kafkas(folder: Path, repeats: int) -> dict[str, Finished]:
    """The fastest run of Kafka's tool, by what it is asked.

    Raises:
        FetchError: Kafka is not to be had here.
    """
    cluster = Cluster(BROKER_VERSION, folder / "kafka")
    try:
        cluster.start()
        cluster.create_topic("orders", [(0,)] * 3)
        actions: Actions = {
            "kafka-transactions.sh --help": transactions_help,
            "kafka-transactions.sh find-hanging": lambda: find_hanging(cluster.bootstrap),
        }
        return fastest(actions, repeats)
    finally:
        cluster.stop()


def measured(chosen: argparse.Namespace, folder: Path) -> dict[str, dict[str, Finished]]:
    """The columns of the table."""
    small, columns = folder / "small", {}
    audit(TINY, small, *OF_TINY, "0")
    words = questions(small)
    if chosen.before:
        before = Version(chosen.before)
        audit(TINY, folder / "earlier", *OF_TINY, "0", by=before)
        columns["before, small"] = asked(words, folder / "earlier", before, 1)  # it takes many seconds for each
    columns["now, small"] = asked(words, small, THIS, chosen.repeats)
    large = large_warehouse(folder, chosen.gib, chosen.runs)
    columns["now, large"] = asked(questions(large), large, THIS, chosen.repeats)
    columns["Kafka"] = kafkas(folder, chosen.repeats)
    return columns


def section(chosen: argparse.Namespace, columns: Mapping[str, Mapping[str, Finished]]) -> str:
    """The section of the page."""
    verbs = dict.fromkeys(name for found in columns.values() for name in found)
    rows = [(f"`{verb}`", *[_cell(found, verb) for found in columns.values()]) for verb in verbs]
    head = _TEXT.format(
        command=f"python -m benchmarks.questions --gib {chosen.gib:g} --runs {chosen.runs} --repeats {chosen.repeats}",
        before=" and `--before` a checkout" if chosen.before else "",
        day=today(),
        machine=machine(),
        runs=chosen.runs,
        gib=chosen.gib,
        broker=BROKER_VERSION,
    )
    return f"{head}\n\n{table(['verb', *columns], rows)}"


def _cell(found: Mapping[str, Finished], name: str) -> str:
    one = found.get(name)
    return "" if one is None else f"{one.seconds:.2f} s, {one.peak_memory_bytes / _MIB:.0f} MiB"


def main() -> None:
    """Measure, print, and write the section."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.questions", description=__doc__)
    parser.add_argument("--gib", type=float, default=4, help="of dumps in the last run of the large warehouse [4]")
    parser.add_argument("--runs", type=int, default=30, help="of the large warehouse [30]")
    parser.add_argument("--repeats", type=int, default=3, help="run each so often; the fastest counts [3]")
    parser.add_argument("--before", type=Path, help="folder with a checkout of an earlier version")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = section(chosen, measured(chosen, Path(folder)))
    print(found)
    results.write(found)


if __name__ == "__main__":
    main()
