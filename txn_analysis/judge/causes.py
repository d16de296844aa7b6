"""Why an open transaction is open: the first cause that explains the facts, how sure that is, and what speaks against.

A cause never decides a verdict. Sources: KIP-890 for writes that come late or unannounced, KIP-664 for what makes a
transaction hang, KAFKA-9144 for coordinator epochs, KIP-360 for epoch exhaustion.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from txn_analysis.judge.cause_words import EVIDENCE_FOR, evidence_against

if TYPE_CHECKING:
    from collections.abc import Callable

    from txn_analysis.config import Settings

Row = dict[str, Any]

# TransactionMetadata.isEpochExhausted: at this epoch the coordinator gives the id a new producer id.
EXHAUSTED_EPOCH = 2**15 - 2
# An EndTxn that a client repeats comes within its delivery time-out (KafkaProducer, delivery.timeout.ms).
_LONGEST_RETRY_MS = 120_000


class Confidence(StrEnum):
    """How sure a cause is, from least to most."""

    UNKNOWN = "unknown"  # the facts explain nothing
    POSSIBLE = "possible"  # some facts point to it, and evidence is missing
    LIKELY = "likely"  # it explains all facts, and something else could as well
    CERTAIN = "certain"  # nothing else explains the facts

    @property
    def rank(self) -> int:
        """0 for the least sure."""
        return list(Confidence).index(self)


@dataclass(frozen=True)
class Cause:
    """A name, and how sure it is of a row of facts; None where it explains nothing there."""

    name: str
    confidence: Callable[[Row], Confidence | None]


def cause_of(facts: Row, settings: Settings, as_of_ms: int | None) -> Row:
    """The cause of one judged open transaction, as plain data: name, confidence, evidence for and against.

    Args:
        facts: its row after judging, with `verdict`, the facts of `judge.facts` and those of `judge.origins`.
        settings: the allowance for clocks, and when ids expire.
        as_of_ms: when the files were copied.
    """
    row = facts | {
        "skew_ms": settings.max_clock_skew_ms,
        "expired_before_ms": None if as_of_ms is None else as_of_ms - settings.transactional_id_expiration_ms,
    }
    found = ((cause, confidence) for cause in CAUSES if (confidence := cause.confidence(row)) is not None)
    cause, confidence = next(found, (UNEXPLAINED, Confidence.UNKNOWN))
    row["confidence"] = min(confidence, _most(row), key=lambda c: c.rank)
    return {
        "name": cause.name,
        "confidence": row["confidence"].value,
        "evidence_for": [fact for fact in EVIDENCE_FOR[cause.name](row) if fact is not None],
        "evidence_against": [fact for fact in evidence_against(cause.name, row) if fact is not None],
    }


def _most(row: Row) -> Confidence:
    """No cause is surer than the evidence that it is read from."""
    if row["verdict"] == "inconclusive":
        return Confidence.POSSIBLE
    if row["is_state_behind"] or row["is_unbounded"] or row["is_epoch_ahead"]:
        return Confidence.CERTAIN if row["is_listed"] else Confidence.POSSIBLE
    return Confidence.CERTAIN


def _is(condition: bool | None, confidence: Confidence) -> Confidence | None:
    return confidence if condition else None


def _sure(row: Row) -> Confidence:
    """How sure a cause is that rests on the id's records since the producer's last end marker here."""
    return Confidence.LIKELY if row["has_history_gap"] or row["is_order_doubtful"] else Confidence.CERTAIN


def _is_known(row: Row) -> bool:
    return row["transactional_id"] is not None


def _is_before(left: int | None, right: int | None, allowance_ms: int = 0) -> bool:
    """Proven to be before, whatever the clocks differ by."""
    return left is not None and right is not None and left + allowance_ms < right


def _has_marker(row: Row) -> bool:
    return row["last_marker_ms"] is not None


def _is_stale(row: Row) -> Confidence | None:
    is_older = row["is_older_by_clock"] or row["is_older_by_epoch"]
    return _is(row["is_listed"] and is_older, Confidence.CERTAIN)


def _may_be_stale(row: Row) -> Confidence | None:
    """By the client's own clock it was made no later than a transaction that had ended before."""
    was_made_before = row["previous_last_timestamp_ms"] is not None and (
        row["last_timestamp_ms"] is not None and row["last_timestamp_ms"] <= row["previous_last_timestamp_ms"]
    )
    is_of_this_one = _is_before(row["coordinator_start_ms"], row["appended_after_ms"])
    is_running = row["is_listed"] and row["coordinator_state"] == "Ongoing"
    return _is(row["is_late"] and is_running and was_made_before and not is_of_this_one, Confidence.POSSIBLE)


def _is_epoch_back(row: Row) -> Confidence | None:
    """KAFKA-9144: the partition has seen a higher coordinator epoch, so that a later marker is refused."""
    has_fallen = row["has_coordinator_epoch_fallen"]
    seen, current = row["coordinator_epoch"], row["state_leader_epoch"]
    is_fenced = seen is not None and current is not None and seen > current
    is_running = row["is_listed"] and row["coordinator_state"] == "Ongoing"
    return _is((has_fallen or is_fenced) and not is_running, Confidence.LIKELY)


