"""A deep dump that was cut at the end of a line shows it, and is refused; a shallow one does not."""

import pytest

from tests.tools.dump_texts import batch, deep, dumping, plan, record, shallow
from tests.tools.noisy import KINDS
from tests.tools.repository import CASES

DEEP = (
    "4.2.0/orders-0.deep.txt",
    "2.2.2/orders-0.deep.txt",
    "2.8.2/orders-0.payload.txt",
    "4.2.0/transaction_state-1.txt",
)
OTHER = shallow("other-0")


def lines_of(name: str) -> list[bytes]:
    return (CASES / "grammar" / name).read_bytes().splitlines(keepends=True)


@pytest.mark.parametrize("noise", [b"", KINDS["slf4j"]])
@pytest.mark.parametrize("name", DEEP)
def test_a_text_that_ends_inside_a_batch_is_refused(name: str, noise: bytes) -> None:
    """But behind its first line alone, which looks like a shallow dump."""
    lines = lines_of(name)
    for count in range(4, 60):
        problem = plan(b"".join(lines[:count]) + noise).problem
        if lines[count].startswith(b"| "):
            assert "the dump ends inside this batch" in (problem or "")
        else:
            assert problem is None


@pytest.mark.parametrize("count", range(3, 30))
def test_where_no_record_lines_are_printed_nothing_shows_a_cut(count: int) -> None:
    assert plan(b"".join(lines_of("4.2.0/orders-0.shallow.txt")[:count])).problem is None


def test_a_section_that_was_cut_is_refused_also_where_another_one_follows() -> None:
    lines = lines_of("4.2.0/orders-0.deep.txt")
    end = max(n for n in range(60) if lines[n].startswith(b"baseOffset")) + 1
    cut, whole = b"".join(lines[:end]) + OTHER, b"".join(lines[: end - 1]) + OTHER
    assert "0 of its" in (plan(cut).problem or "")
    assert [section.topic for section in plan(cut).sections] == ["other"]
    assert plan(whole).problem is None


def test_a_state_that_was_cut_is_refused_also_where_another_one_follows() -> None:
    lines = lines_of("4.2.0/transaction_state-1.txt")
    end = max(n for n in range(60) if lines[n].startswith(b"baseOffset")) + 1
    assert "0 of its 1 records" in (plan(b"".join(lines[:end]) + OTHER).problem or "")


def test_behind_a_record_a_client_may_have_written_what_looks_like_the_next_section() -> None:
    """The section is in doubt: a header key of the record that is there can hold all that follows."""
    text = dumping("orders-0") + batch(0, 1, 0) + record(0) + batch(1, 5, 100) + record(1) + OTHER
    planned = plan(text)
    assert planned.problem is None
    assert [section.is_start_proven for section in planned.sections] == [True, False]


def test_a_header_key_that_prints_a_batch_ends_no_audit() -> None:
    forged = b"]\n" + batch(1, 5, 900) + b"| offset: 1 CreateTime: 1 keySize: 1 valueSize: 1 sequence: 0 headerKeys: ["
    first = batch(0, 1, 0).replace(b"size: 100", b"size: 900")
    text = dumping("orders-0") + first + record(0, printed=False, headers=forged)
    assert plan(text).problem is None


def test_a_dump_with_every_record_is_not_refused() -> None:
    assert plan(deep("orders-0", record(0), record(1)) + deep("orders-1", record(0))).problem is None
