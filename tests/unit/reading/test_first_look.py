"""What is told of texts before Spark starts."""

import gzip
from pathlib import Path

import pytest

from txn_analysis.errors import InputError
from txn_analysis.reading.inputs import planning
from txn_analysis.reading.inputs.find_files import find_files
from txn_analysis.reading.inputs.planning import check_at_first_sight

DUMP = (
    b"Dumping orders-0/00000000000000000000.log\nLog starting offset: 0\n"
    b"baseOffset: 0 lastOffset: 0 count: 1 baseSequence: 0 lastSequence: 0 producerId: 1 producerEpoch: 0 "
    b"partitionLeaderEpoch: 0 isTransactional: true isControl: false deleteHorizonMs: OptionalLong.empty position: 0 "
    b"CreateTime: 1700000000000 size: 100 magic: 2 compresscodec: none crc: 1 isvalid: true\n"
)


def refusals(folder: Path, **files: bytes) -> list[str]:
    for name, content in files.items():
        (folder / name).write_bytes(content)
    try:
        check_at_first_sight(find_files([str(folder)]))
    except InputError as error:
        return [problem.removeprefix(f"{folder}/").partition(". ")[0].partition(" (")[0] for problem in error.problems]
    return []


def test_each_bad_text_has_a_line(tmp_path: Path) -> None:
    said = refusals(
        tmp_path, cut=DUMP[:-9], empty=b"", good=DUMP, notes=b"call Anna back\n", torn=gzip.compress(DUMP)[:9]
    )
    assert said == [
        f"cut: byte {DUMP.index(b'baseOffset')}: the text ends inside this line",
        "empty: byte 0: the file is empty",
        "notes: byte 0: not a text that this version knows",
        "torn: byte 0: the gzip stream is cut or damaged",
    ]


def test_of_large_calls_only_the_heads_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "_READ_WHOLE_BYTES", 0)
    monkeypatch.setattr(planning, "HEAD_BYTES", 90)
    assert refusals(tmp_path, cut=DUMP[:-9], notes=b"call Anna back\n" * 100) == [
        "notes: byte 0: not a text that this version knows"
    ]


def test_every_file_is_looked_at_where_one_of_the_first_is_bad(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "_FIRST_FILES", 2)
    assert refusals(tmp_path, a=DUMP, b=DUMP, c=b"") == []
    assert refusals(tmp_path, a=DUMP, b=b"", c=b"") == ["b: byte 0: the file is empty", "c: byte 0: the file is empty"]


def test_a_file_of_a_broker_is_known_by_neighbours_that_a_first_look_leaves_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planning, "_FIRST_FILES", 1)
    folder = tmp_path / "orders-0"
    folder.mkdir()
    assert refusals(folder, **{"00000000000000000000.index": b"", "00000000000000000000.log": b""}) == []


@pytest.mark.parametrize(
    "text", [DUMP, gzip.compress(DUMP), gzip.compress(DUMP + DUMP[:-1])], ids=["plain", "packed", "packed and cut"]
)
def test_what_only_all_bytes_can_tell_is_left_to_the_survey(tmp_path: Path, text: bytes) -> None:
    assert refusals(tmp_path, dump=text) == []


def test_files_of_brokers_are_left_to_the_survey(tmp_path: Path) -> None:
    folder = tmp_path / "orders-0"
    folder.mkdir()
    assert refusals(folder, **{"00000000000000000000.log": b"", "leader-epoch-checkpoint": b""}) == []
