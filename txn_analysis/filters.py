"""Which rows of a run are wanted, and whether the run has ever seen what a filter names.

A filter that names something unknown is refused: an alert with a slip in it would be green for ever. One that is given
twice adds. A pattern, a duration or a state may match nothing.
"""

from __future__ import annotations

import difflib
import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from txn_analysis.errors import ConfigError
from txn_analysis.frames import collected
from txn_analysis.judge.state_frames import NAMED
from txn_analysis.judge.words import ranges
from txn_analysis.reading.topics import STATE_TOPIC
from txn_analysis.report.escape import clip, escape
from txn_analysis.report.words import listed
from txn_analysis.tables import TRANSACTIONS

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from pyspark.sql import Column, DataFrame

    from txn_analysis.queries import RunTables

_MOST_NAMED = 8
_NAME_WIDTH = 80
_NOTHING = "''"  # as a shell would have it


@dataclass(frozen=True)
class Filters:
    """Which rows are wanted; an empty tuple, or None, asks for all, and several values for any of them.

    A pattern must match the whole id, as Kafka's does. `duration_ms` asks for what has lasted longer than that
    (strictly). `state_partitions` are partitions of `__transaction_state`.
    """

    topics: tuple[str, ...] = ()
    partitions: tuple[int, ...] = ()
    states: tuple[str, ...] = ()
    producer_ids: tuple[int, ...] = ()
    duration_ms: int | None = None
    transactional_id_patterns: tuple[str, ...] = ()
    state_partitions: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        """Refuse what could only give a wrong answer.

        Raises:
            ConfigError: a partition without its topic, or a pattern that is no regular expression.
        """
        if self.partitions and not self.topics:
            raise ConfigError("--partition needs --topic: say of which topic")
        for pattern in self.transactional_id_patterns:
            try:
                re.compile(pattern)
            except re.error as error:
                raise ConfigError(
                    f"--transactional-id-pattern {clip(pattern, _NAME_WIDTH)}: is not a regular expression: {error}; a "
                    "backslash before a sign makes it stand for itself"
                ) from error

    def has_id(self, transactional_id: str | None) -> bool:
        """Whether the id is wanted; an unknown id matches no pattern."""
        if not self.transactional_id_patterns:
            return True
        patterns = self.transactional_id_patterns
        return transactional_id is not None and any(re.fullmatch(p, transactional_id) for p in patterns)

    def has(self, row: Mapping[str, Any], *, in_doubt: bool) -> bool:
        """Whether a row of `findings` is wanted.

        Args:
            row: the finding.
            in_doubt: what is not known of it may be what is asked for.
        """
        asked = (
            (self.topics, row["topic"]),
            (self.partitions, row["partition"]),
            (self.producer_ids, row["producer_id"]),
            (self.states, row["coordinator_state"]),
            (self.state_partitions, row["state_partition"]),
        )
        is_named = all(not wanted or value in wanted or (in_doubt and value is None) for wanted, value in asked)
        is_id = self.has_id(row["transactional_id"]) or (in_doubt and row["transactional_id"] is None)
        idle_ms = row["idle_ms"]
        is_long = self.duration_ms is None or (in_doubt if idle_ms is None else idle_ms > self.duration_ms)
        return is_named and is_id and is_long


def where_place(rows: DataFrame, filters: Filters) -> DataFrame:
    """The rows of the wanted topics and partitions."""
    return _where_in(_where_in(rows, "topic", filters.topics), "partition", filters.partitions)


def where_producer(rows: DataFrame, filters: Filters) -> DataFrame:
    """The rows of the wanted producer ids."""
    return _where_in(rows, "producer_id", filters.producer_ids)


def where_coordinator(rows: DataFrame, filters: Filters, state: str) -> DataFrame:
    """The rows of the wanted states, which are in the column `state`, and partitions of `__transaction_state`."""
    return _where_in(_where_in(rows, state, filters.states), "state_partition", filters.state_partitions)


