from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tools.bodies import OF_ONGOING, Body, Parsed, damaged, parse, transactional_ids
from tests.tools.cases import cases
from tests.tools.compiling import NEVER, NOTHING, loading_takes
from tests.tools.forms.model import StateRecord, StateValue
from tests.tools.forms.state_writer import console_json, console_text
from tests.tools.repository import CASES
from txn_analysis.reading.state.console_export import read_console_json, read_console_text
from txn_analysis.reading.text.window import CUT_SHORT

ONGOING = StateValue(7, 3, "Ongoing", (("orders", 0), ("a-b.c_d", 12)), 1795, 60000, 1790)
ENDED = replace(ONGOING, state="CompleteCommit", partitions=())


def of_text(text: str | bytes) -> Parsed:
    return parse(read_console_text, Body(text.encode() if isinstance(text, str) else text, before=b"WARN x\n"))


def of_json(text: str | bytes) -> Parsed:
    """What an export says, the same many objects at once and one by one."""
    data = text.encode() if isinstance(text, str) else text
    grammar = "3.9" if data.startswith(b'{"key":{"version"') else "4.0+"
    body = Body(data, grammar, before=b"WARN x\n")
    with loading_takes(NEVER):
        one_by_one = parse(read_console_json, body)
    with loading_takes(NOTHING):
        assert parse(read_console_json, body) == one_by_one
    return one_by_one


def records(*names: str, value: StateValue | None = ONGOING) -> list[StateRecord]:
    return [StateRecord(name, value) for name in names]


@cases(
    "parsed",
    {
        "text": of_text(console_text(records("x"))),
        "text-scala-2.12": of_text(console_text(records("x"), "Set")),
        "text-without-last-newline": of_text(console_text(records("x")).removesuffix("\n")),
        "text-pending": of_text(console_text(records("x")).replace("None", "Some(PrepareCommit)")),
        "json": of_json(console_json(records("x"))),
        "json-3.9": of_json(console_json(records("x"), key_word="version")),
        "json-4.4": of_json(console_json(records("x"), is_state_named=True)),
        "json-digits": of_json(console_json(records("x")).replace('Status":1', 'Status":"1"')),
        "json-with-newline": of_json(console_json(records("x")) + "\n"),
    },
)
def test_row_has_the_whole_record(parsed: Parsed) -> None:
    assert not parsed.rejects
    (row,) = parsed.rows
    assert row == OF_ONGOING | {
        "ordinal": 7,
        "state_partition": None,
        "offset": None,
        "recorded_ms": None,
        "is_after_gap": None,
        "batch_base_offset": None,
        "batch_last_offset": None,
        "leader_epoch": None,
        "transactional_id": "x",
        "transactional_id_hash": 120,
        "start_ms": 1790,
    }


@given(st.lists(transactional_ids(), min_size=1, max_size=4), st.sampled_from(["", "\n", " \r\n\t"]))
def test_json_reads_any_id_back_exactly(names: list[str], between: str) -> None:
    text = between.join(console_json([record]) for record in records(*names))
    parsed = of_json(text)
    assert not parsed.rejects
    assert parsed.ids() == names
    tombstones = of_json(console_json(records(*names, value=None)))
    assert tombstones.ids() == names
    assert all(row["is_tombstone"] for row in tombstones.rows)


def test_json_ordinals_are_byte_offsets_whatever_the_characters() -> None:
    one = console_json(records("\U0001f600é"))
    assert [row["ordinal"] for row in of_json(one * 3).rows] == [7, 7 + len(one.encode()), 7 + 2 * len(one.encode())]


@given(st.lists(transactional_ids(), min_size=1, max_size=4))
def test_text_reads_any_id_back_exactly_or_says_that_it_cannot(names: list[str]) -> None:
    parsed = of_text(console_text(records(*names)))
    assert parsed.ids() == names or parsed.has_undecodable
    if not any("::" in name for name in names):
        assert parsed.ids() == names


def test_id_that_holds_a_whole_record_of_another_is_not_believed() -> None:
    forged = console_text(records("victim", value=ENDED))
    parsed = of_text(console_text([*records("victim"), *records(forged + "x"), *records("last")]))
    assert [(row["transactional_id"], row["is_undecodable"]) for row in parsed.rows] == [
        ("victim", False),
        (None, True),
        ("last", False),
    ]


