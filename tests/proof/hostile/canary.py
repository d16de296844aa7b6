"""Marked secrets in all that is no data of the audit, and a search for them in everything that it leaves behind."""

import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path

import pyarrow.parquet as pq

from tests.proof.hostile.scenes import TOOLS, copied
from tests.proof.part import Report, counted, never
from tests.tools.forms.dump_writer import Tool
from tests.tools.forms.model import Batch, History, Record

OPTIONS = (
    *("--transaction-state-partitions", "4", "--max-clock-skew-ms", "0", "--state-copied-last"),
    *("--transaction-state-complete", "--skip-unrecognised", "--exit-zero", "--debug"),
)
ANSWERED = {0, 1, 3}
VERBS = (
    ("report",),
    ("report", "--format", "json"),
    ("abort-plan", "--expired", "--format", "ndjson"),
    ("abort-plan", "--expired", "--format", "commands"),
    ("abort-plan", "--expired", "--format", "write-txn-markers"),
    ("describe-producers", "--topic", "orders", "--partition", "0"),
    ("list",),
    ("ended", "--by", "id", "--format", "json"),
    ("report", "--format", "markdown"),
)
# Runs commands with their outputs in files, and prints their exit codes.
_CHILD = """
import json, os, sys
from txn_analysis.engine import memory
from txn_analysis.cli.main import app

memory.MEMORY_BYTES = -1  # in Spark's tasks, which leave files as well

codes, own = {}, [os.dup(1), os.dup(2)]
for name, words in json.loads(sys.argv[1]).items():
    for number, end in ((1, "out"), (2, "err")):
        file = os.open(f"{sys.argv[2]}/{name}.{end}", os.O_WRONLY | os.O_CREAT)
        os.dup2(file, number)
        os.close(file)
    try:
        app(words, prog_name="txn-analysis")
    except SystemExit as ended:
        codes[name] = ended.code
    sys.stdout.flush()
    sys.stderr.flush()
os.dup2(own[0], 1)
os.dup2(own[1], 2)
print(json.dumps(codes))
"""


@dataclass
class CanaryReport(Report):
    """Each problem is a secret that was found: its kind and the place."""

    planted: int = counted("secrets planted", least=1)
    searched_bytes: int = counted("bytes searched")
    searched_files: int = counted("files searched")
    found: int = never("secrets found")


class Secrets:
    """Random words that stand for clients' data, each with the kind of place that it was put in."""

    def __init__(self, seed: int) -> None:
        """Repeatable by the seed."""
        self._source = random.Random(seed)
        self._numbers = count()
        self.kinds: dict[str, str] = {}

    def new(self, kind: str) -> str:
        """One more secret; all begin alike, and no text of anything else holds such a word."""
        word = f"cnry{self._source.getrandbits(64):016x}{next(self._numbers):04d}"
        self.kinds[word] = kind
        return word


def run_canary(folder: Path, seed: int, verbs: tuple[tuple[str, ...], ...] = VERBS) -> CanaryReport:
    """Audits files that are full of secrets, asks for every output, and searches all that was written."""
    secrets = Secrets(seed)
    capture, temporary, outputs = (folder / name for name in ("capture", "temporary", "outputs"))
    for path in (temporary, outputs):
        path.mkdir(parents=True)
    warehouse = folder / "warehouse"
    clusters = {"spoiled": _spoiled_files(secrets)}
    clusters |= {f"tool-{number}": _whole_files(secrets, tool) for number, tool in enumerate(TOOLS.values())}
    clusters["default"] = _whole_files(secrets, Tool((4, 0)))
    commands = {}
    for cluster, files in clusters.items():
        (capture / cluster).mkdir(parents=True)
        for name, data in files.items():
            (capture / cluster / name).write_bytes(data)
        commands[f"audit-{cluster}"] = ["audit", str(capture / cluster), *OPTIONS, "--cluster", cluster]
    commands |= {f"verb-{number}": [*asked] for number, asked in enumerate(verbs)}
    _run({name: [*words, "--warehouse", str(warehouse)] for name, words in commands.items()}, temporary, outputs)
    report = CanaryReport(planted=len(secrets.kinds))
    for root in (warehouse, temporary, outputs):
        _search(root, secrets, report)
    return report


