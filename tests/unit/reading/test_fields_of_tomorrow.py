"""Records of a newer Kafka, whose values have tagged fields that this version does not know, in every form of text.

What the tool of the same release prints, and what an older one does, which leaves them out.
"""

import re
from dataclasses import replace

import pytest

from tests.tools.bodies import Body, Parsed, parse, read_state_section
from tests.tools.cases import cases
from tests.tools.forms.dump_writer import Tool, segment_lines
from tests.tools.forms.model import Segment, StateRecord, StateValue
from tests.tools.forms.state_writer import console_json, state_batch, value_bytes
from txn_analysis.reading.state.console_export import read_console_json

JSON, TEXT, TEXT_OF_3_1 = (4, 3), (4, 0), (3, 1)
PLAIN = StateValue(7, 3, "Ongoing", (("orders", 0), ("payments", 12)), 1795, 60000, None)
FLEXIBLE = replace(PLAIN, version=1, client_transaction_version=2)
ALL_KNOWN, MAY_LIST, MAY_NAME = (False, None, None), (False, True, False), (False, True, True)
UNDECODABLE, NOT_PRINTED = (True, None, None), (False, None, True)


def dumped(*values: StateValue, version: tuple[int, int]) -> bytes:
    batches = (state_batch(offset, 1795, StateRecord("x", value)) for offset, value in enumerate(values))
    lines = segment_lines(Segment(0, tuple(batches)), Tool(version, payload=True))
    return "".join(f"{line}\n" for line in lines).encode()


def larger(text: bytes, value: StateValue, spare_bytes: int) -> bytes:
    """The dump, as if the value had more bytes in the log than what is printed of it takes."""
    size = value_bytes(value)
    return re.sub(rb"(value[sS]ize: )%d\b" % size, rb"\g<1>%d" % (size + spare_bytes), text)


def read(text: bytes, version: tuple[int, int] = JSON) -> Parsed:
    return parse(read_state_section, Body(text, grammar="3.2+" if version >= (3, 2) else "2.2-3.1", before=b"D\n"))


def told(parsed: Parsed) -> list[tuple[bool | None, ...]]:
    """Of each record whether it is undecodable, may list more partitions, and may name another producer id."""
    return [tuple(row[name] for name in ("is_undecodable", "may_list_more", "may_name_more")) for row in parsed.rows]


@cases(
    "spare_bytes said",
    {
        "none": (0, ALL_KNOWN),
        "less-than-is-printed": (-1, UNDECODABLE),
        "no-field-has-one-byte": (1, UNDECODABLE),
        "an-empty-field": (2, MAY_LIST),
        "too-few-for-a-producer-id": (7, MAY_LIST),
        "enough-for-a-producer-id": (8, MAY_NAME),
        "many": (400, MAY_NAME),
    },
)
def test_json_of_a_tool_that_does_not_print_the_field(spare_bytes: int, said: tuple[bool | None, ...]) -> None:
    parsed = read(larger(dumped(FLEXIBLE, version=JSON), FLEXIBLE, spare_bytes))
    assert told(parsed) == [said]
    assert parsed.rows[0]["transactional_id"] == "x"


@pytest.mark.parametrize("spare_bytes", [1, 2, 10])
def test_version_0_has_no_tagged_fields(spare_bytes: int) -> None:
    for version in (JSON, TEXT_OF_3_1):
        assert told(read(larger(dumped(PLAIN, version=version), PLAIN, spare_bytes), version)) == [UNDECODABLE]


@cases(
    "field spare_bytes said",
    {
        "a-short-one": (b'"pendingEpoch":4', 4, MAY_LIST),
        "a-long-one": (b'"lastProducerId":7', 10, MAY_NAME),
        "a-fraction": (b'"share":0.5', 10, MAY_NAME),
        "lists-and-structs": (b'"more":[{"a":null,"b":["\\u0000"]}]', 60, MAY_NAME),
        "two": (b'"a1":1,"b2":2', 6, MAY_LIST),
        "two-in-the-bytes-of-one": (b'"a1":1,"b2":2', 3, UNDECODABLE),
        "one-that-has-no-bytes": (b'"pendingEpoch":4', 0, UNDECODABLE),
        "one-twice": (b'"pendingEpoch":4,"pendingEpoch":4', 4, UNDECODABLE),
        "a-name-twice-within": (b'"more":{"a":1,"a":2}', 10, UNDECODABLE),
        "a-name-twice-deep-within": (b'"more":[{"a":{"b":1,"b":1}}]', 40, UNDECODABLE),
        "a-name-that-no-field-has": (b'"no name":4', 4, UNDECODABLE),
        "no-name": (b'"":4', 4, UNDECODABLE),
    },
)
def test_json_of_a_tool_that_prints_the_field(field: bytes, spare_bytes: int, said: tuple[bool | None, ...]) -> None:
    text = larger(dumped(FLEXIBLE, version=JSON), FLEXIBLE, spare_bytes)
    printed = text.replace(b',"clientTransactionVersion"', b"," + field + b',"clientTransactionVersion"')
    parsed = read(printed)
    assert told(parsed) == [said]
    assert parsed.rows[0]["transactional_id"] == "x"


