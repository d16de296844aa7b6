"""`__transaction_state` is decoded as Kafka's own decoder does, whatever the codec; what cannot be read is said so."""

import struct
import zlib
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tools.bodies import damaged, plain_rows, read_state_section, single_flips, transactional_ids
from tests.tools.cases import cases
from tests.tools.compiling import NEVER, NOTHING, loading_takes
from tests.tools.dump_texts import plan as plan_of_text
from tests.tools.forms.dump_writer import Tool, log_section
from tests.tools.forms.model import Batch, History, Record, StateRecord, StateValue
from tests.tools.forms.model import Segment as WrittenSegment
from tests.tools.forms.state_writer import STATE_CODES, STATE_TOPIC
from tests.tools.log_dirs.encoder import (
    CODECS,
    as_written,
    compressed,
    encoded,
    framed,
    record,
    segment_bytes,
    state_key,
    state_value,
)
from tests.tools.log_dirs.reading import Segment
from tests.tools.log_evidence import MemoryText
from txn_analysis.kafka import record_batch

NOON_MS = 1_795_230_000_000
ONGOING = StateValue(7, 3, "Ongoing", (("orders", 1), ("orders", 0), ("pay-ments", 12)), NOON_MS, 60_000, NOON_MS)
STATES = [state for state in STATE_CODES if state not in {"Dead", "PrepareEpochFence"}]


@pytest.fixture(scope="module", params=[NEVER, NOTHING], ids=["python", "compiled"], autouse=True)
def either_way(request: pytest.FixtureRequest) -> Iterator[None]:
    with loading_takes(request.param):
        yield


def values() -> st.SearchStrategy[StateValue]:
    """Values of both versions, all states, many partitions or none."""
    partitions = st.lists(
        st.tuples(st.sampled_from(("orders", "pay-ments", "a.b_c")), st.integers(0, 2**31 - 1)), max_size=5, unique=True
    )
    return st.builds(
        StateValue,
        producer_id=st.integers(0, 2**62),
        producer_epoch=st.integers(0, 32767),
        state=st.sampled_from(STATES),
        partitions=partitions.map(tuple),
        last_update_ms=st.integers(0, NOON_MS),
        timeout_ms=st.integers(0, 2**31 - 1),
        start_ms=st.none() | st.integers(0, NOON_MS),
        version=st.sampled_from((0, 1)),
        client_transaction_version=st.sampled_from((0, 2)),
    ).map(as_coordinators_write)


def as_coordinators_write(value: StateValue) -> StateValue:
    """Without partitions before the first transaction, and without tagged fields in version 0."""
    return replace(
        value,
        partitions=() if value.state == "Empty" else value.partitions,
        client_transaction_version=value.client_transaction_version if value.version else 0,
    )


def records() -> st.SearchStrategy[StateRecord]:
    return st.builds(StateRecord, transactional_ids(), st.none() | values())


def batch_of(states: list[StateRecord], codec: str, offset: int = 0, gap: int = 0, **known: Any) -> Batch:
    """One batch, of whose offsets compaction has taken the first ones."""
    first = offset + gap
    written = tuple(
        Record(
            first + k,
            NOON_MS + k,
            len(state_key(state)),
            None if state.value is None else len(state_value(state.value) or b""),
            state=state,
        )
        for k, state in enumerate(states)
    )
    last = first + max(len(states), 1) - 1
    batch = Batch(offset, last, len(states), max_timestamp_ms=NOON_MS, codec=codec, records=written)
    return replace(batch, **known)


def history_of(batches: list[Batch]) -> History:
    return as_written(History(STATE_TOPIC, 0, (WrittenSegment(0, tuple(batches)),)))


def states_of(data: bytes) -> list[dict[str, Any]]:
    return Segment.of(data, kind="state").states()


