"""Kafka's own clients, driven from here: see `Driver.java`."""

import json
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.systems.e2e.broker import HEAP, QUIET, Cluster
from tests.tools.kafka_jars import class_path
from tests.tools.processes import wait_until

# Of 2.8.2 the client cannot abort a transaction (KIP-664 came to clients in 3.0); a newer one speaks to its brokers.
CLIENT_OF = {"2.8.2": "3.9.1"}


WITNESSES = 12
"""So many ids lie in all partitions of the state of the tests' clusters."""


class KafkaError(Exception):
    """Kafka refused; `code` is its error code, -1 where it is none of the protocol's."""

    def __init__(self, words: str, code: int) -> None:
        super().__init__(f"{words} ({code})")
        self.code = code


class Driver:
    """One Java process with a producer per transactional id, consumers and an Admin client."""

    def __init__(self, version: str, bootstrap: str | None, log: Path) -> None:
        source = str(Path(__file__).with_name("Driver.java"))
        jars = class_path(CLIENT_OF.get(version, version))
        command = ["java", HEAP, "-XX:+UseSerialGC", *QUIET, "-cp", jars, source, *([bootstrap] if bootstrap else [])]
        with open(log, "wb") as output:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=output,
                text=True,
                bufsize=1,
                start_new_session=True,
            )

    def call(self, do: str, **values: Any) -> Any:
        """Do one thing; returns Kafka's answer.

        Raises:
            KafkaError: Kafka refused it.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"do": do} | values) + "\n")
        line = self._process.stdout.readline()
        assert line, f"the driver ended in {do}"
        answer = json.loads(line)
        if "error" in answer:
            raise KafkaError(answer["error"], answer["code"])
        return answer["ok"]

    def create_topic(self, topic: str, replicas: Sequence[Sequence[int]], configs: Mapping[str, object]) -> None:
        """A topic whose partitions have replicas on these nodes, from 0 on, the leader first."""
        ids = [[node + 1 for node in nodes] for nodes in replicas]
        self.call("create_topic", topic=topic, replicas=ids, configs={name: str(v) for name, v in configs.items()})

    def begin(self, transactional_id: str, timeout_ms: int = 180_000) -> None:
        """Begin a transaction, with a new producer where the id has none yet."""
        self.call("begin", id=transactional_id, timeout_ms=timeout_ms)

    def send(
        self, transactional_id: str, place: tuple[str, int], count: int = 2, *, at_ms: int | None = None
    ) -> list[int]:
        """Write records into the current transaction; returns their offsets, once acknowledged."""
        topic, partition = place
        offsets: list[int] = self.call(
            "send", id=transactional_id, topic=topic, partition=partition, count=count, timestamp_ms=at_ms
        )
        return offsets

    def commit(self, transactional_id: str) -> None:
        """Commit the current transaction."""
        self.call("commit", id=transactional_id)

    def abort(self, transactional_id: str) -> None:
        """Abort the current transaction."""
        self.call("abort", id=transactional_id)

    def described(self, transactional_id: str) -> dict[str, Any]:
        """What the coordinator says of an id."""
        answer: dict[str, Any] = self.call("describe_transaction", id=transactional_id)
        return answer

    def ended(self, transactional_id: str, state: str = "CompleteCommit") -> None:
        """Wait until the markers of an id's last transaction are written: the coordinator answers before."""
        wait_until(lambda: self.described(transactional_id)["state"] == state, f"{transactional_id}: {state}")

    def open_in(self, place: tuple[str, int]) -> dict[int, dict[str, Any]]:
        """What the leader of a partition says of its open transactions, by producer id."""
        rows = self.call("describe_producers", topic=place[0], partition=place[1])
        return {row["producer_id"]: row for row in rows if row["txn_start_offset"] is not None}

    def consume(self, place: tuple[str, int], timeout_ms: int) -> dict[str, Any]:
        """What a `read_committed` consumer gets of a partition: offsets, its position, and the log's end."""
        answer: dict[str, Any] = self.call("consume", topic=place[0], partition=place[1], timeout_ms=timeout_ms)
        return answer

    def start_load(
        self,
        names: Sequence[str],
        places: Sequence[tuple[str, int]],
        *,
        pause_ms: int,
        age_ms: int = 0,
        timeout_ms: int = 60_000,
    ) -> None:
        """Transactions of some ids on some partitions, committed and aborted ones, until `stop_load` is called."""
        given = [{"topic": topic, "partition": partition} for topic, partition in places]
        paces = {"timeout_ms": timeout_ms, "age_ms": age_ms, "pause_ms": pause_ms}
        self.call("start_load", ids=names, partitions=given, **paces)

    def transact(self, transactional_id: str, places: Iterable[tuple[str, int]], count: int = 1) -> None:
        """A whole transaction, committed: a broker's clock in its markers, and its id's partition of the state."""
        self.begin(transactional_id)
        for place in places:
            self.send(transactional_id, place, count)
        self.commit(transactional_id)

    def witness(self, places: Sequence[tuple[str, int]], count: int = WITNESSES) -> None:
        """Transactions of others: the brokers' clocks behind everything, and in all partitions of the state."""
        for number in range(count):
            self.transact(f"witness-{number}", places)

    def close(self) -> None:
        """End the process; open transactions stay open."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()


def first_transaction(cluster: Cluster) -> None:
    """One that is committed while the first node is alone (`Cluster.start`), so that it coordinates everything."""
    driver = Driver(cluster.version, cluster.bootstrap, cluster.folder / "first.log")
    driver.create_topic("first", [(0,)], {})
    driver.begin("first")
    driver.send("first", ("first", 0))
    driver.commit("first")
    driver.close()
