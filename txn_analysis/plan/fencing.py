"""Commands that fence a transactional id, so that none of its old producers can write again."""

from __future__ import annotations

from typing import NamedTuple

from txn_analysis.kafka.topics import TRANSACTIONS
from txn_analysis.text.escape import shell_word

_JAVA = (
    'org.apache.kafka.clients.admin.Admin.create(Map.of("bootstrap.servers", System.getenv("BROKERS")))'
    '.fenceProducers(List.of(System.getenv("ID"))).all().get()'
)
_PYTHON = (
    "import sys; from confluent_kafka import Producer; "
    'Producer({"bootstrap.servers": sys.argv[1], "transactional.id": sys.argv[2]}).init_transactions(60)'
)


class Fencing(NamedTuple):
    """A line for any POSIX shell, and what one must have so that it works."""

    needs: str
    line: str


def ways_to_fence(transactional_id: str) -> tuple[Fencing, ...]:
    """The lines that fence an id, the simplest one first; `"$BROKERS"` stands once in each.

    All of them send `InitProducerId` (KIP-98), which ends what the id has in progress and raises its epoch.
    `forceTerminateTransaction` is in the tools of 4.1 and newer (KAFKA-19003, KIP-939), `Admin.fenceProducers` in
    clients of 3.2 and newer. The last line asks for its epoch, and only then divides by the number of its records;
    newer tools refuse to write none.
    """
    return _ways(shell_word(transactional_id))


def fence_with_kafkas_tool(transactional_id: str) -> Fencing:
    """The first of `ways_to_fence`, where there is room for one."""
    return ways_to_fence(transactional_id)[0]


def ways_of_a_script() -> tuple[Fencing, ...]:
    """`ways_to_fence` for an id that a shell fills in: `"$ID"` stands once in each."""
    return _ways('"$ID"')


def _ways(word: str) -> tuple[Fencing, ...]:
    return (
        # With "=", an id such as `-rf` is no option.
        Fencing("Kafka's tools of 4.1 or newer", f"{TRANSACTIONS} forceTerminateTransaction --transactionalId={word}"),
        Fencing(
            "a JDK, and in KAFKA_HOME the jars of Kafka 3.2 or newer",
            f'echo \'{_JAVA}\' | BROKERS="$BROKERS" ID={word} jshell --class-path "${{KAFKA_HOME:?}}/libs/*" -s -',
        ),
        Fencing("Python and its package confluent-kafka", f"python3 -c '{_PYTHON}' \"$BROKERS\" {word}"),
        Fencing(
            "Kafka's tools of 3.x, which fence, write nothing, and then fail with `/ by zero`",
            "kafka-producer-perf-test.sh --topic none --num-records 0 --record-size 1 --throughput 1 "
            f'--producer-props bootstrap.servers="$BROKERS" --transaction-duration-ms 1 --transactional-id={word}',
        ),
    )
