"""The abort plan as a shell script, which looks at the clock and at the brokers before it sends anything."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib import resources
from typing import NamedTuple

from txn_analysis.kafka.address import Address
from txn_analysis.kafka.names import TRANSACTIONS
from txn_analysis.plan.abort_plan import why_not_by_epochs
from txn_analysis.tables import AbortRecord
from txn_analysis.text import count, escape, iso_utc, shell_option, shell_word

_CONFIG = '${COMMAND_CONFIG:+--command-config "$COMMAND_CONFIG"}'


def commands(records: Sequence[AbortRecord], max_timeout_ms: int | None = None) -> str:
    """One script for any POSIX shell: `plan_script.sh`, then for each record its checks and its one abort.

    The abort is in the `--start-offset` form, which looks the open transaction up on the broker, where the producer
    cannot return; and has the recorded epochs, which the broker refuses once newer data came in, where it can. A record
    for which its form is not known is named and refused. `max_timeout_ms` is the brokers' transaction.max.timeout.ms.
    """
    if not records:
        return "# Nothing to abort: this run found no hanging transaction.\n"
    first = records[0]
    last_ms = max(record.not_after_ms for record in records)
    title = f"Abort plan {escape(first.plan_fingerprint)} of run {escape(first.run_id)}"
    title += f": {count(len(records), 'transaction')}, not after {iso_utc(last_ms)}."
    head = [
        "#!/bin/sh",
        f"plan={shell_word(title)}",
        resources.files("txn_analysis.plan").joinpath("plan_script.sh").read_text(encoding="ascii").rstrip("\n"),
        *(_how_to_fence(max_timeout_ms) if any(record.must_end_producer for record in records) else ()),
    ]
    return "\n".join([*head, *(line for r in records for line in _lines(r)), "", 'exit "$status"']) + "\n"


def _how_to_fence(max_timeout_ms: int | None) -> Iterator[str]:
    # The script itself writes the tool's configuration: it knows the one that it was given.
    timeout_ms = _timeout_below(max_timeout_ms, _TOOLS_TIMEOUT_MS)
    yield from ("", f"fence_timeout_ms={'' if timeout_ms is None else timeout_ms}")
    yield from ("", "how_to_look() {", "    cat << 'END'", _guard('"$ID"'), "END", "}")
    yield from ("", "how_to_fence() {", "    cat << 'END'")
    for way in _fences('"$ID"', max_timeout_ms):
        yield from (f"# {way.needs}:", way.line)
    yield from ("END", "}")


def _lines(record: AbortRecord) -> Iterator[str]:
    yield ""
    yield from _comments(record)
    checks = list(_checks(record))
    if not checks:
        yield f"record={_words(record)}"
        yield f"refuse {shell_word('no command: ' + why_not_by_epochs(record))} || :"
        return
    yield f"if {checks[0]} &&"
    yield from (f"    {check} &&" for check in checks[1:-1])
    yield f"    {checks[-1]}; then"
    yield f"    send {_abort(record, by_epochs=record.must_end_producer)}"
    yield "fi"
    if record.is_sendable_by_epochs and not record.must_end_producer:
        yield f"#   brokers before 3.0: {TRANSACTIONS} {_CONFIG} {_abort(record, by_epochs=True)}"


def _comments(record: AbortRecord) -> Iterator[str]:
    start = "" if record.is_txn_start_exact else " (or below)"
    yield (
        f"# {Address.of_transaction(record)}{start}: producer id {record.producer_id}, "
        f"epoch {record.producer_epoch}; {escape(record.rule)}"
    )
    yield f"#   record {escape(record.finding_id)}"
    if record.transactional_id is not None:
        yield f"#   transactional id: {escape(record.transactional_id)}"
    yield f"#   not before {iso_utc(record.not_before_ms)}, not after {iso_utc(record.not_after_ms)}"
    yield f"#   check first: {escape(record.precondition)}"


def _checks(record: AbortRecord) -> Iterator[str]:
    """Calls of the functions of `plan_script.sh`; none where there is no abort to send."""
    if record.must_end_producer and not record.is_sendable_by_epochs:
        return
    # Whole seconds, on the safe side.
    from_s, to_s = -(-record.not_before_ms // 1000), record.not_after_ms // 1000
    yield f'begin {shell_word(record.finding_id)} {_words(record)} {from_s} {to_s} "$@"'
    name, last_ms = record.transactional_id, record.last_timestamp_ms
    last_timestamp = "unknown" if last_ms is None else last_ms
    if record.must_end_producer and name is not None:
        word = shell_word(name)
        yield f'is_said_to_be_ended {word} {shell_word(word)} "$@"'
    yield (
        f"is_open {record.producer_id} {record.producer_epoch} {record.txn_start_offset} {last_timestamp} "
        f"{shell_option('--topic', record.topic)} --partition {record.partition}"
    )
    if record.must_end_producer and name is not None:
        # Last, so that as little time as possible is left to come back.
        yield (
            f"is_ended {record.producer_id} {record.producer_epoch} {shell_word(record.topic_partition)} "
            f"{shell_word(name)} {shell_option('--transactional-id', name)}"
        )


def _words(record: AbortRecord) -> str:
    return shell_word(f"{Address.of_transaction(record)}, producer id {record.producer_id}")


def _abort(record: AbortRecord, *, by_epochs: bool) -> str:
    which = f"--start-offset {record.txn_start_offset}"
    if by_epochs:
        which = (
            f"--producer-id {record.producer_id} --producer-epoch {record.producer_epoch} "
            f"--coordinator-epoch {record.coordinator_epoch}"
        )
    return f"abort {shell_option('--topic', record.topic)} --partition {record.partition} {which}"


_TOOLS_TIMEOUT_MS, _CLIENTS_TIMEOUT_MS = 30_000, 60_000
"""What Kafka's Admin client, and producers, ask for as transaction timeout unless they are told another one."""
_SHORTEST_TIMEOUT_MS = 10_000
_CONFIGURATION = "fence.properties"