@settings(max_examples=40)
@given(
    st.lists(
        st.tuples(st.lists(records(), max_size=4), st.sampled_from(CODECS), st.sampled_from((0, 0, 3))), max_size=4
    )
)
def test_records_are_those_of_the_decoder(written: list[tuple[list[StateRecord], str, int]]) -> None:
    batches: list[Batch] = []
    for states, codec, gap in written:
        start = batches[-1].last_offset + 1 if batches else 0
        batches.append(batch_of(states, codec, start, gap, leader_epoch=len(batches)))
    (segment,) = history_of(batches).segments
    text = log_section(f"{STATE_TOPIC}-0", segment, Tool(payload=True)).encode()
    (section,) = plan_of_text(text).sections
    decoded = plain_rows(read_state_section(MemoryText(text), section))
    found = states_of(segment_bytes(segment))
    assert [row["ordinal"] for row in found] == [row["offset"] for row in found]
    assert [row | {"ordinal": 0} for row in found] == [row | {"ordinal": 0} for row in decoded]


KEY = state_key(StateRecord("a", None))
VALUE = state_value(ONGOING) or b""
FLEXIBLE = state_value(replace(ONGOING, version=1)) or b""
TAGGED = state_value(replace(ONGOING, version=1), {0: bytes(8), 2: b"\0\2", 3: b"\0\1"}) or b""


def test_tagged_fields_of_a_value() -> None:
    tags = {0: struct.pack(">q", 5), 1: struct.pack(">q", 9), 3: struct.pack(">h", 1), 77: b"newer than this version"}
    value = replace(ONGOING, version=1, client_transaction_version=2)
    (row,) = states_of(batch_bytes([record(0, 0, state_key(StateRecord("a", None)), state_value(value, tags))]))
    names = ("previous_producer_id", "next_producer_id", "client_transaction_version", "is_undecodable")
    assert [row[name] for name in names] == [5, 9, 2, False]


@cases(
    "tags told",
    {
        "those-that-are-known": ({0: bytes(8), 2: b"\0\2", 3: b"\0\1"}, (None, None)),
        "an-empty-one-of-tomorrow": ({4: b""}, (False, False)),
        "too-short-for-a-producer-id": ({4: bytes(7), 5: bytes(7)}, (False, False)),
        "long-enough-for-one": ({4: b"\1", 200: bytes(8)}, (False, True)),
    },
)
def test_fields_of_tomorrow_are_skipped_and_what_they_may_hold_is_said(
    tags: dict[int, bytes], told: tuple[bool | None, bool | None]
) -> None:
    """A list that was read in binary form is whole, whatever stands behind it."""
    value = state_value(replace(ONGOING, version=1), tags)
    (row,) = states_of(batch_bytes([record(0, 0, KEY, value)]))
    assert (row["is_undecodable"], row["may_list_more"], row["may_name_more"]) == (False, *told)


@cases(
    "value",
    {
        "tags-that-fall": FLEXIBLE[:-1] + b"\2\5\0\4\0",
        "a-tag-twice": FLEXIBLE[:-1] + b"\2\4\0\4\0",
        "a-field-that-is-cut": FLEXIBLE[:-1] + b"\1\4\2\0",
        "of-a-topic": FLEXIBLE.replace(struct.pack(">i", 12) + b"\0", struct.pack(">i", 12) + b"\1\0\0"),
        "of-version-0": VALUE + b"\1\4\0",
    },
)
def test_fields_that_no_broker_writes_make_a_record_undecodable(value: bytes) -> None:
    (row,) = states_of(batch_bytes([record(0, 0, KEY, value)]))
    assert (row["is_undecodable"], row["transactional_id"]) == (True, "a")


@cases(
    "key value",
    {
        "record-type-1": (b"\x00\x01" + KEY[2:], VALUE),
        "no-key": (None, VALUE),
        "key-longer-than-its-id": (KEY + b"x", VALUE),
        "id-is-no-text": (struct.pack(">hh", 0, 1) + b"\xff", VALUE),
        "value-version-2": (KEY, b"\x00\x02" + VALUE[2:]),
        "value-cut": (KEY, VALUE[:-1]),
        "value-longer": (KEY, VALUE + b"x"),
        "value-empty": (KEY, b""),
        "no-topic": (KEY, VALUE.replace(b"orders", b"or ers")),
    },
)
def test_a_record_that_cannot_be_read_is_undecodable_at_its_offset(key: bytes | None, value: bytes) -> None:
    """Whose it is, is known where its key was read to the byte."""
    (row, after) = states_of(batch_bytes([record(0, 0, key, value), record(1, 0, KEY, VALUE)]))
    whose = "a" if key == KEY else None
    assert (row["offset"], row["is_undecodable"], row["transactional_id"], row["state"]) == (0, True, whose, None)
    assert (after["offset"], after["is_undecodable"], after["transactional_id"]) == (1, False, "a")


