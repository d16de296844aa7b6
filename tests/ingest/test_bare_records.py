"""Record lines are read as columns where they can be, and say then what the grammar's regular expression says."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.ingest.texts import record
from txn_analysis.ingest.bare_records import read_bare_heads
from txn_analysis.ingest.lines import Lines, bytes_of
from txn_analysis.ingest.record_sizes import read_any_heads

USUAL = b"| offset: 7 CreateTime: 5 keySize: 1 valueSize: -1 sequence: 3 headerKeys: [a,b]\n"
OLD = b"| offset: 7 LogAppendTime: 5 keysize: 1 valuesize: 12 sequence: 3 headerKeys: []\n"
WORDS = (
    *(b"+5", b"-5", b"\t5", b"0x10", b"", b"-0", b"007", b"5.0", b"1e3", b"true", b"\r", b"\xff"),
    *(b"99999999999", b"9223372036854775808", b"-9223372036854775808", b"offset:", b"Offset:"),
    *(b"[", b"]", b"[]]", b"[a] key: k"),
)


def column(*lines: bytes) -> pa.Array:
    return pa.array(lines, pa.large_binary())


@pytest.mark.parametrize("line", [USUAL, OLD, record(4, None, printed=False)], ids=["3.0", "2.2", "own"])
def test_lines_without_payload_are_read_as_columns(line: bytes) -> None:
    heads = read_bare_heads(column(line, line))
    assert heads is not None
    assert (heads.offset == read_any_heads(column(line, line)).offset).all()


@given(st.lists(st.tuples(st.integers(0, 12), st.sampled_from(WORDS)), max_size=2), st.booleans())
@example([(2, b"+5")], True)
@example([(6, b"-9223372036854775808")], True)
@example([(4, b"\t5")], False)
def test_both_readers_say_the_same(changes: list[tuple[int, bytes]], is_last: bool) -> None:
    words = USUAL[:-1].split(b" ")
    for place, word in changes:
        words[place] = word
    lines = [USUAL, b" ".join(words) + b"\n"]
    records = column(*(lines if is_last else reversed(lines)))
    fast = read_bare_heads(records)
    if fast is not None:
        any_heads = read_any_heads(records)
        assert (fast.offset == any_heads.offset).all()
        assert any_heads.is_filled.all()
        assert any_heads.is_credible.all()


@given(st.lists(st.sampled_from([b"baseOffset: 1", b"| offset: 2", b"offset: 3", b"other", b"", b"base"]), max_size=9))
def test_some_lines_are_taken_as_they_stand(texts: list[bytes]) -> None:
    data = b"\n".join(texts)
    lines = Lines.of(data)
    kept = [text for text in texts if text.startswith((b"baseOffset: ", b"| offset: ", b"offset: "))]
    assert [lines.text(k) for k in range(len(lines.starts))] == kept
    some = np.arange(0, len(kept), 2)
    wanted = [data[lines.starts[k] : lines.stops[k]] for k in some]
    assert lines.taken(some).to_pylist() == wanted
    assert bytes_of(lines.taken(some)) == b"".join(wanted)
