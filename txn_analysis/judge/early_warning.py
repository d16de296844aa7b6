"""Early warning: what does not hang yet and will, and whose; from the open transactions and the coordinator's state.

A new kind is an object, and a place in the tuple of what it is about: open transactions, last records of ids, or
aborts. Reports print kinds in the order of `WARNINGS`, and count by application (`application_of`), so that a thousand
ids of one job are one line. What is kept is bounded: of each kind the worst applications, and how many ids there are in
all. `pipeline` brings the histories.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from txn_analysis.judge.applications import application_of
from txn_analysis.judge.endings import TAKEN_OVER_WITHIN_MS
from txn_analysis.kafka.transactions import (
    COMPLETED,
    EMPTY,
    EXHAUSTED_EPOCH,
    NEVER_TIMES_OUT_MS,
    ONGOING,
    PREPARE_ABORT,
    TWO_PHASE_COMMIT,
)
from txn_analysis.logic import minus, plus

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from txn_analysis.coordinator.history import History
    from txn_analysis.judge.facts import Lateness
    from txn_analysis.judge.judgement import Judgement
    from txn_analysis.kafka.transactions import StateRecord
    from txn_analysis.settings import Settings

_NEAR = 0.75  # of a bound: from here on it is near
_TIMES_THE_MEDIAN = 10
_EPOCHS_LEFT = 1_000
_EXPIRES_WITHIN_MS = 86_400_000


@dataclass(frozen=True, kw_only=True)
class EarlyWarning:
    """A kind of warning, and its words.

    Attributes:
        kind: as reports and metrics print it.
        meaning: what it warns of, in half a sentence.
        text: what was seen, with `{score}` for the number that made it.
    """

    kind: str
    meaning: str
    text: str


class Abort(NamedTuple):
    """What warnings ask of a PrepareAbort record that raised the epoch, and of what came after its completion."""

    start_ms: int | None
    timeout_ms: int | None
    last_update_ms: int | None
    after_state: str | None
    after_update_ms: int | None


@dataclass(frozen=True)
class Known:
    """What a warning about ids knows beside their last records.

    Attributes:
        settings: as for the audit.
        as_of_ms: when the files were copied; None where no broker's clock speaks.
        median_ms: of the timeouts of all ids that are not gone; None where there are none.
    """

    settings: Settings
    as_of_ms: int | None
    median_ms: int | None


@dataclass(frozen=True, kw_only=True)
class IdWarning(EarlyWarning):
    """A warning about the last record of a transactional id.

    `when` is its condition; `score` a whole number by which the worst id is found, higher is worse, which is known
    wherever the condition holds.
    """

    when: Callable[[StateRecord, Known], bool]
    score: Callable[[StateRecord, Known], int | None]


@dataclass(frozen=True, kw_only=True)
class AbortWarning(EarlyWarning):
    """A warning about ids whose transactions were aborted by the coordinator again and again.

    `when` is asked of each PrepareAbort record that raised the epoch.
    """

    when: Callable[[Abort], bool]


OPEN_TRANSACTION_NEAR_BOUND = EarlyWarning(
    kind="open_transaction_near_bound",
    meaning="an open transaction will soon be late",
    text="open from offset {start}, late in {score} ms",
)


def is_near_bound(lateness: Lateness, settings: Settings) -> bool:
    """Of an open transaction: not late yet, and more than three quarters of the way there."""
    late_by_ms = lateness.late_by_ms
    return late_by_ms is not None and lateness.is_late is False and late_by_ms > -(1 - _NEAR) * settings.late_after_ms


def _timeout(last: StateRecord, _: Known) -> int | None:
    return last.timeout_ms


def _bounded_timeout_ms(last: StateRecord) -> int | None:
    """The timeout; None where it is not known, or is the one that is none."""
    return None if last.timeout_ms == NEVER_TIMES_OUT_MS else last.timeout_ms


def _share_of_timeout(last: StateRecord, known: Known) -> int | None:
    """How much of its time is over, in per cent."""
    over_ms = minus(known.as_of_ms, last.start_ms)
    return over_ms * 100 // last.timeout_ms if over_ms is not None and last.timeout_ms else None


def _is_near_timeout(last: StateRecord, known: Known) -> bool:
    share = _share_of_timeout(last, known)
    if share is None or _bounded_timeout_ms(last) is None:
        return False
    return last.state == ONGOING and _NEAR * 100 <= share < 100


TRANSACTION_NEAR_TIMEOUT = IdWarning(
    kind="transaction_near_timeout",
    meaning="most of a transaction's time is over, and nothing is decided",
    text="{score} % of its timeout is over and the coordinator has nothing decided",
    when=_is_near_timeout,
    score=_share_of_timeout,
)


def _is_above_maximum(last: StateRecord, known: Known) -> bool:
    """Above transaction.max.timeout.ms, as set before that was lowered."""
    timeout_ms = _bounded_timeout_ms(last)
    return timeout_ms is not None and timeout_ms > known.settings.transaction_max_timeout_ms


TIMEOUT_ABOVE_MAXIMUM = IdWarning(
    kind="timeout_above_maximum",
    meaning="a timeout is above transaction.max.timeout.ms",
    text="timeout of {score} ms, above transaction.max.timeout.ms: a hang is seen that much later",
    when=_is_above_maximum,
    score=_timeout,
)


def _is_outlier(last: StateRecord, known: Known) -> bool:
    """Far above the median, and not above the brokers' maximum, which has a warning of its own."""
    timeout_ms = _bounded_timeout_ms(last)
    if timeout_ms is None or known.median_ms is None:
        return False
    return known.median_ms * _TIMES_THE_MEDIAN < timeout_ms <= known.settings.transaction_max_timeout_ms


