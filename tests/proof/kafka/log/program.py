"""The Java program over Kafka's own log code: compiled against the jars of one version, asked line by line."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.proof.kafka.log.requests import SEGMENT_BYTES, Story
from tests.tools.kafka_jars import class_path, number_of

VERSIONS = ("3.9.1", "4.2.2", "4.3.1", "4.4.0")
"""The log code of 3.9 is Scala, that of 4.0 and newer is Java. Random requests to brokers cover 2.8 as well."""

NONE = -1
"""How Kafka says that there is no such offset, epoch, sequence or time."""

_SOURCES = Path(__file__).with_name("java")
_MAIN = "org.apache.kafka.storage.internals.log.KafkaLog"
_QUICK = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx512m")
_QUIET = ("-Dorg.slf4j.simpleLogger.defaultLogLevel=off", "-Dlog4j2.level=OFF")
# Of 4.4.0: after rolls without data and a load that was not clean, the next roll writes behind a time index of no size.
_OWN_FAULTS = {"4.4.0": "org.apache.kafka.storage.internals.log.TimeIndex.maybeAppend"}
_FIRST_IN_JAVA, _OF_SCALA, _OF_JAVA = (4, 0), "before_4_0", "since_4_0"
# What is only named otherwise before a version, of which the sources have the newer name.
_RENAMED = (
    ((4, 0), "org.apache.kafka.storage.internals.log.UnifiedLog", "kafka.log.UnifiedLog"),
    ((4, 3), "org.apache.kafka.common.record.internal.", "org.apache.kafka.common.record."),
    ((4, 4), ".closeQuietly()", ".closeHandlers()"),
)


@dataclass(frozen=True)
class Producer:
    """One producer of a partition as `DescribeProducers` answers; -1 is none."""

    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    last_sequence: int
    last_timestamp_ms: int
    txn_start_offset: int


@dataclass(frozen=True)
class Said:
    """What Kafka's log says of itself."""

    now_ms: int
    log_start_offset: int
    log_end_offset: int
    high_watermark: int
    last_stable_offset: int
    has_late_transaction: bool
    producers: dict[int, Producer]

    @classmethod
    def of(cls, answer: dict[str, Any]) -> Said:
        """One answer of the program."""
        return cls(
            answer["now"],
            answer["logStartOffset"],
            answer["logEndOffset"],
            answer["highWatermark"],
            answer["lastStableOffset"],
            answer["hasLateTransaction"],
            {row[0]: Producer(*row) for row in answer["producers"]},
        )


@dataclass(frozen=True)
class Told:
    """What came of one list of requests.

    Attributes:
        folder: the log directory that it left.
        living: what the log said that carried the requests out.
        loaded: what a log said that Kafka loaded from a copy of the same files.
        done: how many requests were carried out; `refused` counts the others by Kafka's reason.
        forgotten: producers of which the log once knew more: they were idle for too long, or it loaded its state anew.
        is_start_lost: a crash came before the checkpoint of a log start, which fell back.
    """

    folder: Path
    living: Said
    loaded: Said
    done: int
    refused: dict[str, int]
    forgotten: frozenset[int]
    is_start_lost: bool


def tell(version: str, stories: Iterable[Story], root: Path) -> list[Told | None]:
    """Carry out each story on a log of its own, in a folder of `root` that has the story's name.

    Returns:
        What came of each; None where Kafka's code fails by a fault of its own that is known, see `_OWN_FAULTS`.

    Raises:
        FetchError: the jars of that version are not to be had.
        ValueError: the program does not compile, or Kafka's code failed in another way than by refusing a request.
    """
    known = list(stories)
    found: list[Told | None] = []
    with tempfile.TemporaryDirectory() as classes:
        _compile(version, Path(classes))
        words = ["java", *_QUICK, *_QUIET, "-cp", f"{classes}:{class_path(version)}", _MAIN, str(root)]
        while waiting := known[len(found) :]:
            lines = "".join(json.dumps(_request(version, story)) + "\n" for story in waiting)
            done = subprocess.run(words, input=lines, capture_output=True, text=True, check=False)
            answers = [json.loads(line) for line in done.stdout.splitlines()]
            found += [_told(root / story.name, answer) for story, answer in zip(waiting, answers, strict=False)]
            if done.returncode != 0:
                if version not in _OWN_FAULTS or _OWN_FAULTS[version] not in done.stderr:
                    name = waiting[len(answers)].name
                    raise ValueError(f"Kafka {version} failed at story {name}: {done.stderr[-3000:]}")
                found.append(None)
    return found


def _request(version: str, story: Story) -> dict[str, Any]:
    request = story.request()
    if number_of(version) < _FIRST_IN_JAVA or SEGMENT_BYTES not in request["config"]:
        return request
    config = {f"internal.{name}" if name == SEGMENT_BYTES else name: value for name, value in request["config"].items()}
    return request | {"config": config}


def _compile(version: str, classes: Path) -> None:
    sources = classes / "sources"
    sources.mkdir()
    number = number_of(version)
    calls = _SOURCES / (_OF_JAVA if number >= _FIRST_IN_JAVA else _OF_SCALA)
    for file in (*_SOURCES.glob("*.java"), *calls.glob("*.java")):
        text = file.read_text(encoding="utf-8")
        for since, name, former in _RENAMED:
            text = text if number >= since else text.replace(name, former)
        (sources / file.name).write_text(text, encoding="utf-8")
    words = ["javac", "-nowarn", "-cp", class_path(version), "-d", str(classes), *map(str, sources.glob("*.java"))]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise ValueError(f"does not compile against Kafka {version}: {done.stderr[-3000:]}")


def _told(folder: Path, answer: dict[str, Any]) -> Told:
    loaded = Said.of(answer["loaded"])
    forgotten = frozenset(answer["forgotten"])
    return Told(
        folder, Said.of(answer), loaded, answer["done"], answer["refused"], forgotten, is_start_lost=answer["startLost"]
    )
