"""What a cause is, and the causes that lie with the coordinator: with its markers, and with what became of the id."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from txn_analysis.coordinator.view import CoordinatorView, Origins
from txn_analysis.judge.case import Case
from txn_analysis.judge.rules import coordinator_overdue, partition_not_in_transaction
from txn_analysis.judge.sentences import written
from txn_analysis.kafka.transactions import EXHAUSTED_EPOCH, ONGOING, PREPARED, PRODUCER_ID_BLOCK, TOMBSTONE
from txn_analysis.logic import is_before
from txn_analysis.tables.findings import Confidence
from txn_analysis.text import if_known, utc


@dataclass(frozen=True, kw_only=True)
class Cause:
    """Why a transaction is open, and its words.

    Attributes:
        name: as reports and metrics print it.
        meaning: what happened, in half a sentence.
        story: what happened, as docs/rules.md tells it.
        prevention: what prevents it; `-` where nothing has to.
        evidence: what speaks for it, a sentence each; None for what has nothing to say.
        doubt: what keeps it from being certain where it is not; None where that is only missing evidence.
    """

    name: str
    meaning: str
    story: str
    prevention: str
    evidence: Callable[[Case], Sequence[str | None]]
    doubt: str | None = None

    def evidence_in(self, c: Case) -> tuple[str, ...]:
        """What speaks for it, in words."""
        return tuple(fact for fact in self.evidence(c) if fact is not None)


@dataclass(frozen=True)
class Diagnosis:
    """One way in which evidence leads to a cause: how sure it is; None where it explains nothing there."""

    cause: Cause
    confidence: Callable[[Case], Confidence | None]


def origins_in(c: Case) -> Origins:
    """What the records of its id say of the time around the open data; nothing where no id is known."""
    return Origins() if c.id is None else c.id.origins


def as_far_as_recorded(c: Case) -> Confidence:
    """How sure a cause is that rests on the id's records since the producer's last end marker here."""
    return Confidence.LIKELY if c.gap_ends_ms or origins_in(c).is_order_doubtful else Confidence.CERTAIN


def never_listed(c: Case) -> str | None:
    """That no record since the marker lists the partition."""
    if origins_in(c).listed_since_ms is not None:
        return None
    since = "" if c.txn.last_marker_ms is None else " since that marker"
    return f"no record of the transactional id lists {c.where}{since}"


def has_a_markers_epoch_fallen(c: Case) -> Confidence | None:
    """A marker's epoch fell."""
    return Confidence.LIKELY if c.txn.has_coordinator_epoch_fallen and not c.lists(ONGOING) else None


def is_coordinator_fenced(c: Case) -> Confidence | None:
    """The coordinator runs below an epoch that was seen."""
    return Confidence.LIKELY if _is_fenced(c) and not c.lists(ONGOING) else None


def _is_fenced(c: Case) -> bool:
    """The partition's last marker has a higher coordinator epoch than the coordinator itself."""
    seen, current = c.txn.coordinator_epoch, c.coordinators_epoch
    return seen is not None and current is not None and seen > current


def _epochs(c: Case) -> list[str | None]:
    """Which epochs there are."""
    seen, current = c.txn.coordinator_epoch, c.coordinators_epoch
    fallen = "an end marker here has a lower coordinator epoch than one before it"
    fenced = f"the last end marker here has coordinator epoch {seen}, the coordinator itself runs at {current}"
    return [fallen if c.txn.has_coordinator_epoch_fallen else None, fenced if _is_fenced(c) else None]


COORDINATOR_EPOCH_WENT_BACK = Cause(
    name="coordinator_epoch_went_back",
    meaning="the coordinator's epoch is below one that the partition has seen, so it refuses the marker (KAFKA-9144)",
    story="the partition has seen a higher coordinator epoch than the coordinator now has, so it refuses the marker "
    "(KAFKA-9144)",
    prevention="a broker with the fix of KAFKA-9144",
    evidence=_epochs,
    doubt="that a marker was refused is written in no file; the coordinator's broker logs it",
)


def is_marker_missing(c: Case) -> Confidence | None:
    """A decision lists the partition, or a transaction did whose end nothing shows."""
    if c.lists(*PREPARED):
        return Confidence.CERTAIN
    known = c.id
    if known is None or known.is_listed or known.origins.listed_since_ms is None:
        return None
    if known.origins.prepared_ms is None:
        return Confidence.POSSIBLE
    if is_before(c.txn.first_appended_before_ms, known.origins.prepared_ms, c.settings.max_clock_skew_ms):
        return Confidence.CERTAIN
    # Without its time, the marker of that decision may be one that retention or compaction removed.
    return Confidence.POSSIBLE if c.txn.last_marker_ms is None else Confidence.LIKELY


