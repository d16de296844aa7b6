"""Every hostile text is read to its end: no exception, every byte accounted for, in time."""

import time
from itertools import islice

import pytest

from tests.proof.hostile.checks import problems_of
from tests.proof.hostile.corpus import CUT_FILES, cut_anywhere
from tests.proof.hostile.numbers import out_of_range
from tests.proof.hostile.texts import JSON_RECORD, bad_json, odd_payloads, slow_lines
from tests.tools.dump_texts import batch, dumping
from tests.tools.inputs import InputReader

SMALL_RANGE_BYTES = 4096
# One MiB takes a second or two; what grows with the square of it takes hours.
DEADLINE_S = 60
ODD = odd_payloads() | bad_json()


@pytest.mark.parametrize("range_bytes", [1 << 25, 100])
def test_odd_bytes_are_accounted_for(reader: InputReader, range_bytes: int) -> None:
    found = {name: problems_of(reader, text, range_bytes) for name, text in ODD.items()}
    assert {name: problems for name, problems in found.items() if problems} == {}


@pytest.mark.parametrize("payload", ["no UTF-8", "no UTF-8, with newlines", "Unicode line ends", "carriage returns"])
def test_a_payload_of_any_bytes_is_no_broken_evidence(reader: InputReader, payload: str) -> None:
    found = reader.read(ODD[f"payload of {payload}"])
    (batches,) = found.batches
    assert found.rejects == []
    assert batches.columns["record_line_count"].tolist() == [1, 1]
    assert batches.columns["is_contested"].tolist() == [False, False]


@pytest.mark.parametrize("name", [name for name in ODD if name.startswith("console")])
def test_bad_json_leaves_a_mark_that_something_is_missing(reader: InputReader, name: str) -> None:
    found = reader.read(ODD[name])
    assert [row["transactional_id"] for row in found.records][:1] == ["a"]
    assert any(row["is_undecodable"] for row in found.records) or found.planned.problem is not None


@pytest.mark.parametrize("name", slow_lines(1000))
def test_no_text_takes_more_than_its_length(reader: InputReader, name: str) -> None:
    text = slow_lines()[name]
    began = time.monotonic()
    assert problems_of(reader, text) == []
    assert time.monotonic() - began < DEADLINE_S


def test_numbers_out_of_range_are_no_rows(reader: InputReader) -> None:
    """Every 23rd; the part `corpus` of the proof reads them all."""
    texts = islice(out_of_range(), 3, None, 23)
    assert {name: problems for name, text in texts if (problems := problems_of(reader, text))} == {}


@pytest.mark.cluster  # hundreds of cuts; the proof makes all
@pytest.mark.parametrize("file", CUT_FILES)
def test_a_text_cut_anywhere_is_read_up_to_the_cut(reader: InputReader, file: str) -> None:
    """At every 61st byte; the part `corpus` of the proof cuts at every one."""
    texts = islice(cut_anywhere(file), 0, None, 61)
    assert {name: problems for name, text in texts if (problems := problems_of(reader, text))} == {}


def test_a_file_that_is_not_named_after_an_offset_is_refused(reader: InputReader) -> None:
    text = b"Dumping orders-0/99999999999999999999.snapshot\n"
    assert "not named after an offset" in str(reader.read(text).planned.problem)


def test_a_marker_of_the_wrong_size_is_not_believed(reader: InputReader) -> None:
    control = batch(0, 1, 0).replace(b"isControl: false", b"isControl: true")
    line = b"| offset: 0 CreateTime: 1 keySize: 4 valueSize: %d sequence: -1 headerKeys: [] endTxnMarker: ABORT "
    for size, marker in ((6, "ABORT"), (5, None), (60, None)):
        found = reader.read(dumping("orders-0") + control + line % size + b"coordinatorEpoch: 3\n")
        assert found.batches[0].columns["marker"].tolist() == [marker]


def test_the_longest_console_id_is_recognised(reader: InputReader) -> None:
    name = "x" * 32_767
    line = (
        f"{name}::TransactionMetadata(transactionalId={name}, producerId=1, producerEpoch=0, txnTimeoutMs=1, "
        "state=Empty, pendingState=None, topicPartitions=HashSet(), txnStartTimestamp=-1, txnLastUpdateTimestamp=1)\n"
    )
    assert [row["transactional_id"] for row in reader.read(line.encode()).records] == [name]


def test_good_json_around_bad_json_is_kept(reader: InputReader) -> None:
    found = reader.read(JSON_RECORD + JSON_RECORD.replace(b'"producerId":1', b'"producerId":NaN') + JSON_RECORD)
    assert [row["is_undecodable"] for row in found.records] == [False, True, False]


def test_small_ranges_account_for_forged_lines_too(reader: InputReader) -> None:
    for name in ("payload of a batch line", "raw payload of a section"):
        assert problems_of(reader, ODD[name] * 20, SMALL_RANGE_BYTES) == []
