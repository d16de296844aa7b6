"""A line is described once: what reads it, what steps over it and what finds it are made of one description."""

import re

import pytest

from tests.tools.repository import CASES
from txn_analysis.reading.grammar.forms import ANY_BATCH, BATCH, BATCH_FORMS, RECORD, RECORD_2_8
from txn_analysis.reading.grammar.line_form import FIRST, Field, LineForm, number, spelled_either_way

HEAD = Field(b"size: ", "size", number(32))
NEW = Field(b" weight: ", "weight", number(64), since=(4, 4))
LAST = Field(b" crc: ", "crc", number(32), earlier=(b" CRC: ", (2, 7)))
LINE = LineForm((HEAD, NEW, LAST))


def test_a_version_prints_the_fields_of_its_time() -> None:
    assert LINE.at((4, 3)).names == ("size", "crc")
    assert LINE.at((4, 4)).read(b"size: 1 weight: 2 crc: 3") == {"size": 1, "weight": 2, "crc": 3}
    assert LINE.at((4, 4)).read(b"size: 1 crc: 3") is None


def test_a_version_spells_labels_as_in_its_time() -> None:
    assert LINE.at((2, 7)).read(b"size: 1 CRC: 3") == {"size": 1, "crc": 3}
    assert LINE.at((2, 8)).read(b"size: 1 CRC: 3") is None


@pytest.mark.parametrize("line", [b"size: 1 crc: 3", b"size: 1 weight: 2 crc: 3", b"size: 1 weight: 2 CRC: 3"])
def test_what_is_looser_knows_the_lines_of_all_versions(line: bytes) -> None:
    assert re.fullmatch(LINE.loose(), line)
    found = re.fullmatch(LINE.bounded("crc"), line)
    assert found is not None
    assert found["crc"] == b"3"


def test_a_field_that_all_of_some_versions_print_is_never_left_out() -> None:
    assert re.fullmatch(LINE.of((4, 4)).loose(), b"size: 1 crc: 3") is None
    assert re.fullmatch(LINE.of(FIRST, (4, 3)).loose(), b"size: 1 weight: 2 crc: 3") is None


def test_bounded_values_are_no_longer_than_their_kind() -> None:
    too_long = b"size: " + b"1" * 11 + b" crc: 3"
    assert re.fullmatch(LINE.loose(), too_long)
    assert re.fullmatch(LINE.bounded(), too_long) is None


def test_a_value_that_is_always_the_same_is_part_of_the_next_label() -> None:
    assert LINE.at((4, 4)).saying(weight="-1").read(b"size: 1 weight: -1 crc: 3") == {"size": 1, "crc": 3}


@pytest.mark.parametrize(("one", "other"), [(b"keySize", b"keysize"), (b"Log starting", b"Starting")])
def test_two_spellings_are_both_known(one: bytes, other: bytes) -> None:
    both = spelled_either_way(one, other)
    assert re.fullmatch(both, one)
    assert re.fullmatch(both, other)


def test_batches_of_the_old_formats_have_no_column_of_their_own() -> None:
    assert set(ANY_BATCH.names) == {name for form in BATCH_FORMS.values() for name in form.names}


def test_batch_lines_of_real_brokers_are_known_to_what_is_looser() -> None:
    lines = printed(b"baseOffset: ", BATCH_FORMS["3.2+"])
    assert lines
    assert all(re.fullmatch(BATCH.bounded(), line) and re.fullmatch(BATCH.loose(), line) for line in lines)


def test_record_lines_of_real_brokers_begin_as_described() -> None:
    starts = [re.compile(form.part("offset", "sequence").bounded()) for form in (RECORD, RECORD_2_8)]
    lines = [line for path in CASES.rglob("*.txt") for line in path.read_bytes().split(b"\n")[:200]]
    lines = [line for line in lines if line.startswith(b"| offset: ") and b" sequence: " in line]
    assert lines
    assert all(any(start.match(line) for start in starts) for line in lines)


def printed(start: bytes, form: LineForm) -> list[bytes]:
    """Lines of captures that have a form."""
    texts = [path.read_bytes() for path in CASES.rglob("*.txt")]
    starting = [line for text in texts for line in text.split(b"\n")[:200] if line.startswith(start)]
    return [line for line in starting if form.pattern.fullmatch(line)]