def _has_since(known: CoordinatorView) -> str | None:
    """Which state the id has, and since when."""
    since = if_known("the coordinator has {} since {}", known.state, utc(known.update_ms))
    return since or if_known("the coordinator has {}", known.state)


def _decision_without_marker(c: Case) -> list[str | None]:
    """The decision, and that its marker is not there."""
    known = c.id
    if known is None:
        return []
    if known.is_listed:
        return [_has_since(known), f"that decision lists {c.where}, and its marker is not in the log"]
    origins = known.origins
    if origins.prepared_ms is None:
        listing = if_known("its transaction of {} lists {}", utc(origins.listed_since_ms), str(c.where))
        return [listing, "how that ended is in no record"]
    decided = if_known("{} of {} lists {}", origins.prepared_state, utc(origins.prepared_ms), str(c.where))
    done = if_known("it counts as completed since {}", utc(origins.completed_ms))
    return [decided, done, "its marker is not in the log", written(c)]


MARKER_MISSING = Cause(
    name="marker_missing",
    meaning="the coordinator decided, and the marker has not reached the partition",
    story="the coordinator decided, and the marker is not in the log: on its way while it has Prepare, lost where it "
    "counts as completed",
    prevention="look at the partition's leader and at the coordinator's log",
    evidence=_decision_without_marker,
    doubt="compaction or retention may have removed that marker, and the data may have come after it",
)


def is_transaction_overdue(c: Case) -> Confidence | None:
    """The transaction that lists the partition is past its timeout."""
    return Confidence.CERTAIN if coordinator_overdue(c) else None


def _timeout(c: Case) -> list[str | None]:
    """When it began, and for how long it was to last; and whether there is an epoch left for its abort."""
    known = c.id
    began, timeout_ms = utc(c.start_ms), c.timeout_ms
    overdue = if_known("its transaction began at {} with a timeout of {} ms, and nothing ended it", began, timeout_ms)
    epoch = None if known is None else known.state_epoch
    if epoch is None or epoch < EXHAUSTED_EPOCH:
        return [overdue]
    can_fail = (
        "under transaction version 2 its abort can fail for want of another (KAFKA-19367, KAFKA-20090), and a new "
        "coordinator can have lost its next producer id (KAFKA-20310)"
    )
    return [overdue, f"its producer epoch {epoch} is one of the last: {can_fail}"]


COORDINATOR_OVERDUE = Cause(
    name="coordinator_overdue",
    meaning="the coordinator did not abort it when its time was over",
    story="the transaction is past its timeout, and the coordinator did not abort it",
    prevention="look at the coordinator: it may be overloaded or not have loaded its partition",
    evidence=_timeout,
)


# Brokers that start and producers without transactions use up ids as well, and the state names none of those.
_FAR_ABOVE = 1000 * PRODUCER_ID_BLOCK


def was_taken_over(c: Case) -> Confidence | None:
    """An instance took the id over after the data's first epoch."""
    is_taken = origins_in(c).new_epoch_ms is not None
    return as_far_as_recorded(c) if partition_not_in_transaction(c) and is_taken else None


def _both_epochs(c: Case) -> list[str | None]:
    """Both epochs, and that the old one's transaction was never listed."""
    opened, new, at = c.txn, origins_in(c).new_epoch, utc(origins_in(c).new_epoch_ms)
    joined = "batches up to epoch {} joined it: an epoch change ends nothing in a partition"
    more = if_known(joined, opened.max_producer_epoch)
    is_mixed = opened.max_producer_epoch is not None and opened.max_producer_epoch != opened.first_producer_epoch
    return [
        if_known("its first batch has epoch {}", opened.first_producer_epoch),
        if_known("an instance took the transactional id over with epoch {} at {}", new, at),
        more if is_mixed else None,
        never_listed(c),
    ]


OLD_EPOCH_LEFT_OPEN = Cause(
    name="old_epoch_left_open",
    meaning="a new instance took over its id, and the old one's transaction was never ended",
    story="a new instance took the id over, and nothing ended what the old one had open, because no transaction "
    "listed it",
    prevention="transaction version 2",
    evidence=_both_epochs,
)


