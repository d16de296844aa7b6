import re
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tools.bodies import (
    OF_ONGOING,
    Body,
    Parsed,
    Row,
    capture_body,
    damaged,
    parse,
    read_state_section,
    single_flips,
    transactional_ids,
)
from tests.tools.cases import cases
from tests.tools.forms.dump_writer import Tool, segment_lines
from tests.tools.forms.model import Batch, Segment, StateRecord, StateValue
from tests.tools.forms.state_writer import STATE_CODES, state_batch, value_bytes
from tests.tools.log_dirs.encoder import state_value
from tests.tools.repository import CASES
from txn_analysis.kafka.names import state_partition
from txn_analysis.reading.grammar.forms import OLD_DEEP
from txn_analysis.reading.text.window import CUT_SHORT

TOOLS = ("2.1.1", "2.2.2", "2.8.2", "3.1.2", "3.3.2", "3.7.2", "4.1.0", "4.2.0")
VERSIONS = ((2, 1), (2, 2), (2, 4), (2, 5), (2, 8), (3, 0), (3, 2), (4, 0), (4, 1), (4, 2), (4, 4))
NEWEST_TEXT, JSON = (4, 0), (4, 2)
ONGOING = StateValue(7, 3, "Ongoing", (("orders", 0), ("a-b.c_d", 12)), 1795, 60000, None)
BATCH_COLUMNS = ("batch_base_offset", "batch_last_offset", "leader_epoch")
NOT_PRINTED = ("ordinal", "start_ms", "client_transaction_version")


def grammar(version: tuple[int, int]) -> str:
    return OLD_DEEP if version < (2, 2) else "2.2-3.1" if version < (3, 2) else "3.2+"


def segment(*records: StateRecord) -> Segment:
    return Segment(0, tuple(state_batch(offset, 1795 + offset, record) for offset, record in enumerate(records)))


def dumped(content: Segment, version: tuple[int, int] = JSON) -> bytes:
    return "".join(f"{line}\n" for line in segment_lines(content, Tool(version, payload=True))).encode()


def read(text: bytes, version: tuple[int, int] = JSON) -> Parsed:
    return parse(read_state_section, Body(text, grammar=grammar(version), before=b"Dumping\n"))


def batch_of(row: Row) -> tuple[int | None, int | None, int | None]:
    """What a row says of its batch: first and last offset, leader epoch."""
    base_offset, last_offset, leader_epoch = (row[name] for name in BATCH_COLUMNS)
    return base_offset, last_offset, leader_epoch


def ongoing(*names: str) -> Segment:
    return segment(*(StateRecord(name, ONGOING) for name in names))


@pytest.mark.parametrize("version", VERSIONS)
def test_row_has_the_whole_record(version: tuple[int, int]) -> None:
    parsed = read(dumped(ongoing("x", "polygenelubricants"), version), version)
    assert not parsed.rejects
    row = parsed.rows[1]
    assert row.pop("ordinal") > 8
    assert row == OF_ONGOING | {
        "state_partition": 1,
        "offset": 1,
        "recorded_ms": 1796,
        "is_after_gap": False,
        "batch_base_offset": None if version < (2, 2) else 1,
        "batch_last_offset": None if version < (2, 2) else 1,
        "leader_epoch": None if version < (2, 2) else 0,
        "transactional_id": "polygenelubricants",
        "transactional_id_hash": -(2**31),
        "start_ms": None,
    }


@pytest.mark.parametrize("state", STATE_CODES)
@pytest.mark.parametrize("printed", [str, '"{}"'.format], ids=["number", "digits"])
def test_a_state_is_a_number_or_a_string_of_its_digits_or_its_name(state: str, printed: Callable[[int], str]) -> None:
    named = dumped(segment(StateRecord("x", replace(ONGOING, state=state, partitions=()))), (4, 4))
    assert f'"transactionStatus":"{state}"'.encode() in named
    other = named.replace(f'"{state}"'.encode(), printed(STATE_CODES[state]).encode())
    assert [row["state"] for row in read(other).rows] == [row["state"] for row in read(named).rows] == [state]


@pytest.mark.parametrize("printed", ["8", "-1", "01", "ongoing", "Ongoing ", "", "\u0664", "null"])
def test_a_string_that_is_no_state_is_undecodable(printed: str) -> None:
    text = dumped(ongoing("x", "y"), (4, 4)).replace(b'"Ongoing"', f'"{printed}"'.encode(), 1)
    assert read(text).ids() == [None, "y"]