def test_id_that_begins_with_a_tombstone_of_another_is_not_believed() -> None:
    parsed = of_text(console_text([*records("victim", value=ENDED), *records("victim::NULL\nx"), *records("last")]))
    assert parsed.ids() == ["victim", None, "last"]
    assert not any(row["is_tombstone"] for row in parsed.rows)


def test_id_that_copies_its_neighbours_record_does_not_swallow_it() -> None:
    neighbour = console_text(records("a"))
    middle = "b"
    copied = f"{middle}::TransactionMetadata(transactionalId={neighbour}{middle}, producerId=9, producerEpoch=0, "
    copied += "txnTimeoutMs=1, state=Empty, pendingState=None, topicPartitions=Set(), txnStartTimestamp=-1, "
    copied += "txnLastUpdateTimestamp=1)\nz"
    parsed = of_text(console_text([*records("a"), *records(copied), *records("last")]))
    assert parsed.has_undecodable
    assert {"b", neighbour + middle}.isdisjoint(parsed.ids())
    assert parsed.ids()[-1] == "last"


def test_text_tombstone() -> None:
    parsed = of_text(console_text([*records("x", value=ENDED), *records("x", "other::y", value=None)]))
    assert not parsed.rejects
    assert [(row["transactional_id"], row["is_tombstone"]) for row in parsed.rows] == [
        ("x", False),
        ("x", True),
        ("other::y", True),
    ]


def test_text_tombstone_of_an_id_in_a_transaction_is_not_believed() -> None:
    parsed = of_text(console_text([*records("x"), *records("x", value=None), *records("x", value=ENDED)]))
    assert [(row["transactional_id"], row["is_undecodable"]) for row in parsed.rows] == [
        ("x", False),
        (None, True),
        ("x", False),
    ]


@pytest.mark.parametrize("name", ["\nvictim", "x\n\nvictim", "Processed a total of 1 messages\nvictim"])
def test_text_tombstone_behind_what_is_no_record_may_be_of_another_id(name: str) -> None:
    """An id is printed raw, and in a tombstone once: that of an id of several lines ends in a line of its own."""
    parsed = of_text(console_text([*records("victim", value=ENDED), *records(name, value=None)]))
    assert parsed.has_undecodable
    assert not any(row["is_tombstone"] and row["transactional_id"] == "victim" for row in parsed.rows)


def test_text_that_begins_with_a_tombstone_behind_noise_may_be_of_another_id() -> None:
    parsed = of_text(console_text(records("victim", value=None)))
    assert parsed.ids() == [None]


@pytest.mark.parametrize("said", [1, 3])
def test_closing_message_of_another_number_is_a_gap(said: int) -> None:
    closing = f"Processed a total of {said} messages\n"
    assert of_text(console_text(records("a", "b")) + closing).ids() == ["a", "b", None]


@pytest.mark.parametrize("text", ["unknown::version=4\n", '{"key":null,"value":null}'])
def test_record_that_the_formatter_cannot_name_is_undecodable(text: str) -> None:
    parsed = of_text(text) if text[0] == "u" else of_json(text)
    assert not parsed.rejects
    assert parsed.has_undecodable


@pytest.mark.parametrize(
    "unknown",
    [
        '{"key":{"version":7,"data":"unknown"},"value":null}',
        '{"key":{"type":0,"data":{"transactionalId":"x"}},"value":{"version":9,"data":"unknown"}}',
    ],
)
def test_json_of_an_unknown_version_is_undecodable(unknown: str) -> None:
    parsed = of_json(unknown + console_json(records("y")))
    assert not parsed.rejects
    assert parsed.ids() == [None, "y"]


