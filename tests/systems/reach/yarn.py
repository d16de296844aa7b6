"""From HDFS into HDFS by YARN: with the package on the nodes, and with all that it needs brought along.

Spark's event log must say that executors in YARN's containers ran the tasks of every phase.
"""

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.systems.reach.cells import CASES, KINDS, WORDS, Cells, stored
from tests.systems.reach.hadoop import Hadoop, hadoop
from tests.systems.reach.processes import COMMAND, run, run_program
from tests.systems.spark.event_logs import event_log_options, wrong_in_phases
from tests.tools.maven_jars import spark_jars
from tests.tools.repository import ROOT
from tests.tools.scene import Tables

_JOB = str(ROOT / "jobs/nightly_audit.py")
_PACKED_PYTHON = "./env/bin/python"  # in each container, where YARN unpacks the archive


def on_yarn(cells: Cells, folder: Path, expected: Mapping[str, Tables]) -> None:
    """In the command's own process, by YARN's containers, and with the driver in one of them."""
    with hadoop(folder) as servers:
        cases, confs = _ready(servers, sys.executable)
        own = {"PYSPARK_SUBMIT_ARGS": shlex.join([*confs, "pyspark-shell"]), "PYSPARK_PYTHON": sys.executable}
        for name in KINDS:
            for what, words in {
                "": [*COMMAND, "audit"],
                ", `--master yarn`": [*COMMAND, "audit", "--master", "yarn"],
                ", `spark-submit --deploy-mode cluster`": [*_submit(confs), _JOB],
            }.items():
                _row(cells, servers, (name, what, cases), words, expected[name], own)


def packed(folder: Path) -> list[str]:
    """The commands of docs/clusters.md that pack an environment, and an audit of which the nodes have Spark alone."""
    archive = _packed_environment(folder)
    cells = Cells()
    for name, parts in KINDS.items():
        here = str(folder / "warehouses" / name)
        run({}, "audit", *(f"{CASES}/{part}" for part in parts), *WORDS, "--warehouse", here)
        expected = stored(here, str(CASES))
        with hadoop(folder / f"hadoop-{name}") as servers:
            cases, confs = _ready(servers, _PACKED_PYTHON)
            words = [*_submit(confs), "--archives", f"{archive}#env", _JOB]
            where = (name, ", `spark-submit --deploy-mode cluster`, a packed environment", cases)
            _row(cells, servers, where, words, expected, {})
    return cells.wrong


def _packed_environment(folder: Path) -> Path:
    made, archive = folder / "audit-env", folder / "audit-env.tar.gz"
    constraints = str(ROOT / "constraints.txt")
    for words in (
        [sys.executable, "-m", "venv", str(made)],
        [str(made / "bin/pip"), "install", "--quiet", "-c", constraints, str(ROOT), "venv-pack", "setuptools<81"],
        [str(made / "bin/venv-pack"), "-p", str(made), "-o", str(archive)],
    ):
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL, cwd=folder)
    return archive


def _ready(servers: Hadoop, python: str) -> tuple[str, list[str]]:
    """The captures in the file system, and Spark's settings for containers that run this Python."""
    os.environ.update(servers.environment)
    servers.put(CASES / "kafka-4.2", "/cases")
    options = {
        "spark.executor.instances": "1",
        "spark.executor.memory": "1g",
        "spark.yarn.stagingDir": f"{servers.uri}/staging",
        "spark.yarn.appMasterEnv.PYSPARK_PYTHON": python,
        "spark.yarn.appMasterEnv.HADOOP_CONF_DIR": str(servers.configuration),
        "spark.executorEnv.PYSPARK_PYTHON": python,
        "spark.executorEnv.HADOOP_CONF_DIR": str(servers.configuration),
        **event_log_options(_events(servers)),
    }
    return f"{servers.uri}/cases", [word for key, value in options.items() for word in ("--conf", f"{key}={value}")]


def _events(servers: Hadoop) -> Path:
    return servers.configuration.with_name("events")


def _submit(confs: Sequence[str]) -> list[str]:
    return [str(spark_jars().parent / "bin/spark-submit"), "--master", "yarn", "--deploy-mode", "cluster", *confs]


def _row(
    cells: Cells,
    servers: Hadoop,
    where: tuple[str, str, str],
    words: Sequence[str],
    expected: Tables,
    own: Mapping[str, str],
) -> None:
    """One line of the table: the audit of a kind of input by a program, from and into HDFS."""
    name, what, cases = where
    paths = [f"{cases}/{part.removeprefix('kafka-4.2/')}" for part in KINDS[name]]
    warehouse = f"{servers.uri}/warehouses/{len(what)}-{name}"
    ran = run_program({**servers.environment, **own}, *words, *paths, *WORDS, "--warehouse", warehouse)
    found = stored(warehouse, f"{cases}/") if ran.code == 0 else {}
    is_right, by_spark = found == _below(expected, "CASES/kafka-4.2/"), bool(what)  # else in the command's own process
    elsewhere = wrong_in_phases(_events(servers)) if is_right and by_spark else []
    said = "equal tables, each phase in tasks of executors" if by_spark else "equal tables"
    cells.row(f"{name} in HDFS, warehouse in HDFS{what}", ran, is_right=is_right and not elsewhere, said=said)
    cells.wrong += elsewhere
    shutil.rmtree(_events(servers))
    _events(servers).mkdir()


def _below(rows: Tables, folder: str) -> Tables:
    return {name: sorted(row.replace(folder, "CASES") for row in some) for name, some in rows.items()}
