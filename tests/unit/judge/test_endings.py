"""How a transaction came to its end (KAFKA-9803): one story each, told by the coordinator's records."""

import random
from typing import Any

from tests.tools.cases import cases
from tests.tools.coordinator_rows import record
from txn_analysis.judge.endings import EndedTransaction, IdHistory, ending_of, explains_before_ms
from txn_analysis.kafka.transactions import StateRecord

TIMEOUT_MS = 60_000
START_MS = 100_000
DUE_MS = START_MS + TIMEOUT_MS


def ongoing(epoch: int, *, version: int | None = None, start_ms: int | None = START_MS) -> StateRecord:
    return record("Ongoing", START_MS, epoch=epoch, start_ms=start_ms, client_transaction_version=version)


def abort(at_ms: int, epoch: int) -> list[StateRecord]:
    return [
        record("PrepareAbort", at_ms, start_ms=START_MS, epoch=epoch),
        record("CompleteAbort", at_ms + 5, start_ms=START_MS, epoch=epoch),
    ]


def ended(at_ms: int, epoch: int, outcome: str = "ABORT", **changes: Any) -> EndedTransaction:
    """The end of a transaction on orders-0, whose marker was written three milliseconds after the decision."""
    transaction = EndedTransaction(
        topic="orders",
        partition=0,
        producer_id=7,
        txn_start_offset=100,
        end_offset=105,
        outcome=outcome,
        end_timestamp_ms=at_ms + 3,
        previous_end_ms=None,
        end_producer_epoch=epoch,
        first_producer_epoch=3,
        max_producer_epoch=3,
        first_appended_before_ms=None,
        record_count=5,
    )
    return transaction._replace(**changes)


def cause(transaction: EndedTransaction, *history: StateRecord) -> tuple[str, str]:
    found = ending_of(transaction, IdHistory(history), max_clock_skew_ms=0).cause
    return found.name, found.confidence.value


@cases(
    "row history expected",
    {
        "only-a-client-commits": (
            ended(START_MS + 10, 3, "COMMIT"),
            [ongoing(3), record("PrepareCommit", START_MS + 10, start_ms=START_MS)],
            ("client_commit", "certain"),
        ),
        "an-abort-without-a-raised-epoch-is-the-clients": (
            ended(START_MS + 10, 3),
            [ongoing(3), *abort(START_MS + 10, 3)],
            ("client_abort", "certain"),
        ),
        "raised-when-its-time-was-over": (
            ended(DUE_MS, 4),
            [ongoing(3), *abort(DUE_MS, 4)],
            ("coordinator_timeout", "certain"),
        ),
        "raised-before-its-time-was-over-and-taken-over": (
            ended(DUE_MS - 1, 4),
            [ongoing(3), *abort(DUE_MS - 1, 4), record("Empty", DUE_MS + 200, epoch=5)],
            ("fenced_by_new_instance", "certain"),
        ),
        "raised-at-its-time-and-taken-over-at-once": (
            ended(DUE_MS, 4),
            [ongoing(3), *abort(DUE_MS, 4), record("Empty", DUE_MS + 200, epoch=5)],
            ("coordinator_timeout", "likely"),
        ),
        "with-version-2-a-client-could-have-aborted-at-that-moment": (
            ended(DUE_MS, 4),
            [ongoing(3, version=2), *abort(DUE_MS, 4)],
            ("coordinator_timeout", "likely"),
        ),
        "with-version-2-a-clients-own-abort-raises-the-epoch": (
            ended(START_MS + 10, 4),
            [ongoing(3, version=2), *abort(START_MS + 10, 4)],
            ("client_abort", "likely"),
        ),
        "the-same-instance-went-on": (
            ended(DUE_MS, 4),
            [ongoing(3, version=2), *abort(DUE_MS, 4), record("Ongoing", DUE_MS + 50, epoch=4, start_ms=DUE_MS + 50)],
            ("client_abort", "certain"),
        ),
        "with-version-2-a-restart-after-an-abort-looks-like-a-fencing": (
            ended(START_MS + 10, 4),
            [ongoing(3, version=2), *abort(START_MS + 10, 4), record("Empty", START_MS + 110, epoch=5)],
            ("fenced_by_new_instance", "likely"),
        ),
        "text-dumps-do-not-tell-the-version": (
            ended(START_MS + 10, 4),
            [ongoing(3, start_ms=None), *abort(START_MS + 10, 4)],
            ("fenced_by_new_instance", "possible"),
        ),
        "a-second-marker-without-a-decision-is-an-administrators": (
            ended(START_MS + 900_000, 3, previous_end_ms=START_MS + 13),
            [ongoing(3), *abort(START_MS + 10, 3)],
            ("administrator_marker", "likely"),
        ),
        "compaction-left-the-completion": (
            ended(START_MS + 10, 3),
            [record("CompleteAbort", START_MS + 12, start_ms=START_MS)],
            ("client_abort", "certain"),
        ),
        "nobody-has-its-producer-id": (ended(START_MS + 10, 3), [], ("unexplained", "unknown")),
        "its-records-were-compacted-away": (
            ended(START_MS + 10, 3, "COMMIT"),
            [record("Empty", DUE_MS)],
            ("unexplained", "unknown"),
        ),
    },
)
def test_how_it_ended(row: EndedTransaction, history: list[StateRecord], expected: tuple[str, str]) -> None:
    assert cause(row, *history) == expected


def test_a_commit_that_published_records_of_an_older_transaction_says_so() -> None:
    history = IdHistory([ongoing(3), record("PrepareCommit", START_MS + 10, start_ms=START_MS)])
    row = ended(START_MS + 10, 3, "COMMIT", first_appended_before_ms=START_MS - 1)
    stale = ending_of(row, history, max_clock_skew_ms=0)
    assert stale.cause.name == "client_commit"
    assert "its transaction began at" in (stale.stale_because or "")
    assert ending_of(row, history, max_clock_skew_ms=1).stale_because is None
    assert ending_of(row._replace(first_appended_before_ms=START_MS), history, 0).stale_because is None


def test_a_commit_of_two_epochs_held_records_of_an_older_one() -> None:
    history = IdHistory([ongoing(4), record("PrepareCommit", START_MS + 10, epoch=4, start_ms=START_MS)])
    row = ended(START_MS + 10, 4, "COMMIT", first_producer_epoch=3, max_producer_epoch=4)
    assert ending_of(row, history, 0).stale_because == "its first batch has epoch 3, its transaction ran at 4"


def test_an_end_long_before_the_first_record_has_no_cause() -> None:
    chance, explained = random.Random(5), 0
    for _ in range(4_000):
        records = [
            record(
                chance.choice(["Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort"]),
                START_MS + 1_000 * chance.randrange(30),
                epoch=chance.choice([3, 4]),
                start_ms=START_MS,
                recorded_ms=START_MS + 1_000 * chance.randrange(30),
            )
            for _ in range(chance.randrange(1, 4))
        ]
        row = ended(
            START_MS + 1_000 * chance.randrange(-15, 30), chance.choice([3, 4]), chance.choice(["ABORT", "COMMIT"])
        )
        skew_ms = chance.choice([0, 500, 12_000])
        found = ending_of(row, IdHistory(records), skew_ms)
        first_ms = min(ms for r in records for ms in (r.recorded_ms, r.last_update_ms) if ms is not None)
        if found.cause.name != "unexplained" or found.stale_because is not None:
            explained += 1
            assert row.end_timestamp_ms is not None
            assert row.end_timestamp_ms >= first_ms - explains_before_ms(skew_ms)
    assert explained > 500
