"""What Spark shuffles: rows that come back as they were, in fewer bytes where that pays."""

from random import Random

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from txn_analysis.columns.parquet import BYTES_BY_PLACE, DIFFERENCES, parquet_of, rows_of_parquet
from txn_analysis.columns.values import packed
from txn_analysis.engine.buckets import Buckets
from txn_analysis.engine.on_spark import packer, rows_of_bucket

PLACE = pa.struct([("topic", pa.string()), ("partition", pa.int32())])
RECORDS = pa.schema(
    [
        pa.field("id", pa.string()),
        pa.field("offset", pa.int64(), nullable=False),
        ("recorded_ms", pa.int64()),
        ("last_update_ms", pa.int64()),
        ("epoch", pa.int16()),
        ("is_last", pa.bool_()),
        ("value", pa.binary()),
        ("places", pa.list_(PLACE)),
        ("before", pa.struct([("offset", pa.int64()), ("places", pa.list_(PLACE))])),
    ]
)
PLACES = st.lists(
    st.one_of(
        st.none(),
        st.fixed_dictionaries(
            {"topic": st.sampled_from(["a", "", None]), "partition": st.integers(-(2**31), 2**31 - 1)}
        ),
    ),
    max_size=2,
)
INT64 = st.integers(-(2**63), 2**63 - 1)
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "id": st.one_of(st.none(), st.text(max_size=3)),
            "offset": INT64,
            "recorded_ms": st.one_of(st.none(), INT64),
            "last_update_ms": INT64,
            "epoch": st.one_of(st.none(), st.integers(-1, 2**15 - 1)),
            "is_last": st.sampled_from([None, True, False]),
            "value": st.one_of(st.none(), st.binary(max_size=3)),
            "places": st.one_of(st.none(), PLACES),
            "before": st.one_of(st.none(), st.fixed_dictionaries({"offset": INT64, "places": PLACES})),
        }
    ),
    max_size=6,
)


@given(ROWS, st.sampled_from([DIFFERENCES, BYTES_BY_PLACE]))
def test_a_file_gives_back_every_row(rows: list[dict[str, object]], numbers: str) -> None:
    batch = pa.RecordBatch.from_pylist(rows, schema=RECORDS)
    assert rows_of_parquet(parquet_of(batch, numbers), RECORDS).equals(pa.Table.from_batches([batch]))


def records_of_ids(count: int) -> pa.RecordBatch:
    """Records in the order of their offsets, as a log has them: four of each id in a row."""
    rows = [
        {
            "id": f"billing-{n // 4}",
            "offset": 3 * n,
            "recorded_ms": 1_800_000_000_000 + 11 * n,
            "last_update_ms": 1_800_000_000_000 + 11 * n - n % 3,
            "epoch": 0,
            "is_last": None,
            "value": None,
            "places": [{"topic": "orders", "partition": n % 12}],
            "before": None,
        }
        for n in range(count)
    ]
    return pa.RecordBatch.from_pylist(rows, schema=RECORDS)


MARKERS = pa.schema([("id", pa.string()), ("offset", pa.int64()), ("at_ms", pa.int64())])


def markers_of_partitions(count: int) -> pa.RecordBatch:
    """End markers of partitions with 50 each, one after another, at moments that follow no rule."""
    chance = Random(7)
    by_partition = [sorted(chance.randrange(86_400_000) for _ in range(50)) for _ in range(count // 50)]
    rows = [
        {"id": f"billing-{chance.randrange(40)}", "offset": 3 * n, "at_ms": 1_800_000_000_000 + ms}
        for own in by_partition
        for n, ms in enumerate(own)
    ]
    return pa.RecordBatch.from_pylist(rows, schema=MARKERS)


def in_order(markers: pa.Table) -> pa.Table:
    return markers.sort_by([(name, "ascending") for name in ("at_ms", "offset", "id")])


def shuffled(batch: pa.RecordBatch) -> pa.Table:
    return pa.Table.from_batches(packer("records", ["id"], Buckets(3))(iter([batch])))


def test_many_records_are_shuffled_in_less_than_a_third_of_their_bytes_and_come_back_whole() -> None:
    whole = records_of_ids(6_000)
    by_bucket = shuffled(whole)
    assert 3 * sum(map(len, by_bucket["rows"].to_pylist())) < len(packed([whole], RECORDS))
    back = rows_of_bucket(by_bucket, {"records": RECORDS})["records"]
    assert back.sort_by("offset").equals(pa.Table.from_batches([whole]))


def test_many_end_markers_are_shuffled_in_two_thirds_of_their_bytes_and_come_back_whole() -> None:
    whole = markers_of_partitions(20_000)
    by_bucket = shuffled(whole)
    assert 3 * sum(map(len, by_bucket["rows"].to_pylist())) < 2 * len(packed([whole], MARKERS))
    back = rows_of_bucket(by_bucket, {"records": MARKERS})["records"]
    assert in_order(back).equals(in_order(pa.Table.from_batches([whole])))


def test_a_few_records_come_back_whole() -> None:
    few = records_of_ids(8)
    back = rows_of_bucket(shuffled(few), {"records": RECORDS})["records"]
    assert back.sort_by("offset").equals(pa.Table.from_batches([few]))
