"""What a plan's script answers where it refuses: docs/mistakes.md is made of it, and a test runs every line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from tests.plan.plan_shell import RETURNING, script_of, transaction

if TYPE_CHECKING:
    from pathlib import Path

    from tests.plan.plan_shell import Executor


class ScriptMistake(NamedTuple):
    """One slip: how the script is called, all that it says, its exit code, and what is different there."""

    wrong: str
    command: str
    answer: str
    exit_code: int
    changes: dict[str, Any]

    def answer_in(self, _folder: Path) -> str:
        """The answer, wherever it runs."""
        return self.answer


PLAN = script_of(RETURNING)
_RECORD = "orders-2 from offset 155, producer id 987654321"
_FENCING = """
  # Kafka's tools of 4.1 or newer:
  kafka-transactions.sh --bootstrap-server broker:9092 forceTerminateTransaction --transactionalId=billing
  # a JDK, and in KAFKA_HOME the jars of Kafka 3.2 or newer:
  echo 'org.apache.kafka.clients.admin.Admin.create(Map.of("bootstrap.servers", System.getenv("BROKERS")))\
.fenceProducers(List.of(System.getenv("ID"))).all().get()' \
| BROKERS=broker:9092 ID=billing jshell --class-path "${KAFKA_HOME:?}/libs/*" -s -
  # Python and its package confluent-kafka:
  python3 -c 'import sys; from confluent_kafka import Producer; Producer({"bootstrap.servers": sys.argv[1], \
"transactional.id": sys.argv[2]}).init_transactions(60)' broker:9092 billing
  # Kafka's tools of 3.x, which fence, write nothing, and then fail with `/ by zero`:
  kafka-producer-perf-test.sh --topic none --num-records 0 --record-size 1 --throughput 1 --producer-props \
bootstrap.servers=broker:9092 --transaction-duration-ms 1 --transactional-id=billing"""
_ENDED = "sh plan.sh --yes --ended billing"

SCRIPT_KINDS: dict[str, tuple[ScriptMistake, ...]] = {
    "The script of a plan does not begin": (
        ScriptMistake(
            "Kafka's tool has another name here, or none",
            "sh plan.sh --yes",
            "error: kafka-transactions.sh is not on the PATH: KAFKA_TRANSACTIONS says how it is called. "
            "Nothing was sent.",
            2,
            {"tool": None},
        ),
        ScriptMistake(
            "a time with a unit",
            "TIMEOUT_SECONDS=1m sh plan.sh --yes",
            "error: TIMEOUT_SECONDS and PAUSE_SECONDS are whole seconds, and the first is above 0. Nothing was sent.",
            2,
            {"variables": {"TIMEOUT_SECONDS": "1m"}},
        ),
        ScriptMistake(
            "a job without a terminal, which cannot be asked",
            "sh plan.sh",
            "error: there is no terminal to ask at: read the plan, then say --yes. Nothing was sent.",
            2,
            {},
        ),
    ),
    "The script of a plan and the producer": (
        ScriptMistake(
            "the producer was not ended, or `--ended` was forgotten",
            "sh plan.sh --yes",
            f"refused: {_RECORD}: its producer may return, and what it writes then would be lost. Stop it, fence its "
            f"id, and say --ended billing{_FENCING}",
            1,
            {},
        ),
        ScriptMistake(
            "the id is not fenced",
            _ENDED,
            f"refused: {_RECORD}: its producer is not fenced: the coordinator's epoch is 3, and must be above 3"
            f"{_FENCING}",
            1,
            {"describe": transaction("billing", 987_654_321, 3)},
        ),
        ScriptMistake(
            "the coordinator moves, and the old one still answers",
            _ENDED,
            f"refused: {_RECORD}: of its producer was said: coordinator 0, producer id 987654321, epoch 4, "
            "CompleteAbort; and 10 s later: coordinator 2, producer id 987654321, epoch 4, CompleteAbort. Its "
            "coordinator is moving, or somebody uses the id: make sure that it is ended, and run this again",
            1,
            {"describe_later": transaction("billing", 987_654_321, 4, coordinator=2)},
        ),
    ),
    "The script of a plan and brokers that do not answer": (
        ScriptMistake(
            "a look that hangs",
            _ENDED,
            f"refused: {_RECORD}: `kafka-transactions.sh describe-producers` has not answered within 60 s",
            1,
            {"hangs": "describe-producers"},
        ),
        ScriptMistake(
            "an abort that hangs",
            _ENDED,
            f"refused: {_RECORD}: Kafka's tool has not answered within 60 s, and may have sent it. Run this again: it "
            "looks first",
            1,
            {"hangs": "abort"},
        ),
    ),
}

SCRIPT_MISTAKES = tuple(mistake for kind in SCRIPT_KINDS.values() for mistake in kind)


def answered(mistake: ScriptMistake, executor: Executor) -> tuple[int, str]:
    """The exit code, and what the script really says."""
    words = mistake.command.partition("plan.sh")[2].split()
    done = executor.but(**mistake.changes).runs(PLAN, *words)
    return done.code, done.said.removesuffix("\n")
