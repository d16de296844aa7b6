"""What is at an offset, in words: what was written by others is inert, and nothing is said that is not known."""

from typing import Any

from txn_analysis.questions.offset_answer import (
    BatchAt,
    Blocker,
    BoundedReader,
    Found,
    Gets,
    OffsetAnswer,
    TransactionAt,
    bounded_sentence,
    offset_text,
)

BATCH = BatchAt(10, 14, 5, 7, 0, True, False, None, None, 1_000, "CreateTime", 300, None, False, False)
BOUNDED = BoundedReader(10, 20, 0, 5, 0, True)


def answer(**fields: Any) -> OffsetAnswer:
    """A committed record that a consumer is given, at offset 12 of a log of 40."""
    known: dict[str, Any] = {
        "run_id": "run-1", "topic": "orders", "partition": 0, "offset": 12, "found": Found.COMMITTED_DATA,
        "gets": Gets.RECORD, "is_told": True, "batch": BATCH, "first_offset": 0, "log_start_offset": None,
        "end_offset": 40, "last_stable_offset": 40, "lag_to_end": 28, "lag_to_last_stable": 28,
    }  # fmt: skip
    return OffsetAnswer(**known | fields)


def flat(shown: OffsetAnswer, options: str = "") -> str:
    return " ".join(offset_text(shown, options).split())


def test_a_batch_that_compaction_thinned_may_not_hold_the_record() -> None:
    thinned = flat(answer(batch=BATCH._replace(record_count=2)))
    assert "2 records left by compaction, perhaps not this one" in thinned
    assert "left by compaction" not in flat(answer())


def test_a_clients_time_is_said_to_be_one() -> None:
    assert "1970-01-01T00:00:01.000Z (client)" in flat(answer())
    assert "(client)" not in flat(answer(batch=BATCH._replace(timestamp_type="LogAppendTime")))
    assert "(client)" not in flat(answer(topic="__consumer_offsets"))


def test_ids_and_topics_are_shown_escaped_and_typed_as_one_word() -> None:
    hostile = "a\nFIRED\x1b[2J; rm -rf '"
    held = Blocker(7, hostile, 10, "hanging", "unknown_producer")
    transaction = TransactionAt(7, 10, None, "open", (hostile,))
    shown = offset_text(
        answer(topic="-rf\n", gets=Gets.NOTHING_YET, transaction=transaction, blocked_by=held), " --warehouse w"
    )
    assert r"a\nFIRED\x1b[2J; rm -rf '" in " ".join(shown.split())
    assert "\x1b" not in shown
    assert shown.startswith(r"-rf\n-0:12: data of a committed transaction" + "\n")
    assert "explain  txn-analysis explain --topic=" in shown
    assert shown.endswith(" --partition 0 --start-offset 10 --run run-1 --warehouse w\n")


def test_what_is_not_known_of_a_bounded_reader_is_not_said() -> None:
    assert bounded_sentence(BOUNDED).endswith(
        "ends at 10 without an error; 20 committed records above it are missing from what it read"
    )
    one = bounded_sentence(BOUNDED._replace(committed_record_count=1, unknown_record_count=3))
    assert "1 committed record above it is missing from what it read, and perhaps 3 more" in one
    assert "how many committed records lie above is not known" in bounded_sentence(
        BOUNDED._replace(committed_record_count=None)
    )
    assert "at least 20 committed records" in bounded_sentence(BOUNDED._replace(is_whole=False, ends_at_offset=None))