TIMEOUT_OUTLIER = IdWarning(
    kind="timeout_outlier",
    meaning="a timeout is more than 10 times the median",
    text="timeout of {score} ms, more than 10 times the median: it can hold partitions for that long",
    when=_is_outlier,
    score=_timeout,
)

NEVER_TIMES_OUT = IdWarning(
    kind="never_times_out",
    meaning="a transaction never times out",
    text=TWO_PHASE_COMMIT,
    when=lambda last, _: last.timeout_ms == NEVER_TIMES_OUT_MS,
    score=_timeout,
)

EPOCH_NEAR_EXHAUSTION = IdWarning(  # `TransactionMetadata.isEpochExhausted`, KIP-360
    kind="epoch_near_exhaustion",
    meaning="producer epochs are nearly used up",
    text="epoch {score}: at 32766 it gets a new producer id",
    when=lambda last, _: last.producer_epoch is not None and last.producer_epoch >= EXHAUSTED_EPOCH - _EPOCHS_LEFT,
    score=lambda last, _: last.producer_epoch,
)


def _unused_ms(last: StateRecord, known: Known) -> int | None:
    return minus(known.as_of_ms, last.last_update_ms)


def _is_about_to_expire(last: StateRecord, known: Known) -> bool:
    """Nothing is in progress, and it was last used long ago."""
    unused_ms = _unused_ms(last, known)
    if unused_ms is None or last.state not in {EMPTY, *COMPLETED}:
        return False
    return unused_ms > known.settings.transactional_id_expiration_ms - _EXPIRES_WITHIN_MS


ABOUT_TO_EXPIRE = IdWarning(
    kind="about_to_expire",
    meaning="an id will be forgotten within a day",
    text="not used for {score} ms: the coordinator will forget it within a day, and fail its next use",
    when=_is_about_to_expire,
    score=_unused_ms,
)


def _is_timeout(abort: Abort) -> bool:
    """The time of the transaction was over."""
    due_ms = plus(abort.start_ms, abort.timeout_ms)
    return abort.last_update_ms is not None and due_ms is not None and abort.last_update_ms >= due_ms


MANY_TIMEOUTS = AbortWarning(
    kind="many_timeouts",
    meaning="an id's transactions are timed out again and again",
    text="{score} of its transactions were timed out by the coordinator",
    when=_is_timeout,
)


def _is_fencing(abort: Abort) -> bool:
    """A new instance began right after it."""
    passed_ms = minus(abort.after_update_ms, abort.last_update_ms)
    return abort.after_state == EMPTY and passed_ms is not None and passed_ms <= TAKEN_OVER_WITHIN_MS


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

MOST_APPLICATIONS = 10
MANY = 3
"""From so many aborts of one kind on an id is warned of."""
_BY_KIND = {warning.kind: warning for warning in WARNINGS}
_ORDER = {warning.kind: number for number, warning in enumerate(WARNINGS)}


class Flagged(NamedTuple):
    """One warning about one id, with the application that the id seems to belong to; a higher score is worse."""

    kind: str
    application: str
    framework: str | None
    transactional_id: str
    score: int


class Warned(NamedTuple):
    """One kind of warning about the ids of one application: the worst of them, and how many there are."""

    kind: str
    application: str
    framework: str | None
    worst_id: str
    score: int
    id_count: int


@dataclass(frozen=True)
class WarningLine:
    """One warning as a report prints it: `subject` is what it is about, `example` its worst id, `count` how many."""

    kind: str
    subject: str
    example: str | None
    text: str
    count: int


def flagged(kind: str, transactional_id: str, score: int) -> Flagged:
    """A warning about an id, with whose it seems to be."""
    owner = application_of(transactional_id)
    return Flagged(kind, owner.name, owner.framework, transactional_id, score)


