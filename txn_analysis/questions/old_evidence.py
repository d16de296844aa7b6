"""Which files of old captures still bear on an answer: those that fill a gap of newer ones, or could contradict it.

Asked is the newest run of a cluster, which was judged with everything behind it. Of a partition on which something is
open that somebody is told of, or whose log is in doubt, every file stays. Elsewhere nothing below the last stable
offset can change an answer, but a log that goes on beyond the newer ones, and producer snapshots that newer files begin
at. Of the coordinator's records those stay that no newer file has, and that are of a producer or transactional id of
something open, or not older than the oldest of it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from txn_analysis.kafka.names import (
    DESCRIBED,
    LOG,
    SNAPSHOT,
    STATE,
    STATE_TOPIC,
    STATED_OF_PARTITION,
    TOPIC_ID,
)
from txn_analysis.kafka.problems import ProblemKind
from txn_analysis.kafka.transactions import NAMED
from txn_analysis.plan.standing import TOLD
from txn_analysis.runs.ask import ask, is_one_of, row_values, views_in
from txn_analysis.runs.past_run import sections_of
from txn_analysis.runs.run_tables import RunTables
from txn_analysis.tables import TRANSACTIONS, PartitionHealth
from txn_analysis.tables.inputs import InputSection, ReadInput
from txn_analysis.tables.transactions import OPEN

_CONSOLE = "console"
_MARKER_TO_DECISION_MS = 60_000  # how far before a marker its decision is looked for
_DOES_NOT_FIT = "state_does_not_fit"
_SQL = Path(__file__).with_name("old_evidence.sql")


class OpenThere(NamedTuple):
    """One open transaction of the newest run, as far as it says what old evidence bears on it."""

    topic: str
    partition: int
    producer_id: int
    txn_start_offset: int
    is_txn_start_exact: bool
    first_appended_after_ms: int | None
    other_copy_commit_offset: int | None


@dataclass(frozen=True)
class OldEvidence:
    """The files of one cluster, and its newest run by which they are asked.

    Attributes:
        tables: the newest run.
        inputs: of all captures of the cluster.
        old: captures that are old, newest first.
        before_ms: what is later is not old.
    """

    tables: RunTables
    inputs: Sequence[ReadInput]
    old: Sequence[str]
    before_ms: int
    # What the files that stay hold: of logs first and last offsets, of the state where they begin.
    _first: dict[tuple[str, int], int] = field(default_factory=dict, init=False)
    _end: dict[tuple[str, int], int] = field(default_factory=dict, init=False)
    _base: dict[int, int] = field(default_factory=dict, init=False)

    @cached_property
    def why_kept(self) -> dict[str, str]:
        """Of each old capture that stays, why, oldest first; a capture goes as a whole or not at all."""
        of_captures: defaultdict[str, list[ReadInput]] = defaultdict(list)
        for item in self.inputs:
            of_captures[item.capture].append(item)
        kept = [item for capture, items in of_captures.items() if capture not in self.old for item in items]
        contents = {item.content for item in kept}
        for item in kept:
            self._keep(item)
        why_of_capture = {}
        for capture, items in ((capture, of_captures[capture]) for capture in self.old):
            whys = (self._why_needed(item) for item in items if item.content not in contents)
            why = self.why_all_stay or next((why for why in whys if why is not None), None)
            if why is None and capture in self._with_records:
                why = f"{STATE_TOPIC}: no newer file has what it says of what is open"
            if why is not None:
                why_of_capture[capture] = why
                for item in items:
                    self._keep(item)
        return dict(reversed(why_of_capture.items()))

    def unneeded_inputs(self) -> list[ReadInput]:
        """The files of old captures that bear on no answer any more."""
        return [item for item in self.inputs if item.capture in self.old and item.capture not in self.why_kept]

    @cached_property
    def why_all_stay(self) -> str | None:
        """Why no file may go; None where some may."""
        coverage = self.tables.run.coverage
        if coverage.get("disproved"):
            return "they disprove what you vouched for"
        if coverage.get("clusters"):
            return "they look like those of two clusters"
        if any(finding.rule == _DOES_NOT_FIT for finding in self._findings):
            return "they contradict the coordinator's state"
        return None

    @cached_property
    def _findings(self) -> list[Any]:
        return self.tables.findings()

    @cached_property
    def _open(self) -> list[OpenThere]:
        return self.tables.records(OpenThere, TRANSACTIONS, outcome=[OPEN])

    @cached_property
    def _open_at(self) -> defaultdict[tuple[str, int], list[OpenThere]]:
        open_at: defaultdict[tuple[str, int], list[OpenThere]] = defaultdict(list)
        for one in self._open:
            open_at[one.topic, one.partition].append(one)
        return open_at

    @cached_property
    def _health(self) -> dict[tuple[str, int], PartitionHealth]:
        return {(one.topic, one.partition): one for one in self.tables.health()}

    @cached_property
    def _reported_places(self) -> set[tuple[str, int]]:
        return {(finding.topic, finding.partition) for finding in self._findings if finding.verdict in TOLD}

    @cached_property
    def _settled(self) -> dict[tuple[str, int], bool]:
        return {place: self._is_settled(place) for place in self._health}

    @cached_property
    def _unsettled_topics(self) -> set[str]:
        return {topic for (topic, _), is_settled in self._settled.items() if not is_settled}

    def _is_settled(self, place: tuple[str, int]) -> bool:
        """Nothing of the partition's past can change an answer about it: its log is whole from what is open on."""
        health, open_here = self._health[place], self._open_at.get(place, [])
        if place in self._reported_places:
            return False
        if not health.is_in_capture:
            return not open_here
        stable = health.last_stable_offset
        if stable is None or health.truncated_marker_offset is not None or health.two_logs:
            return False
        first = self._first.get(place)
        return all(
            one.is_txn_start_exact
            and one.other_copy_commit_offset is None
            and first is not None
            and one.txn_start_offset >= first
            for one in open_here
        ) and not any(
            problem.spoils(stable) for problem in health.problems if problem.kind != ProblemKind.NOT_IN_CAPTURE
        )

    def _keep(self, item: ReadInput) -> None:
        for section in sections_of(item):
            place, base = (section.topic, section.partition), section.file_base_offset
            if section.kind == LOG and section.first_offset is not None and section.end_offset is not None:
                self._first[place] = min(section.first_offset, self._first.get(place, section.first_offset))
                self._end[place] = max(section.end_offset, self._end.get(place, section.end_offset))
            elif section.kind == STATE:
                self._base[section.partition] = min(base, self._base.get(section.partition, base))

    def _why_needed(self, item: ReadInput) -> str | None:
        """Why an old file bears on an answer; None where it does not, and of one that says nothing of a partition."""
        section = next(filter(self._bears, sections_of(item)), None)
        return None if section is None else f"{section.topic}-{section.partition}: {self._why(section)}"

    def _why(self, section: InputSection) -> str:
        place = section.topic, section.partition
        if section.kind == STATE:
            return "no newer file begins so early"
        if place in self._reported_places or self._open_at.get(place):
            return "a transaction is open there"
        if section.kind == LOG and self._settled.get(place, False):
            return "its log goes on behind newer copies"
        return "newer copies do not prove its log whole"

    def _bears(self, section: InputSection) -> bool:
        place = section.topic, section.partition
        if section.kind == LOG:
            goes_on = section.end_offset is not None and section.end_offset > self._end.get(place, 0)
            is_there = place in self._health and self._health[place].is_in_capture
            return not self._settled.get(place, False) or (is_there and goes_on)
        if section.kind in {SNAPSHOT, DESCRIBED}:
            first = self._first.get(place)
            is_below = first is not None and section.file_base_offset < first
            return not (self._settled.get(place, False) and (is_below or not self._health[place].is_in_capture))
        if section.kind == STATE:
            return section.file_base_offset < self._base.get(section.partition, section.file_base_offset + 1)
        if section.kind == TOPIC_ID:
            return section.topic in self._unsettled_topics
        if section.kind in STATED_OF_PARTITION:
            return section.topic != STATE_TOPIC and not self._settled.get(place, True)
        return False

    @cached_property
    def _since_ms(self) -> int | None:
        """What the coordinator recorded before bears on nothing that is open; None where all of it may."""
        reported_transactions = [one for one in self._open if (one.topic, one.partition) in self._reported_places]
        if any(one.first_appended_after_ms is None or not one.is_txn_start_exact for one in reported_transactions):
            return None
        times = [one.first_appended_after_ms for one in self._open if one.first_appended_after_ms is not None]
        skew_ms = self.tables.finished.settings.max_clock_skew_ms
        return min([self.before_ms, *times]) - skew_ms - _MARKER_TO_DECISION_MS

    @cached_property
    def _with_records(self) -> set[str]:
        """Old captures that hold a record of the coordinator that bears on what is open, and that no newer one has."""
        ids = {finding.transactional_id for finding in self._findings} - {None}
        producers = {one.producer_id for one in self._open}
        opened = [*((name, producers) for name in NAMED), ("transactional_id", ids)]
        nights = [(name, 0) for name in {item.capture for item in self.inputs}.difference(self.old)]
        nights += [(name, age) for age, name in enumerate(self.old, 1)]
        views = views_in(
            _SQL,
            ingests=is_one_of({"ingest_id": {item.ingest_id for item in self.inputs}}),
            since_ms="NULL" if self._since_ms is None else self._since_ms,
            is_open=" OR ".join(is_one_of({name: of}) for name, of in opened),
        )
        given = {"nights": row_values(("capture", "age"), nights), **views}
        return {*ask(self.tables.finished, "SELECT capture FROM needed", given)["capture"].to_pylist()}


def partitions_of(items: Iterable[ReadInput]) -> list[tuple[str, int | None]]:
    """The partitions of whose logs, snapshots or records some files are; without a number, of an export."""
    numbers_by_topic: defaultdict[str, set[int | None]] = defaultdict(set)
    for item in items:
        for section in item.sections:
            if section.kind in {LOG, STATE, SNAPSHOT, DESCRIBED}:
                numbers_by_topic[section.topic].add(section.partition)
            elif section.kind.startswith(_CONSOLE):
                numbers_by_topic[STATE_TOPIC].add(None)
    places = ((topic, number) for topic, numbers in numbers_by_topic.items() for number in numbers)
    return sorted(places, key=lambda place: (place[0], -1 if place[1] is None else place[1]))
