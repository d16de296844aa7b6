"""Who a group, a transactional id or a producer id is, as a person reads it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter

from txn_analysis.columns.arrays import by_key
from txn_analysis.kafka.address import Address
from txn_analysis.kafka.names import STATE_TOPIC
from txn_analysis.kafka.transactions import NEVER_TIMES_OUT_MS
from txn_analysis.questions.owners import Blocks, Change, Committed, Kind, Opened, OwnerAnswer, Written
from txn_analysis.report.finding_text import explain_command
from txn_analysis.report.owner import Owner, owner_sentence
from txn_analysis.report.terminal import Paragraph, text_of
from txn_analysis.text import clip, count, duration, escape, iso_utc, listed

_ID_WIDTH = 80
_OWNER_WIDTH = 200
_MOST_PARTITIONS = 8
_MOST_OWNERS = 3
_MOST_WRITTEN = 8
_MOST_CHANGES = 5
"""Of the last records; the JSON form has more."""
# `TransactionMetadata.isDistributedTwoPhaseCommitTxn`: `timedOutTransactions` leaves these out.
_NO_TIMEOUT = "none: its coordinator never aborts it (two-phase commit, KIP-939)"
_NEVER = "Never recreate the group, under this name or another: it forgets its offsets"

_OF_GROUP = {
    Blocks.NOTHING: "no transaction is open in its partition: none blocks its offsets",
    Blocks.COMPACTION: (
        "its offsets can be fetched: the open transactions of its partition are of other groups, and only compaction "
        "of the partition stands still"
    ),
    Blocks.OFFSETS: (
        "offsets of it lie in an open transaction: until that ends, nobody can fetch them (UNSTABLE_OFFSET_COMMIT), "
        "and its consumers retry or fail when they start. " + _NEVER
    ),
    Blocks.UNKNOWN: "it could not be told whether an open transaction holds offsets of it. " + _NEVER,
}


def owner_text(answer: OwnerAnswer, options: str = "") -> str:
    """The answer as text.

    Args:
        answer: about one group or id.
        options: they complete the commands in it, such as ` --warehouse /data/audit`.
    """
    where = "" if answer.held_in is None else f": held in {answer.held_in}"
    leads = ", whose leader is its coordinator" if where else ""
    title = f"{answer.kind.value.replace('_', ' ')} {clip(answer.name, _ID_WIDTH)}{where}{leads}"
    return f"{title}\n{text_of(_paragraphs(answer, options))}"


def _paragraphs(answer: OwnerAnswer, options: str) -> Iterator[Paragraph]:
    together = _together(answer.opened)
    yield from (Paragraph(label, text) for label, text in _facts(answer, together))
    for owner in answer.owners[:_MOST_OWNERS]:
        yield from owner_paragraphs(owner)
    if (more := len(answer.owners) - _MOST_OWNERS) > 0:
        yield Paragraph("owner", f"({count(more, 'other id')} left out)")
    last = answer.changes[-_MOST_CHANGES:]
    if more := answer.change_count - len(last):
        yield Paragraph("history", f"({count(more, 'earlier record')} left out)")
    for change in last:
        yield Paragraph("history", _change(change, is_named=len(answer.transactional_ids) > 1))
    for one, _ in together:
        yield Paragraph("explain", command=explain_command(Address.of_transaction(one), answer.run_id, options))


def owner_paragraphs(owner: Owner) -> Iterator[Paragraph]:
    """Whose an id looks, how its transaction ends, and the commands that end it; escaped."""
    yield Paragraph("owner", clip(owner_sentence(owner), _OWNER_WIDTH))
    yield from (Paragraph("ends", escape(fact)) for fact in owner.ends)
    for way in owner.ways:
        yield Paragraph(way.result, f"only where {escape(way.needs)}:")
        yield Paragraph(way.result, command=way.command)


def _facts(answer: OwnerAnswer, together: list[tuple[Opened, list[Opened]]]) -> Iterator[tuple[str, str]]:
    if answer.blocks is not None:
        yield "blocked", _OF_GROUP[answer.blocks]
    if answer.kind is Kind.PRODUCER_ID:
        yield "id", _ids(answer)
    if answer.changes:
        yield "state", _state(answer.changes[-1])
    yield from (("missing", f"- {escape(fact)}") for fact in answer.missing)
    yield from (("open", _opened(one, others)) for one, others in together)
    if answer.missing and answer.kind is Kind.TRANSACTIONAL_ID:
        yield "open", "what else it has is not known" if answer.opened else "not known"
    elif not answer.opened and answer.kind is not Kind.GROUP:
        yield "open", "nothing, in the logs that were read"
    yield from (("commits", _commit(commit)) for commit in answer.commits)
    yield from (("wrote", _written(one)) for one in answer.written[:_MOST_WRITTEN])
    if (more := len(answer.written) - _MOST_WRITTEN) > 0:
        yield "wrote", f"({count(more, 'other partition')} left out)"


def _ids(answer: OwnerAnswer) -> str:
    if answer.transactional_ids:
        return "has it, or had it: " + listed([clip(name, _ID_WIDTH) for name in answer.transactional_ids], 5)
    if answer.missing:
        return "not known"
    why = "its id expired, or it never had one" if answer.opened else "its id expired, or it writes no transactions"
    return f"no record of {STATE_TOPIC} names it: {why}"


def _state(change: Change) -> str:
    timeout = _NO_TIMEOUT if change.timeout_ms == NEVER_TIMES_OUT_MS else duration(change.timeout_ms)
    of_it = "" if change.timeout_ms is None else f"; transaction timeout {timeout}"
    return f"{_change(change, is_named=False)}{of_it}"


def _change(change: Change, *, is_named: bool) -> str:
    name = f"{clip(change.transactional_id, _ID_WIDTH)}: " if is_named else ""
    of = f" of {listed([escape(p) for p in change.partitions], _MOST_PARTITIONS)}" if change.partitions else ""
    producer = (
        "" if change.producer_id is None else f", producer id {change.producer_id}, epoch {change.producer_epoch}"
    )
    return f"{iso_utc(change.at_ms)} {name}{change.state}{of}{producer}"


def _together(opened: Iterable[Opened]) -> list[tuple[Opened, list[Opened]]]:
    """What one producer has open with one verdict: the first that blocks, and the others."""
    groups = by_key(opened, attrgetter("transactional_id", "producer_id", "verdict", "rule"))
    ordered = (sorted(group, key=lambda one: not one.blocks_partition) for group in groups.values())
    return [(first, others) for first, *others in ordered]


def _opened(one: Opened, others: Sequence[Opened]) -> str:
    holds = ", holds the last stable offset" if one.blocks_partition else ""
    named = "" if one.transactional_id is None else f", {clip(one.transactional_id, _ID_WIDTH)}"
    place, *places = (escape(str(Address.of_transaction(each))) for each in (one, *others))
    also = f"; so are {listed(places, _MOST_PARTITIONS)}" if places else ""
    return f"{place}, producer id {one.producer_id}{named}: {one.verdict} ({one.rule}){holds}{also}"


def _commit(commit: Committed) -> str:
    if commit.producer_id is None:
        return f"up to offset {commit.last_offset}, outside of transactions"
    ids = " or ".join(clip(name, _ID_WIDTH) for name in commit.transactional_ids) or "no transactional id is known"
    pending = ": in an open transaction" if commit.is_pending else ""
    return f"up to offset {commit.last_offset}, by producer id {commit.producer_id}, {ids}{pending}"


def _written(one: Written) -> str:
    epoch = "" if one.producer_epoch is None else f", epoch {one.producer_epoch}"
    last = "" if one.last_timestamp_ms is None else f", last timestamp {iso_utc(one.last_timestamp_ms)}"
    is_open = "" if one.txn_start_offset is None else f", open from offset {one.txn_start_offset}"
    return f"{escape(one.topic)}-{one.partition}: producer id {one.producer_id}{epoch}{last}{is_open}"
