"""Lines that others printed into a text of Kafka's tools change nothing where no text of a client can stand."""

import re

import pytest

from tests.tools.dump_texts import batch, dumping, record, shallow
from tests.tools.forms.model import StateRecord, StateValue
from tests.tools.forms.state_writer import console_json, console_text
from tests.tools.noisy import KINDS, said
from tests.tools.repository import CASES

FIELD = CASES / "field"
# Small captures of each kind of text, and of each grammar; of deep ones a part.
CAPTURES = (
    *(f"grammar/{version}/orders-0.shallow.txt" for version in ("2.1.1", "2.2.2", "4.2.0")),
    *(f"grammar/{version}/orders-0.deep.txt" for version in ("2.2.2", "2.8.2", "4.2.0")),
    *(f"grammar/{version}/orders-0.snapshot.txt" for version in ("2.1.1", "3.1.2", "4.2.0")),
    "grammar/4.2.0/orders-0.payload.txt",
    "grammar/4.2.0/orders-0.txnindex.txt",
    *(f"grammar/{version}/transaction_state-1.txt" for version in ("2.1.1", "2.8.2", "3.7.2", "4.2.0")),
)
ENDED = StateValue(7, 3, "CompleteCommit", (), 1795, 60000, 1790)
TIMED_OUT = (
    b"[2026-11-28 05:00:00,000] ERROR Error processing message, terminating consumer process:  "
    b"(org.apache.kafka.tools.consumer.ConsoleConsumer)\norg.apache.kafka.common.errors.TimeoutException\n"
)


def field(name: str) -> bytes:
    return (FIELD / name / "f.txt").read_bytes()


def boundaries(text: bytes) -> list[int]:
    return [0, *(newline.end() for newline in re.finditer(b"\n", text))]


