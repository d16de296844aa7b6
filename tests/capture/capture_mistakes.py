"""What `txn-capture` answers where it cannot capture: docs/mistakes.md is made of it, and a test runs every line."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from txn_analysis.capture.answers import CaptureError, RefusedError, UnavailableError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


class CaptureMistake(NamedTuple):
    """One slip: the command, all that it says but for progress, its exit code, and the brokers' failures by call.

    `is_installed` is whether the client library is; `properties` is what `client.properties` holds.
    """

    wrong: str
    command: str
    answer: str
    exit_code: int = 2
    properties: str = ""
    failures: Mapping[str, list[Exception]] = MappingProxyType({})
    is_installed: bool = True

    def answer_in(self, folder: Path) -> str:
        """The answer where the command runs in a folder."""
        return self.answer.replace("{folder}", str(folder))


_CAPTURE = "txn-capture --bootstrap-server kafka-1:9092 --to capture-1"
_WITH_CONFIG = f"{_CAPTURE} --command-config client.properties"
_TO_PEM = "Change it to PEM: keytool -exportcert -rfc (certificates), openssl pkcs12 -nodes (keys)"
_ACL = "Grant it: kafka-acls.sh --add --allow-principal User:… --operation"

CAPTURE_KINDS: dict[str, tuple[CaptureMistake, ...]] = {
    "txn-capture does not know how to connect": (
        CaptureMistake(
            "Java's own store",
            _WITH_CONFIG,
            f"error: client.properties: ssl.truststore: a JKS store is not read here. {_TO_PEM}",
            properties="security.protocol=SSL\nssl.truststore.location=trust.jks\n",
        ),
        CaptureMistake(
            "a slip in an option of the properties",
            _WITH_CONFIG,
            "error: client.properties: security.protocl: not understood here. Take it out, or see docs/capture.md",
            properties="security.protocl=SSL\n",
        ),
        CaptureMistake(
            "the client library is not installed",
            _CAPTURE,
            "error: txn-capture needs its client library: pip install 'txn-analysis[capture]', or"
            " pip install 'kafka-python>=3,<4'",
            is_installed=False,
        ),
    ),
    "txn-capture does not get what it asks for": (
        CaptureMistake(
            "no broker at this address, or another protocol",
            _CAPTURE,
            "error: kafka-1:9092: no broker answers. Check the address, the port's protocol (security.protocol), and"
            " who you are",
            failures={
                "cluster": [
                    CaptureError(
                        "kafka-1:9092: no broker answers. Check the address, the port's protocol (security.protocol),"
                        " and who you are"
                    )
                ]
            },
        ),
        CaptureMistake(
            "no right to read a stuck topic",
            _CAPTURE,
            f"error: orders: DescribeProducers is refused: the ACL READ on Topic:orders is missing. {_ACL} Read"
            " --topic 'orders'",
            failures={"producers": [RefusedError("Read", "Topic", "orders", "DescribeProducers")]},
        ),
        CaptureMistake(
            "a broker that stays away",
            f"{_CAPTURE} --give-up-after-ms 1000",
            "error: broker 1: KafkaTimeoutError: Request timed out. Given up after 1 s (--give-up-after-ms 1000)",
            failures={"fetch": [UnavailableError("broker 1: KafkaTimeoutError: Request timed out")] * 100},
        ),
    ),
    "txn-capture has nothing to do, or no place": (
        CaptureMistake(
            "nothing is stuck",
            f"{_CAPTURE} --topic free",
            "nothing is stuck: no last stable offset lags, and nothing was written. --all captures all the same",
            4,
        ),
        CaptureMistake(
            "a folder that holds an earlier capture",
            "txn-capture --bootstrap-server kafka-1:9092 --to used",
            "error: used: the folder is not empty. Give a new one: a capture is of one moment",
        ),
    ),
}
CAPTURE_MISTAKES = tuple(mistake for kind in CAPTURE_KINDS.values() for mistake in kind)
_PROGRESS = ("1 partition", "2 partitions", "orders-0", "__transaction_state", "broker 1", "fetched", "next", "INCOMPL")


def answered(said: str) -> str:
    """What a command said beside its progress and its summary."""
    return "\n".join(line for line in said.splitlines() if line and not line.startswith(_PROGRESS))


def made_by(mistake: CaptureMistake, logs: dict[Any, Any]) -> dict[Any, Any]:
    """The logs that the brokers of a mistake hold: of the topic that it asks for."""
    wanted = "free" if "--topic free" in mistake.command else "orders"
    return {place: log for place, log in logs.items() if place.topic in {wanted, "__transaction_state"}}
