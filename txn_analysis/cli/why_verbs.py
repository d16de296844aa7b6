"""The verbs that say why: `explain`, and `ended` for what came to an end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from txn_analysis.cli.options import (
    COULD_NOT_TELL,
    ONE,
    ROWS,
    OfPlaces,
    OfProducers,
    address,
    argument,
    count_of_rows,
    int64,
    moment,
    option,
    patterns,
    schema,
)
from txn_analysis.cli.output import deliver, deliver_schema, note, one, rows
from txn_analysis.cli.spark import asked_run
from txn_analysis.cli.verbs import exit_code, verb
from txn_analysis.errors import ConfigError
from txn_analysis.judge.outcome import Outcome
from txn_analysis.kafka.address import Address

if TYPE_CHECKING:
    from txn_analysis.questions.filters import Filters
    from txn_analysis.runs.run_tables import RunTables


@dataclass(frozen=True, kw_only=True)
class _Explain(OfPlaces):
    addresses: tuple[Address, ...] = argument(
        "[ADDRESS]...",
        "TOPIC-PARTITION@OFFSET, a transaction by its first offset; or TOPIC-PARTITION:OFFSET.",
        nargs=-1,
        type=address,
    )
    transactional_id: str | None = option("--transactional-id ID", "Who a transactional id is.")
    producer_id: int | None = option("--producer-id ID", "Who a producer is.", type=int64)
    group: str | None = option("--group G", "Who blocks a consumer group.")
    # As 1.0 spelled an address.
    start_offset: int | None = option("--start-offset", type=int64, hidden=True)
    offset: int | None = option("--offset", type=int64, hidden=True)
    schema: bool = schema()

    def places(self) -> list[Address]:
        """What is asked about, an offset first; as an address, or as options of 1.0 say an offset.

        Raises:
            ConfigError: options stand beside an address, or an offset has no partition.
        """
        if self.offset is not None:
            if self.addresses or self.start_offset is not None or len(self.topics) != 1 or len(self.partitions) != 1:
                raise ConfigError(
                    "--offset is of one partition: give its address, such as orders-0:205, and nothing else"
                )
            return [Address(self.topics[0], self.partitions[0], self.offset, is_transaction=False)]
        if self.addresses and (self.topics or self.partitions or self.start_offset is not None):
            raise ConfigError("an address names topic and partition: leave out --topic, --partition and --start-offset")
        return sorted(self.addresses, key=lambda place: place.is_transaction)


@verb(
    "explain",
    "txn-analysis explain orders-0@161\ntxn-analysis explain orders-0:205\n"
    "txn-analysis explain --group billing-readers",
    ONE,
    uses=COULD_NOT_TELL,
)
def explain(asked: _Explain) -> int:
    """Explain a transaction, an offset, an id or a group.

    Of an open transaction (orders-0@161) it prints the evidence, the cause, a timeline, the rules, and what would
    change the verdict; without an address, of all open transactions of the run or of --topic, if there are not more
    than 20. Of an offset (orders-0:205) it says what is there, and why a consumer does not get past it. Of an id, a
    producer or a group: the partition of __transaction_state or __consumer_offsets that holds it (its leader is the
    coordinator), its history, where it wrote, its open transactions, and what blocks it.

    Exit code: 0 it is explained, 2 there is no such run or topic, or it was never seen, 3 the files do not tell (see
    --ok-inconclusive).
    """
    named = {name: getattr(asked, name) for name in ("group", "transactional_id", "producer_id")}
    whose = [(kind, name) for kind, name in named.items() if name is not None]
    if len(whose) > 1:
        raise ConfigError("give one of --group, --transactional-id and --producer-id")
    places = asked.places()
    if whose and not (asked.topics or places) and asked.start_offset is None:
        return _explain_owner(asked, *whose[0])
    if asked.group is not None or asked.transactional_id is not None:
        raise ConfigError("--group and --transactional-id ask who it is: leave out address, --topic and --start-offset")
    if places and not places[0].is_transaction:
        if len(places) > 1 or asked.producer_id is not None:
            raise ConfigError(f"{places[0]}: is an offset of one partition: give it alone")
        return _explain_offset(asked, places[0])
    from txn_analysis.questions import explain as explanations

    if asked.schema:
        return deliver_schema(asked.targets, list[explanations.Explanation])
    filters = asked.filters(producer_ids=tuple(name for _, name in whose))
    with asked_run(asked.settings(), asked.run_id, *_where(places), filters) as tables:
        explained = explanations.explain(tables, filters, asked.start_offset, places)
    deliver(asked.targets, one(explained, lambda: explanations.explanations_text(explained)))
    return 0


def _where(places: Sequence[Address]) -> list[Filters]:
    """What a run must have seen."""
    from txn_analysis.questions.filters import Filters

    return [Filters((place.topic,), (place.partition,)) for place in places]


def _explain_offset(asked: _Explain, place: Address) -> int:
    from txn_analysis.questions.offset import explain_offset
    from txn_analysis.questions.offset_answer import OffsetAnswer, offset_text

    def answer(tables: RunTables) -> OffsetAnswer:
        return explain_offset(tables.finished, place.topic, place.partition, place.offset)

    return _print(asked, OffsetAnswer, answer, offset_text, *_where([place]))


def _explain_owner(asked: _Explain, kind: str, name: str | int) -> int:
    from txn_analysis.questions.owners import Kind, OwnerAnswer, who_is
    from txn_analysis.questions.owners_text import owner_text

    return _print(asked, OwnerAnswer, lambda tables: who_is(tables, Kind(kind), name), owner_text)


def _print(
    asked: _Explain,
    kind: Any,
    answered: Callable[[RunTables], Any],
    text_of: Callable[[Any, str], str],
    *wanted: Filters,
) -> int:
    """Prints an answer that the files may not tell; its text names commands for the same cluster."""
    from txn_analysis.report.figures import run_options

    if asked.schema:
        return deliver_schema(asked.targets, kind)
    settings = asked.settings()
    with asked_run(settings, asked.run_id, *wanted) as tables:
        answer = answered(tables)
    deliver(asked.targets, one(answer, lambda: text_of(answer, run_options(settings, tables.run.cluster))))
    return exit_code(Outcome.CLEAN if answer.is_told else Outcome.COULD_NOT_TELL, settings)


@dataclass(frozen=True, kw_only=True)
class _Ended(OfProducers):
    by: str | None = option(
        "--by",
        "Count them by the application whose an id looks, by transactional id, or by topic.",
        type=click.Choice(("application", "id", "topic")),
    )
    transactional_id_patterns: tuple[str, ...] = patterns()
    outcome: str | None = option(
        "--outcome", "Only those that ended like this. [ABORT]", type=click.Choice(("ABORT", "COMMIT", "any"))
    )
    cause: str | None = option("--cause NAME", "Only this cause, such as coordinator_timeout.")
    is_stale: bool = option("--stale", "Only those with records of an older transaction, whatever their outcome.")
    since_ms: int | None = option("--since TIME", "Only what ended then or later.", type=moment)
    until_ms: int | None = option("--until TIME", "Only what ended before.", type=moment)
    limit: int | None = option(
        "--limit N", "At most so many, the newest first. [1000; 50 with --by]", type=count_of_rows
    )
    schema: bool = schema()


@verb(
    "ended",
    "txn-analysis ended --topic orders --cause coordinator_timeout\n"
    "txn-analysis ended --by id --since 2026-11-20T00:00:00Z",
    ROWS,
)
def ended(asked: _Ended) -> int:
    """List ended transactions and who ended them; or count.

    Who ended one is its client, a timeout, a fencing, or an administrator. To a client every abort of the coordinator
    looks the same (KAFKA-9803); the coordinator's records tell them apart. Stale says which transactions held records
    of an older one, which a commit published (KIP-890).

    With --by they are counted by application, transactional id or topic: how many committed, were aborted, and why;
    how many are empty or open; their sizes, how long they took, and how long their markers; and what the files cannot
    say of that. One transaction counts once on each partition.

    Exit code: 0, or 2 where there is no such run, topic or the like.
    """
    if asked.by is not None and (asked.outcome is not None or asked.cause is not None or asked.is_stale):
        raise ConfigError("--outcome, --cause and --stale list transactions: leave them out, or --by")
    if asked.by is None and asked.schema:
        raise ConfigError("--schema is of counts: give --by application, id or topic")
    filters = asked.filters()
    if asked.by is not None:
        return _ended_by(asked, filters, asked.by)
    from txn_analysis.questions.ended import cost_of_timeouts, ended_answer

    outcome = None if asked.outcome == "any" or asked.is_stale else asked.outcome or "ABORT"
    with asked_run(asked.settings(), asked.run_id, filters) as tables:
        answer, left_out_count = ended_answer(tables.finished, filters, outcome, asked.limit or 1000)
    deliver(asked.targets, rows(answer))
    if left_out_count:
        note(f"{left_out_count} older ones are not shown; raise --limit or say more")
    if (costs := cost_of_timeouts(answer)) is not None:
        note(costs)
    return 0


def _ended_by(asked: _Ended, filters: Filters, by: str) -> int:
    from txn_analysis.questions.stats import stats_of
    from txn_analysis.questions.stats_answer import By, Group, StatsAnswer, stats_text
    from txn_analysis.report.formats import Answer, Column

    if asked.schema:
        return deliver_schema(asked.targets, StatsAnswer)
    with asked_run(asked.settings(), asked.run_id, filters) as tables:
        answer = stats_of(tables, filters, By(by), asked.limit or 50)
    groups = Answer(tuple(map(Column, Group._fields)), answer.groups)
    deliver(asked.targets, rows(groups) | one(answer, lambda: stats_text(answer)))
    if answer.left_out_count and any(target.form in {"csv", "ndjson"} for target in asked.targets):
        note(f"{answer.left_out_count} more rows are not shown; raise --limit")
    return 0
