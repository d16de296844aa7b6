"""What the verbs that ask a finished run share: their options, what these ask for, and how rows are printed."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated

import typer

from txn_analysis.cli.options import number, repeated
from txn_analysis.errors import ConfigError
from txn_analysis.kafka.address import Address
from txn_analysis.kafka.names import INT64_MAX, MAX_STATE_PARTITIONS

if TYPE_CHECKING:
    from collections.abc import Callable

    from txn_analysis.questions.filters import Filters
    from txn_analysis.report.formats import Answer

_STATE_PARTITION_PREFIX = "__transaction_state-"
_STATE_PARTITION = re.compile("[0-9]{1,7}")
_STATES = ("Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort", "PrepareEpochFence")


Patterns = Annotated[
    list[str] | None,
    repeated("--transactional-id-pattern", "REGEX", "Only transactional ids that match as a whole"),
]
IdleFilter = Annotated[
    list[int] | None,
    number("--duration-filter", "MS", "Only what was idle for longer than this.", most=INT64_MAX),
]
DurationFilter = Annotated[
    list[int] | None,
    number("--duration-filter", "MS", "Only transactions that have run for longer than this.", most=INT64_MAX),
]
Broker = Annotated[
    str | None,
    typer.Option("--broker", "--broker-id", metavar="ID", help="Refused: the files do not say which broker leads."),
]
Coordinators = Annotated[
    list[str] | None,
    repeated("--coordinator", "NAME", "Only ids of this partition, such as __transaction_state-3"),
]
States = Annotated[list[str] | None, repeated("--state", "STATE", "Only this state, such as Ongoing, in any case")]


Addresses = Annotated[
    list[str] | None,
    typer.Argument(metavar="ADDRESS", help="TOPIC-PARTITION@OFFSET: the transaction that begins at this offset."),
]


def addresses_of(texts: list[str] | None) -> tuple[Address, ...]:
    """Addresses as they are typed.

    Raises:
        ConfigError: one is none.
    """
    try:
        return tuple(map(Address.of, texts or ()))
    except ValueError as error:
        raise ConfigError(str(error)) from None


def transactions_of(texts: list[str] | None) -> tuple[Address, ...]:
    """Addresses of transactions as they are typed.

    Raises:
        ConfigError: one is none, or an offset's.
    """
    found = addresses_of(texts)
    for address in found:
        if not address.is_transaction:
            begins = address._replace(is_transaction=True)
            raise ConfigError(f"{address}: is an offset; a transaction that begins there is {begins}")
    return found


def forms_of(answer: Answer, words: str = "") -> dict[str, Callable[[], str]]:
    """Rows in each form that they may be asked for; `words` stand below them in text."""
    return {"text": lambda: answer.text() + words, "json": answer.json, "ndjson": answer.ndjson, "csv": answer.csv}


def refuse_broker(broker: str | None) -> None:
    """Refuse the number of a broker, which no file tells.

    Raises:
        ConfigError: one is given.
    """
    if broker is not None:
        raise ConfigError("--broker: dumps do not say which broker leads a partition; use --topic and --partition")


def filters_of(
    topics: list[str] | None,
    partitions: list[int] | None,
    states: list[str] | None = None,
    producer_ids: list[int] | None = None,
    durations_ms: list[int] | None = None,
    patterns: list[str] | None = None,
    coordinators: list[str] | None = None,
) -> Filters:
    """What is asked for; several durations add, so that the shortest one counts."""
    from txn_analysis.questions.filters import Filters

    return Filters(
        topics=tuple(topics or ()),
        partitions=tuple(partitions or ()),
        states=tuple(map(_known_state, states or ())),
        producer_ids=tuple(producer_ids or ()),
        duration_ms=min(durations_ms) if durations_ms else None,
        transactional_id_patterns=tuple(patterns or ()),
        state_partitions=tuple(map(_state_partition, coordinators or ())),
    )


def _state_partition(coordinator: str) -> int:
    number = coordinator.removeprefix(_STATE_PARTITION_PREFIX)
    if number == coordinator or not _STATE_PARTITION.fullmatch(number) or int(number) >= MAX_STATE_PARTITIONS:
        raise ConfigError(
            f"--coordinator {coordinator}: dumps do not say which broker coordinates an id; "
            f"give a partition, such as {_STATE_PARTITION_PREFIX}3"
        )
    return int(number)


def _known_state(state: str) -> str:
    known = {name.lower(): name for name in _STATES}
    if state.lower() not in known:
        raise ConfigError(f"--state {state}: unknown; the states are {', '.join(_STATES)}")
    return known[state.lower()]
