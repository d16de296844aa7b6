"""Logs that are fetched over the network beside an answer to DescribeProducers, as `txn-capture` does it.

Everything is asked of one leader under one epoch, in this order: its high watermark, its producers, its last stable
offset, then the batches from there on, to the high watermark as it is by then. Where the leader changes it begins
again; a leader that was cut off does not know that, and goes on answering. The world goes on meanwhile.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from tests.tools.world.copying import Copier
    from tests.tools.world.model import Batch, Log, StateRow
    from txn_analysis.tables import Finding

_ATTEMPTS = 5
_AT_MOST_UNREPLICATED = 3


class Producer(NamedTuple):
    """One producer as a broker describes it."""

    producer_id: int
    producer_epoch: int
    coordinator_epoch: int | None
    start: int | None


class Answer(NamedTuple):
    """What is written down beside the batches of a partition."""

    first_offset: int
    high_watermark: int
    producers: tuple[Producer, ...]


class Fetched(NamedTuple):
    """What was fetched of one partition.

    Attributes:
        answer: of its leader.
        batches: up to the end.
        whole: all that the log held then.
        end_offset: as it was asked for last.
        epoch: of the leader, and where that begins.
        began: the times before the first byte.
    """

    answer: Answer
    batches: tuple[Batch, ...]
    whole: tuple[Batch, ...]
    end_offset: int
    epoch: tuple[int, int]
    began: tuple[int, int, int]


def producers_of(log: Log, is_forgotten: Callable[[], bool]) -> tuple[Producer, ...]:
    """All producers of a log; a broker forgets some that have nothing open (`producer.id.expiration.ms`)."""
    found = []
    for producer_id in dict.fromkeys(batch.producer_id for batch in log.batches):
        own = [batch for batch in log.batches if batch.producer_id == producer_id]
        opened = log.open_data(producer_id)
        markers = [batch.coordinator_epoch for batch in own if batch.word]
        if opened or not is_forgotten():
            start = opened[0].offset if opened else None
            found.append(Producer(producer_id, own[-1].epoch, markers[-1] if markers else None, start))
    return tuple(found)


def fetch(copier: Copier, number: int, *, is_whole: bool, demote: Callable[[], Log | None]) -> Fetched:
    """One partition.

    Args:
        copier: whose world goes on.
        number: of the partition.
        is_whole: from the log start on, not from the lowest open start.
        demote: may let somebody else lead from now on; the log of the broker that does not know it, if that is asked.
    """
    source, cut_off = copier.source, None
    for attempt in range(_ATTEMPTS + 1):
        began, asked = copier.times(number), copier.world.logs[number].leader_epoch
        high_watermark = _replicated(copier, copier.world.logs[number])
        if not attempt:
            cut_off = demote()
        if attempt < _ATTEMPTS:
            copier.happens(0.4)
        described = cut_off or copier.world.logs[number]
        producers = producers_of(described, lambda: source.random() < 0.2)
        if attempt < _ATTEMPTS:
            copier.happens(0.4)
        leader = cut_off or copier.world.logs[number]
        start = 0 if is_whole else _fetch_from(leader, producers, high_watermark)
        start = max(0, start - source.choice((0, 0, 2, 8)))  # it looks back
        copier.sets_clock()
        if attempt < _ATTEMPTS:
            copier.happens(0.4)
        leader = cut_off or copier.world.logs[number]
        if leader.leader_epoch == asked == described.leader_epoch:
            end = max(high_watermark, _replicated(copier, leader))
            batches = tuple(batch for batch in leader.batches if start <= batch.offset < end)
            first = batches[0].offset if batches else start
            answer = Answer(first, high_watermark, producers)
            begins = epoch_start(leader.batches, asked, leader.next_offset)
            return Fetched(answer, batches, leader.batches, end, (asked, begins), began)
        cut_off = None
    raise AssertionError("the last attempt is undisturbed")


def _replicated(copier: Copier, log: Log) -> int:
    """The high watermark: mostly the end of the log."""
    behind = copier.source.randrange(_AT_MOST_UNREPLICATED) if copier.source.random() < 0.2 else 0
    return max(0, log.next_offset - behind)


def _fetch_from(log: Log, producers: tuple[Producer, ...], high_watermark: int) -> int:
    starts = [producer.start for producer in producers if producer.start is not None]
    return min([*starts, last_stable_offset(log, high_watermark)])


def last_stable_offset(log: Log, high_watermark: int) -> int:
    """`UnifiedLog.lastStableOffset`."""
    opened = [log.open_data(producer_id) for producer_id in {batch.producer_id for batch in log.batches}]
    return min([high_watermark, *(data[0].offset for data in opened if data)])


def misjudged(
    found: Iterable[Finding], wholes: Mapping[int, tuple[tuple[Batch, ...], int]], described: Mapping[int, Answer]
) -> list[str]:
    """Findings on fetched logs whose start, said to be exact, or coordinator epoch is not that of the whole log.

    A producer whose end marker was not replicated yet is left out: the answer counts it, and no batch shows it. Of one
    that the broker had forgotten no epoch need be known: a broker takes any for it (`ProducerAppendInfo`, which begins
    with coordinator epoch -1).

    Args:
        found: what an audit says.
        wholes: the whole logs by partition, and up to where they were fetched.
        described: the brokers' answers by partition.
    """
    named = {(number, one.producer_id) for number, answer in described.items() for one in answer.producers}
    wrong = []
    for each in found:
        batches, end = wholes.get(each.partition, ((), 0))
        own = [batch for batch in batches if batch.producer_id == each.producer_id]
        markers = [batch for batch in own if batch.word]
        if not own or (markers and markers[-1].offset >= end):
            continue
        last, epoch = (markers[-1].offset, markers[-1].coordinator_epoch) if markers else (-1, None)
        starts = [batch.offset for batch in own if batch.offset > last][:1]
        is_start = not each.is_txn_start_exact or starts == [each.txn_start_offset]
        is_forgotten = (each.partition, each.producer_id) not in named and each.coordinator_epoch is None
        is_epoch = each.coordinator_epoch_basis == "unknown" or each.coordinator_epoch == epoch or is_forgotten
        if not (is_start and is_epoch):
            wrong.append(f"{each.producer_id} on {each.partition}: {each.txn_start_offset}, {each.coordinator_epoch}")
    return wrong


def epoch_start(rows: Iterable[Batch | StateRow], epoch: int, next_offset: int) -> int:
    """Where an epoch of a leader begins: at its first batch, or at the end before it has written one."""
    return min((row.offset for row in rows if row.leader_epoch == epoch), default=next_offset)