@pytest.mark.parametrize(
    ("good", "bad"),
    [
        ('"producerId":7', '"producerId":7.5'),
        ('"producerId":7', '"producerId":NaN'),
        ('"producerId":7', '"producerId":7,"producerId":8'),
        ('"producerId":7', '"producerId":9223372036854775808'),
        ('"transactionStatus":1', '"transactionStatus":-1'),
        ('"version":0', '"version":"0"'),
        ('"type":0', '"type":false'),
    ],
)
def test_json_object_that_kafka_does_not_write_is_rejected_alone(good: str, bad: str) -> None:
    broken = console_json(records("x")).replace(good, bad)
    parsed = of_json(console_json(records("a")) + broken + console_json(records("b")))
    assert parsed.ids() == ["a", None, "b"]
    assert [reject.length_bytes for reject in parsed.rejects] == [len(broken)]


@pytest.mark.parametrize("garbage", ["}", "[" * 200_000, '{"key":' * 200_000, "x" + console_json(records("b"))])
def test_what_is_no_json_is_rejected_to_the_end(garbage: str) -> None:
    parsed = of_json(console_json(records("a")) + garbage)
    assert parsed.ids() == ["a", None]
    assert [reject.length_bytes for reject in parsed.rejects] == [len(garbage)]


def test_int64_is_exact() -> None:
    (row,) = of_json(console_json(records("x", value=replace(ONGOING, producer_id=2**63 - 1)))).rows
    assert row["producer_id"] == 2**63 - 1


def test_cut_json_names_the_cut() -> None:
    parsed = of_json(console_json(records("a", "b"))[:-1])
    assert parsed.ids() == ["a", None]
    assert parsed.rejects[0].reason == CUT_SHORT


def test_closing_message_of_the_consumer_loses_nothing() -> None:
    closing = "Processed a total of 2 messages\n"
    for parsed in (
        of_text(console_text(records("a", "b")) + closing),
        of_json(console_json(records("a", "b")) + closing),
    ):
        assert parsed.ids() == ["a", "b"]
        assert not parsed.rejects


def test_record_larger_than_a_window_is_read() -> None:
    wide = replace(ONGOING, partitions=tuple(("t" * 200, n) for n in range(25_000)))
    for parsed in (of_text(console_text(records("a", value=wide))), of_json(console_json(records("a", value=wide)))):
        assert not parsed.rejects
        assert len(parsed.rows[0]["topic_partitions"]) == 25_000


def test_real_text_export() -> None:
    text = (CASES / "kafka-2.8/console/transaction-state.txt").read_bytes()
    parsed = of_text(text)
    assert not parsed.rejects
    assert len(parsed.rows) == 513
    assert not parsed.has_undecodable
    assert sum(1 + str(name).count("\n") * 2 for name in parsed.ids()) == text.count(b"\n")


def test_real_json_export() -> None:
    text = (CASES / "kafka-4.2/console/transaction-state.json").read_bytes()
    parsed = of_json(text)
    assert not parsed.rejects
    assert not parsed.has_undecodable
    assert len(parsed.rows) == text.count(b'{"key":{') == 518
    assert any("\n" in (name or "") for name in parsed.ids())
    assert of_json(text.replace(b'}{"key"', b'}\n{"key"')).ids() == parsed.ids()


@given(st.data())
def test_damage_never_crashes(data: st.DataObject) -> None:
    of_text(data.draw(damaged(console_text(records("a", "two\nlines", "b::NULL\nc")).encode())))
    of_json(data.draw(damaged(console_json(records("a", "two\nlines", "c")).encode())))


@given(st.data())
def test_cut_text_gives_the_records_before_the_cut_and_says_so(data: st.DataObject) -> None:
    text = console_text(records("a", "b", "two\nlines")).encode()
    cut = data.draw(st.integers(0, len(text) - 2))
    parsed = of_text(text[:cut])
    known = [row for row in parsed.rows if not row["is_undecodable"]]
    assert known == of_text(text).rows[: len(known)]
    is_between_records = cut in {0, *(row["ordinal"] - 7 + d for row in of_text(text).rows[1:] for d in (-1, 0))}
    assert bool(parsed.rejects) != is_between_records


@given(st.lists(st.sampled_from(["a", "orders-1", "\u00fc", 'a"b', ""]), max_size=90), st.integers(0, 2000))
def test_many_objects_with_unusual_ones_between(names: list[str], damaged_at: int) -> None:
    text = "".join(console_json([record]) for record in records(*names))
    assert of_json(text).ids() == names
    of_json(text[:damaged_at] + "]" + text[damaged_at + 1 :])
