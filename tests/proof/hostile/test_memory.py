"""Big hostile files cost time in proportion, and memory up to a bound that does not depend on their size."""

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa
import pytest

from tests.proof.hostile.texts import JSON_RECORD, STATE_RECORD
from tests.tools.dump_texts import batch, dumping

Measure = Callable[[Path], dict[str, int]]

MIB = 1 << 20
# A task holds one range (32 MiB) and at most 32 MiB behind it, and copies parts of that a few times: the text, the
# record lines, the columns. A record of the state is held up to 16 MiB, as bytes and as text.
BOUND_MIB = 450
DEADLINE_S = 240
# Reads each file that it is told of in a process forked for it, so that only one has to import all that reads.
_SERVER = """
import json, os, resource, sys
from tests.tools.inputs import RANGE_BYTES, _read
from txn_analysis.reading.inputs.find_files import find_files
import pyarrow.compute, pyarrow.csv

def measure(path):
    (file,) = find_files([path])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found = _read(file, RANGE_BYTES)
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {
        "mib": (after - before) / 1024,
        "text_bytes": found.planned.text_bytes,
        "rejected_bytes": sum(r.length_bytes for r in found.rejects),
        "unaccounted_bytes": found.unaccounted_bytes,
        "problem": found.planned.problem,
    }

for line in sys.stdin:
    child = os.fork()
    if not child:
        print(json.dumps(measure(line.rstrip("\\n"))), flush=True)
        os._exit(0)
    if os.waitpid(child, 0)[1]:
        sys.exit(f"no answer about {line}")
"""


def repeated(file: BinaryIO, start: bytes, filler: bytes, mib: int, end: bytes = b"\n") -> None:
    file.write(start)
    block = filler * (MIB // len(filler))
    file.writelines(block for _ in range(mib))
    file.write(end)


LOG = dumping("orders-0") + batch(0, 1, 0)
RECORD = b"| offset: 0 CreateTime: 1 keySize: 1 valueSize: %d sequence: 0 headerKeys: [] key: k payload: "
STATE = dumping("__transaction_state-0") + batch(0, 1, 0)
LINES = {
    "a payload of 100 MB": (LOG + RECORD % (100 * MIB), b"x"),
    "a line of 100 MB in a log": (LOG, b"x"),
    "a batch line of 100 MB": (LOG + b"baseOffset: ", b"1"),
    "a line of 100 MB in the state": (STATE + STATE_RECORD, b"x"),
    "an id of 100 MB in the state": (STATE + STATE_RECORD.partition(b"=")[0] + b"=", b"x"),
    "a line of 100 MB in an export": (b"a::NULL\n", b"x"),
    "a string of 100 MB in JSON": (JSON_RECORD + b'{"key":"', b"x"),
    "100 MB of empty lines": (LOG, b"\n"),
    "a path of 100 MB": (LOG + b"Dumping ", b"a"),
}


@pytest.fixture(scope="module")
def measure() -> Iterator[Measure]:
    """What a process of its own needs to read a file by the product's functions."""
    with subprocess.Popen(
        [sys.executable, "-c", _SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdin
        assert server.stdout
        said, asked = server.stdout, server.stdin

        def measured(path: Path) -> dict[str, int]:
            deadline = threading.Timer(DEADLINE_S, server.kill)
            deadline.start()
            print(path, file=asked, flush=True)
            answer = said.readline()
            deadline.cancel()
            found: dict[str, int] = json.loads(answer)
            return found

        yield measured
        asked.close()


# `make test` reads one of the longest lines and one bomb, `make cluster` all of them.
QUICK = "a line of 100 MB in a log"


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name == QUICK else [pytest.mark.cluster]) for name in LINES]
)
def test_a_line_of_any_length_is_read_in_bounded_memory(measure: Measure, tmp_path: Path, name: str) -> None:
    with (tmp_path / "dump.txt").open("wb") as file:
        repeated(file, *LINES[name], mib=100)
    measured = measure(tmp_path / "dump.txt")
    assert measured["unaccounted_bytes"] == 0
    assert measured["mib"] < BOUND_MIB


@pytest.mark.parametrize(
    ("compressed", "start", "filler"),
    [
        pytest.param("gzip", b"", b"\x00", marks=pytest.mark.cluster),
        pytest.param("zstd", LOG, b"\n", marks=pytest.mark.cluster),
        pytest.param("gzip", LOG, b"x", marks=pytest.mark.cluster),
    ],
)
def test_a_bomb_is_read_in_bounded_memory(
    measure: Measure, tmp_path: Path, compressed: str, start: bytes, filler: bytes
) -> None:
    path = tmp_path / "bomb"
    with pa.output_stream(str(path), compression=compressed) as file:
        repeated(file, start, filler, mib=260)
    measured = measure(path)
    assert path.stat().st_size < 4 * MIB
    assert measured["text_bytes"] >= 256 * MIB  # up to which no packed text is refused
    assert measured["unaccounted_bytes"] == 0
    assert measured["mib"] < BOUND_MIB
