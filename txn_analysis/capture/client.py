"""The brokers of a cluster, asked by kafka-python: the one module that knows the network.

Of the clients for Python only kafka-python gives what a capture needs (decision 0097): the bytes of a Fetch
answer as they are stored, control batches included, and every KIP-664 request with Kafka's own schemas.
"""

from __future__ import annotations

import base64
from collections import defaultdict
from typing import Any, Self

from txn_analysis.capture.answers import (
    CaptureError,
    Cluster,
    Leadership,
    NobodyAnswersError,
    ProducerAnswer,
    RefusedError,
    UnavailableError,
)
from txn_analysis.kafka.transactions import TopicPartition

try:
    from kafka import errors
    from kafka.net.manager import KafkaConnectionManager
    from kafka.net.selector import NetworkSelector
    from kafka.protocol.admin import (
        DescribeLogDirsRequest,
        DescribeProducersRequest,
        DescribeTransactionsRequest,
        ListTransactionsRequest,
    )
    from kafka.protocol.consumer import FetchRequest, ListOffsetsRequest, OffsetForLeaderEpochRequest
    from kafka.protocol.metadata import MetadataRequest
except ImportError as missing:  # pragma: no cover - the extra is installed where this runs
    raise CaptureError(
        "txn-capture needs its client library: pip install 'txn-analysis[capture]', or pip install 'kafka-python>=3,<4'"
    ) from missing

from collections.abc import Collection, Iterable, Iterator, Mapping
from types import TracebackType

from txn_analysis.capture.client_errors import (
    UnknownRequestError,
    connection_failures,
    problem_of,
    raise_problem,
    translated,
)

_EARLIEST, _LATEST = -2, -1
_ASKED_FOR_LEADERS = 3  # brokers; one that is cut off may still believe in an old leader
_IDS_AT_ONCE = 500  # as kafka-transactions.sh asks
_NO_EPOCH = -1
_TURN_MS = 1000
_MAX_FRAME_BYTES = 200 << 20  # one batch may be as large as the topic's max.message.bytes


