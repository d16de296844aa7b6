"""A record names the columns of its table as the table does, with types that hold what the columns hold."""

from typing import Any

import pyarrow as pa
import pytest

from txn_analysis.columns.arrays import NONE
from txn_analysis.columns.records import batch_of, records_of
from txn_analysis.kafka.names import END_MARKERS
from txn_analysis.kafka.transactions import TopicPartition
from txn_analysis.reading.state.values import ReadStateRecord
from txn_analysis.tables import (
    LOG_PIECES,
    TRANSACTION_STATES,
    BatchRangeSummary,
)
from txn_analysis.tables.appends import ProducerAppendInfo, TransactionPart

Row = dict[str, Any]

OF_ONE_INPUT = {"ingest_id": "ingest", "input_id": "input", "section_index": 2}
PLACE = ReadStateRecord(0, 1, 5, 1795, is_after_gap=False, batch_base_offset=4, batch_last_offset=6)
STATES = [
    PLACE.with_key("a")._replace(is_undecodable=False, topic_partitions=listed)
    for listed in (None, (), (TopicPartition("orders", 3), TopicPartition("payments", 0)))
]


def state_rows(records: list[ReadStateRecord], **alike: Any) -> pa.RecordBatch:
    return batch_of(ReadStateRecord, records, TRANSACTION_STATES.arrow_schema, **alike)


@pytest.mark.parametrize("records", [STATES, STATES[:1], []])
def test_records_that_were_written_are_the_same_records(records: list[ReadStateRecord]) -> None:
    rows = state_rows(records, **OF_ONE_INPUT)
    assert rows.schema == TRANSACTION_STATES.arrow_schema
    assert records_of(ReadStateRecord, rows) == records
    assert [{name: row[name] for name in OF_ONE_INPUT} for row in rows.to_pylist()] == [OF_ONE_INPUT] * len(records)


def test_a_column_that_nobody_knows_is_missed() -> None:
    with pytest.raises(KeyError, match="section_index"):
        state_rows(STATES, ingest_id="ingest", input_id="input")


PART: Row = dict.fromkeys(TransactionPart._fields, None) | {"start_offset": 3, "end_marker": "ABORT"}
MARKER: Row = {"offset": 4, "marker": None, "timestamp_ms": 5, "producer_epoch": 0, "coordinator_epoch": None}
PRODUCER: Row = dict.fromkeys(ProducerAppendInfo._fields, None) | {
    "producer_id": 7,
    "is_one_epoch": True,
    "lead": PART,
}
PRODUCERS_OF_PIECES: tuple[list[Row], ...] = (
    [],
    [PRODUCER, PRODUCER | {"producer_id": 8, "tail": PART, "bare_markers": [MARKER, MARKER | {"marker": "COMMIT"}]}],
    [PRODUCER | {"bare_markers": []}, PRODUCER | {"bare_markers": [MARKER]}],
)


def pieces() -> pa.StructArray:
    rows = [{"first_position": n, "producers": own} for n, own in enumerate(PRODUCERS_OF_PIECES)]
    return pa.array([None, *rows], pa.struct(list(LOG_PIECES.arrow_schema)))


def test_the_producers_of_each_batch_range_are_columns_wherever_the_rows_begin() -> None:
    """What stands before the first row, and in rows of NULL, is of no row."""
    found = records_of(BatchRangeSummary, pieces()[1:])
    assert [(piece.first_position, len(piece.producers)) for piece in found] == [(0, 0), (1, 2), (2, 2)]
    assert found[0].is_used
    two, last = (piece.producers for piece in found[1:])
    assert two.producer_id.tolist() == [7, 8]
    assert [two.rows[part]["start_offset"].tolist() for part in ("lead", "tail")] == [[3, 3], [NONE, 3]]
    assert two.rows["tail"]["end_marker"].tolist() == [NONE, END_MARKERS.index("ABORT")]
    assert [two.bare_markers[name].tolist() for name in ("producer_id", "offset")] == [[8, 8], [4, 4]]
    assert two.bare_markers["marker"].tolist() == [NONE, END_MARKERS.index("COMMIT")]
    assert last.bare_markers["producer_id"].tolist() == [7]


def test_a_column_that_must_be_there_is_missed() -> None:
    with pytest.raises(KeyError, match="ingest_id"):
        records_of(BatchRangeSummary, pa.array([{"topic": "orders"}]))