def part_of(capture: str, lines: int = 24) -> bytes:
    """The first lines of a capture, up to the end of a batch's records, twice: as two sections."""
    text = (CASES / capture).read_bytes()
    found = [at for at in boundaries(text)[: lines + 1] if at == len(text) or text.startswith(b"baseOffset", at)]
    return (
        text if not found else text[: found[-1]] + text[: found[-1]].replace(b"-0/0", b"-2/0").replace(b"-1/0", b"-3/0")
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("capture", CAPTURES)
def test_each_kind_at_each_place_of_a_capture_changes_no_row(capture: str, kind: str) -> None:
    text = part_of(capture)
    clean = said(text)
    assert clean.problem is None
    assert not clean.unread
    for at in boundaries(text):
        assert said(text[:at] + KINDS[kind] + text[at:]) == clean, text[max(0, at - 200) : at][-200:]


@pytest.mark.parametrize(
    ("fault", "control"),
    [
        *((name, "s2-clean") for name in ("s2-blank-end", "s2-blank-front")),
        *((name, "s2-clean") for name in ("s4-noise-front", "s4-noise-between", "s4-noise-after")),
        *((name, "s1-number") for name in ("s1-name", "s1-string")),
        ("s1-json-name", "s1-json-number"),
        *((name, "p-clean") for name in ("p-blank-end", "p-noise-between")),
    ],
)
def test_a_text_with_noise_says_what_its_control_says(fault: str, control: str) -> None:
    assert said(field(fault)) == said(field(control))


@pytest.mark.parametrize("fault", ["s2-blank-between", "s2-blank-middle"])
def test_a_blank_line_between_batches_or_sections_is_none_of_them(fault: str) -> None:
    assert said(field(fault)) == said(field(fault).replace(b"\n\n", b"\n"))


def test_what_the_console_counts_is_no_noise_in_a_dump() -> None:
    text = field("s2-text-end")
    assert said(text).unread == [(text.index(b"Processed"), len(text))]


DEEP = dumping("orders-0") + batch(0, 1, 0) + record(0) + batch(1, 1, 100) + record(1)


@pytest.mark.parametrize(
    "line",
    [b"^C\n", b"[2026-11-28 05:00:00,000] ERROR it failed (kafka.x)\n", b"WARN skipping this file\n", b"Killed\n"],
)
@pytest.mark.parametrize("text", [shallow("orders-0"), DEEP], ids=["shallow", "deep"])
def test_where_a_tool_stopped_its_section_is_not_whole(text: bytes, line: bytes) -> None:
    after = shallow("orders-1")
    found = said(text + line + after)
    assert found.unread == [(len(text), len(text) + len(line))]
    assert found.sections[1] == said(text + after).sections[1]


def test_batches_behind_one_that_an_error_takes_its_records_from_are_in_doubt() -> None:
    lines = DEEP.splitlines(keepends=True)
    at = next(n for n, line in enumerate(lines) if line.startswith(b"baseOffset")) + 1
    found = said(b"".join([*lines[:at], b"[2026-11-28 05:00:00,000] ERROR it failed (kafka.x)\n", *lines[at:]]))
    assert [row["may_be_header_keys"] for row in found.sections[0][-1]] == [False, True]


def test_batches_behind_a_line_that_says_that_the_tool_stopped_are_in_doubt() -> None:
    lines = shallow("orders-0").splitlines(keepends=True)
    found = said(b"".join([*lines[:3], b"ERROR no\n", *lines[3:]]))
    assert [row["may_be_header_keys"] for row in found.sections[0][-1]] == [False, True, True]


# A key of a header that prints the rest of a log: a batch and its end marker, and a line of noise.
FORGED = (
    b"]\n"
    + batch(1, 1, 100).replace(b"isControl: false", b"isControl: true")
    + b"| offset: 1 CreateTime: 1 keySize: 4 valueSize: 6 sequence: -1 headerKeys: [] "
    + b"endTxnMarker: COMMIT coordinatorEpoch: 0\n"
)


@pytest.mark.parametrize("noise", [b"SLF4J: ", b"\n", b"[2026-11-28 05:00:00,000] WARN x "])
def test_noise_that_a_client_wrote_makes_no_line_before_it_believed(noise: bytes) -> None:
    first = batch(0, 1, 0).replace(b"size: 100", b"size: 900")
    text = (
        dumping("orders-0")
        + first
        + record(0, printed=False, headers=FORGED.replace(b"position: 100", b"position: 900") + noise)
    )
    ((*_, rows),) = said(text).sections
    assert rows
    assert all(row["marker"] is None or row["is_contested"] or row["may_be_header_keys"] for row in rows)


def test_noise_where_header_keys_can_go_on_is_named_and_not_read() -> None:
    """Where the text ends as a record's must, the line can be a part of its key."""
    first = batch(0, 1, 0).replace(b"size: 100", b"size: 900")
    text = dumping("orders-0") + first + record(0, printed=False)
    line = KINDS["slf4j"]
    assert said(text + line[:-1] + b"]\n").unread == [(len(text), len(text) + len(line) + 1)]
    assert not said(text + line).unread


def exported(*names: str) -> bytes:
    return console_json([StateRecord(name, ENDED) for name in names]).encode()


@pytest.mark.parametrize("end", [b"^C", b"^C\n", b"^CProcessed a total of 2 messages\n", TIMED_OUT, b"\n\n"])
@pytest.mark.parametrize("start", [b"", KINDS["slf4j"]])
def test_an_export_may_end_by_ctrl_c_or_by_its_time(start: bytes, end: bytes) -> None:
    for text in (exported("a", "b"), console_text([StateRecord(name, ENDED) for name in "ab"]).encode()):
        found, clean = said(start + text + end), said(text)
        assert (found.problem, found.unread) == (None, [])
        assert found.sections == clean.sections


@pytest.mark.parametrize("count", [1, 3])
def test_an_export_of_which_the_consumer_counted_another_number_lacks_a_record(count: int) -> None:
    ((*_, rows),) = said(exported("a", "b") + b"Processed a total of %d messages\n" % count).sections
    assert [row["is_undecodable"] for row in rows] == [False, False, True]


@pytest.mark.parametrize(
    "line", [b"[2026-11-28 05:00:00,000] ERROR Error processing message, skipping this message:\n"]
)
def test_an_export_that_skipped_a_message_lacks_a_record(line: bytes) -> None:
    for text in (exported("a"), console_text([StateRecord("a", ENDED)]).encode()):
        ((*_, rows),) = said(text + line).sections
        assert [row["is_undecodable"] for row in rows] == [False, True]
