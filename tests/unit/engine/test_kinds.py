"""Rows of several kinds that one step makes come back as they were, each kind by itself."""

import pyarrow as pa

from txn_analysis.columns.values import of_kind, rows_of_kinds, schema_of_kinds
from txn_analysis.engine.in_process import InProcess

NUMBERS = pa.RecordBatch.from_pydict({"number": [*range(100)], "is_even": [number % 2 == 0 for number in range(100)]})
WORDS = pa.table({"word": ["a", None, "b"]})
KINDS = schema_of_kinds(numbers=NUMBERS.schema, words=WORDS.schema, none=WORDS.schema)


def made() -> pa.Table:
    return rows_of_kinds(KINDS, numbers=NUMBERS, words=WORDS, none=WORDS.slice(0, 0))


def test_each_kind_comes_back_whole_and_in_order() -> None:
    engine = InProcess()
    rows = engine.made(made())
    assert engine.collected(engine.of_kind(rows, "numbers")).combine_chunks().to_batches() == [NUMBERS]
    assert engine.collected(engine.of_kind(rows, "words")) == WORDS
    assert len(engine.collected(engine.of_kind(rows, "none"))) == 0


def test_of_a_kind_some_columns_can_be_asked_for() -> None:
    engine = InProcess()
    is_even = engine.collected(engine.of_kind(engine.made(made()), "numbers", "is_even"))
    assert is_even.combine_chunks().to_batches() == [NUMBERS.select(["is_even"])]


def test_a_row_is_of_one_kind() -> None:
    assert [*map(len, (of_kind(batch, "numbers") for batch in made().to_batches()))] == [100, 0]
    row_kinds = [[name for name in KINDS.names if row[name] is not None] for row in made().to_pylist()]
    assert row_kinds == [["numbers"]] * 100 + [["words"]] * 3