def batch_bytes(records: list[bytes], *, codec: int = 0, body: bytes | None = None) -> bytes:
    """A batch with any content and the right checksum."""
    content = b"".join(records) if body is None else body
    count = max(len(records), 1)
    checked = struct.pack(">hiqqqhii", codec, count - 1, NOON_MS, NOON_MS, -1, -1, -1, count) + content
    return framed(checked)


ONE = record(0, 0, KEY, VALUE)


@settings(max_examples=120)
@given(st.sampled_from((VALUE, FLEXIBLE, TAGGED)), st.data())
def test_any_bytes_are_read_alike_many_at_once_and_one_by_one(value: bytes, data: st.DataObject) -> None:
    good = [record(0, 0, KEY, value), record(1, 0, KEY, None), record(2, 0, KEY, value)]
    bad = data.draw(single_flips(b"".join(good)) | damaged(b"".join(good)))
    content = data.draw(
        st.sampled_from((bad, b"".join([record(0, 0, KEY, data.draw(single_flips(value))), *good[1:]])))
    )
    batches = [batch_bytes(good), batch_bytes(good, body=content), batch_bytes(good)]
    moved = [struct.pack(">q", 3 * k) + batch[8:] for k, batch in enumerate(batches)]
    states_of(b"".join(moved))


@cases(
    "batch",
    {
        "record-cut": batch_bytes([ONE], body=ONE[:-1]),
        "more-than-its-records": batch_bytes([ONE], body=ONE + b"\0"),
        "endless-number": batch_bytes([ONE], body=b"\x80" * 20),
        "gzip-damaged": batch_bytes([ONE], codec=1, body=b"no gzip"),
        "gzip-cut": batch_bytes([ONE], codec=1, body=compressed(ONE, "gzip")[:-9]),
        "snappy-cut": batch_bytes([ONE], codec=2, body=b"\x82SNAPPY\0" + bytes(8) + b"\0\0\1\0x"),
        "snappy-empty": batch_bytes([ONE], codec=2, body=b""),
        "lz4-cut": batch_bytes([ONE], codec=3, body=compressed(ONE, "lz4")[:-9]),
        "zstd-damaged": batch_bytes([ONE], codec=4, body=b"\x28\xb5\x2f\xfdxxxx"),
        "checksum-wrong": batch_bytes([ONE])[:17] + b"\0\0\0\0" + batch_bytes([ONE])[21:],
    },
)
def test_a_batch_that_cannot_be_opened_is_undecodable(batch: bytes) -> None:
    *_, last = states_of(batch)
    assert (last["offset"], last["is_undecodable"]) == (None, True)


def test_snappy_without_frame() -> None:
    (row,) = states_of(batch_bytes([ONE], codec=2, body=pa.compress(ONE, codec="snappy", asbytes=True)))
    assert row["transactional_id"] == "a"


@pytest.mark.parametrize("codec", CODECS[1:])
def test_a_bomb_is_undecodable_and_is_not_unpacked(codec: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_batch, "MAX_RECORDS_BYTES", 100_000)
    body = compressed(bytes(10_000_000), codec)
    (row,) = states_of(batch_bytes([ONE], codec=CODECS.index(codec), body=body))
    assert row["is_undecodable"]
    with pytest.raises(record_batch.BadBatchError, match="longer than"):
        record_batch.decompressed(body, codec)


def test_end_markers_in_the_state_are_no_records_of_it() -> None:
    marker = Batch(0, 0, 1, 7, 0, is_transactional=True, is_control=True, marker="ABORT", coordinator_epoch=0)
    state = batch_of([StateRecord("a", ONGOING)], "none", offset=1)
    (row,) = states_of(encoded(marker) + encoded(state))
    assert (row["offset"], row["is_after_gap"]) == (1, False)


def test_gzip_of_several_members_is_cut_after_the_first() -> None:
    two = zlib.compress(ONE, wbits=31) + zlib.compress(ONE, wbits=31)
    assert record_batch.decompressed(two, "gzip") == ONE
