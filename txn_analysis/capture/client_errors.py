"""Errors of the client library as those of a capture, and error codes of brokers as what to do about them."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from kafka import errors

from txn_analysis.capture.answers import (
    CaptureError,
    LeaderChangedError,
    OffsetGoneError,
    RefusedError,
    UnavailableError,
)
from txn_analysis.kafka.transactions import TopicPartition

_CHANGED = (
    errors.NotLeaderForPartitionError,
    errors.FencedLeaderEpochError,
    errors.UnknownLeaderEpochError,
    errors.UnknownTopicIdError,
    errors.InconsistentTopicIdError,
    errors.UnknownTopicOrPartitionError,
    errors.LeaderNotAvailableError,
    errors.ReplicaNotAvailableError,
)
_LATER = (
    errors.RetriableError,
    errors.KafkaStorageError,
    errors.BrokerNotAvailableError,
    errors.UnknownBrokerIdError,
    errors.NetworkExceptionError,
    OSError,
)


class UnknownRequestError(Exception):
    """The broker is older than the request."""


def problem_of(code: int, place: TopicPartition, request: str, operation: str) -> Exception | None:
    """What an error code of a broker means for a capture; None for none.

    Args:
        code: of the protocol.
        place: of which partition.
        request: that it answers.
        operation: the right that this request needs.
    """
    if not code:
        return None
    kind = errors.for_code(code)
    if issubclass(kind, errors.TopicAuthorizationFailedError):
        return RefusedError(operation, "Topic", place.topic, request)
    if issubclass(kind, errors.ClusterAuthorizationFailedError):
        return RefusedError(operation, "Cluster", "kafka-cluster", request)
    if issubclass(kind, errors.OffsetOutOfRangeError):
        return OffsetGoneError(str(place))
    refusal = f"{place}: {request} is answered by {kind.__name__} ({code})"
    if issubclass(kind, _CHANGED):
        return LeaderChangedError(refusal)
    return UnavailableError(refusal) if issubclass(kind, _LATER) else CaptureError(refusal)


def raise_problem(code: int, place: TopicPartition, request: str, operation: str) -> None:
    """Raise what `problem_of` finds."""
    problem = problem_of(code, place, request, operation)
    if problem is not None:
        raise problem


@contextmanager
def connection_failures() -> Iterator[list[Exception]]:
    """Why no connection was made, which the library of this version only logs."""
    reasons: list[Exception] = []

    class Kept(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            args = record.args if isinstance(record.args, tuple) else ()
            reasons.extend(each for each in args if isinstance(each, Exception))

    logger, kept = logging.getLogger("kafka"), Kept()
    # What goes wrong is said once, by this program.
    logger.propagate = False
    logger.addHandler(kept)
    try:
        yield reasons
    finally:
        logger.removeHandler(kept)
        logger.addHandler(logging.NullHandler())


@contextmanager
def translated(where: str) -> Iterator[None]:
    """Errors of the library as those of a capture."""
    try:
        yield
    except errors.IncompatibleBrokerVersion as error:
        raise UnknownRequestError(where) from error
    except (errors.SaslAuthenticationFailedError, errors.AuthorizationError) as error:
        raise CaptureError(f"{where}: the broker refuses who asks: {error}. Check the --command-config") from error
    except _LATER as error:
        raise UnavailableError(f"{where}: {type(error).__name__}: {error}") from error
