"""Early warning: what does not hang yet and will, and by when; from the open transactions and the coordinator's state.

A new kind is an object, and a place in the tuple of what it is about: open transactions, last records of ids, or
aborts. `warning_steps` makes lines of what they find, and `pipeline` brings the histories.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from txn_analysis.coordinator.history import History
from txn_analysis.judge.case import Case
from txn_analysis.judge.endings import TAKEN_OVER_WITHIN_MS
from txn_analysis.kafka.transactions import (
    COMPLETED,
    EMPTY,
    EXHAUSTED_EPOCH,
    NEVER_TIMES_OUT_MS,
    ONGOING,
    PREPARE_ABORT,
    TWO_PHASE_COMMIT,
    StateRecord,
)
from txn_analysis.logic import minus, more, plus
from txn_analysis.settings import Settings

_NEAR = 0.75  # of a bound: from here on it is near
_TIMES_THE_MEDIAN = 10
_MEDIAN_FROM = 30  # ids
_MOST_FAR = 0.1  # of them
_EPOCHS_LEFT = 1_000
_EXPIRES_WITHIN_MS = 86_400_000


@dataclass(frozen=True, kw_only=True)
class EarlyWarning:
    """A kind of warning, and its words.

    Attributes:
        kind: as reports and metrics print it.
        meaning: what it warns of, in half a sentence.
        text: what was seen and what will happen, with `{score}` for the number that made it, and `{at}` for the moment.
    """

    kind: str
    meaning: str
    text: str


@dataclass(frozen=True)
class Known:
    """What a warning about ids knows beside their last records.

    Attributes:
        settings: as for the audit.
        as_of_ms: when the files were copied; None where no broker's clock speaks.
        median_ms: of the timeouts of all ids that are not gone; None where it says nothing of the others.
    """

    settings: Settings
    as_of_ms: int | None
    median_ms: int | None


@dataclass(frozen=True, kw_only=True)
class IdWarning(EarlyWarning):
    """A warning about the last record of a transactional id; it is asked of many ids at once, as columns.

    `when` is its condition, which holds where it is true; NULL where it cannot be told. `score` is a whole number by
    which the worst id is found, higher is worse, which is known wherever the condition holds. `at` is when it happens
    that is warned of; NULL where no clock says that.
    """

    when: Callable[[pa.StructArray, Known], pa.Array]
    score: Callable[[pa.StructArray, Known], pa.Array]
    at: Callable[[pa.StructArray, Known], pa.Array] = lambda last, _: pa.nulls(len(last), pa.int64())


@dataclass(frozen=True, kw_only=True)
class AbortWarning(EarlyWarning):
    """A warning about ids whose transactions were aborted by the coordinator again and again.

    `when` is asked of each PrepareAbort record that raised the epoch, and of the record behind its completion, if any.
    """

    when: Callable[[StateRecord, StateRecord | None], bool]


OPEN_TRANSACTION_NEAR_BOUND = EarlyWarning(
    kind="open_transaction_near_bound",
    meaning="an open transaction will soon be late",
    text="open from offset {start}, late in {score} ms, from {at} on: who reads up to it waits until it is ended",
)


def is_near_bound(case: Case) -> bool:
    """Of an open transaction: not late yet, and more than three quarters of the way there."""
    by_ms = case.late_by_ms
    return by_ms is not None and case.is_late is False and by_ms > -(1 - _NEAR) * case.settings.late_after_ms


def _ms(number: int | None) -> pa.Scalar:
    return pa.scalar(number, pa.int64())


def _timeout(last: pa.StructArray, _: Known) -> pa.Array:
    return last.field("timeout_ms")


def _bounded_timeout_ms(last: pa.StructArray) -> pa.Array:
    """The timeout; NULL where it is not known, or is the one that is none."""
    timeout_ms = last.field("timeout_ms")
    return pc.if_else(pc.equal(timeout_ms, NEVER_TIMES_OUT_MS), None, timeout_ms)


def _share_of_timeout(last: pa.StructArray, known: Known) -> pa.Array:
    """How much of its time is over, in per cent."""
    timeout_ms, over_ms = last.field("timeout_ms"), pc.subtract(_ms(known.as_of_ms), last.field("start_ms"))
    return pc.divide(pc.multiply(over_ms, 100), pc.if_else(pc.equal(timeout_ms, 0), None, timeout_ms))


def _is_near_timeout(last: pa.StructArray, known: Known) -> pa.Array:
    share, is_going_on = _share_of_timeout(last, known), pc.equal(last.field("state"), ONGOING)
    is_near = pc.and_(pc.greater_equal(share, _NEAR * 100), pc.less(share, 100))
    return pc.and_(pc.and_(is_near, is_going_on), pc.is_valid(_bounded_timeout_ms(last)))


TRANSACTION_NEAR_TIMEOUT = IdWarning(
    kind="transaction_near_timeout",
    meaning="most of a transaction's time is over, and nothing is decided",
    text="{score} % of its timeout is over and nothing is decided: its coordinator aborts it soon after {at}",
    when=_is_near_timeout,
    score=_share_of_timeout,
    at=lambda last, _: pc.add(last.field("start_ms"), last.field("timeout_ms")),
)


def _is_above_maximum(last: pa.StructArray, known: Known) -> pa.Array:
    """Above transaction.max.timeout.ms, as set before that was lowered."""
    return pc.greater(_bounded_timeout_ms(last), known.settings.transaction_max_timeout_ms)


TIMEOUT_ABOVE_MAXIMUM = IdWarning(
    kind="timeout_above_maximum",
    meaning="a timeout is above transaction.max.timeout.ms",
    text="timeout of {score} ms, above transaction.max.timeout.ms: what it leaves open holds partitions for that long, "
    "and InitProducerId with that timeout fails",
    when=_is_above_maximum,
    score=_timeout,
)


def _is_outlier(last: pa.StructArray, known: Known) -> pa.Array:
    """Far above the median, and not above the brokers' maximum, which has a warning of its own."""
    is_far = pc.greater(_bounded_timeout_ms(last), pc.multiply(_ms(known.median_ms), _TIMES_THE_MEDIAN))
    return pc.and_(is_far, pc.invert(_is_above_maximum(last, known)))


