"""The verbs of `kafka-transactions.sh`: `find-hanging`, `list`, `describe`, `describe-producers`."""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from txn_analysis.cli.options import Format, Request, RunId, TextOrJson
from txn_analysis.cli.output import emit
from txn_analysis.cli.spark import spark_session
from txn_analysis.cli.verbs import verb
from txn_analysis.errors import ConfigError
from txn_analysis.number_bounds import INT32_MAX, INT64_MAX, MAX_STATE_PARTITIONS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from txn_analysis.config import Settings
    from txn_analysis.queries import RunTables
    from txn_analysis.report.answer import Answer

_STATE_PARTITION_PREFIX = "__transaction_state-"
_STATE_PARTITION = re.compile("[0-9]{1,7}")
_STATES = ("Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort", "PrepareEpochFence")

Topic = Annotated[str | None, typer.Option("--topic", metavar="TOPIC", help="Only this topic.")]
Partition = Annotated[
    int | None, typer.Option("--partition", metavar="N", min=0, max=INT32_MAX, help="Only this partition of --topic.")
]
ProducerIds = Annotated[
    list[int] | None,
    typer.Option("--producer-id", metavar="ID", min=0, max=INT64_MAX, help="Only this one; may be repeated."),
]
Pattern = Annotated[
    str | None,
    typer.Option("--transactional-id-pattern", metavar="REGEX", help="Only transactional ids that match as a whole."),
]
IdleFilter = Annotated[
    int | None,
    typer.Option(
        "--duration-filter", metavar="MS", min=0, max=INT64_MAX, help="Only what was idle for longer than this."
    ),
]
DurationFilter = Annotated[
    int | None,
    typer.Option(
        "--duration-filter",
        metavar="MS",
        min=0,
        max=INT64_MAX,
        help="Only transactions that have run for longer than this.",
    ),
]
Broker = Annotated[
    str | None,
    typer.Option("--broker", "--broker-id", metavar="ID", help="Refused: the files do not say which broker leads."),
]
Coordinator = Annotated[
    str | None,
    typer.Option("--coordinator", metavar="NAME", help="Only ids of this partition, such as __transaction_state-3."),
]
States = Annotated[
    list[str] | None,
    typer.Option("--state", metavar="STATE", help="Only this state, such as Ongoing; may be repeated."),
]


def find_hanging(
    request: Request,
    run_id: RunId = None,
    topic: Topic = None,
    partition: Partition = None,
    producer_id: ProducerIds = None,
    duration_filter: IdleFilter = None,
    transactional_id_pattern: Pattern = None,
    broker: Broker = None,
    since: Annotated[
        str | None, typer.Option("--since", metavar="RUN_ID", help="Only what did not hang in this run yet.")
    ] = None,
    format: Format = TextOrJson.TEXT,  # noqa: A002 the flag's own name
) -> int:
    """List the hanging transactions of a run, in the columns of kafka-transactions.sh.

    CoordinatorEpoch is -1 where no marker was seen, as the tool prints it, and also where it is unknown. Duration(min)
    is the time since the last write. TransactionalId and Rule are added.

    Exit code: 0 nothing is listed, 1 something is, 2 there is no such run.
    """
    settings = request.settings()
    _refuse_broker(broker)
    from txn_analysis import queries

    filters = queries.Filters(
        topic=topic,
        partition=partition,
        producer_ids=tuple(producer_id or ()),
        duration_ms=duration_filter,
        transactional_id_pattern=transactional_id_pattern,
    )
    with _run(settings, run_id) as tables:
        known = None if since is None else tables.of(since).findings()
        answer = queries.find_hanging(tables.findings(), filters, known)
    _print(answer, request, format)
    return int(bool(answer.rows) and not settings.exit_zero)