def was_rotated(c: Case) -> Confidence | None:
    """The id left the producer id: the records link the two, or its epochs were used up."""
    known = c.id
    if known is None or known.is_listed or known.origins.rotated_to is None:
        return None
    if known.origins.is_rotation_recorded:
        return Confidence.CERTAIN
    last_epoch = known.origins.last_own_epoch
    return Confidence.LIKELY if last_epoch is not None and last_epoch >= EXHAUSTED_EPOCH else None


def _both_producer_ids(c: Case) -> list[str | None]:
    """Both producer ids, and the last epoch of the old one."""
    old, origins = c.txn.producer_id, origins_in(c)
    return [
        if_known(
            "the transactional id left producer id {} for {} at {}", old, origins.rotated_to, utc(origins.rotated_ms)
        ),
        if_known("its last epoch under {} was {}", old, origins.last_own_epoch),
    ]


PRODUCER_ID_ROTATED = Cause(
    name="producer_id_rotated",
    meaning="its id got a new producer id, and what was open under the old one was never ended",
    story="epochs were used up and the id got a new producer id, with data left open under the old one",
    prevention="-",
    evidence=_both_producer_ids,
    doubt="the records do not link the two producer ids",
)


def is_written_after_expiry(c: Case) -> Confidence | None:
    """The data came after the id was removed."""
    is_after = is_before(origins_in(c).tombstone_ms, c.txn.appended_after_ms, c.settings.max_clock_skew_ms)
    return Confidence.CERTAIN if partition_not_in_transaction(c) and is_after else None


def is_gone(c: Case) -> Confidence | None:
    """The id was removed, or came back under another producer id."""
    known = c.id
    is_away = known is not None and (known.origins.rotated_to is not None or known.state == TOMBSTONE)
    return Confidence.LIKELY if partition_not_in_transaction(c) and is_away else None


def is_forgotten(c: Case) -> Confidence | None:
    """Nothing is left of the id."""
    return Confidence.POSSIBLE if c.id is None else None


def _what_is_left(c: Case) -> list[str | None]:
    """What is left of the id."""
    if c.id is None:
        return [f"no transactional id has producer id {c.txn.producer_id} in any record that is left"]
    removed = if_known("the transactional id was removed at {}", utc(c.id.origins.tombstone_ms))
    return [removed, if_known("it came back under producer id {}", c.id.origins.rotated_to), written(c)]


TRANSACTIONAL_ID_EXPIRED = Cause(
    name="transactional_id_expired",
    meaning="its transactional id expired and was forgotten",
    story="the id was removed, or came back under another producer id; or nothing is left to tell",
    prevention="`transactional.id.expiration.ms` above the longest pause of the application",
    evidence=_what_is_left,
    doubt="it may have hung for another cause before the transactional id expired",
)


def is_too_recent(c: Case) -> Confidence | None:
    """The producer wrote so lately that its id would still be there, or be a tombstone."""
    sure = Confidence.POSSIBLE if c.state_lacks else Confidence.LIKELY
    return sure if c.id is None and _is_recent(c) else None


def is_too_large(c: Case) -> Confidence | None:
    """Its id is far above all that were given out."""
    return Confidence.POSSIBLE if c.id is None and _is_far_above(c) else None


def _is_recent(c: Case) -> bool:
    """No id that wrote then can have expired."""
    return is_before(c.expires_before_ms, c.txn.appended_after_ms, c.settings.max_clock_skew_ms)


def _is_far_above(c: Case) -> bool:
    """A thousand blocks of ids lie between the largest one of the state and this one."""
    largest = c.state.largest_producer_id
    return largest is not None and c.txn.producer_id > largest + _FAR_ABOVE


def _size_and_time(c: Case) -> list[str | None]:
    """That nobody has it, how large it is, and when it wrote."""
    largest = f"ids are given out upward, in blocks of {PRODUCER_ID_BLOCK}, and the largest in __transaction_state is"
    return [
        f"no transactional id has, or had, producer id {c.txn.producer_id}",
        f"{largest} {c.state.largest_producer_id}" if _is_far_above(c) else None,
        written(c),
        "an id that wrote so lately could not have expired yet" if _is_recent(c) else None,
    ]


PRODUCER_ID_NEVER_KNOWN = Cause(
    name="producer_id_never_known",
    meaning="the coordinator never gave out this producer id",
    story="no record of the coordinator ever had the producer id, and it wrote too lately to have expired, or is far "
    "above every id that was given out",
    prevention="find out who writes with an invented producer id",
    evidence=_size_and_time,
    doubt="an id that had expired before, and was compacted away, leaves no record",
)
