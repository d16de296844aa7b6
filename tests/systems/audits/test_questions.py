"""What is asked of a finished run is read without Spark, and a bucket gives the same answers, byte by byte."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.golden.cases import CASES, questions
from tests.tools.captures import FIND_HANGING, SEGMENTS, AuditOf, Variant, WarehouseOf
from tests.tools.program import Done, program
from tests.tools.repository import ROOT
from tests.tools.s3_server import Bucket
from tests.tools.sessions import no_session

LIVE = Variant("kafka-4.2/capture-1", SEGMENTS)
VERSION_2 = Variant("kafka-4.2-tv2/capture-1", SEGMENTS)
STALE = Variant("kafka-4.2-edge/capture-2", (*SEGMENTS, "producer-snapshots"))

DEMO = next(case for case in CASES if case.name == "demo")
REFUSED = (
    "explain --group payroll",
    "explain --transactional-id nobody",
    "list --topic order",
    "find-hanging --producer-id 77",
    "explain orders-0@1",
    "describe --transactional-id nobody",
    "report --run run-1",
    "report --topic order",
)
FILTERED = (
    "list --state ongoing --coordinator __transaction_state-1",
    "ended --cause coordinator_timeout",
    "ended --by id --since 2026-11-21T02:59:00Z --format json",
    "report --topic orders --format json",
    "explain --topic orders --format json",
    "explain --producer-id 1002 --format json",
    "abort-plan --expired --topic orders --transactional-id billing-worker-17 --format commands",
)
# What the golden files show of a folder, and what none of them asks.
OF_THE_LIVE_ONE = (*(" ".join(question.words) for question in questions(DEMO)), *FILTERED, *REFUSED)
QUESTIONS = [
    *((LIVE, words) for words in (*OF_THE_LIVE_ONE, "report --format html")),
    *((STALE, words) for words in ("explain --group billing-readers", "ended --stale", "report --format html")),
    (VERSION_2, "ended --outcome any --format json"),
    (FIND_HANGING, "list"),
]
# The others are asked of a bucket's rows by `make cluster`.
QUICK = {(VERSION_2, "ended --outcome any --format json")}
# Loaded by Python before anything else: nobody starts a process, and there is no Spark.
NO_SPARK = """
import sys

class NoSpark:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"pyspark", "py4j", "delta"}:
            raise AssertionError(f"{name} is imported")

def refuse(event, _):
    if event in {"subprocess.Popen", "os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn", "os.system"}:
        raise AssertionError(f"{event}: a process is started")

sys.meta_path.insert(0, NoSpark())
sys.addaudithook(refuse)
"""
WITHOUT_SPARK = (*(words for words in OF_THE_LIVE_ONE if words.endswith("--format text")), "report --format html")
# One process answers all of them, as `python -m txn_analysis` would: its start is most of what a question takes.
ONE_AFTER_ANOTHER = """
import contextlib, io, json, sys

from txn_analysis.__main__ import main

answers = []
for words in json.loads(sys.argv[1]):
    out, err = io.StringIO(), io.StringIO()
    sys.argv = ["txn-analysis", *words]
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = main()
        except SystemExit as ended:
            code = ended.code
    answers.append((int(code or 0), out.getvalue(), err.getvalue()))
print(json.dumps(answers))
"""
_PROGRESS = re.compile(r"^txn-analysis: .*\n", re.MULTILINE)

IN_BUCKET = "s3://kept/audits"


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Done]:
    """Exit code, stdout and stderr of a command in this process, which starts no Spark."""

    def answer(words: list[str]) -> Done:
        with monkeypatch.context() as patched:
            patched.setattr("txn_analysis.cli.spark.spark_session", no_session)
            done = program(*words)
        return done._replace(err=_PROGRESS.sub("", done.err))

    return answer


@pytest.mark.parametrize(
    ("variant", "words"),
    [pytest.param(*asked, marks=[] if asked in QUICK else [pytest.mark.cluster]) for asked in QUESTIONS],
    ids=lambda part: getattr(part, "name", part),
)
def test_a_bucket_gives_the_same_answer(
    audit_of: AuditOf,
    warehouse_of: WarehouseOf,
    asked: Callable[..., Done],
    bucket: Bucket,
    variant: Variant,
    words: str,
) -> None:
    audit_of(variant)
    warehouse = warehouse_of(variant)
    bucket.put_folder(Path(warehouse), "audits")
    here, there = (
        asked([*words.split(), "--warehouse", place, "--cluster", variant.name]) for place in (warehouse, IN_BUCKET)
    )
    assert (here[0], *(in_bucket(said, warehouse) for said in here[1:])) == there


def in_bucket(said: str, warehouse: str) -> str:
    """What is said of a folder, as it is said of the bucket; the page keeps words with hyphens in one line."""
    return said.replace(f'<span class="typed">{warehouse}</span>', IN_BUCKET).replace(warehouse, IN_BUCKET)


@pytest.mark.cluster  # every question, without a session that others share
def test_no_question_needs_spark_or_java(
    audit_of: AuditOf, warehouse_of: WarehouseOf, tmp_path: Path, asked: Callable[..., Done]
) -> None:
    audit_of(LIVE)
    (tmp_path / "sitecustomize.py").write_text(NO_SPARK)
    where = ["--warehouse", warehouse_of(LIVE), "--cluster", LIVE.name]
    commands = [[*words.split(), *where] for words in WITHOUT_SPARK]
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}:{ROOT}", "JAVA_HOME": "/nowhere", "PATH": "/nowhere"}
    found = subprocess.run(
        [sys.executable, "-c", ONE_AFTER_ANOTHER, json.dumps(commands)],
        env=environment,
        timeout=60,
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 0, found.stderr
    for command, (code, out, err) in zip(commands, json.loads(found.stdout), strict=True):
        assert (code, out, _PROGRESS.sub("", err)) == asked(command), command[0]