def _is_marker_missing(row: Row) -> Confidence | None:
    if row["is_listed"] and row["coordinator_state"] in ("PrepareCommit", "PrepareAbort"):
        return Confidence.CERTAIN
    if not _is_unlisted(row) or row["listed_since_ms"] is None:
        return None
    if row["prepared_ms"] is None:
        return Confidence.POSSIBLE
    if _is_before(row["first_appended_before_ms"], row["prepared_ms"], row["skew_ms"]):
        return Confidence.CERTAIN
    # Without its time, the marker of that decision may be one that retention or compaction removed.
    return Confidence.LIKELY if _has_marker(row) else Confidence.POSSIBLE


def _is_overdue(row: Row) -> Confidence | None:
    is_running = row["is_listed"] and row["coordinator_state"] == "Ongoing"
    return _is(is_running and row["is_transaction_overdue"], Confidence.CERTAIN)


def _is_in_progress(row: Row) -> Confidence | None:
    return _is(row["is_listed"] and row["coordinator_state"] == "Ongoing", Confidence.CERTAIN)


def _is_unlisted(row: Row) -> bool:
    return _is_known(row) and not row["is_listed"]


def _is_written_after_expiry(row: Row) -> Confidence | None:
    is_after = _is_before(row["tombstone_ms"], row["appended_after_ms"], row["skew_ms"])
    return _is(_is_unlisted(row) and is_after, Confidence.CERTAIN)


def _follows_marker(row: Row) -> bool:
    """The data came after an end marker of its producer, and before any other transaction of it began."""
    began_ms, new_ms = row["began_since_ms"], row["new_epoch_ms"]
    is_before_others = all(ms is None or _is_before(row["first_appended_before_ms"], ms) for ms in (began_ms, new_ms))
    nothing_since = began_ms is None and new_ms is None
    return _is_unlisted(row) and _has_marker(row) and (nothing_since or is_before_others)


def _is_late_end(row: Row) -> Confidence | None:
    """The client went on writing after the marker, and an equal decision had been made just before (a repeat)."""
    is_brokers_time = row["appended_after_ms"] == row["appended_before_ms"] == row["last_timestamp_ms"]
    wrote_on = _is_before(row["last_marker_ms"], row["last_timestamp_ms"], row["skew_ms"]) and not is_brokers_time
    again_ms = row["ended_again_after_ms"]
    is_repeat = again_ms is not None and again_ms <= _LONGEST_RETRY_MS
    is_credible = row["lateness_basis"] == "last_timestamp"
    return _is(_follows_marker(row) and wrote_on and is_repeat and is_credible, Confidence.POSSIBLE)


def _is_late_write(row: Row) -> Confidence | None:
    return _is(_follows_marker(row), _sure(row))


def _is_old_epoch(row: Row) -> Confidence | None:
    return _is(_is_unlisted(row) and row["new_epoch_ms"] is not None, _sure(row))


def _is_rotated(row: Row) -> Confidence | None:
    if not _is_unlisted(row) or row["rotated_to"] is None:
        return None
    if row["is_rotation_recorded"]:
        return Confidence.CERTAIN
    is_exhausted = row["last_own_epoch"] is not None and row["last_own_epoch"] >= EXHAUSTED_EPOCH
    return _is(is_exhausted, Confidence.LIKELY)


def _is_expired(row: Row) -> Confidence | None:
    is_gone = row["rotated_to"] is not None or row["coordinator_state"] == "Tombstone"
    return _is(_is_unlisted(row) and is_gone, Confidence.LIKELY)


def _is_unannounced(row: Row) -> Confidence | None:
    if not _is_unlisted(row):
        return None
    is_free_of_markers = not _has_marker(row) and row["coordinator_epoch_basis"] == "none_seen"
    is_in_later = _is_before(row["began_since_ms"], row["appended_after_ms"], row["skew_ms"])
    return _sure(row) if is_free_of_markers or is_in_later else Confidence.LIKELY


def _is_never_known(row: Row) -> Confidence | None:
    if _is_known(row):
        return None
    # An id that wrote within the expiration time would still be here, or be a tombstone.
    is_recent = _is_before(row["expired_before_ms"], row["appended_after_ms"], row["skew_ms"])
    return _is(is_recent, Confidence.POSSIBLE if row["state_gaps"] else Confidence.LIKELY)


def _is_forgotten(row: Row) -> Confidence | None:
    return _is(not _is_known(row), Confidence.POSSIBLE)


CAUSES = (
    Cause("late_write_joined_next_transaction", _is_stale),
    Cause("coordinator_epoch_went_back", _is_epoch_back),
    Cause("marker_missing", _is_marker_missing),
    Cause("coordinator_overdue", _is_overdue),
    Cause("late_write_joined_next_transaction", _may_be_stale),
    Cause("transaction_in_progress", _is_in_progress),
    Cause("transactional_id_expired", _is_written_after_expiry),
    Cause("late_end_txn", _is_late_end),
    Cause("late_write_after_marker", _is_late_write),
    Cause("old_epoch_left_open", _is_old_epoch),
    Cause("producer_id_rotated", _is_rotated),
    Cause("transactional_id_expired", _is_expired),
    Cause("write_before_partition_added", _is_unannounced),
    Cause("producer_id_never_known", _is_never_known),
    Cause("transactional_id_expired", _is_forgotten),
)
UNEXPLAINED = Cause("unexplained", lambda _: Confidence.UNKNOWN)
CAUSE_NAMES = tuple(dict.fromkeys(cause.name for cause in (*CAUSES, UNEXPLAINED)))