TIMEOUT_OUTLIER = IdWarning(
    kind="timeout_outlier",
    meaning="a timeout is more than 10 times the median, among many ids of which few have such a one",
    text="timeout of {score} ms, more than 10 times the median: it can hold partitions for that long",
    when=_is_outlier,
    score=_timeout,
)

NEVER_TIMES_OUT = IdWarning(
    kind="never_times_out",
    meaning="a transaction never times out",
    text=TWO_PHASE_COMMIT,
    when=lambda last, _: pc.equal(last.field("timeout_ms"), NEVER_TIMES_OUT_MS),
    score=_timeout,
)

EPOCH_NEAR_EXHAUSTION = IdWarning(  # `TransactionMetadata.isEpochExhausted`, KIP-360
    kind="epoch_near_exhaustion",
    meaning="producer epochs are nearly used up",
    text="epoch {score}: at 32766 it gets a new producer id",
    when=lambda last, _: pc.greater_equal(last.field("producer_epoch"), EXHAUSTED_EPOCH - _EPOCHS_LEFT),
    score=lambda last, _: last.field("producer_epoch"),
)


def _unused_ms(last: pa.StructArray, known: Known) -> pa.Array:
    return pc.subtract(_ms(known.as_of_ms), last.field("last_update_ms"))


def _is_about_to_expire(last: pa.StructArray, known: Known) -> pa.Array:
    """Nothing is in progress, and it was last used long ago."""
    is_long_ago = pc.greater(
        _unused_ms(last, known), known.settings.transactional_id_expiration_ms - _EXPIRES_WITHIN_MS
    )
    return pc.and_(is_long_ago, pc.is_in(last.field("state"), pa.array([EMPTY, *COMPLETED])))