def median_of(timeouts_ms: Iterable[int | None]) -> int | None:
    """The median, of two in the middle the lower one; None where none is known."""
    known = sorted(ms for ms in timeouts_ms if ms is not None)
    return known[(len(known) - 1) // 2] if known else None


def by_application(found: Iterable[Flagged]) -> list[Warned]:
    """All warnings about the ids of some applications, as one of each kind for each application."""
    groups: defaultdict[tuple[str, str, str | None], list[tuple[int, str]]] = defaultdict(list)
    for kind, application, framework, transactional_id, score in found:
        groups[kind, application, framework].append((-score, transactional_id))
    worst = {group: min(ids) for group, ids in groups.items()}
    return [Warned(*group, worst[group][1], -worst[group][0], len(ids)) for group, ids in groups.items()]


def worst_of(found: Iterable[Warned]) -> list[Warned]:
    """Of each kind the applications that are worst, in no order."""
    of_kind: defaultdict[str, list[Warned]] = defaultdict(list)
    for warned in found:
        of_kind[warned.kind].append(warned)
    return [w for own in of_kind.values() for w in sorted(own, key=_badness)[:MOST_APPLICATIONS]]


def _badness(warned: Warned) -> tuple[int, int, str, str]:
    return -warned.score, -warned.id_count, warned.application, warned.framework or ""


def warnings_of(found: Iterable[Warned]) -> list[WarningLine]:
    """The worst of all that was found, in the order of `WARNINGS`."""
    in_order = sorted(worst_of(found), key=lambda w: (_ORDER[w.kind], -w.score, w.application, w.framework or ""))
    return [_line(warned) for warned in in_order]


def _line(warned: Warned) -> WarningLine:
    whose = "" if warned.framework is None else f" ({warned.framework})"
    return WarningLine(
        kind=warned.kind,
        subject=warned.application,
        example=warned.worst_id,
        text=_BY_KIND[warned.kind].text.format(score=warned.score) + whose,
        count=warned.id_count,
    )


def nearest_bound(judged: Iterable[Judgement], settings: Settings) -> list[Judgement]:
    """Of judged open transactions those that will be late soonest, the first of them first."""
    near = (one for one in judged if is_near_bound(one.facts.lateness, settings))
    return sorted(near, key=lambda one: -(one.late_by_ms or 0))[:MOST_APPLICATIONS]


def open_warnings(nearest: Iterable[Judgement]) -> list[WarningLine]:
    """What the open transactions are warned of that `nearest_bound` gave."""
    return [
        WarningLine(
            kind=OPEN_TRANSACTION_NEAR_BOUND.kind,
            subject=one.facts.where,
            example=None if one.facts.coordinator is None else one.facts.coordinator.transactional_id,
            text=OPEN_TRANSACTION_NEAR_BOUND.text.format(
                start=one.opened.txn_start_offset, score=-(one.late_by_ms or 0)
            ),
            count=1,
        )
        for one in nearest
    ]


def warnings_of_last(last: StateRecord, known: Known) -> Iterator[Flagged]:
    """What an id is warned of by its last record, unless it is gone, or a later record of it is hidden."""
    if not (last.is_tombstone or last.is_hidden):
        for warning in OF_LAST_RECORDS:
            if warning.when(last, known) and (score := warning.score(last, known)) is not None:
                yield flagged(warning.kind, last.transactional_id, score)


def warnings_of_aborts(history: History) -> Iterator[Flagged]:
    """What an id is warned of for being timed out, or fenced, `MANY` times."""
    for kind, count in Counter(_kinds(history)).items():
        if count >= MANY:
            yield flagged(kind, history[-1].transactional_id, count)


def _kinds(history: History) -> Iterator[str]:
    """Of each abort that raised the epoch the first kind that holds, if it is one to be warned of."""
    for n, record in enumerate(history):
        if record.state != PREPARE_ABORT or not n or not _is_raised(history[n - 1], record):
            continue
        later = history[n + 2] if n + 2 < len(history) else None
        after = (None, None) if later is None else (later.state, later.last_update_ms)
        abort = Abort(record.start_ms, record.timeout_ms, record.last_update_ms, *after)
        yield from [warning.kind for warning in OF_ABORTS if warning.when(abort)][:1]


def _is_raised(before: StateRecord, abort: StateRecord) -> bool:
    """The transaction was going on, and its producer got a newer epoch."""
    if before.state != ONGOING or before.producer_epoch is None or abort.producer_epoch is None:
        return False
    is_same = abort.producer_id is not None and before.producer_id == abort.producer_id
    return is_same and abort.producer_epoch > before.producer_epoch