def list_(
    request: Request,
    run_id: RunId = None,
    topic: Topic = None,
    partition: Partition = None,
    state: States = None,
    producer_id: ProducerIds = None,
    duration_filter: DurationFilter = None,
    transactional_id_pattern: Pattern = None,
    coordinator: Coordinator = None,
    broker: Broker = None,
    format: Format = TextOrJson.TEXT,  # noqa: A002 the flag's own name
) -> int:
    """List the transactional ids with their coordinator's last word on them.

    Coordinator is the partition of __transaction_state whose leader coordinates the id: the files do not say which
    broker that was. --duration-filter counts up to the moment of the copy, and keeps only running transactions whose
    start is known.
    """
    settings = request.settings()
    _refuse_broker(broker)
    from txn_analysis import queries

    filters = queries.Filters(
        topic=topic,
        partition=partition,
        states=_known_states(state or []),
        producer_ids=tuple(producer_id or ()),
        duration_ms=duration_filter,
        transactional_id_pattern=transactional_id_pattern,
        state_partition=_state_partition(coordinator),
    )
    with _run(settings, run_id) as tables:
        answer = queries.list_transactions(tables.current_states(), tables.as_of_ms, filters)
    _print(answer, request, format)
    return 0


def describe(
    request: Request,
    transactional_id: Annotated[str, typer.Option("--transactional-id", metavar="ID", help="The id to describe.")],
    run_id: RunId = None,
    format: Format = TextOrJson.TEXT,  # noqa: A002 the flag's own name
) -> int:
    """Show what the coordinator last recorded for one transactional id.

    CoordinatorId is the partition of __transaction_state that holds the id. The duration is up to the moment of the
    copy; it and the start are None while no transaction is running, and where the dump does not print the start.
    """
    from txn_analysis import queries

    with _run(request.settings(), run_id) as tables:
        answer = queries.describe(tables.current_states(), tables.as_of_ms, transactional_id)
    _print(answer, request, format)
    return 0


def describe_producers(
    request: Request,
    topic: Annotated[str, typer.Option("--topic", metavar="TOPIC", help="The topic.")],
    partition: Annotated[int, typer.Option("--partition", metavar="N", min=0, max=INT32_MAX, help="The partition.")],
    run_id: RunId = None,
    broker: Broker = None,
    format: Format = TextOrJson.TEXT,  # noqa: A002 the flag's own name
) -> int:
    """Show the producers of one partition as its broker would, at the end of the files."""
    settings = request.settings()
    _refuse_broker(broker)
    from txn_analysis import queries

    with _run(settings, run_id) as tables:
        answer = queries.describe_producers(tables.health(), topic, partition)
    _print(answer, request, format)
    return 0


def add_to(app: typer.Typer) -> None:
    """Adds these verbs to the command line."""
    verb(app, "find-hanging", "txn-analysis find-hanging --topic orders")(find_hanging)
    verb(app, "list", "txn-analysis list --state Ongoing --duration-filter 60000")(list_)
    verb(app, "describe", "txn-analysis describe --transactional-id billing-worker-17")(describe)
    verb(app, "describe-producers", "txn-analysis describe-producers --topic orders --partition 0")(describe_producers)


@contextmanager
def _run(settings: Settings, run_id: str | None) -> Iterator[RunTables]:
    with spark_session(settings) as spark:
        # Spark takes a second to import.
        from txn_analysis.queries import run_tables
        from txn_analysis.warehouse import Warehouse

        yield run_tables(Warehouse(spark, settings.warehouse), settings.cluster, run_id)


def _print(answer: Answer, request: Request, form: TextOrJson) -> None:
    emit(answer.json() if form is TextOrJson.JSON else answer.text(), request.output)


def _refuse_broker(broker: str | None) -> None:
    if broker is not None:
        raise ConfigError("--broker: dumps do not say which broker leads a partition; use --topic and --partition")


def _state_partition(coordinator: str | None) -> int | None:
    if coordinator is None:
        return None
    number = coordinator.removeprefix(_STATE_PARTITION_PREFIX)
    if number == coordinator or not _STATE_PARTITION.fullmatch(number) or int(number) >= MAX_STATE_PARTITIONS:
        raise ConfigError(
            f"--coordinator {coordinator}: dumps do not say which broker coordinates an id; "
            f"give a partition, such as {_STATE_PARTITION_PREFIX}3"
        )
    return int(number)


def _known_states(states: list[str]) -> tuple[str, ...]:
    unknown = [state for state in states if state not in _STATES]
    if unknown:
        raise ConfigError(f"--state {unknown[0]}: unknown; the states are {', '.join(_STATES)}")
    return tuple(states)