def _where_in(rows: DataFrame, column: str, wanted: Collection[Any]) -> DataFrame:
    return rows.where(F.col(column).isin(*wanted)) if wanted else rows


def is_wanted_place(place: Column, filters: Filters) -> Column:
    """Whether a struct of topic and partition is one of the wanted."""
    is_topic = place["topic"].isin(*filters.topics)
    return is_topic & place["partition"].isin(*filters.partitions) if filters.partitions else is_topic


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
        _check_places(filters, tables.places(of_coordinator=of_coordinator))
    if filters.state_partitions:
        _check_state_partitions(filters, json.loads(tables.run["state_coverage"]))
    if filters.producer_ids:
        unseen = sorted(set(filters.producer_ids) - _producers_seen(tables, filters.producer_ids))
        if unseen:
            raise ConfigError(f"--producer-id {unseen[0]}: this run saw no such producer; {_LOOK}")


def check_ids_seen(tables: RunTables, transactional_ids: Collection[str]) -> None:
    """Refuse transactional ids that a run has never seen: neither its coordinators' records nor its findings have them.

    Raises:
        ConfigError: it names the id.
    """
    if not transactional_ids:
        return
    ids = tables.current_states().select("transactional_id").unionByName(tables.findings().select("transactional_id"))
    found = collected(ids.where(F.col("transactional_id").isin(*transactional_ids)).distinct())
    unseen = sorted(set(transactional_ids) - {row["transactional_id"] for row in found})
    if unseen:
        named = clip(unseen[0], _NAME_WIDTH)
        raise ConfigError(f"--transactional-id {named}: this run saw no such id; the verb `list` shows all ids")


_LOOK = "the verbs `list` and `describe-producers` show those that it saw"


def _check_places(filters: Filters, seen: Collection[tuple[str, int]]) -> None:
    topics = sorted({topic for topic, _ in seen})
    for topic in filters.topics:
        if topic not in topics:
            close = difflib.get_close_matches(topic, topics, n=1)
            there = f"did you mean {escape(close[0])}?" if close else f"it saw {_names(topics)}"
            raise ConfigError(f"--topic {clip(topic, _NAME_WIDTH) or _NOTHING}: this run saw no such topic; {there}")
    for number in filters.partitions:
        if not any((topic, number) in seen for topic in filters.topics):
            present = sorted(partition for topic, partition in seen if topic in filters.topics)
            named = _names(sorted(filters.topics))
            raise ConfigError(
                f"--partition {number}: this run saw no such partition; of {named} it saw {ranges(present)}"
            )


def _names(names: list[str]) -> str:
    return listed([clip(name, _NAME_WIDTH) for name in names], _MOST_NAMED) or "none"


def _check_state_partitions(filters: Filters, coverage: Mapping[str, Any]) -> None:
    seen = [p["partition"] for p in coverage.get("partitions") or [] if p["is_seen"]]
    for number in filters.state_partitions:
        if number not in seen:
            there = f"it saw {ranges(seen)}" if seen else "it saw none"
            raise ConfigError(f"--coordinator {STATE_TOPIC}-{number}: this run saw no such partition; {there}")


def _producers_seen(tables: RunTables, producer_ids: tuple[int, ...]) -> set[int]:
    """Those of some producer ids that occur in the run: in its logs, or at the coordinator."""
    of_logs = tables.health().select(F.explode("producers").alias("p")).select(F.col("p.producer_id"))
    of_transactions = tables.rows(TRANSACTIONS).select("producer_id")
    of_states = tables.finished().states().select(F.explode(F.array_compact(F.array(*NAMED))).alias("producer_id"))
    every = of_logs.unionByName(of_transactions).unionByName(of_states)
    found = every.where(F.col("producer_id").isin(*producer_ids)).distinct()
    return {row["producer_id"] for row in collected(found)}
