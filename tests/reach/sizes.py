"""Large inputs in a bucket: headers alone or whole segments, dumps beside those of a disk, and very many objects.

Each is a part of `python -m tests.reach`, and a table of its own. Inputs are put where the server keeps its objects.
"""

from __future__ import annotations

import json
import sys
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

from benchmarks.dumps import MIB, write_dumps
from benchmarks.log_dirs import write_log_dir
from tests.reach.gateway import BUCKET, gateway
from tests.reach.processes import run, run_program
from tests.reach.reading import WAYS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from tests.reach.gateway import Gateway
    from tests.reach.processes import Ran
    from tests.reach.reading import Step

GIB = 1 << 30
_SEGMENTS = 8
_BATCH_BYTES = 16 << 10
_DELAYS = ("0ms", "30ms")
_MOST_HEADERS = 100_000  # eight segments at once, 30 ms for each header: six minutes for either step
_TURNS = 3
_SHARE_OF_HEADERS, _DUMPS_RATIO = 0.06, 1.3
_TINY_BATCH_BYTES = 200
_IN_A_FOLDER = 1000
_BASE_OFFSET_BYTES = 8  # a batch begins with it, and its checksum does not cover it


class Reading(NamedTuple):
    """What `tests.reach.reading` printed of a place."""

    steps: dict[str, Step]
    files: int
    bytes_per_request: int

    @property
    def bytes_read(self) -> int:
        """By all steps."""
        return sum(step[2] for step in self.steps.values())


def segments(folder: Path, size_bytes: int, ways: Sequence[str] = tuple(WAYS)) -> Iterator[str]:
    """A log directory in batches of 16 KiB, by headers alone, whole, and as the program decides; what did not hold."""
    batches = sum(
        write_log_dir(folder / f"objects/{BUCKET}/logs/{n}", size_bytes // _SEGMENTS, _BATCH_BYTES, seed=n)
        for n in range(_SEGMENTS)
    )
    print(f"\n{size_bytes / GIB:g} GiB in {batches} batches of 16 KiB, {_SEGMENTS} log directories")
    print("\n| added | way | step | s | requests | MiB read | of all bytes |\n|---|---|---|---:|---:|---:|---:|")
    for delay, way in product(_DELAYS, ways):
        if way == "headers" and delay != "0ms" and batches > _MOST_HEADERS:
            print(f"| {delay} | {way} | not run: one request for each batch, twice | | | | |")
            continue
        with gateway(folder, 7080, "-delay", delay) as server:
            found = _read(server, "logs", "--way", way)
        for name, (took_s, requests, sent, _) in found.steps.items():
            of_all = f"{sent / MIB:.1f} | {sent / size_bytes:.2%}"
            print(f"| {delay} | {way} | {name} | {took_s:.1f} | {requests} | {of_all} |", flush=True)
        # In less, most batches are the first or the last one of some producer, whose checksums are looked at.
        if way == "headers" and size_bytes >= GIB and found.bytes_read > _SHARE_OF_HEADERS * size_bytes:
            yield f"headers alone are {found.bytes_read / size_bytes:.1%} of the bytes"
        if way == "chosen" and found.bytes_read < size_bytes:
            yield f"with {delay} added headers were read alone, which takes longer"


def dumps(folder: Path, size_bytes: int) -> Iterator[str]:
    """Shallow dumps audited from a disk and from the bucket, in turns, and once more counted; what did not hold."""
    here = folder / "objects" / BUCKET / "dumps"
    write_dumps([(here, size_bytes - MIB)], 16)  # each file is somewhat longer: one GiB is the most of `--engine local`
    took = dict[str, list[tuple[float, float]]]()
    print("\n| 16 dumps, " + f"{size_bytes / GIB:g} GiB | s | CPU s |\n|---|---:|---:|")
    with gateway(folder) as server:
        for turn in range(_TURNS):
            for what, place in (("from a disk", str(here)), ("from the bucket", f"s3://{BUCKET}/dumps")):
                ran = _audited(server.uncounted, place, folder / f"{turn}{what[5:7]}")
                took.setdefault(what, []).append((ran.wall_s, ran.cpu_s))
                print(f"| {what} | {ran.wall_s:.1f} | {ran.cpu_s:.1f} |", flush=True)
                if ran.code:
                    yield f"dumps {what}: exit code {ran.code}: {ran.err[-400:]}"
        server.counts()
        _audited(server.environment, f"s3://{BUCKET}/dumps", folder / "counted")
        counts = server.counts()
    print(f"\n{counts.requests} requests, {counts.bytes_read / MIB:.0f} MiB")
    here_s, there_s = (map(min, zip(*turns, strict=True)) for turns in took.values())
    ratios = [there / own for there, own in zip(there_s, here_s, strict=True)]
    print(f"The better turns: {ratios[0]:.2f} times the seconds of the disk, {ratios[1]:.2f} times its CPU seconds")
    if min(ratios) > _DUMPS_RATIO:
        yield f"dumps from the bucket take {min(ratios):.2f} times as long"


def _audited(environment: dict[str, str], place: str, warehouse: Path) -> Ran:
    words = ("--engine", "local", "--exit-zero", "--quiet", "--warehouse", str(warehouse))
    return run(environment, "audit", place, *words)


def objects(folder: Path, count: int) -> Iterator[str]:
    """Very many tiny segments: listed, surveyed, read; what did not hold."""
    write_log_dir(folder / "one", _TINY_BATCH_BYTES, _TINY_BATCH_BYTES)
    segment = next((folder / "one").rglob("*.log")).read_bytes()[:_TINY_BATCH_BYTES]
    there = folder / "objects" / BUCKET / "many"
    for number in range(count):
        offset = number % _IN_A_FOLDER
        topic = there / f"tiny-{number // _IN_A_FOLDER}"
        topic.mkdir(parents=True, exist_ok=True)
        (topic / f"{offset:020}.log").write_bytes(offset.to_bytes(_BASE_OFFSET_BYTES) + segment[_BASE_OFFSET_BYTES:])
    print(f"\n{count} objects of {len(segment)} bytes, {_IN_A_FOLDER} in a folder")
    print("\n| added | step | s | requests | of each object | most memory, MiB |\n|---|---|---:|---:|---:|---:|")
    for delay in _DELAYS:
        with gateway(folder, 7080, "-delay", delay) as server:
            found = _read(server, "many")
        for name, (took_s, requests, _, most_mib) in found.steps.items():
            of_each = f"{requests / count:.2f} | {most_mib}"
            print(f"| {delay} | {name} | {took_s:.1f} | {requests} | {of_each} |", flush=True)
            if name != "list" and requests > 2 * count + 100:
                yield f"{name}: {requests / count:.2f} requests for each object"


def _read(server: Gateway, place: str, *words: str) -> Reading:
    program = (sys.executable, "-m", "tests.reach.reading", f"s3://{BUCKET}/{place}", *words)
    ran = run_program(server.environment, *program)
    assert ran.code == 0, ran.err[-2000:]
    found: dict[str, Any] = json.loads(ran.out)
    return Reading(**found)
