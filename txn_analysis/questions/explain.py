"""Explain: everything that one run knows of some of its transactions, with a timeline; text and JSON.

Nothing is judged here: a finding keeps the rules that were asked, and what each of them said. The timeline of a
transaction is what its partition's log holds around it, and what the coordinator recorded.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import chain, repeat
from operator import attrgetter
from typing import Annotated, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from txn_analysis.columns.records import records_of
from txn_analysis.errors import ConfigError
from txn_analysis.kafka.address import Address
from txn_analysis.kafka.names import LOG_APPEND_TIME, is_brokers_time, is_brokers_topic
from txn_analysis.kafka.transactions import StateRecord
from txn_analysis.questions.filters import Filters
from txn_analysis.questions.owners_text import owner_paragraphs
from txn_analysis.report.build import run_item
from txn_analysis.report.finding_text import ENDS, Neighbour, Scene, facts
from txn_analysis.report.model import CauseItem, InJson, Item
from txn_analysis.report.owner import Owner, behind_its_id, owner_of
from txn_analysis.report.terminal import WIDTH, Paragraph, lines_of, wrapped
from txn_analysis.runs.asked_states import of_ids
from txn_analysis.runs.past_run import Evidence
from txn_analysis.runs.run_tables import RunTables
from txn_analysis.tables import FINDINGS, LOG_BATCHES, TRANSACTIONS, Finding, RuleAsked, Transaction
from txn_analysis.tables.transactions import OPEN
from txn_analysis.text import count, escape, iso_utc
from txn_analysis.verdict import Verdict

BROKER, CLIENT = "broker", "client"


class LoggedBatch(NamedTuple):
    """One row of `log_batches`, as far as a timeline shows it."""

    topic: str
    base_offset: int
    last_offset: int
    record_count: int | None
    producer_id: int | None
    producer_epoch: int | None
    is_control: bool
    marker: str | None
    coordinator_epoch: int | None
    max_timestamp_ms: int | None
    timestamp_type: str | None

    @property
    def clock(self) -> str:
        """Whose clock wrote its timestamp; a client's where it has none."""
        is_brokers = is_brokers_time(
            is_control=self.is_control,
            is_append_time=self.timestamp_type == LOG_APPEND_TIME,
            is_brokers_topic=is_brokers_topic(self.topic),
        )
        return BROKER if is_brokers and self.max_timestamp_ms is not None else CLIENT


class Event(NamedTuple):
    """One event of a timeline; `offset` is None for a record of the coordinator, `clock` says whose time it is."""

    at_ms: int | None
    clock: str
    offset: int | None
    kind: str
    text: str


def timeline(batches: Iterable[LoggedBatch], records: Sequence[StateRecord], producer_id: int) -> list[Event]:
    """Events in log order; the coordinator's records stand before the first later broker's time in the log.

    Between two broker times in the log nothing tells which came first, a batch or a record of the coordinator.

    Args:
        batches: of the partition: those of the transaction, and markers around it.
        records: of its transactional id, in the order of their partition.
        producer_id: whose transaction it is.
    """
    log = [_log_event(batch, producer_id) for batch in sorted(batches, key=lambda batch: batch.base_offset)]
    waiting = deque(_coordinator_event(record) for record in records)
    events: list[Event] = []
    for event in log:
        while event.clock == BROKER and waiting and (waiting[0].at_ms or 0) <= (event.at_ms or 0):
            events.append(waiting.popleft())
        events.append(event)
    return [*events, *waiting]


def _log_event(batch: LoggedBatch, producer_id: int) -> Event:
    kind, text = ("marker", _marker(batch, producer_id)) if batch.is_control else ("data", _data(batch))
    return Event(batch.max_timestamp_ms, batch.clock, batch.base_offset, kind, text)


def _marker(batch: LoggedBatch, producer_id: int) -> str:
    whose = "its" if batch.producer_id == producer_id else f"another producer's ({batch.producer_id})"
    what = f"{whose} end marker: {batch.marker or 'COMMIT or ABORT'}, epoch {batch.producer_epoch}"
    return what if batch.coordinator_epoch is None else f"{what}, coordinator epoch {batch.coordinator_epoch}"