@pytest.mark.parametrize("version", [v for v in VERSIONS if v >= (2, 2)])
def test_row_names_the_batch_that_it_stands_in(version: tuple[int, int]) -> None:
    compacted = [batch.records or () for batch in (state_batch(k, 1, StateRecord("x", ONGOING)) for k in (5, 7))]
    two = Batch(4, 9, 2, leader_epoch=5, records=(*compacted[0], *compacted[1]))
    one = state_batch(10, 1, StateRecord("z", ONGOING), leader_epoch=-1)
    rows = read(dumped(Segment(4, (two, replace(one, last_offset=12))), version), version).rows
    assert [batch_of(row) for row in rows] == [(4, 9, 5), (4, 9, 5), (10, 12, None)]


def test_record_that_is_missing_is_of_the_batch_that_counts_it() -> None:
    lines = dumped(ongoing("a", "b", "c")).splitlines(keepends=True)
    parsed = read(b"".join(lines[:3] + lines[4:]))
    assert [batch_of(row) for row in parsed.rows] == [(0, 0, 0), (1, 1, 0), (2, 2, 0)]


def test_record_behind_a_damaged_batch_line_is_of_no_known_batch() -> None:
    lines = dumped(ongoing("a", "b", "c")).splitlines(keepends=True)
    lines[2] = lines[2].replace(b"count: 1", b"count: x")
    assert [batch_of(row) for row in read(b"".join(lines)).rows] == [(0, 0, 0), (None, None, None), (2, 2, 0)]


def resized(text: bytes, value: StateValue, *, by: int) -> bytes:
    """The dump of one record, as if its value were larger."""
    printed = re.compile(rb"(value[sS]ize: )%d\b" % value_bytes(value))
    return printed.sub(rb"\g<1>%d" % (value_bytes(value) + by), text)


@pytest.mark.parametrize("version", VERSIONS)
@cases(
    "altered",
    {
        "a-shorter-topic": (("order", 0), ("a-b.c_d", 12)),
        "a-longer-topic": (("orders-2026", 0), ("a-b.c_d", 12)),
        "a-partition-less": (("orders", 0),),
        "a-partition-more": (("orders", 0), ("a-b.c_d", 12), ("a-b.c_d", 13)),
        "a-topic-more": (("orders", 0), ("a-b.c_d", 12), ("x", 1)),
        "a-name-of-the-other-version": (("orders-x-y", 0), ("a-b.c_d", 12)),
    },
)
def test_record_whose_partitions_were_altered_is_undecodable(
    version: tuple[int, int], altered: tuple[tuple[str, int], ...]
) -> None:
    """A coordinator that seems not to list a partition would leave its transaction to be aborted."""
    value = replace(ONGOING, partitions=altered)
    begun = replace(ONGOING, state="Empty", partitions=())
    records = (StateRecord("a", begun), StateRecord("x", value), StateRecord("b", begun))
    text = resized(dumped(segment(*records), version), value, by=value_bytes(ONGOING) - value_bytes(value))
    parsed = read(text, version)
    assert (parsed.ids(), parsed.has_undecodable) == (["a", None, "b"], True)
    assert [reject.reason for reject in parsed.rejects] == ["the value's text does not fit its size"]


def test_values_of_both_versions_are_read_where_a_cluster_was_upgraded() -> None:
    """`transaction.version` 1 (KIP-890): the log goes on with values of version 1."""
    later = replace(ONGOING, version=1, client_transaction_version=2)
    records = [
        StateRecord(name, replace(value, state=state, partitions=partitions))
        for value in (ONGOING, later)
        for name in ("x", "y")
        for state, partitions in (("Empty", ()), ("Ongoing", ONGOING.partitions), ("CompleteAbort", ()))
    ]
    for kept in (records, records[1:-1], [r for r in records if r.value and r.value.partitions]):
        parsed = read(dumped(segment(*kept), NEWEST_TEXT), NEWEST_TEXT)
        assert (parsed.ids(), parsed.rejects) == ([record.transactional_id for record in kept], [])


TOPICS = st.sampled_from(("orders", "a-b.c_d", "t" * 126, "t" * 127, "t" * 249))


