"""Which rows of a run are wanted, and whether the run has ever seen what a filter names.

A filter that names something unknown is refused: an alert with a slip in it would be green for ever. One that is given
twice adds. A pattern, a duration or a state may match nothing.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from txn_analysis.errors import ConfigError
from txn_analysis.judge.endings import ENDINGS, Ended
from txn_analysis.kafka.names import STATE_TOPIC
from txn_analysis.runs.ask import ask, is_one_of, views_in
from txn_analysis.runs.asked_places import NEEDS_TOPIC, check_places
from txn_analysis.runs.run_tables import RunTables
from txn_analysis.tables import Finding
from txn_analysis.text import clip, ranges

_NAME_WIDTH = 80


@dataclass(frozen=True)
class Filters:
    """Which rows are wanted; an empty tuple, or None, asks for all, and several values for any of them.

    A pattern must match the whole id, as Kafka's does. `duration_ms` asks for what has lasted longer than that
    (strictly). `state_partitions` are partitions of `__transaction_state`. What ended is asked for from `since_ms` to
    before `until_ms`, by a cause, and stale.
    """

    topics: tuple[str, ...] = ()
    partitions: tuple[int, ...] = ()
    states: tuple[str, ...] = ()
    producer_ids: tuple[int, ...] = ()
    duration_ms: int | None = None
    transactional_id_patterns: tuple[str, ...] = ()
    state_partitions: tuple[int, ...] = ()
    since_ms: int | None = None
    until_ms: int | None = None
    cause: str | None = None
    is_stale: bool = False

    def __post_init__(self) -> None:
        """Refuse what could only give a wrong answer.

        Raises:
            ConfigError: a partition without its topic, a pattern that is no regular expression, a time that ends before
                it begins, or a cause that does not exist.
        """
        if self.partitions and not self.topics:
            raise ConfigError(NEEDS_TOPIC)
        for pattern in self.transactional_id_patterns:
            try:
                re.compile(pattern)
            except re.error as error:
                raise ConfigError(
                    f"--transactional-id-pattern {clip(pattern, _NAME_WIDTH)}: is not a regular expression: {error}; a "
                    "backslash before a sign makes it stand for itself"
                ) from error
        if self.since_ms is not None and self.until_ms is not None and self.since_ms >= self.until_ms:
            raise ConfigError("--until must be later than --since: what ends at --until is left out")
        if self.cause is not None and self.cause not in ENDINGS:
            raise ConfigError(f"--cause {self.cause}: unknown; the causes of an end are {', '.join(ENDINGS)}")

    def has_id(self, transactional_id: str | None) -> bool:
        """Whether the id is wanted; an unknown id matches no pattern."""
        if not self.transactional_id_patterns:
            return True
        patterns = self.transactional_id_patterns
        return transactional_id is not None and any(re.fullmatch(p, transactional_id) for p in patterns)

    def has(self, finding: Finding, *, in_doubt: bool) -> bool:
        """Whether a finding is wanted.

        Args:
            finding: the finding.
            in_doubt: what is not known of it may be what is asked for.
        """
        asked = (
            (self.topics, finding.topic),
            (self.partitions, finding.partition),
            (self.producer_ids, finding.producer_id),
            (self.states, finding.coordinator_state),
            (self.state_partitions, finding.state_partition),
        )
        is_named = all(not wanted or value in wanted or (in_doubt and value is None) for wanted, value in asked)
        is_id = self.has_id(finding.transactional_id) or (in_doubt and finding.transactional_id is None)
        idle_ms = finding.idle_ms
        is_long = self.duration_ms is None or (in_doubt if idle_ms is None else idle_ms > self.duration_ms)
        return is_named and is_id and is_long

    def has_ended(self, one: Ended) -> bool:
        """Whether an ended transaction is wanted for why it ended, and whose it is."""
        fits_cause = self.cause in {None, one.ending.cause.name}
        fits_stale = not self.is_stale or one.ending.stale_because is not None
        return fits_cause and fits_stale and self.has_id(one.transactional_id)

    @property
    def window(self) -> str:
        """That something ended at a wanted time, as a condition; without a bound also where its time is not known."""
        bounds = ((">=", self.since_ms), ("<", self.until_ms))
        return " AND ".join(["TRUE", *(f"end_timestamp_ms {sign} {ms}" for sign, ms in bounds if ms is not None)])

    @property
    def places(self) -> dict[str, tuple[Any, ...]]:
        """The wanted topics and partitions, as `Warehouse.batches` takes them."""
        asked = {"topic": self.topics, "partition": self.partitions}
        return {name: wanted for name, wanted in asked.items() if wanted}

    @property
    def rows(self) -> dict[str, tuple[Any, ...]]:
        """The wanted topics, partitions and producer ids, as `Warehouse.batches` takes them."""
        return self.places | ({"producer_id": self.producer_ids} if self.producer_ids else {})

    def has_one_of(self, places: Iterable[tuple[str, int]]) -> bool:
        """Whether one of some partitions is wanted."""
        return not self.topics or any(
            topic in self.topics and (not self.partitions or partition in self.partitions)
            for topic, partition in places
        )


def check_seen(tables: RunTables, filters: Filters, *, of_coordinator: bool = False) -> None:
    """Refuse what a run has never seen.

    Args:
        tables: the run.
        filters: what is asked for.
        of_coordinator: also the partitions that the coordinator's transactions list are asked about, not logs alone.

    Raises:
        ConfigError: it names the option, what it names, and what there is.
    """
    if filters.topics:
        check_places(filters.topics, filters.partitions, tables.places(of_coordinator=of_coordinator))
    if filters.state_partitions:
        seen = [p["partition"] for p in tables.run.coverage.get("partitions") or [] if p["is_seen"]]
        for number in filters.state_partitions:
            if number not in seen:
                there = f"it saw {ranges(seen)}" if seen else "it saw none"
                raise ConfigError(f"--coordinator {STATE_TOPIC}-{number}: this run saw no such partition; {there}")
    _check_known(tables, "producer", "producer_id", filters.producer_ids, _PRODUCERS)


def check_ids_seen(tables: RunTables, transactional_ids: Collection[str]) -> None:
    """Refuse transactional ids that a run has never seen: neither its coordinators' records nor its findings have them.

    Raises:
        ConfigError: it names the id.
    """
    _check_known(tables, "id", "transactional_id", transactional_ids, _IDS)


LOOK_FOR = {
    "producer": "the verbs `list` and `describe-producers` show those that it saw",
    "id": "the verb `list` shows all ids",
}
_SQL = Path(__file__).with_name("producers.sql")
_PRODUCERS = """
    SELECT producer_id FROM transactions
    UNION ALL SELECT producer_id FROM ended_transactions
    UNION ALL SELECT producer_id FROM ids
    UNION ALL SELECT producer_id FROM last_producers
"""
_IDS = "SELECT transactional_id FROM findings UNION ALL SELECT transactional_id FROM transaction_states"


def _check_known(tables: RunTables, what: str, name: str, wanted: Collection[Any], every: str) -> None:
    """Refuse values that are in no row of the run, in its logs or at the coordinator."""
    if not wanted:
        return
    seen = f"SELECT DISTINCT {name} FROM ({every}) seen WHERE {is_one_of({name: wanted})}"  # noqa: S608 ours
    if unseen := {*wanted} - {*ask(tables.finished, seen, views_in(_SQL))[name].to_pylist()}:
        flag = f"--{name.replace('_', '-')} {clip(str(min(unseen)), _NAME_WIDTH)}"
        raise ConfigError(f"{flag}: this run saw no such {what}; {LOOK_FOR[what]}")