def _run(commands: dict[str, list[str]], temporary: Path, outputs: Path) -> None:
    """The commands in one process, as Java takes seconds to start; each with outputs of its own."""
    environment = os.environ | {"TMPDIR": str(temporary), "SPARK_LOCAL_DIRS": str(temporary)}
    done = subprocess.run(
        [sys.executable, "-c", _CHILD, json.dumps(commands), str(outputs)],
        check=False,
        capture_output=True,
        env=environment,
    )
    (outputs / "process.out").write_bytes(done.stdout)
    (outputs / "process.err").write_bytes(done.stderr)
    if done.returncode:
        raise RuntimeError(f"the commands failed: {done.stderr.decode(errors='replace')[-2000:]}")
    codes = json.loads(done.stdout)
    for name, words in commands.items():
        if codes.get(name) not in ANSWERED or not (outputs / f"{name}.out").stat().st_size:
            said = (outputs / f"{name}.err").read_text(errors="replace")
            raise RuntimeError(f"{' '.join(words)} failed: {said[-2000:]}")


def _search(root: Path, secrets: Secrets, report: CanaryReport) -> None:
    for path in sorted(file for file in root.rglob("*") if file.is_file()):
        report.searched_files += 1
        for place, data in _contents(path):
            report.searched_bytes += len(data)
            found = [f"{kind} in {place}" for word, kind in secrets.kinds.items() if word.encode() in data]
            report.found += len(found)
            report.problems += found


def _contents(path: Path) -> Iterator[tuple[str, bytes]]:
    """The bytes of a file, and what they hold in a packed form: the columns and the statistics of Parquet."""
    yield str(path), path.read_bytes()
    if path.suffix != ".parquet":
        return
    file = pq.ParquetFile(path)
    for name, column in zip(file.schema_arrow.names, file.read().columns, strict=True):
        yield f"{path}, {name}", str(column.to_pylist()).encode(errors="surrogateescape")
    metadata = file.metadata
    groups = (metadata.row_group(g) for g in range(metadata.num_row_groups))
    statistics = [group.column(c).statistics for group in groups for c in range(group.num_columns)]
    yield f"{path}, statistics", str([s.to_dict() for s in statistics if s is not None]).encode()


def _whole_files(secrets: Secrets, tool: Tool) -> dict[str, bytes]:
    """A capture that is understood, whose records hold secrets; one of its transactions hangs."""
    copy = copied()
    return replace(copy, logs=tuple(_with_secrets(log, secrets) for log in copy.logs)).files(tool)


def _spoiled_files(secrets: Secrets) -> dict[str, bytes]:
    """Files that are understood in part, or not at all."""
    copy = copied()
    files = {
        name: _surrounded(text, secrets) if name.startswith("__transaction") else text
        for name, text in copy.files(Tool((4, 0), payload=True)).items()
    }
    stray = f"{secrets.new('line of an export')} {secrets.new('line of an export')}\n"
    files["console.txt"] = copy.console(as_json=False) + stray.encode()
    stray = f'{{"key":{{"{secrets.new("key of an object")}":1}},"value":"{secrets.new("value of an object")}"}}'
    files["console.json"] = copy.console(as_json=True) + stray.encode()
    files["notes.txt"] = f"{secrets.new('file of no known kind')}\n".encode()
    files["cut.txt"] = files["orders-0.txt"] + f"baseOffset: {secrets.new('torn line')}".encode()
    files["stray.txt"] = files["payments-eu-0.txt"] + f"{secrets.new('line of a log')}\n".encode()
    return files


def _surrounded(data: bytes, secrets: Secrets) -> bytes:
    """The dump with lines of no known kind between its batches, and one like a record's with bad content."""
    first, *others = data.split(b"\nbaseOffset: ")
    stray = f"\n{secrets.new('stray line of the state')}\n| offset: x {secrets.new('stray record of the state')}"
    return b"\nbaseOffset: ".join([first, *(other + stray.encode() for other in others[:1]), *others[1:]])


def _with_secrets(history: History, secrets: Secrets) -> History:
    return replace(
        history,
        segments=tuple(
            replace(segment, batches=tuple(_batch_with_secrets(batch, secrets) for batch in segment.batches))
            for segment in history.segments
        ),
    )


def _batch_with_secrets(batch: Batch, secrets: Secrets) -> Batch:
    if batch.is_control:
        return batch
    return replace(batch, records=tuple(_record_with_secrets(record, secrets) for record in batch.all_records()))


def _record_with_secrets(record: Record, secrets: Secrets) -> Record:
    key = secrets.new("key")
    payload = f"{secrets.new('payload')}\n{secrets.new('payload')}\nbaseOffset: {secrets.new('payload')} lastOffset: 0"
    header_keys = ",".join(secrets.new("header key") for _ in range(2))
    sized = replace(record, key_bytes=len(key), value_bytes=len(payload))
    return replace(sized, key=key, payload=payload, header_keys=header_keys)