def _data(batch: LoggedBatch) -> str:
    first, last = batch.base_offset, batch.last_offset
    span = f"offset {last}" if last == first else f"offsets {first} to {last}"
    records = "" if batch.record_count is None else f", {count(batch.record_count, 'record')}"
    return f"data, {span}{records}, epoch {batch.producer_epoch}"


def _coordinator_event(record: StateRecord) -> Event:
    if record.is_tombstone:
        text = "the transactional id is removed (tombstone)"
    else:
        listed = ", ".join(f"{topic}-{partition}" for topic, partition in record.topic_partitions)
        where = f" of {listed}" if listed else ""
        text = f"{record.state}{where}, producer id {record.producer_id}, epoch {record.producer_epoch}"
    return Event(record.moment_ms, BROKER, None, "coordinator", text)


MOST_EXPLAINED = 20
_INDENT = "   "
# How many first and last batches, markers of its own before it, markers before it and after; negative: the last ones.
_SHOWN = (3, -3, -1, -2, 2)
_RECORDS_BEFORE, _RECORDS_AFTER, _LAST_RECORDS = 4, 6, 3
_PLACE = ("topic", "partition")
Key = tuple[str, int, int, int]


EventItem = Annotated[Event, InJson(Event, "EventItem")]
RuleItem = Annotated[RuleAsked, InJson(RuleAsked, "RuleItem")]
FactItem = Annotated[Paragraph, InJson(Paragraph, "FactItem", ("label", "text", "facts"))]


class Explanation(Item):
    """Why one open transaction has its verdict; `are_batches_kept` is false where its data is gone.

    `facts` says in words where it is, since when, on which evidence the verdict rests, what it blocks and what follows.
    `owner` is that of its transactional id; null without one.
    """

    run_id: str
    topic: str
    partition: int
    producer_id: int
    txn_start_offset: int
    transactional_id: str | None
    verdict: str
    rule: str
    facts: tuple[FactItem, ...]
    cause: CauseItem | None
    events: tuple[EventItem, ...]
    rules: tuple[RuleItem, ...]
    would_change: tuple[str, ...]
    are_batches_kept: bool
    owner: Annotated[Owner, InJson(Owner)] | None

    @property
    def title(self) -> str:
        """Where it is, and whose; escaped."""
        named = "no transactional id" if self.transactional_id is None else f"transactional id {self.transactional_id}"
        looks = "" if self.owner is None else behind_its_id(self.owner.application, self.owner.framework)
        return escape(f"{Address.of_transaction(self)}: producer id {self.producer_id}, {named}") + looks


def explain(
    tables: RunTables, filters: Filters, start_offset: int | None = None, addresses: Sequence[Address] = ()
) -> list[Explanation]:
    """Each open transaction of a finished run that is wanted, explained.

    Args:
        tables: of the run whose evidence counts.
        filters: which partitions and producers are wanted.
        start_offset: of the one that is wanted; None asks for all.
        addresses: of the ones that are wanted, in place of the others; none asks for all.

    Raises:
        ConfigError: none fits, or too many to read.
    """
    run = tables.finished
    wanted: dict[str, Any] = dict(filters.rows)
    if start_offset is not None:
        wanted |= {"txn_start_offset": [start_offset]}
    if addresses:
        topics, partitions, offsets, _ = zip(*addresses, strict=True)
        wanted |= {"topic": [*topics], "partition": [*partitions], "txn_start_offset": [*offsets]}
    findings = run.records(Finding, FINDINGS, **wanted)
    if addresses:
        findings = _named(findings, addresses)
    if not findings:
        raise ConfigError("no open transaction of this run fits; the verb `report` lists them")
    if len(findings) > MOST_EXPLAINED:
        raise ConfigError(f"more than {MOST_EXPLAINED} open transactions fit; name some, such as orders-0@161")
    rows = run.records(Transaction, TRANSACTIONS, outcome=[OPEN], **wanted)
    opened = {_key(transaction): transaction for transaction in rows}
    batches = _batches_around(run.evidence, [opened[_key(finding)] for finding in findings])
    histories = of_ids(run, {f.transactional_id for f in findings if f.transactional_id is not None})
    scenes = _scenes(tables, {(finding.topic, finding.partition) for finding in findings})
    explained = [
        _explanation(
            scenes[finding.topic, finding.partition],
            finding,
            opened[_key(finding)],
            around,
            histories.get(finding.transactional_id or "", []),
        )
        for finding, around in zip(findings, batches, strict=True)
    ]
    return sorted(explained, key=attrgetter("topic", "partition", "txn_start_offset"))


