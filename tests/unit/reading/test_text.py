import gzip
import os
import tracemalloc
import zlib
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from txn_analysis.reading.text.text import GZIP, ZSTD, Text, TextError, detect_compression

TEXT = b"".join(b"baseOffset: %d\n" % offset for offset in range(200_000))


def zstd(text: bytes) -> bytes:
    return bytes(pa.Codec("zstd").compress(text, asbytes=True))


def pzstd(text: bytes) -> bytes:
    """As `pzstd` begins: with a frame to be skipped, which says how long the next one is."""
    return b"\x50\x2a\x4d\x18\x04\x00\x00\x00size" + zstd(text)


PACKERS: list[tuple[str | None, Callable[[bytes], bytes]]] = [
    (None, bytes),
    (GZIP, gzip.compress),
    (ZSTD, zstd),
    (ZSTD, pzstd),
]


@pytest.mark.parametrize(("compression", "packed"), [(name, pack) for name, pack in PACKERS])
def test_compression_is_told_by_content(compression: str | None, packed: Callable[[bytes], bytes]) -> None:
    assert detect_compression(packed(TEXT)[:4]) == compression


@pytest.mark.parametrize("head", [b"", b"\x1f", b"\x28\xb5", b"Dumping a-0/0.log"])
def test_other_heads_are_plain_text(head: bytes) -> None:
    assert detect_compression(head) is None


def test_a_file_system_that_hands_out_little_at_a_time_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "dump"
    file.write_bytes(TEXT)
    whole_read = os.pread
    monkeypatch.setattr(os, "pread", lambda opened, size, start: whole_read(opened, min(size, 65_521), start))

    with Text(str(file), None) as text:
        assert text.read(0, len(TEXT) + 1) == TEXT


@pytest.mark.parametrize(("compression", "packed"), PACKERS)
def test_any_span_is_the_same_text(tmp_path: Path, compression: str | None, packed: Callable[[bytes], bytes]) -> None:
    file = tmp_path / "dump"
    file.write_bytes(packed(TEXT))
    end = len(TEXT)
    spans = [
        (0, 10),
        (5, 7),
        (2_500_000, 2_500_100),
        (100, 90),
        (0, end),
        (end - 3, end + 99),
        (end + 1, end + 2),
        (1, 2),
    ]
    with Text(str(file), compression) as text:
        assert [text.read(a, b) for a, b in spans] == [TEXT[a:b] for a, b in spans]


@pytest.mark.parametrize(("compression", "packed"), PACKERS[1:])
def test_files_joined_after_compression_are_one_text(
    tmp_path: Path, compression: str, packed: Callable[[bytes], bytes]
) -> None:
    file = tmp_path / "joined"
    file.write_bytes(packed(b"first\n") + packed(b"second\n"))
    with Text(str(file), compression) as text:
        assert text.read(0, 100) == b"first\nsecond\n"


@pytest.mark.parametrize(("compression", "packed"), PACKERS[1:])
@pytest.mark.parametrize("damage", [lambda b: b[:-9], lambda b: b[: len(b) // 2], lambda b: b[:-9] + b"\x55" * 9])
def test_a_cut_or_damaged_stream_names_the_byte(
    tmp_path: Path, compression: str, packed: Callable[[bytes], bytes], damage: Callable[[bytes], bytes]
) -> None:
    file = tmp_path / "cut"
    file.write_bytes(damage(packed(TEXT)))
    with Text(str(file), compression) as text, pytest.raises(TextError) as error:
        text.read(0, 2 * len(TEXT))
    assert 0 <= error.value.offset <= len(TEXT) + 1
    assert compression in error.value.reason


def test_a_bomb_does_not_fill_the_memory(tmp_path: Path) -> None:
    file = tmp_path / "bomb.gz"
    packer = zlib.compressobj(9, wbits=31)
    zeros = bytes(1 << 20)
    file.write_bytes(b"".join(packer.compress(zeros) for _ in range(120)) + packer.flush())
    tracemalloc.start()
    try:
        with Text(str(file), GZIP) as text:
            assert text.read(119 << 20, (119 << 20) + 5) == bytes(5)
        assert tracemalloc.get_traced_memory()[1] < 80 << 20
    finally:
        tracemalloc.stop()