@cases(
    "good bad",
    {
        "a-higher-value-version": (b'"version":"1"', b'"version":"2"'),
        "a-field-of-a-topic": (b'"partitionIds":[0]', b'"partitionIds":[0],"isNew":true'),
        "a-field-beside-the-value": (b'"version":"1"', b'"version":"1","flags":0'),
        "an-unknown-status": (b'Status":1', b'Status":8'),
    },
)
def test_what_is_no_tagged_field_of_the_value_is_undecodable(good: bytes, bad: bytes) -> None:
    text = larger(dumped(FLEXIBLE, version=JSON), FLEXIBLE, 10)
    assert good in text
    parsed = read(text.replace(good, bad))
    assert (told(parsed), parsed.whose_undecodable) == ([UNDECODABLE], ["x"])


def test_another_record_type_or_size_of_the_key_is_of_no_known_id() -> None:
    text = dumped(FLEXIBLE, version=JSON)
    for damaged in (text.replace(b'"type":"0"', b'"type":"1"'), text.replace(b"keySize: 5", b"keySize: 6")):
        assert read(damaged).whose_undecodable == [None]


@pytest.mark.parametrize("version", [JSON, TEXT, TEXT_OF_3_1])
def test_the_record_that_a_dump_ends_in_is_of_the_id_in_its_key(version: tuple[int, int]) -> None:
    text = dumped(PLAIN, PLAIN, version=version)
    in_value, in_key = text.rindex(b"payload") + 20, text.rindex(b"transactionalId") + 12
    assert read(text[:in_value], version).whose_undecodable == ["x"]
    assert read(text[:in_key], version).whose_undecodable == [None]


EMPTY = replace(FLEXIBLE, state="Empty", partitions=())
OLD_EMPTY = replace(PLAIN, state="Empty", partitions=())


@cases(
    "spare_bytes said",
    {
        "what-brokers-write-today": (0, ALL_KNOWN),
        "without-the-clients-version": (-4, ALL_KNOWN),
        "a-field-of-three-bytes-in-its-place": (1, MAY_LIST),
        "no-field-has-one-byte": (-3, UNDECODABLE),
        "a-previous-producer-id-as-4.3-writes-it": (10, NOT_PRINTED),
        "a-producer-id-in-a-field-of-tomorrow": (15, MAY_NAME),
    },
)
def test_the_text_form_prints_no_tagged_field(spare_bytes: int, said: tuple[bool | None, ...]) -> None:
    text = larger(dumped(EMPTY, FLEXIBLE, EMPTY, version=TEXT), FLEXIBLE, spare_bytes)
    assert told(read(text, TEXT)) == [ALL_KNOWN, said, ALL_KNOWN]


@pytest.mark.parametrize("spare_bytes", [1, 3, 10])
def test_values_of_version_0_around_it_leave_no_room_in_the_text_form(spare_bytes: int) -> None:
    text = larger(dumped(OLD_EMPTY, PLAIN, OLD_EMPTY, version=TEXT), PLAIN, spare_bytes)
    assert told(read(text, TEXT)) == [ALL_KNOWN, UNDECODABLE, ALL_KNOWN]


def test_a_value_that_fits_version_0_is_of_version_0() -> None:
    """It has the bytes of version 1 with some field of tomorrow as well; only a neighbour of version 1 says so."""
    assert told(read(dumped(PLAIN, version=TEXT), TEXT)) == [ALL_KNOWN]
    assert told(read(dumped(OLD_EMPTY, PLAIN, OLD_EMPTY, version=TEXT), TEXT)) == [ALL_KNOWN] * 3
    assert told(read(dumped(EMPTY, PLAIN, EMPTY, version=TEXT), TEXT)) == [ALL_KNOWN, NOT_PRINTED, ALL_KNOWN]


def test_a_console_export_reads_over_what_it_prints() -> None:
    text = console_json([StateRecord("x", FLEXIBLE)])
    newer = text.replace('"clientTransactionVersion"', '"tomorrow":{"a":[1]},"clientTransactionVersion"')
    of_version_0 = newer.replace('"value":{"version":1', '"value":{"version":0')
    repeated = newer.replace('{"a":[1]}', '{"a":[1],"a":[1]}')
    parsed = parse(read_console_json, Body((text + newer + of_version_0 + repeated + text).encode(), "4.0+"))
    assert told(parsed) == [ALL_KNOWN, MAY_NAME, UNDECODABLE, UNDECODABLE, ALL_KNOWN]
    assert parsed.whose_undecodable == ["x", "x"]