def _named(findings: Sequence[Finding], addresses: Sequence[Address]) -> list[Finding]:
    """Those at some addresses.

    Raises:
        ConfigError: at one of them no open transaction begins.
    """
    at = {Address.of_transaction(one): one for one in findings}
    for address in addresses:
        if address not in at:
            raise ConfigError(
                f"{address}: no open transaction of this run begins there; the verb `report` lists them, and "
                f"{address._replace(is_transaction=False)} says what is at that offset"
            )
    return [at[address] for address in dict.fromkeys(addresses)]


def _key(one: Finding | Transaction) -> Key:
    return one.topic, one.partition, one.producer_id, one.txn_start_offset


def _scenes(tables: RunTables, places: set[tuple[str, int]]) -> dict[tuple[str, int], Scene]:
    """What the run says around the transactions of each of some partitions."""
    run, groups = run_item(tables.run), tables.connect_groups
    topics, partitions = ({place[at] for place in places} for at in (0, 1))
    open_at = defaultdict[tuple[str, int], list[Neighbour]](list)
    rows = tables.result_rows(FINDINGS, *_PLACE, *Neighbour._fields, topic=topics, partition=partitions)
    for row in rows.to_pylist():
        row["verdict"] = Verdict(row["verdict"])
        open_at[row.pop("topic"), row.pop("partition")].append(Neighbour(**row))
    health = {(one.topic, one.partition): one for one in tables.health()}
    return {at: Scene(run, groups, health.get(at), partial(list, open_at[at])) for at in places}


def _explanation(
    scene: Scene,
    finding: Finding,
    opened: Transaction,
    batches: list[LoggedBatch],
    history: Sequence[StateRecord],
) -> Explanation:
    name = finding.transactional_id
    events = timeline(batches, _records_around(opened, history), opened.producer_id)
    finding_fields = {name: getattr(finding, name) for name in Explanation.model_fields if name in Finding._fields}
    return Explanation(
        **finding_fields,
        facts=tuple(facts(scene, finding)),
        events=tuple(events),
        rules=finding.rules_asked,
        are_batches_kept=bool(batches),
        owner=None
        if name is None
        else owner_of(name, history, scene.run.as_of_ms, scene.groups, max_timeout_ms=scene.run.max_timeout_ms),
    )


def _records_around(opened: Transaction, history: Sequence[StateRecord]) -> list[StateRecord]:
    """The coordinator's records before and after the data was appended, and its last ones; in order."""
    moments = (opened.first_appended_before_ms, opened.appended_before_ms, opened.last_marker_ms)
    pivot_ms = next((ms for ms in moments if ms is not None), None)
    timed = [(at, record.moment_ms) for at, record in enumerate(history) if record.moment_ms is not None]
    shown = {*range(len(history))[-_LAST_RECORDS:]}
    if pivot_ms is not None:
        shown |= {at for at, moment_ms in [(a, m) for a, m in timed if m <= pivot_ms][-_RECORDS_BEFORE:]}
        shown |= {at for at, moment_ms in [(a, m) for a, m in timed if m > pivot_ms][:_RECORDS_AFTER]}
    return [history[at] for at in sorted(shown)]


def _batches_around(evidence: Evidence, opened: Sequence[Transaction]) -> list[list[LoggedBatch]]:
    """Of each transaction its first and last batches, its producer's marker before it, and the markers around it."""
    around = [[dict[int, LoggedBatch]() for _ in _SHOWN] for _ in opened]
    topics, partitions = {one.topic for one in opened}, {one.partition for one in opened}
    for batch in evidence.batches(LOG_BATCHES, "partition", *LoggedBatch._fields, topic=topics, partition=partitions):
        for transaction, parts in zip(opened, around, strict=True):
            meant = _meant(batch, transaction)
            parts[:] = map(_nearest, parts, _SHOWN, repeat(batch), meant)
    # Each batch once, also where it is shown for several reasons.
    return [[*{place: one for part in parts for place, one in part.items()}.values()] for parts in around]


