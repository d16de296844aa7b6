"""Small dumps for tests of the plan, and the plan of a text in memory."""

from itertools import accumulate

from txn_analysis.reading.inputs.find_files import SourceFile
from txn_analysis.reading.inputs.planned_input import PlannedInput, plan_text
from txn_analysis.reading.inputs.survey import CHUNK_BYTES, survey_chunk

BATCH_SIZE = 100


def plan(text: bytes, chunk_bytes: int = CHUNK_BYTES) -> PlannedInput:
    """The plan of a plain file with this text."""

    def read(start: int, end: int) -> bytes:
        return text[max(0, start) : end]

    chunks = [survey_chunk(read, at, at + chunk_bytes) for at in range(0, len(text), chunk_bytes)]
    return plan_text(SourceFile("dump.txt", len(text)), None, [chunk for chunk in chunks if chunk is not None])


def dumping(folder: str, offset: int = 0, suffix: str = "log") -> bytes:
    name = f"{offset:020d}"
    header = f"Log starting offset: {offset}\n" if suffix == "log" else ""
    return f"Dumping {folder}/{name}.{suffix}\n{header}".encode()


def batch(offset: int, count: int, position: int) -> bytes:
    return (
        f"baseOffset: {offset} lastOffset: {offset + max(count, 1) - 1} count: {count} baseSequence: 0 lastSequence: 0 "
        f"producerId: 7 producerEpoch: 0 partitionLeaderEpoch: 0 isTransactional: true isControl: false "
        f"deleteHorizonMs: OptionalLong.empty position: {position} CreateTime: 1 size: {BATCH_SIZE} magic: 2 "
        f"compresscodec: none crc: 1 isvalid: true\n"
    ).encode()


def record(
    offset: int, key: bytes | None = b"k", value: bytes | None = b"v", *, printed: bool = True, headers: bytes = b""
) -> bytes:
    key_size, value_size = (-1 if content is None else len(content) for content in (key, value))
    sizes = b"keySize: %d valueSize: %d" % (key_size, value_size)
    line = b"| offset: %d CreateTime: 1 %s sequence: 0 headerKeys: [%s]" % (offset, sizes, headers)
    for label, content in ((b" key: ", key), (b" payload: ", value)):
        if printed and content is not None:
            line += label + content.decode(errors="replace").encode()
    return line + b"\n"


def shallow(folder: str, batches: int = 3, offset: int = 0) -> bytes:
    lines = (batch(offset + k, 1, BATCH_SIZE * k) for k in range(batches))
    return dumping(folder, offset) + b"".join(lines)


def deep(folder: str, *records: bytes, offset: int = 0) -> bytes:
    """One batch for each record line."""
    lines = (batch(offset + k, 1, BATCH_SIZE * k) + line for k, line in enumerate(records))
    return dumping(folder, offset) + b"".join(lines)


def starts(*sections: bytes) -> list[int]:
    """The byte where each of some joined sections begins."""
    return list(accumulate((len(section) for section in sections[:-1]), initial=0))
