import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.tools.bodies import Body, Parsed, Row, damaged, parse
from tests.tools.cases import cases
from tests.tools.compiling import NEVER, NOTHING, loading_takes
from tests.tools.repository import CASES
from txn_analysis.reading.grammar.line_form import LineForms
from txn_analysis.reading.log_dir.producer_files import read_snapshot_section, read_txnindex_section
from txn_analysis.reading.text.window import CUT_SHORT, LINE_TOO_LONG, MAX_RECORD_BYTES, Reject

SNAPSHOT = (
    b"producerId: 7 producerEpoch: 3 coordinatorEpoch: 5 currentTxnFirstOffset: OptionalLong[138]"
    b" lastTimestamp: 1795 firstSequence: 0 lastSequence: 4 lastOffset: 142 offsetDelta: 4 timestamp: 1795\n"
)
TXNINDEX = b"version: 0 producerId: 5 firstOffset: 10 lastOffset: 20 lastStableOffset: 21\n"


def snapshots(text: bytes) -> Parsed:
    return parse(read_snapshot_section, Body(text, file_base_offset=205, before=b"Dumping x\n"))


def txnindex(text: bytes) -> Parsed:
    return parse(read_txnindex_section, Body(text))


def entry(**known: int | None) -> Row:
    row = {
        "topic": "orders",
        "partition": 1,
        "snapshot_offset": 205,
        "producer_id": 7,
        "producer_epoch": 3,
        "coordinator_epoch": 5,
        "current_txn_start_offset": 138,
        "last_timestamp_ms": 1795,
        "last_sequence": 4,
        "last_offset": 142,
    }
    return row | known


NO_DATA = {"last_sequence": None, "last_offset": None}


@cases(
    "line row",
    {
        "3.5-open": (SNAPSHOT, entry()),
        "3.1-open": (SNAPSHOT.replace(b"OptionalLong[138]", b"Some(138)"), entry()),
        "1.1-open": (SNAPSHOT.replace(b"OptionalLong[138] lastTimestamp: 1795", b"Some(138)"), entry()),
        "3.5-no-marker-yet": (
            SNAPSHOT.replace(b"OptionalLong[138]", b"OptionalLong.empty").replace(b"Epoch: 5", b"Epoch: -1"),
            entry(coordinator_epoch=None, current_txn_start_offset=None),
        ),
        "3.1-no-data": (
            b"producerId: 7 producerEpoch: 3 coordinatorEpoch: 5 currentTxnFirstOffset: None lastTimestamp: 1795 \n",
            entry(current_txn_start_offset=None, **NO_DATA),
        ),
        "1.1-no-data": (
            b"producerId: 7 producerEpoch: 3 coordinatorEpoch: 5 currentTxnFirstOffset: None \n",
            entry(current_txn_start_offset=None, last_timestamp_ms=None, **NO_DATA),
        ),
        "4.3-no-data": (
            (
                b"producerId: 7 producerEpoch: 3 coordinatorEpoch: 5 currentTxnFirstOffset: OptionalLong.empty "
                b"lastTimestamp: 1795\n"
            ),
            entry(current_txn_start_offset=None, **NO_DATA),
        ),
        "no-timestamp": (SNAPSHOT.replace(b"1795", b"-1"), entry(last_timestamp_ms=None)),
    },
)
def test_snapshot_line_of_every_version(line: bytes, row: Row) -> None:
    assert snapshots(line) == Parsed([row], [])


@cases(
    "line",
    {
        "not-an-int64": SNAPSHOT.replace(b"producerId: 7", b"producerId: 9223372036854775808"),
        "not-an-int16": SNAPSHOT.replace(b"producerEpoch: 3", b"producerEpoch: 32768"),
        "below-minus-one": SNAPSHOT.replace(b"coordinatorEpoch: 5", b"coordinatorEpoch: -2"),
        "two-different-timestamps": SNAPSHOT.replace(b" timestamp: 1795", b" timestamp: 1796"),
        "more-at-the-end": SNAPSHOT.replace(b"\n", b" \n"),
        "carriage-return": SNAPSHOT.replace(b"\n", b"\r\n"),
        "0.11": b"producerId: 1 producerEpoch: 0 lastSequence: 0 lastOffset: 0 offsetDelta: 0\n",
    },
)
def test_line_that_is_not_wholly_an_entry_is_rejected_alone(line: bytes) -> None:
    reject = Reject(10 + len(SNAPSHOT), len(line), "not an entry of a snapshot")
    assert snapshots(SNAPSHOT + line + SNAPSHOT) == Parsed([entry(), entry()], [reject])


def test_noise_is_no_entry_and_loses_nothing() -> None:
    assert snapshots(SNAPSHOT + b"\nSLF4J: x\n" + SNAPSHOT + b"\n") == Parsed([entry(), entry()], [])


