"""Rows of several kinds that one step makes come back as they were, however many bytes they have."""

import pyarrow as pa
import pytest

from txn_analysis.columns import values
from txn_analysis.columns.values import named, rows_named


@pytest.mark.parametrize("most_bytes", [1, 100, 1 << 20])
def test_each_kind_comes_back_whole_and_in_order(monkeypatch: pytest.MonkeyPatch, most_bytes: int) -> None:
    monkeypatch.setattr(values, "_MOST_BYTES", most_bytes)
    numbers = pa.RecordBatch.from_pydict({"number": range(100)})
    words = pa.RecordBatch.from_pydict({"word": ["a", "b"]})
    made = named(numbers=numbers, words=words, none=words.slice(0, 0)).to_batches()
    for name, rows in (("numbers", numbers), ("words", words)):
        assert pa.Table.from_batches(rows_named(name)(iter(made))).combine_chunks().to_batches() == [rows]
    assert list(rows_named("none")(iter(made))) == []