class KafkaBrokers:
    """A connection to each broker that is asked; closes them all at its end."""

    def __init__(self, bootstrap: str, config: Mapping[str, Any], timeout_ms: int) -> None:
        """Connect to the first broker that answers.

        Raises:
            CaptureError: none does, or it refuses who asks.
        """
        servers = [word.strip() for word in bootstrap.split(",") if word.strip()]
        defaults = {
            "bootstrap_servers": servers,
            "receive_message_max_bytes": _MAX_FRAME_BYTES,
            "client_id": "txn-capture",
        }
        self._bootstrap = bootstrap
        self._is_sasl = "sasl_mechanism" in config
        self._net = NetworkSelector()
        self._manager = KafkaConnectionManager(self._net, **(defaults | dict(config)))
        self._net.start()
        try:
            self._connect(timeout_ms)
        except BaseException:
            self.close()
            raise

    def _connect(self, timeout_ms: int) -> None:
        """Ask one broker after the other, in short turns: who is refused once is not to ask again and again."""
        with connection_failures() as reasons:
            for left_ms in range(timeout_ms, 0, -_TURN_MS):
                try:
                    self._manager.bootstrap(min(left_ms, _TURN_MS))
                    return
                except errors.KafkaError as error:
                    reasons.append(error)
                # The library does not read what a broker says before it hangs up.
                is_refused = any("socket disconnected" in str(each) for each in reasons)
                if self._is_sasl and is_refused:
                    raise CaptureError(
                        f"{self._bootstrap}: the broker hangs up when it is told who asks. Check user, password and"
                        " mechanism in the --command-config"
                    )
        refusals = [e for e in reasons if not isinstance(e, errors.KafkaTimeoutError)]
        why = f"no broker answers ({refusals[-1]})" if refusals else "no broker answers"
        raise CaptureError(
            f"{self._bootstrap}: {why}. Check the address, the port's protocol (security.protocol), and who you are"
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """End all connections."""
        self._manager.close()
        self._net.close()

    def _ask(self, request: Any, node_id: int | None = None) -> Any:
        async def sent() -> Any:
            return await self._manager.send(request, node_id=node_id)

        if node_id is not None:
            with translated(f"broker {node_id}"):
                return self._manager.run(sent)
        try:
            with translated(self._bootstrap):
                return self._manager.run(sent)
        except UnavailableError as error:
            raise NobodyAnswersError(str(error)) from error

    def cluster(self) -> Cluster:
        """The brokers that there are."""
        answer = self._metadata([], None)
        return Cluster(answer.cluster_id, tuple(sorted(broker.node_id for broker in answer.brokers)))

    def _metadata(self, topics: Collection[str] | None, node_id: int | None) -> Any:
        wanted = None if topics is None else [MetadataRequest.MetadataRequestTopic(name=name) for name in topics]
        return self._ask(MetadataRequest(topics=wanted, allow_auto_topic_creation=False), node_id)

    def leaders(self, topics: Collection[str] | None) -> list[Leadership]:
        """Of some topics, or of all that may be seen, by the newest of a few brokers' answers."""
        newest: dict[TopicPartition, Leadership] = {}
        failure: UnavailableError | None = None
        answered = 0
        for node_id in self.cluster().broker_ids:
            try:
                answer = self._metadata(topics, node_id)
            except UnavailableError as error:
                failure = error
                continue
            for led in _leaderships(answer):
                known = newest.get(led.place)
                if known is None or (led.leader_epoch or 0) > (known.leader_epoch or 0):
                    newest[led.place] = led
            answered += 1
            if answered == _ASKED_FOR_LEADERS:
                break
        if not answered:
            raise NobodyAnswersError(f"no broker answers: {failure}")
        return sorted(newest.values(), key=lambda led: led.place)

    def end_offsets(self, led: Iterable[Leadership], *, is_committed: bool) -> dict[TopicPartition, int | Exception]:
        """The high watermark of each partition, or its last stable offset; what kept one from being answered."""
        return self._list_offsets(led, _LATEST, isolation=int(is_committed))

    def start_offset(self, led: Leadership) -> int:
        """The log start offset of a partition."""
        answer = self._list_offsets([led], _EARLIEST, isolation=0)[led.place]
        if isinstance(answer, Exception):
            raise answer
        return answer

    def _list_offsets(
        self, led: Iterable[Leadership], when: int, isolation: int
    ) -> dict[TopicPartition, int | Exception]:
        offsets: dict[TopicPartition, int | Exception] = {}
        for node_id, of_node in _by_leader(led).items():
            if node_id is None:
                offsets |= {each.place: UnavailableError(f"{each.place}: it has no leader") for each in of_node}
                continue
            request = ListOffsetsRequest(
                replica_id=-1, isolation_level=isolation, topics=_offsets_wanted(of_node, when), timeout_ms=30_000
            )
            try:
                answer = self._ask(request, node_id)
            except UnavailableError as error:
                offsets |= {each.place: error for each in of_node}
                continue
            for topic in answer.topics:
                for row in topic.partitions:
                    place = TopicPartition(topic.name, row.partition_index)
                    offsets[place] = problem_of(row.error_code, place, "ListOffsets", "Describe") or row.offset
        return offsets

    def epoch_start(self, led: Leadership) -> int | None:
        """Where the newest epoch begins: where the epochs below it end."""
        if led.leader_epoch is None:
            return None
        if led.leader_epoch == 0:
            return 0
        kind = OffsetForLeaderEpochRequest.OffsetForLeaderTopic
        wanted = kind.OffsetForLeaderPartition(
            partition=led.place.partition,
            current_leader_epoch=led.leader_epoch,
            leader_epoch=led.leader_epoch - 1,
        )
        topics = [kind(topic=led.place.topic, partitions=[wanted])]
        answer = self._ask(OffsetForLeaderEpochRequest(replica_id=-1, topics=topics), led.leader_id)
        row = answer.topics[0].partitions[0]
        raise_problem(row.error_code, led.place, "OffsetForLeaderEpoch", "Describe")
        return row.end_offset if row.end_offset >= 0 else None

    def producers(self, led: Leadership) -> list[ProducerAnswer] | None:
        """DescribeProducers; None of brokers that do not know the request."""
        topic = DescribeProducersRequest.TopicRequest(name=led.place.topic, partition_indexes=[led.place.partition])
        try:
            answer = self._ask(DescribeProducersRequest(topics=[topic]), led.leader_id)
        except UnknownRequestError:
            return None
        row = answer.topics[0].partitions[0]
        raise_problem(row.error_code, led.place, "DescribeProducers", "Read")
        return [
            ProducerAnswer(
                producer_id=each.producer_id,
                producer_epoch=each.producer_epoch,
                coordinator_epoch=_known(each.coordinator_epoch),
                current_txn_start_offset=_known(each.current_txn_start_offset),
                last_timestamp_ms=_known(each.last_timestamp),
                last_sequence=_known(each.last_sequence),
            )
            for each in row.active_producers
        ]

    def fetch(self, led: Leadership, offset: int, max_bytes: int) -> bytes:
        """Record batches as the leader stores them, up to the high watermark; the last one may be cut."""
        epoch = _NO_EPOCH if led.leader_epoch is None else led.leader_epoch
        kind = FetchRequest.FetchTopic
        wanted = kind.FetchPartition(
            partition=led.place.partition,
            current_leader_epoch=epoch,
            fetch_offset=offset,
            partition_max_bytes=max_bytes,
        )
        # By name: of a version with topic ids a broker before 3.1 knows none, and all up to 4.4 know this one.
        request = FetchRequest(
            max_wait_ms=500,
            min_bytes=1,
            max_bytes=max_bytes,
            isolation_level=0,
            topics=[kind(topic=led.place.topic, partitions=[wanted])],
            max_version=12,
        )
        answer = self._ask(request, led.leader_id)
        raise_problem(answer.error_code, led.place, "Fetch", "Read")
        row = answer.responses[0].partitions[0]
        raise_problem(row.error_code, led.place, "Fetch", "Read")
        records = bytes(row.records or b"")
        if not records and answer.throttle_time_ms:
            raise UnavailableError(f"{led.place}: a quota of the brokers makes it wait")
        return records

    def transactions(self) -> list[dict[str, object]] | None:
        """What all coordinators say of their transactional ids; of those alone that may be seen."""
        transactions: list[dict[str, object]] = []
        for node_id in self.cluster().broker_ids:
            try:
                listed = self._ask(ListTransactionsRequest(), node_id)
                ids = [row.transactional_id for row in listed.transaction_states]
                for at in range(0, len(ids), _IDS_AT_ONCE):
                    request = DescribeTransactionsRequest(transactional_ids=ids[at : at + _IDS_AT_ONCE])
                    transactions += [
                        _transaction(node_id, row) for row in self._ask(request, node_id).transaction_states
                    ]
            except UnknownRequestError:
                return None
        return sorted(transactions, key=lambda row: str(row["transactional_id"]))

    def stored_bytes(self, places: Collection[TopicPartition]) -> dict[TopicPartition, int] | None:
        """The largest replica of each partition; None without the right to ask (DESCRIBE on the cluster)."""
        by_topic: dict[str, list[int]] = defaultdict(list)
        for place in places:
            by_topic[place.topic].append(place.partition)
        kind = DescribeLogDirsRequest.DescribableLogDirTopic
        topics = [kind(topic=name, partitions=numbers) for name, numbers in by_topic.items()]
        largest_bytes: dict[TopicPartition, int] = defaultdict(int)
        for node_id in self.cluster().broker_ids:
            try:
                answer = self._ask(DescribeLogDirsRequest(topics=topics), node_id)
            except (UnavailableError, CaptureError, UnknownRequestError):
                return None
            for row in (row for log_dir in answer.results for topic in log_dir.topics for row in _sizes(topic)):
                largest_bytes[row[0]] = max(largest_bytes[row[0]], row[1])
        return dict(largest_bytes) if largest_bytes else None


def _sizes(topic: Any) -> list[tuple[TopicPartition, int]]:
    return [(TopicPartition(topic.name, row.partition_index), row.partition_size) for row in topic.partitions]


def _leaderships(answer: Any) -> Iterator[Leadership]:
    for topic in answer.topics:
        if topic.error_code == errors.TopicAuthorizationFailedError.errno:
            raise RefusedError("Describe", "Topic", topic.name, "Metadata")
        if topic.error_code == errors.UnknownTopicOrPartitionError.errno:
            raise CaptureError(
                f"{topic.name}: the cluster has no such topic, or you have no right to see it. Check the name"
            )
        topic_id = _topic_id(topic)
        for row in topic.partitions:
            leader = row.leader_id if row.leader_id >= 0 else None
            epoch = row.leader_epoch if row.leader_epoch >= 0 else None
            yield Leadership(TopicPartition(topic.name, row.partition_index), topic_id, leader, epoch)


def _topic_id(topic: Any) -> str | None:
    topic_id = getattr(topic, "topic_id", None)
    if not topic_id:
        return None
    raw = topic_id if isinstance(topic_id, bytes) else topic_id.bytes
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode() if any(raw) else None


def _by_leader(led: Iterable[Leadership]) -> dict[int | None, list[Leadership]]:
    by_leader: dict[int | None, list[Leadership]] = defaultdict(list)
    for each in led:
        by_leader[each.leader_id].append(each)
    return by_leader


def _offsets_wanted(led: Iterable[Leadership], when: int) -> list[Any]:
    kind = ListOffsetsRequest.ListOffsetsTopic
    by_topic: dict[str, list[Any]] = defaultdict(list)
    for each in led:
        epoch = _NO_EPOCH if each.leader_epoch is None else each.leader_epoch
        row = kind.ListOffsetsPartition(
            partition_index=each.place.partition, current_leader_epoch=epoch, timestamp=when
        )
        by_topic[each.place.topic].append(row)
    return [kind(name=name, partitions=rows) for name, rows in by_topic.items()]


def _transaction(node_id: int, row: Any) -> dict[str, object]:
    return {
        "coordinator_id": node_id,
        "transactional_id": row.transactional_id,
        "error_code": row.error_code,
        "state": row.transaction_state,
        "timeout_ms": row.transaction_timeout_ms,
        "start_ms": _known(row.transaction_start_time_ms),
        "producer_id": row.producer_id,
        "producer_epoch": row.producer_epoch,
        "partitions": sorted(f"{topic.topic}-{number}" for topic in row.topics for number in topic.partitions),
    }


def _known(value: int) -> int | None:
    return None if value < 0 else value
