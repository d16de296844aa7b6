"""The commands for dumping a broker take what an audit reads, with the decoder that it needs, and nothing else."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.tools.docs.commands import blocks_of
from tests.tools.kafka_jars import VERSIONS
from tests.tools.repository import ROOT

FIRST = "00000000000000000000"
STATE = f"__transaction_state-7/{FIRST}.log"
READ = (
    f"orders-0/{FIRST}.log",
    f"orders-0/{FIRST}.snapshot",
    f"my-topic.v2-13/{FIRST}.log",
    f"__consumer_offsets-3/{FIRST}.log",
)
LEFT = (
    f"orders-0/{FIRST}.index",
    f"orders-1.0f8e2c1aab3d4f0c9e2f1b7a5d6c8e90-delete/{FIRST}.log",
    f"orders-2.0f8e2c1aab3d4f0c9e2f1b7a5d6c8e90-stray/{FIRST}.log",
    f"__cluster_metadata-0/{FIRST}.log",
    "meta.properties",
)


@pytest.fixture
def dumped(tmp_path: Path) -> Path:
    """The folder in which the page's commands were run, of a broker that is a folder of this machine."""
    for name in (STATE, *READ, *LEFT):
        file = tmp_path / "kafka" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    tool = tmp_path / "bin/kafka-dump-log.sh"
    tool.parent.mkdir()
    tool.write_text('#!/bin/sh\necho "$@"\n')
    tool.chmod(0o755)
    page = (ROOT / "docs/dumps.md").read_text(encoding="utf-8")
    script = "".join(block for block in blocks_of(page) if "find " in block).replace("/var/lib/kafka/", "kafka/")
    path = f"{tool.parent}:{os.environ['PATH']}"
    subprocess.run(["sh", "-eu", "-c", script], cwd=tmp_path, env=os.environ | {"PATH": path}, check=True)
    return tmp_path


def test_logs_and_snapshots_of_partitions_are_dumped(dumped: Path) -> None:
    lines = (dumped / "segments/broker-1.txt").read_text().splitlines()
    assert sorted(lines) == sorted(f"--files kafka/{name}" for name in READ)


def test_the_state_is_dumped_with_its_decoder(dumped: Path) -> None:
    assert (dumped / "state/broker-1.txt").read_text() == f"--transaction-log-decoder --files kafka/{STATE}\n"


def test_the_page_names_the_versions_that_were_run() -> None:
    page = (ROOT / "docs/dumps.md").read_text(encoding="utf-8")
    rows = {line.split("|")[1].strip(): line.split("|")[3] for line in page.splitlines() if line.startswith("| ")}
    brokers, tools = (
        next(row for what, row in rows.items() if part in what) for part in ("log directories", "shallow")
    )
    assert re.findall(r"\d+\.\d+\.\d+", brokers.partition("(`make e2e`)")[0]) == [*VERSIONS]
    printed = sorted(folder.name for folder in (ROOT / "data/cases/grammar").iterdir())
    assert re.findall(r"\d+\.\d+\.\d+", tools) == printed