@pytest.mark.parametrize("version", VERSIONS)
@given(
    partitions=st.lists(st.tuples(TOPICS, st.integers(0, 200)), max_size=140, unique=True).map(tuple),
    is_flexible=st.booleans(),
    client_version=st.sampled_from((0, 2)),
)
def test_any_record_that_a_broker_writes_fits_its_sizes(
    version: tuple[int, int], partitions: tuple[tuple[str, int], ...], is_flexible: bool, client_version: int
) -> None:
    value = replace(ONGOING, partitions=partitions)
    if is_flexible and version >= (3, 5):  # earlier tools cannot read such a value
        value = replace(value, version=1, client_transaction_version=client_version)
    written = len(state_value(value) or b"")
    text = dumped(segment(StateRecord("x", value)), version)
    parsed = read(resized(text, value, by=written - value_bytes(value)), version)
    assert (parsed.ids(), parsed.rejects) == (["x"], [])


def test_tagged_fields_are_no_part_of_the_first_value_version() -> None:
    value = replace(ONGOING, version=1, client_transaction_version=2)
    text = dumped(segment(StateRecord("x", value))).replace(b'"version":"1"', b'"version":"0"')
    assert read(text).has_undecodable


def test_json_form_has_start_and_client_version() -> None:
    value = replace(ONGOING, start_ms=1700, version=1, client_transaction_version=2)
    (row,) = read(dumped(segment(StateRecord("x", value)))).rows
    assert (row["start_ms"], row["client_transaction_version"]) == (1700, 2)


def test_json_form_has_the_tagged_producer_ids() -> None:
    value = replace(ONGOING, version=1)
    text = dumped(segment(StateRecord("x", value))).replace(
        b'"producerEpoch"', b'"previousProducerId":4,"nextProducerId":9,"nextProducerEpoch":0,"producerEpoch"'
    )
    (row,) = read(resized(text, value, by=10 + 10 + 4)).rows
    assert (row["previous_producer_id"], row["producer_id"], row["next_producer_id"]) == (4, 7, 9)


@pytest.mark.parametrize("version", [v for v in VERSIONS if v >= (2, 5)])
def test_tombstone(version: tuple[int, int]) -> None:
    parsed = read(dumped(segment(StateRecord("x", ONGOING), StateRecord("x", None)), version), version)
    assert not parsed.rejects
    assert [row["is_tombstone"] for row in parsed.rows] == [False, True]
    assert (parsed.rows[1]["state"], parsed.rows[1]["topic_partitions"]) == (None, [])


@pytest.mark.parametrize("version", VERSIONS)
@given(names=st.lists(transactional_ids(), min_size=1, max_size=4))
def test_any_id_is_read_back_exactly(version: tuple[int, int], names: list[str]) -> None:
    parsed = read(dumped(ongoing(*names), version), version)
    assert not parsed.rejects
    assert parsed.ids() == names


@pytest.mark.parametrize(
    "key",
    [
        "Unknown record type 7 at offset 0, skipping.",
        "Error at offset 0, skipping. Unknown version 9",
        "unknown::version=3",
    ],
)
def test_decoder_error_is_an_undecodable_record(key: str) -> None:
    parsed = read(re.sub(rb"key: .*", b"key: " + key.encode(), dumped(ongoing("x")), count=1))
    assert not parsed.rejects
    assert (parsed.rows[0]["offset"], parsed.rows[0]["is_undecodable"], parsed.ids()) == (0, True, [None])


def test_gap_is_seen_from_the_offsets() -> None:
    content = Segment(0, tuple(state_batch(offset, 1, StateRecord("x", ONGOING)) for offset in (4, 5, 9)))
    assert [row["is_after_gap"] for row in read(dumped(content)).rows] == [None, False, True]


def test_control_batches_and_empty_batches_are_parsed_without_rows() -> None:
    marker = Batch(1, 1, 1, 7, 3, is_control=True, is_transactional=True, marker="COMMIT", coordinator_epoch=1)
    empty = Batch(2, 2, 0)
    content = Segment(
        0, (state_batch(0, 1, StateRecord("x", ONGOING)), marker, empty, state_batch(3, 1, StateRecord("y", ONGOING)))
    )
    parsed = read(dumped(content))
    assert not parsed.rejects
    assert [(row["transactional_id"], row["is_after_gap"]) for row in parsed.rows] == [("x", None), ("y", True)]


