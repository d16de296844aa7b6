"""Large, valid `kafka-dump-log` texts (4.2 grammar), shallow or deep: one file per segment.

`python -m benchmarks.dumps FOLDER 1024 16` writes one set.
"""

import os
import sys
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.batches import (
    COORDINATOR_EPOCH,
    LEADER_EPOCH,
    PRODUCER_EPOCH,
    Batches,
    Ints,
    Partition,
    Shape,
)

Words = Any  # an Arrow array of strings; pyarrow carries no types

TOPIC = "bench.orders"
MIB = 2**20

_MOST_BATCHES_AT_ONCE = 100_000
_LONGEST_SHALLOW_LINE = 400
_DEEP_RECORDS = 4
_LONGEST_DEEP_TEXT = _LONGEST_SHALLOW_LINE + _DEEP_RECORDS * 140
_BYTES_PER_RECORD = 100

SHALLOW = Shape((1, 199), lambda counts: 70 + _BYTES_PER_RECORD * counts)
DEEP = Shape((_DEEP_RECORDS, _DEEP_RECORDS), SHALLOW.size_bytes)


def write_dumps(folders: Sequence[tuple[Path, int]], partitions: int, *, is_deep: bool = False) -> list[Counter[str]]:
    """Write one segment of each partition into each folder, those of the second folder following those of the first.

    Args:
        folders: with the bytes of text that all files of a folder have together.
        partitions: files in a folder.
        is_deep: with a line for each record.

    Returns:
        Of each folder how many `batches` and `text_bytes` are in it.
    """
    for folder, _ in folders:
        folder.mkdir(parents=True, exist_ok=True)
    shares = [(folder, size_bytes // partitions) for folder, size_bytes in folders]
    write = partial(_write_partition, shares, is_deep=is_deep)
    with ProcessPoolExecutor(min(partitions, os.cpu_count() or 1)) as pool:
        written = list(pool.map(write, range(partitions)))
    return [sum(of_folder, Counter()) for of_folder in zip(*written, strict=True)]


def _write_partition(folders: Sequence[tuple[Path, int]], number: int, *, is_deep: bool) -> list[Counter[str]]:
    log = Partition(number, DEEP if is_deep else SHALLOW)
    return [write_segment(folder, log, size_bytes, is_deep=is_deep) for folder, size_bytes in folders]


def write_segment(folder: Path, log: Partition, size_bytes: int, *, is_deep: bool) -> Counter[str]:
    """Write the next segment of a partition, at most one batch longer than `size_bytes` of text.

    A deep dump needs a partition of the shape DEEP.
    """
    longest = _LONGEST_DEEP_TEXT if is_deep else _LONGEST_SHALLOW_LINE
    log.roll()
    name = f"{TOPIC}-{log.number}"
    first = f"{log.next_offset:020d}"
    with open(folder / f"{name}.{first}.txt", "wb") as out:
        head = f"Dumping /kafka/{name}/{first}.log\nLog starting offset: {log.next_offset}\n"
        written = Counter(text_bytes=out.write(head.encode()))
        while written["text_bytes"] < size_bytes:
            made = log.take(min(_MOST_BATCHES_AT_ONCE, (size_bytes - written["text_bytes"]) // longest + 1))
            text_bytes = append(out, _deep_text(made, log) if is_deep else batch_lines(made, log.checksums(len(made))))
            written += Counter(batches=len(made), text_bytes=text_bytes)
    return written


def append(out: BinaryIO, lines: Words) -> int:
    """Write an array of strings: in Arrow's memory they stand one behind the other already."""
    _, offsets, text = lines.buffers()
    places = np.frombuffer(offsets, dtype=np.int64)[lines.offset : lines.offset + len(lines) + 1]
    return out.write(memoryview(text)[places[0] : places[-1]])


def batch_lines(made: Batches, checksums: Ints) -> Words:
    """Batches as lines of a dump."""
    last_sequence = np.where(made.is_control, -1, (made.base_sequence + made.record_count - 1) % 2**31)
    return joined(
        "baseOffset: ", made.base_offset,
        " lastOffset: ", made.base_offset + made.record_count - 1,
        " count: ", made.record_count,
        " baseSequence: ", made.base_sequence,
        " lastSequence: ", last_sequence,
        " producerId: ", made.producer_id,
        f" producerEpoch: {PRODUCER_EPOCH} partitionLeaderEpoch: {LEADER_EPOCH} isTransactional: true isControl: ",
        either(made.is_control, "true", "false"),
        " deleteHorizonMs: OptionalLong.empty position: ", made.position,
        " CreateTime: ", made.timestamp_ms,
        " size: ", made.size_bytes,
        " magic: 2 compresscodec: ", either(made.is_control, "none", "lz4"),
        " crc: ", checksums,
        " isvalid: true\n",
    )  # fmt: skip


def _deep_text(made: Batches, log: Partition) -> Words:
    """Batch lines, each with the lines of its records, as `--deep-iteration` prints them."""
    marker = joined(
        "| offset: ", made.base_offset,
        " CreateTime: ", made.timestamp_ms,
        " keySize: 4 valueSize: 6 sequence: -1 headerKeys: [] endTxnMarker: ",
        either(made.is_commit, "COMMIT", "ABORT"),
        f" coordinatorEpoch: {COORDINATOR_EPOCH}\n",
    )  # fmt: skip
    records: list[Any] = []
    for number in range(_DEEP_RECORDS):
        records += [
            "| offset: ", made.base_offset + number,
            " CreateTime: ", made.timestamp_ms,
            " keySize: 12 valueSize: 88 sequence: ", (made.base_sequence + number) % 2**31,
            " headerKeys: [trace-id]\n",
        ]  # fmt: skip
    inside = pc.if_else(pa.array(made.is_control), marker, joined(*records))
    return joined(batch_lines(made, log.checksums(len(made))), inside)


def either(condition: Any, true: str, false: Words) -> Words:
    """One text, or where the condition does not hold another one, or the element of an array."""
    words = (pa.scalar(each, pa.large_string()) if isinstance(each, str) else each for each in (true, false))
    return pc.if_else(pa.array(condition), *words)


def joined(*parts: Any) -> Words:
    """The parts one behind the other: words are repeated, columns of numbers are printed."""
    words = [
        pa.scalar(part, pa.large_string())
        if isinstance(part, str)
        else pa.array(part).cast(pa.large_string())
        if isinstance(part, np.ndarray)
        else part
        for part in parts
    ]
    return pc.binary_join_element_wise(*words, pa.scalar("", pa.large_string()))


if __name__ == "__main__":  # python -m benchmarks.dumps FOLDER MIB PARTITIONS
    write_dumps([(Path(sys.argv[1]), int(sys.argv[2]) * MIB)], int(sys.argv[3]))