# The last row of `describe`, from its end: ids stand in front, and may hold anything.
_NOTHING_IN_PROGRESS = (
    r"awk '1; END { exit !/[ \t](Empty|CompleteCommit|CompleteAbort)"
    r"[ \t]+[0-9]+[ \t]+[^ \t]+[ \t]+[^ \t]+[ \t]*[^ \t]*[ \t\r]*$/ }'"
)


class Fencing(NamedTuple):
    """A line for any POSIX shell, and what one must have so that it works."""

    needs: str
    line: str


def ways_to_fence(word: str, max_timeout_ms: int | None = None) -> tuple[Fencing, ...]:
    """The lines that fence the id that a word of a shell stands for, the simplest one first; `"$BROKERS"` is in each.

    All of them send `InitProducerId` (KIP-98), which aborts what the id has in progress and raises its epoch. So each
    prints what `describe` says at that moment, and goes on only where nothing is in progress. `max_timeout_ms` is the
    brokers' transaction.max.timeout.ms: they refuse the tools' own timeout where it is above.
    """
    first, *others = (Fencing(way.needs, f"{_guard(word)} && {way.line}") for way in _fences(word, max_timeout_ms))
    timeout_ms = _timeout_below(max_timeout_ms, _TOOLS_TIMEOUT_MS)
    if timeout_ms is not None:
        written = rf"printf 'request.timeout.ms={timeout_ms}\ndefault.api.timeout.ms={timeout_ms}\n'"
        line = first.line.replace(" forceTerminate", f" --command-config {_CONFIGURATION} forceTerminate", 1)
        first = Fencing(first.needs, f"{written} > {_CONFIGURATION} && {line}")
    return first, *others


def fence_with_kafkas_tool(transactional_id: str, max_timeout_ms: int | None = None) -> Fencing:
    """The first of `ways_to_fence`, where there is room for one."""
    return ways_to_fence(shell_word(transactional_id), max_timeout_ms)[0]


def _guard(word: str) -> str:
    return f"{TRANSACTIONS} describe --transactional-id={word} | {_NOTHING_IN_PROGRESS}"


def _timeout_below(max_timeout_ms: int | None, default_ms: int) -> int | None:
    """The timeout to ask for; None where the default is taken."""
    if max_timeout_ms is None or max_timeout_ms >= default_ms:
        return None
    return min(_SHORTEST_TIMEOUT_MS, max(max_timeout_ms // 2, 1))


def _fences(word: str, max_timeout_ms: int | None) -> tuple[Fencing, ...]:
    """The lines without their look.

    `forceTerminateTransaction` is in the tools of 4.1 and newer (KAFKA-19003, KIP-939), `Admin.fenceProducers` in
    clients of 3.2 and newer. The last line asks for its epoch, and only then divides by the number of its records;
    newer tools refuse to write none.
    """
    of_tools, of_clients = (
        _timeout_below(max_timeout_ms, default) for default in (_TOOLS_TIMEOUT_MS, _CLIENTS_TIMEOUT_MS)
    )
    java = f', "request.timeout.ms", "{of_tools}", "default.api.timeout.ms", "{of_tools}"' if of_tools else ""
    python = f', "transaction.timeout.ms": {of_clients}' if of_clients else ""
    perf = f" transaction.timeout.ms={of_clients}" if of_clients else ""
    return (
        # With "=", an id such as `-rf` is no option.
        Fencing("Kafka's tools of 4.1 or newer", f"{TRANSACTIONS} forceTerminateTransaction --transactionalId={word}"),
        Fencing(
            "a JDK, and in KAFKA_HOME the jars of Kafka 3.2 or newer",
            'echo \'org.apache.kafka.clients.admin.Admin.create(Map.of("bootstrap.servers", System.getenv("BROKERS")'
            f'{java})).fenceProducers(List.of(System.getenv("ID"))).all().get()\' | '
            f'BROKERS="$BROKERS" ID={word} jshell --class-path "${{KAFKA_HOME:?}}/libs/*" -s -',
        ),
        Fencing(
            "Python and its package confluent-kafka",
            "python3 -c 'import sys; from confluent_kafka import Producer; Producer({"
            f'"bootstrap.servers": sys.argv[1], "transactional.id": sys.argv[2]{python}}}).init_transactions(60)\' '
            f'"$BROKERS" {word}',
        ),
        Fencing(
            "Kafka's tools of 3.x, which fence, write nothing, and then fail with `/ by zero`",
            "kafka-producer-perf-test.sh --topic none --num-records 0 --record-size 1 --throughput 1 "
            f'--producer-props bootstrap.servers="$BROKERS"{perf} --transaction-duration-ms 1 '
            f"--transactional-id={word}",
        ),
    )