@cases(
    "good bad",
    {
        "fraction": (b'"producerId":7', b'"producerId":7.0'),
        "exponent": (b'"producerId":7', b'"producerId":1e3'),
        "nan": (b'"producerId":7', b'"producerId":NaN'),
        "boolean": (b'"producerId":7', b'"producerId":true'),
        "text": (b'"producerId":7', b'"producerId":"7"'),
        "beyond-int64": (b'"producerId":7', b'"producerId":9223372036854775808'),
        "endless-digits": (b'"producerId":7', b'"producerId":' + b"9" * 5000),
        "below-minus-one": (b'"producerId":7', b'"producerId":-2'),
        "repeated-name": (b'"producerId":7', b'"producerId":7,"producerId":7'),
        "missing-field": (b'"producerId":7,', b""),
        "unknown-field": (b'"producerId":7', b'"producerId":7,"other":0'),
        "epoch-beyond-int16": (b'"producerEpoch":3', b'"producerEpoch":32768'),
        "unknown-status": (b'Status":1', b'Status":8'),
        "topic-name": (b'"topic":"orders"', b'"topic":"or/ders"'),
        "dots": (b'"topic":"orders"', b'"topic":".."'),
        "long-topic-name": (b'"topic":"orders"', b'"topic":"' + b"o" * 250 + b'"'),
        "partition-twice": (b'"partitionIds":[0]', b'"partitionIds":[0,0]'),
        "negative-partition": (b'"partitionIds":[0]', b'"partitionIds":[-1]'),
        "deep-nesting": (b'"partitionIds":[0]', b'"partitionIds":' + b"[" * 100_000),
        "unknown-version": (b'"version":"0"', b'"version":"2"'),
        "version-is-no-text": (b'"version":"0"', b'"version":[]'),
        "type-is-a-number": (b'"type":"0"', b'"type":0'),
        "half-a-surrogate-pair": (b'"x"', b'"\\ud800"'),
        "id-longer-than-the-key": (b'"x"', b'"xy"'),
        "not-utf-8": (b'"x"', b'"\xff"'),
        "more-at-the-end": (b"-1}}\n", b"-1}} \n"),
        "prefix": (b"valueSize: ", b"valueSize: -1 valueSize: "),
    },
)
def test_record_that_kafka_does_not_write_is_undecodable_and_rejected(good: bytes, bad: bytes) -> None:
    lines = dumped(ongoing("a", "x", "b")).splitlines(keepends=True)
    assert good in lines[3]
    lines[3] = lines[3].replace(good, bad)
    parsed = read(b"".join(lines))
    assert parsed.ids() == ["a", None, "b"]
    assert parsed.rows[1]["is_undecodable"]
    assert sum(r.length_bytes for r in parsed.rejects) == len(lines[3])


@pytest.mark.parametrize("version", VERSIONS)
def test_id_that_was_changed_on_its_way_out_hides_no_record(version: tuple[int, int]) -> None:
    # A console that is not UTF-8 prints `?` for each character: the id no longer fills its key.
    text = dumped(ongoing("first", "naïve", "last"), version).replace("ï".encode(), b"?")
    parsed = read(text, version)
    assert parsed.ids() == ["first", None, "last"]
    assert (parsed.rows[1]["is_undecodable"], parsed.rows[1]["offset"]) == (True, 1)
    assert parsed.rows[2]["is_after_gap"] is False


@pytest.mark.parametrize("listed", ["\u0663", "\u00e9-1", "orders", "orders-0,orders-0", "orders-2147483648", "..-0"])
def test_text_form_with_partitions_that_kafka_does_not_write_is_undecodable(listed: str) -> None:
    text = dumped(ongoing("x"), NEWEST_TEXT).replace(b"orders-0,a-b.c_d-12", f"orders-{listed},{listed}".encode())
    parsed = read(text, NEWEST_TEXT)
    assert (parsed.ids(), parsed.has_undecodable, len(parsed.rejects)) == ([None], True, 1)


def test_forged_lines_in_an_id_that_does_not_fill_its_key_are_not_read() -> None:
    forged = dumped(Segment(0, (state_batch(2, 1, StateRecord("victim", None)),)), NEWEST_TEXT).decode()
    parsed = read(dumped(ongoing("a", f"ï\n{forged}x", "b"), NEWEST_TEXT).replace("ï".encode(), b"?"), NEWEST_TEXT)
    assert parsed.ids() == ["a", None, "b"]


def test_record_of_a_batch_that_the_text_does_not_show_is_undecodable() -> None:
    lines = dumped(ongoing("a", "b", "c")).splitlines(keepends=True)
    parsed = read(b"".join(lines[:3] + lines[4:]))
    assert not parsed.rejects
    assert [(row["transactional_id"], row["is_undecodable"]) for row in parsed.rows] == [
        ("a", False),
        (None, True),
        ("c", False),
    ]


