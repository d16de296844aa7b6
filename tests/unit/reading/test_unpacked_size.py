"""A compressed file that unpacks to far more than any dump does is refused early; dumps are not."""

import gzip
from pathlib import Path

import pyarrow as pa
import pytest

from txn_analysis.errors import InputError
from txn_analysis.reading.inputs.find_files import SourceFile
from txn_analysis.reading.inputs.planned_input import PlannedInput, check_inputs, plan_text
from txn_analysis.reading.inputs.survey import CHUNK_BYTES
from txn_analysis.reading.inputs.survey_files import Piece, survey_piece
from txn_analysis.reading.text import text as texts
from txn_analysis.reading.text.text import GZIP, ZSTD

TEXT_BYTES = 4 * CHUNK_BYTES
RECORDS_PER_BATCH = 500


@pytest.fixture(autouse=True)
def no_text_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first 256 MiB of a text are read whatever they unpack from: too much for a test."""
    monkeypatch.setattr(texts, "FREE_TEXT_BYTES", 0)


def packed(text: bytes, compression: str) -> bytes:
    if compression == GZIP:
        return gzip.compress(text)
    by_zstd: bytes = pa.Codec(ZSTD, 9).compress(text, asbytes=True)
    return by_zstd


def planned(file: Path, compression: str) -> PlannedInput:
    source = SourceFile(str(file), file.stat().st_size)
    found = [facts for _, facts in survey_piece(Piece(0, source, 0, None, compression))]
    return plan_text(source, compression, found)


def deep_dump_without_keys(payload: str = "") -> bytes:
    """Large batches of equal records without a producer: nothing differs but offsets and checksums."""
    lines = ["Dumping /k/orders-0/00000000000000000000.log", "Log starting offset: 0"]
    line = f"| offset: {{}} CreateTime: 1763694900000 keySize: -1 valueSize: 100 sequence: -1 headerKeys: []{payload}"
    for base in range(0, TEXT_BYTES // len(line), RECORDS_PER_BATCH):
        last = base + RECORDS_PER_BATCH - 1
        lines.append(
            f"baseOffset: {base} lastOffset: {last} count: {RECORDS_PER_BATCH} baseSequence: -1 lastSequence: -1 "
            "producerId: -1 producerEpoch: -1 partitionLeaderEpoch: 0 isTransactional: false isControl: false "
            f"deleteHorizonMs: OptionalLong.empty position: {base * 106} CreateTime: 1763694900000 size: 53000 "
            f"magic: 2 compresscodec: none crc: {base * 2654435761 % 2**32} isvalid: true"
        )
        lines += [line.format(offset) for offset in range(base, last + 1)]
    return "\n".join([*lines, ""]).encode()


@pytest.mark.parametrize("compression", [GZIP, ZSTD])
def test_a_file_that_unpacks_without_end_is_refused_before_its_end(tmp_path: Path, compression: str) -> None:
    file = tmp_path / "dump"
    file.write_bytes(packed(bytes(TEXT_BYTES), compression))
    bomb = planned(file, compression)
    assert bomb.text_bytes < TEXT_BYTES
    assert bomb.sections == ()
    with pytest.raises(InputError) as refused:
        check_inputs([bomb], skip_unrecognised=False)
    assert refused.value.problems == [
        (
            f"{file}: byte {bomb.text_bytes}: the file unpacks to more than 500 times its size, as no dump does. "
            "If it is one, unpack it and give the text"
        )
    ]


@pytest.mark.cluster  # large texts
@pytest.mark.parametrize("compression", [GZIP, ZSTD])
@pytest.mark.parametrize("payload", ["", f" payload: {'x' * 300}"], ids=["no-payload", "one-payload-in-all-records"])
def test_the_most_repetitive_dumps_are_read_to_their_end(tmp_path: Path, compression: str, payload: str) -> None:
    file = tmp_path / "dump"
    dump = deep_dump_without_keys(payload)
    file.write_bytes(packed(dump, compression))
    read = planned(file, compression)
    assert (read.problem, read.text_bytes) == (None, len(dump))