def test_last_line_without_its_end_is_rejected() -> None:
    assert snapshots(SNAPSHOT + SNAPSHOT[:-2]) == Parsed(
        [entry()], [Reject(10 + len(SNAPSHOT), len(SNAPSHOT) - 2, CUT_SHORT)]
    )


def test_adjoining_rejects_are_one() -> None:
    assert snapshots(b"x\ny\nz\n").rejects == [Reject(10, 6, "not an entry of a snapshot")]


def test_endless_line_is_rejected_as_a_whole_and_reading_goes_on() -> None:
    garbage = b"x" * (MAX_RECORD_BYTES + 5_000_000) + b"\n"
    assert snapshots(garbage + SNAPSHOT) == Parsed([entry()], [Reject(10, len(garbage), LINE_TOO_LONG)])


def test_text_that_is_shorter_than_its_section_is_rejected_up_to_the_end() -> None:
    class Shrunk(Body):
        def read(self, start: int, end: int) -> bytes:
            return self.text[: len(SNAPSHOT)][start:end]

    parsed = parse(read_snapshot_section, Shrunk(SNAPSHOT * 3, file_base_offset=205))
    assert parsed == Parsed([entry()], [Reject(len(SNAPSHOT), 2 * len(SNAPSHOT), CUT_SHORT)])


def test_txnindex_line() -> None:
    row = {
        "topic": "orders",
        "partition": 1,
        "producer_id": 5,
        "first_offset": 10,
        "last_offset": 20,
        "last_stable_offset": 21,
    }
    assert txnindex(TXNINDEX) == Parsed([row], [])
    assert txnindex(TXNINDEX.replace(b"firstOffset: 10", b"firstOffset: 21")).rows == []
    assert txnindex(TXNINDEX.replace(b"version: 0", b"version: 1")).rows == []


WITHOUT_DATA = SNAPSHOT.partition(b" firstSequence")[0]
WORDS = (
    *(b"-1", b"-2", b"0", b"1796", b"32768", b"2147483648", b"9223372036854775808", b"253402300800000", b"x", b""),
)
SNAPSHOT_WORDS = (*WORDS, b"OptionalLong.empty", b"OptionalLong[-1]", b"OptionalLong[5", b"None", b"Some(7)")
changes = st.lists(st.tuples(st.integers(0, 19), st.sampled_from(SNAPSHOT_WORDS)), max_size=2)


@given(st.lists(st.tuples(st.sampled_from([SNAPSHOT[:-1], WITHOUT_DATA, WITHOUT_DATA + b" "]), changes), max_size=6))
@example([(SNAPSHOT[:-1], []), (WITHOUT_DATA, []), (SNAPSHOT[:-1] + b" ", []), (WITHOUT_DATA + b" ", [])])
@example([(SNAPSHOT[:-1], [(9, b"-1")]), (SNAPSHOT[:-1], [(19, b"-1")]), (SNAPSHOT[:-1], [(5, b"-2")])])
@example([(SNAPSHOT[:-1], [(9, b"1796")]), (SNAPSHOT[:-1], [(9, b"253402300800000"), (19, b"253402300800000")])])
def test_many_entries_are_read_as_one_by_one(texts: list[tuple[bytes, list[tuple[int, bytes]]]]) -> None:
    lines = [line.split(b" ") for line, _ in texts]
    for words, (_, changed) in zip(lines, texts, strict=True):
        for place, word in changed:
            words[place % len(words)] = word
    text = b"".join(b" ".join(words) + b"\n" for words in lines) + b"producerId: 1\n" * 12
    found = []
    for microseconds in (NEVER, NOTHING):
        with loading_takes(microseconds):
            parsed = snapshots(text)
        found.append((sorted(parsed.rows, key=repr), parsed.rejects))
    assert found[0] == found[1]


def test_many_entries_take_the_fast_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LineForms, "read", lambda *_: None)
    with loading_takes(NOTHING):
        parsed = snapshots((SNAPSHOT + WITHOUT_DATA + b" \n") * 1_000)
    assert len(parsed.rows) == 2_000 - 2  # the last ones stand too near to the end of the text


def test_real_snapshots_are_read_whole() -> None:
    paths = sorted(CASES.glob("*/capture-*/producer-snapshots/*.txt"))
    assert paths
    for path in paths:
        for section in path.read_bytes().split(b"Dumping ")[1:]:
            _, _, body = section.partition(b"\n")
            parsed = snapshots(body)
            assert not parsed.rejects
            assert len(parsed.rows) == body.count(b"\n")


@given(st.data())
def test_damage_never_crashes(data: st.DataObject) -> None:
    snapshots(data.draw(damaged(SNAPSHOT * 3)))
    txnindex(data.draw(damaged(TXNINDEX * 3)))