def _meant(batch: pa.RecordBatch, opened: Transaction) -> tuple[pa.Array, ...]:
    """Which rows may be shown of a transaction, for each of `_SHOWN`; NULL means no."""
    offset, is_marker = batch["base_offset"], batch["is_control"]
    is_here = pc.and_(pc.equal(batch["topic"], opened.topic), pc.equal(batch["partition"], opened.partition))
    is_own, is_before = pc.equal(batch["producer_id"], opened.producer_id), pc.less(offset, opened.txn_start_offset)
    own_data = pc.and_(pc.and_(is_here, is_own), pc.invert(pc.or_(is_marker, is_before)))
    markers = pc.and_(is_here, is_marker)
    before = pc.and_(markers, is_before)
    after = pc.and_(markers, pc.greater(offset, pa.scalar(opened.last_offset, pa.int64())))
    return own_data, own_data, pc.and_(before, is_own), before, after


def _nearest(
    batches_by_offset: dict[int, LoggedBatch], number: int, batch: pa.RecordBatch, is_meant: pa.Array
) -> dict[int, LoggedBatch]:
    """Of some batches, and the rows that are meant, those at the smallest offsets, or (a negative number) the largest.

    Copies and captures hold the same batch; of each place in the log one is enough to be read.
    """
    places = np.flatnonzero(pc.fill_null(is_meant, fill_value=False).to_numpy(zero_copy_only=False))
    if not len(places):
        return batches_by_offset
    kept = slice(number) if number > 0 else slice(number, None)
    _, first = np.unique(batch["base_offset"].to_numpy()[places], return_index=True)
    nearest = records_of(LoggedBatch, batch.take(places[first[kept]]))
    every = {one.base_offset: one for one in nearest} | batches_by_offset
    return {offset: every[offset] for offset in sorted(every)[kept]}


def explanations_text(explained: Iterable[Explanation]) -> str:
    """All explanations, one after the other."""
    return "\n".join("".join(line + "\n" for line in _lines(item)) for item in explained)


def _lines(item: Explanation) -> Iterator[str]:
    yield item.title
    yield f"{_INDENT}{item.verdict} by rule {item.rule}"
    is_said_of_owner = item.owner is not None and bool(item.owner.ends)  # when it ends by itself is part of how it does
    known = (fact for fact in item.facts if not (is_said_of_owner and fact.label == ENDS))
    owner = () if item.owner is None else owner_paragraphs(item.owner)
    yield from (line.text for line in lines_of(chain(known, owner), WIDTH))
    for heading, rows in _tables(item):
        yield ""
        yield from wrapped(heading, _HEADING_WIDTH, _INDENT, _INDENT)
        for label, text in rows:
            first = f"{_INDENT}{_INDENT}{label}"
            yield from wrapped(escape(text), WIDTH, first, " " * len(first))


_HEADING_WIDTH = 100
_WHEN_WIDTH, _WHERE_WIDTH = 34, 14  # or more, where a time or an offset is longer
_TIMELINE = (
    "timeline, in the order of the log. Times are by the brokers' clocks, or marked (client). Between two broker times "
    "the files do not tell which came first, a batch or a record of the coordinator"
)


def _tables(item: Explanation) -> Iterator[tuple[str, Iterable[tuple[str, str]]]]:
    """What stands behind the facts: a heading, and rows of a label and a text."""
    gone = [] if item.are_batches_kept else [("", "no batch of it is kept: it is gone from the files")]
    yield _TIMELINE, chain(gone, _rows_of_events(item.events))
    marked = ((one, f"FIRED, {one.verdict}" if one.has_fired else "no") for one in item.rules)
    yield "rules, in their order", ((f"{one.rule:<33}", f"{mark}: {one.reason}") for one, mark in marked)
    if item.would_change:
        yield "what would change the verdict", (("- ", evidence) for evidence in item.would_change)


def _rows_of_events(events: Sequence[EventItem]) -> Iterator[tuple[str, str]]:
    whens = [iso_utc(event.at_ms) + (" (client)" if event.clock == CLIENT else "") for event in events]
    wheres = ["coordinator" if event.offset is None else f"offset {event.offset}" for event in events]
    when_width = max([_WHEN_WIDTH, *(len(when) + 1 for when in whens)])
    where_width = max([_WHERE_WIDTH, *(len(where) + 1 for where in wheres)])
    for when, where, event in zip(whens, wheres, events, strict=True):
        yield f"{when:<{when_width}}{where:<{where_width}}", event.text