def test_batch_line_that_was_damaged_leaves_an_undecodable_record() -> None:
    lines = dumped(ongoing("a", "b", "c")).splitlines(keepends=True)
    lines[2] = lines[2].replace(b"count: 1", b"count: x")
    parsed = read(b"".join(lines))
    assert parsed.ids() == ["a", None, "c"]
    assert sum(r.length_bytes for r in parsed.rejects) == len(lines[2]) + len(lines[3])


def test_batch_line_with_a_leader_epoch_that_no_broker_writes_is_none() -> None:
    text = dumped(ongoing("a", "b")).replace(b"partitionLeaderEpoch: 0", b"partitionLeaderEpoch: -2", 1)
    parsed = read(text)
    assert [batch_of(row)[2] for row in parsed.rows] == [None, 0]
    assert parsed.rows[0]["is_undecodable"]
    assert parsed.rejects


def test_noise_between_lines_loses_nothing() -> None:
    lines = dumped(ongoing("a", "b")).splitlines(keepends=True)
    parsed = read(b"".join([lines[0], b"SLF4J: x\n", *lines[1:], b"WARN x\n"]))
    assert parsed.ids() == ["a", "b"]
    assert not parsed.rejects


@pytest.mark.parametrize(
    "line", ["[2026-11-28 05:00:00,000] ERROR no more (x)", "^C", "Killed", "\tat kafka.x(Y.scala:1)"]
)
def test_where_the_tool_stopped_the_section_ends_with_a_record_that_is_not_known(line: str) -> None:
    lines = dumped(ongoing("a", "b")).splitlines(keepends=True)
    for place in (0, 1, 2, 4):
        parsed = read(b"".join([*lines[:place], f"{line}\n".encode(), *lines[place:]]))
        assert parsed.ids() == [*["a", "b"][: place // 2], None]
        assert parsed.rejects[-1].offset_bytes == 8 + sum(map(len, lines[:place]))


def test_a_line_that_is_not_known_may_be_a_record() -> None:
    lines = dumped(ongoing("a", "b")).splitlines(keepends=True)
    assert read(b"".join([*lines[:2], b"who knows\nwhat\n", *lines[2:]])).ids() == ["a", None, "b"]


@pytest.mark.parametrize("version", VERSIONS)
@given(data=st.data())
def test_cut_dump_gives_the_records_before_the_cut_and_no_others(version: tuple[int, int], data: st.DataObject) -> None:
    text = dumped(ongoing("a", "two\nlines", "c"), version)
    cut = data.draw(st.integers(0, len(text) - 1))
    whole, parsed = read(text, version), read(text[:cut], version)
    known = [row for row in parsed.rows if not row["is_undecodable"]]
    assert known == whole.rows[: len(known)]
    assert not parsed.rows or not any(row["is_undecodable"] for row in parsed.rows[:-1])
    if text[:cut] and not text[:cut].endswith(b"\n"):
        assert parsed.rejects[-1].reason == CUT_SHORT
        assert parsed.rejects[-1].offset_bytes + parsed.rejects[-1].length_bytes == 8 + cut


@pytest.mark.parametrize("version", VERSIONS)
@given(data=st.data())
def test_a_single_wrong_byte_is_never_a_silent_loss(version: tuple[int, int], data: st.DataObject) -> None:
    text = dumped(ongoing("a", "two\nlines", "c", "d"), version)
    parsed = read(data.draw(single_flips(text)), version)
    assert parsed.has_undecodable or parsed.rejects or len(parsed.rows) == 4


@pytest.mark.parametrize("version", VERSIONS)
@given(data=st.data())
def test_damage_never_crashes(version: tuple[int, int], data: st.DataObject) -> None:
    read(data.draw(damaged(dumped(ongoing("a", "two\nlines", "c"), version))), version)


def test_real_dumps_are_read_whole_and_ids_lie_in_the_partition_of_their_hash() -> None:
    paths = sorted(CASES.glob("*/capture-*/transaction-state/*.txt"))
    assert paths
    for path in paths:
        partition = int(path.stem.rpartition("-")[2])
        body = capture_body(str(path.relative_to(CASES)), header_lines=2, partition=partition)
        parsed = parse(read_state_section, body)
        assert not parsed.rejects
        assert not parsed.has_undecodable
        assert len(parsed.rows) == len(re.findall(rb"(?m)^\| offset: ", body.text))
        assert {state_partition(row["transactional_id_hash"], 4) for row in parsed.rows} <= {partition}
        assert all(
            body.read(row["ordinal"], body.text_end_bytes).startswith(b"| offset: %d " % row["offset"])
            for row in parsed.rows[:20]
        )