ABOUT_TO_EXPIRE = IdWarning(
    kind="about_to_expire",
    meaning="an id will be forgotten within a day",
    text="not used for {score} ms: the coordinator forgets it from {at} on, and its next use then fails",
    when=_is_about_to_expire,
    score=_unused_ms,
    at=lambda last, known: pc.add(last.field("last_update_ms"), known.settings.transactional_id_expiration_ms),
)


def _is_timeout(abort: StateRecord, _: StateRecord | None) -> bool:
    """The time of the transaction was over."""
    due_ms = plus(abort.start_ms, abort.timeout_ms)
    return abort.last_update_ms is not None and due_ms is not None and abort.last_update_ms >= due_ms


MANY_TIMEOUTS = AbortWarning(
    kind="many_timeouts",
    meaning="an id's transactions are timed out again and again",
    text="{score} of its transactions were timed out by the coordinator: each held its partitions until its timeout",
    when=_is_timeout,
)


def _is_fencing(abort: StateRecord, later: StateRecord | None) -> bool:
    """A new instance began right after it."""
    passed_ms = None if later is None else minus(later.last_update_ms, abort.last_update_ms)
    is_new = later is not None and later.state == EMPTY
    return is_new and passed_ms is not None and passed_ms <= TAKEN_OVER_WITHIN_MS


MANY_FENCINGS = AbortWarning(
    kind="many_fencings",
    meaning="an id is taken over again and again in the middle of transactions",
    text="{score} times a new instance took it over in the middle of a transaction",
    when=_is_fencing,
)

OF_LAST_RECORDS: tuple[IdWarning, ...] = (
    TRANSACTION_NEAR_TIMEOUT,
    TIMEOUT_ABOVE_MAXIMUM,
    TIMEOUT_OUTLIER,
    NEVER_TIMES_OUT,
    EPOCH_NEAR_EXHAUSTION,
    ABOUT_TO_EXPIRE,
)
OF_ABORTS: tuple[AbortWarning, ...] = (MANY_TIMEOUTS, MANY_FENCINGS)
"""Of one abort the first that holds counts."""

WARNINGS: tuple[EarlyWarning, ...] = (OPEN_TRANSACTION_NEAR_BOUND, *OF_LAST_RECORDS, *OF_ABORTS)

MANY = 3
"""From so many aborts of one kind on an id is warned of."""


def median_of(timeouts_ms: Mapping[int, int]) -> int | None:
    """The median of timeouts, of two in the middle the lower one; None where it says nothing of the others.

    So it is for few ids, and where more than a few are far above it: then there are two kinds of application, and
    neither is an outlier. Of 30 values the true median is among the middle third with 95.7 % (binomial), of 12 nearly
    anywhere.

    Args:
        timeouts_ms: how many ids have each of them.
    """
    known = sorted(Counter(timeouts_ms).elements())
    if len(known) < _MEDIAN_FROM:
        return None
    median_ms = known[(len(known) - 1) // 2]
    far = sum(timeout_ms > median_ms * _TIMES_THE_MEDIAN for timeout_ms in known)
    return median_ms if far <= len(known) * _MOST_FAR else None


def kinds_of_aborts(history: History) -> Iterator[str]:
    """Of each abort that raised the epoch the first kind that holds, if it is one to be warned of."""
    for n, record in enumerate(history):
        if record.state != PREPARE_ABORT or not n or not _is_raised(history[n - 1], record):
            continue
        later = history[n + 2] if n + 2 < len(history) else None
        yield from [warning.kind for warning in OF_ABORTS if warning.when(record, later)][:1]


def _is_raised(before: StateRecord, abort: StateRecord) -> bool:
    """The transaction was going on, and its producer got a newer epoch."""
    is_same = abort.producer_id is not None and before.producer_id == abort.producer_id
    return before.state == ONGOING and is_same and more(abort.producer_epoch, before.producer_epoch) is True
