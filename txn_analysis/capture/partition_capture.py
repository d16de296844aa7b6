"""One partition, from its leader: the answer to DescribeProducers first, then the batches up to the end.

The answer comes first, so that all it counts lies below the end that is fetched. Every request names the leader's epoch
and is refused under another one (KIP-320), so that no batch is of another leader's log than the answer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from txn_analysis.capture.answers import (
    Brokers,
    CaptureError,
    LeaderChangedError,
    Leadership,
    OffsetGoneError,
    Patience,
    ProducerAnswer,
    UnavailableError,
)
from txn_analysis.capture.files import (
    CaptureFiles,
    FileEntry,
    SegmentWriter,
    confirmed,
    described_producers,
    small_files,
)
from txn_analysis.capture.triage import Ends, RawBatches, fetch_from, look_back, wanted_markers, whole_batches
from txn_analysis.kafka.names import DESCRIBED_FILE
from txn_analysis.kafka.transactions import TopicPartition

FETCH_BYTES = 8 << 20
_ATTEMPTS = 5  # each after another change of the leader
_ROUNDS = 100  # to catch up with an end that moves
_EMPTY_ANSWERS = 3  # in a row: nothing is left there
_Answer = TypeVar("_Answer")


@dataclass(frozen=True)
class Captured:
    """What was captured of one partition.

    Attributes:
        place: the partition.
        entries: of its files.
        fetched_bytes: of record batches, with what was fetched for nothing.
        high_watermark: up to which it was fetched.
        log_start_offset: of the log.
        producer_ids: that have something open, as the broker says.
        is_whole: the leader did not change, and the end was reached.
    """

    place: TopicPartition
    entries: list[FileEntry]
    fetched_bytes: int
    high_watermark: int
    log_start_offset: int
    producer_ids: list[int]
    is_whole: bool


class PartitionCapture:
    """Captures partitions one after the other.

    Args:
        brokers: who are asked.
        files: where it goes.
        patience: with brokers that do not answer.
        say: tells somebody what happens.
        look_back_bytes: what an earlier end marker may cost.
    """

    def __init__(
        self,
        brokers: Brokers,
        files: CaptureFiles,
        patience: Patience,
        say: Callable[[str], None],
        look_back_bytes: int,
    ) -> None:
        self._brokers, self._files, self._patience, self._say = brokers, files, patience, say
        self._look_back_bytes = look_back_bytes
        self._fetched_bytes = 0

    def capture(self, place: TopicPartition, *, is_whole_log: bool, is_described: bool = True) -> Captured:
        """One partition; begins again where its leader changes.

        Args:
            place: which one.
            is_whole_log: from the log start on, not from the lowest open start.
            is_described: with the answer to DescribeProducers.

        Raises:
            CaptureError: it cannot be captured; nothing is left of it.
        """
        self._fetched_bytes = 0
        for _ in range(_ATTEMPTS):
            try:
                return self._attempt(place, is_whole_log=is_whole_log, is_described=is_described)
            except (LeaderChangedError, OffsetGoneError) as change:
                self._files.forget(place)
                why = "its log start moved" if isinstance(change, OffsetGoneError) else "its leader changed"
                self._say(f"{place}: {why} while it was fetched; it begins again")
                self._files.clock.wait(500)
            except BaseException:
                self._files.forget(place)  # no manifest would name it
                raise
        raise CaptureError(f"{place}: its leader changed {_ATTEMPTS} times while it was fetched. Capture it later")

    def _led(self, place: TopicPartition) -> Leadership:
        def asked() -> Leadership:
            leaderships = [led for led in self._brokers.leaders([place.topic]) if led.place == place]
            if not leaderships:
                raise CaptureError(f"{place}: the topic has no such partition")
            if leaderships[0].leader_id is None:
                raise UnavailableError(f"{place}: it has no leader")
            return leaderships[0]

        return self._patience.ask(asked)

    def _attempt(self, place: TopicPartition, *, is_whole_log: bool, is_described: bool) -> Captured:
        led = self._led(place)
        high_watermark = self._end(led)
        epoch_start = self._ask(led, lambda: self._brokers.epoch_start(led))
        answer = self._ask(led, lambda: self._brokers.producers(led)) if is_described else None
        ends = Ends(self._end(led, is_committed=True), high_watermark)
        log_start = self._ask(led, lambda: self._brokers.start_offset(led))
        start = log_start if is_whole_log else fetch_from(answer or [], ends.last_stable_offset, log_start)
        writer = self._files.segments(led, start)
        try:
            for batches in self._earlier(led, answer or [], start, log_start):
                writer.append(batches)
            end, is_end_confirmed = self._to_the_end(led, writer, start)
            writer.end()
        finally:
            writer.abandon()
        # Once more by whoever is believed to lead now: a leader that was cut off meanwhile would not know.
        if self._led(place) != led:
            raise LeaderChangedError(str(place))
        beside = small_files(led, epoch_start)
        if answer is not None:
            beside[DESCRIBED_FILE] = described_producers(led, answer, writer.first_offset, ends)
        small = [self._files.write(f"{place}/{name}", text, led) for name, text in beside.items()]
        entries = confirmed([*writer.entries, *small], is_leader=True, is_end=is_end_confirmed)
        opened = [p.producer_id for p in answer or [] if p.current_txn_start_offset is not None]
        return Captured(place, entries, self._fetched_bytes, end, log_start, opened, is_end_confirmed)

    def _ask(self, led: Leadership, call: Callable[[], _Answer]) -> _Answer:
        """Ask the leader; where it cannot answer, whether it still leads."""

        def still_leads() -> None:
            if self._led(led.place) != led:
                raise LeaderChangedError(str(led.place))

        return self._patience.ask(call, still_leads)

    def _end(self, led: Leadership, *, is_committed: bool = False) -> int:
        def asked() -> int:
            offset = self._brokers.end_offsets([led], is_committed=is_committed)[led.place]
            if isinstance(offset, Exception):
                raise offset
            return offset

        return self._ask(led, asked)

    def _fetch(self, led: Leadership, offset: int, max_bytes: int) -> bytes:
        data = self._ask(led, lambda: self._brokers.fetch(led, offset, max_bytes))
        self._fetched_bytes += len(data)
        return data

    def _earlier(self, led: Leadership, answer: list[ProducerAnswer], start: int, log_start: int) -> list[RawBatches]:
        def fetch(offset: int, most: int) -> bytes:
            return self._fetch(led, offset, min(most, FETCH_BYTES))

        return look_back(fetch, start, log_start, wanted_markers(answer), self._look_back_bytes)

    def _to_the_end(self, led: Leadership, writer: SegmentWriter, at: int) -> tuple[int, bool]:
        """Fetch up to the end, and to the end as it is asked for after the last byte; whether that was reached."""
        for _ in range(_ROUNDS):
            end = self._end(led)
            if at >= end:
                return end, True
            at = self._up_to(led, writer, at, end)
        return at, False

    def _up_to(self, led: Leadership, writer: SegmentWriter, at: int, end: int) -> int:
        empty = 0
        while at < end and empty < _EMPTY_ANSWERS:
            data = self._fetch(led, at, FETCH_BYTES)
            batches = whole_batches(data)
            if batches is not None:
                writer.append(batches)
                at, empty = batches.next_offset, 0
            elif data:
                raise CaptureError(f"{led.place}: what is fetched from offset {at} on is no record batch")
            else:
                empty += 1
        return max(at, end)  # where compaction left nothing at the end of the log, no batch reaches it
