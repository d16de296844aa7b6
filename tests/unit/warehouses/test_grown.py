"""A column that comes to `findings` and to `ended_transactions` costs nobody a warehouse: that of 1.0.0 is used on."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.tools.sessions import opened
from tests.unit.warehouses.kept import NIGHTS, unpacked
from tests.unit.warehouses.test_of_1_0_0 import NOW_MS, answers, audited, findings, rejudged
from txn_analysis.columns import records
from txn_analysis.pipeline import judging
from txn_analysis.questions.pruning import prune
from txn_analysis.tables import ENDED_TRANSACTIONS, FINDINGS, Col
from txn_analysis.tables.schema import STRING
from txn_analysis.warehouse import data_files

ADDED = Col("weather", STRING, "on the broker's roof; NULL in rows of 1.0.0")


GROWN = (FINDINGS, ENDED_TRANSACTIONS)


@pytest.fixture(autouse=True)
def grown(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two tables of today's version have one column more; who writes rows of them says `sunny`."""
    for table in GROWN:
        with_it = (*table.columns, ADDED)
        monkeypatch.setitem(table.__dict__, "columns", with_it)
        schema = pa.schema([pa.field(c.name, c.type, nullable=c.nullable) for c in with_it])
        monkeypatch.setitem(table.__dict__, "arrow_schema", schema)
    write, batch_of = data_files._Writer.write, records.batch_of

    def sunny(writer: Any, rows: pa.RecordBatch) -> None:
        if writer._table in GROWN:
            own = [name for name in writer._table.names if name != ADDED.name]
            rows = rows.select(own).append_column(ADDED.name, pa.repeat("sunny", len(rows)))
        write(writer, rows)

    def with_weather(kind: Any, rows: Any, schema: pa.Schema, **alike: Any) -> pa.RecordBatch:
        return batch_of(kind, rows, schema, **alike, **({ADDED.name: "sunny"} if ADDED.name in schema.names else {}))

    monkeypatch.setattr(judging, "batch_of", with_weather)
    monkeypatch.setattr(data_files._Writer, "write", sunny)


def test_the_warehouse_is_audited_into_with_equal_answers(tmp_path: Path) -> None:
    nights, todays = unpacked(NIGHTS, tmp_path), tmp_path / "today"
    for number in (1, 2):
        audited(todays, number)
    assert findings(audited(nights, 3)) == findings(audited(todays, 3))
    for table in GROWN:
        weather = opened(nights).rows(table, ADDED.name)[ADDED.name].to_pylist()
        assert {*weather} == {None, "sunny"}


def test_the_warehouse_is_pruned_with_equal_answers(tmp_path: Path) -> None:
    nights = unpacked(NIGHTS, tmp_path)
    expected = answers(audited(nights, 3))
    (item,) = prune(opened(nights), 0, NOW_MS, 0).clusters
    assert item.row_count > 0
    assert answers(rejudged(nights, 3)) == expected
    for table in GROWN:
        assert ADDED.name in opened(nights).rows(table).schema.names
