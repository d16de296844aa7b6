"""Files of tomorrow: a capture of 4.4.0 whose state records have a tagged field that no Kafka of today knows."""

import json
import re
import shutil
import struct
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from tests.systems.e2e.broker import STATE_PARTITIONS, Cluster
from tests.systems.e2e.hangs import HOUR_MS, Hang, now_ms
from tests.systems.e2e.scenario import Expected, Happened, Row, Scenario, dump_text, row
from tests.systems.e2e.stage import COMPACT_STATE, STATE, Stage, on_node
from tests.systems.e2e.wire import Answer
from tests.tools.log_dirs.encoder import framed, record

_TOOLS = "4.3.1"
ELSEWHERE = ("remote", 0)
UNREAD, READ, NOBODYS, LISTED = (("orders", number) for number in range(4))
TAG, FIELD, EPOCH = 4, "lastProducerEpoch", 7
PLAIN_AT_LAST = "invoice-worker"
"""The id whose newest record has no field of tomorrow; its second newest has one, and so on."""

_OPEN_IDS = ("settlement", "fraud-scorer")
_TIMEOUT_MS = 170_000
_FORMATTER = "org.apache.kafka.tools.consumer.TransactionLogMessageFormatter"
_HEADER_BYTES, _CHECKED_FROM = 61, 21
_LINE = re.compile(r'^\| offset: .* key: \{"type":"0","data":\{"transactionalId":"(.*)"\}\} payload: \{.*\}\}$')
_NOTE = (
    "Derived from a real capture of 4.4.0: half of the values in __transaction_state have a tagged field 4 (int16) "
    "that no Kafka of today knows, sizes and checksums right. The newest record of every id but one has it."
)


def _write_files_of_tomorrow(stage: Stage, case: Path) -> Happened:
    """Let transactions hang on two nodes, and keep their files with the field."""
    cluster, capture = stage.cluster, case / "capture-1"
    hanger = stage.hanger
    hangs = [
        hanger.late_write_after_the_abort("billing-worker", UNREAD),
        hanger.late_write_after_the_abort(PLAIN_AT_LAST, READ),
        hanger.unknown_producer(NOBODYS),
    ]
    described = _left_open(stage)
    stage.checkpointed("orders", 4)
    stage.copied(capture / "log-dirs", 0, 1)
    cluster.nodes[1].kill()
    cluster.nodes[0].stop()
    for log in sorted((capture / "log-dirs/n1").glob(f"{STATE}-*/*.log")):
        _rewrite(log, cluster.log_dir() / log.parent.name)
    cluster.restart(0)
    _dump(cluster, case)
    _export(cluster, case)
    # In text a list of partitions may go on in the field that is not known; in a segment it was read whole.
    is_read = {"capture-1": hangs, "capture-2": [h for h in hangs if h.transactional_id in {None, PLAIN_AT_LAST}]}
    captures = {name: Expected(list(_expected(hangs, described, told)), _NOTE) for name, told in is_read.items()}
    return Happened(captures, [{"kind": h.cause, "topic": h.topic, "partition": h.partition} for h in hangs])


def _left_open(stage: Stage) -> dict[str, dict[str, Any]]:
    """A transaction in progress, and a commit whose marker cannot be written: the other node is silent."""
    driver = stage.driver
    for name, place in zip(_OPEN_IDS, (ELSEWHERE, LISTED), strict=True):
        driver.begin(name, _TIMEOUT_MS)
        driver.send(name, place, at_ms=now_ms() - 3 * HOUR_MS)
    driver.witness((UNREAD, READ, NOBODYS, LISTED))
    described = {name: driver.described(name) for name in _OPEN_IDS}
    stage.cluster.nodes[1].pause()
    driver.commit(_OPEN_IDS[0])
    return described


def _rewrite(log: Path, living: Path) -> None:
    """Give the values of a segment the field, in the copy and where a broker will load it without its indexes."""
    log.write_bytes(with_field(log.read_bytes()))
    for file in living.iterdir():
        if file.suffix in {".log", ".index", ".timeindex"}:
            file.unlink()
    shutil.copy2(log, living)


def with_field(segment: bytes) -> bytes:
    """A segment of the state whose every second value of an id, from its newest back, has the field of tomorrow."""
    batches = list(_batches(segment))
    chosen = _chosen([_name(key) for _, key, _ in batches])
    return b"".join(
        _rebuilt(head, key, _tagged(value)) if is_chosen else head + record(0, 0, key, value)
        for (head, key, value), is_chosen in zip(batches, chosen, strict=True)
    )


def _chosen(names: Sequence[str]) -> list[bool]:
    """Which records have the field, by the id of each, in order."""
    found, seen = [], Counter[str]()
    for name in reversed(names):
        found.append((seen[name] % 2 == 0) != (name == PLAIN_AT_LAST))
        seen[name] += 1
    return found[::-1]


def _batches(segment: bytes) -> Iterator[tuple[bytes, bytes, bytes]]:
    """Of each batch its header, and the key and the value of its only record."""
    at = 0
    while at < len(segment):
        (size,) = struct.unpack_from(">i", segment, at + 8)
        head, body = segment[at : at + _HEADER_BYTES], Answer(segment[at + _HEADER_BYTES : at + 12 + size])
        assert head[-4:] == b"\0\0\0\1", "the coordinator writes one record in a batch"
        body.varint()
        assert body.number("b") == body.varint() == body.varint() == 0
        yield head, body.sized(), body.sized()
        at += 12 + size


def _name(key: bytes) -> str:
    return key[4:].decode()


def _tagged(value: bytes) -> bytes:
    """The value with one tagged field more, behind all others."""
    fields = Answer(value)
    version, *_ = fields.numbers("hqhib")
    assert version == 1
    fields.compact_items(lambda: _skip_topic(fields))
    fields.numbers("qq")
    count, *others = fields.rest()
    more = bytes([TAG, 2]) + struct.pack(">h", EPOCH)
    return value[: -1 - len(others)] + bytes([count + 1, *others]) + more


def _skip_topic(fields: Answer) -> None:
    fields.compact_text()
    fields.compact_items(lambda: fields.number("i"))
    fields.tags()


def _rebuilt(head: bytes, key: bytes, value: bytes) -> bytes:
    base_offset, leader_epoch = struct.unpack_from(">q4xi", head)
    return framed(head[_CHECKED_FROM:] + record(0, 0, key, value), base_offset, leader_epoch)


def _dump(cluster: Cluster, case: Path) -> None:
    """What the tools of today print of them, and what a tool that knows the field would."""
    state, printed = (case / f"capture-2/{folder}" for folder in ("state-by-4.3", "state-printed"))
    for folder in (case / "capture-1/segments", state, printed):
        folder.mkdir(parents=True)
    for log in sorted((case / "capture-1/log-dirs").glob("n*/*-*/*.log")):
        name = f"{log.parent.parent.name}.{log.parent.name}.txt"
        is_state = log.parent.name.startswith(STATE)
        if not is_state and not log.parent.name.startswith("__"):
            (case / "capture-1/segments" / name).write_text(dump_text(cluster, log, "--deep-iteration"))
        if is_state:
            text = dump_text(cluster, log, "--transaction-log-decoder", tools=_TOOLS)
            (state / name).write_text(text)
            (printed / name).write_text(_with_printed_field(text))


def _with_printed_field(text: str) -> str:
    lines = text.splitlines()
    found = [_LINE.match(line) for line in lines]
    chosen = iter(_chosen([match[1] for match in found if match]))
    more = f',"{FIELD}":{EPOCH}}}}}'
    changed = [
        line.removesuffix("}}") + more if match and next(chosen) else line
        for line, match in zip(lines, found, strict=True)
    ]
    return "\n".join(changed) + "\n"


def _export(cluster: Cluster, case: Path) -> None:
    """The same by the console consumer, from a broker that has loaded them."""
    state = (case / f"capture-1/log-dirs/n1/{STATE}-{number}/{0:020}.log" for number in range(STATE_PARTITIONS))
    text = "".join(_exported(cluster, number, log) for number, log in enumerate(state))
    records, at, decoder = [], 0, json.JSONDecoder()
    while at < len(text):
        found, at = decoder.raw_decode(text, at)
        records.append(found)
    names = [found["key"]["data"]["transactionalId"] for found in records]
    for found, is_chosen in zip(records, _chosen(names), strict=True):
        if is_chosen:
            found["value"]["data"][FIELD] = EPOCH
    printed = "".join(json.dumps(found, separators=(",", ":")) for found in records)
    for folder, content in (("console", text), ("console-printed", printed)):
        (case / folder).mkdir(parents=True)
        (case / folder / "transaction-state.json").write_text(content)


def _exported(cluster: Cluster, partition: int, log: Path) -> str:
    """One partition, which needs no group, as far as its copy goes: a coordinator that loads it may write more."""
    count = len(list(_batches(log.read_bytes())))
    words = ["--bootstrap-server", cluster.bootstrap, "--topic", STATE, "--partition", str(partition)]
    words += ["--offset", "earliest", "--max-messages", str(count), "--timeout-ms", "60000", "--formatter", _FORMATTER]
    return cluster.run("org.apache.kafka.tools.consumer.ConsoleConsumer", *words)


def _expected(hangs: Sequence[Hang], described: dict[str, dict[str, Any]], is_read: Sequence[Hang]) -> Iterator[Row]:
    """What is open, and the verdicts that it must get; of what hangs, the state tells of some."""
    for hang in hangs:
        rule = "unknown_producer" if hang.transactional_id is None else "partition_not_in_transaction"
        verdict, rule = ("hanging", rule) if hang in is_read else ("inconclusive", "state_incomplete")
        yield row(hang, verdict, rule, coordinator_epoch=None if hang.transactional_id is None else 0)
    rules = ("marker_pending_commit", "in_coordinator")
    for name, place, rule in zip(_OPEN_IDS, (ELSEWHERE, LISTED), rules, strict=True):
        yield row(Hang("", *place, described[name]["producer_id"], 0, 0, name), "coordinated", rule)


SCENARIO = Scenario(
    "kafka-4.4-tomorrow",
    partial(Cluster, "4.4.0", nodes=2, properties={"replica.high.watermark.checkpoint.interval.ms": 200}),
    _write_files_of_tomorrow,
    topics={**COMPACT_STATE, "orders": on_node(4), ELSEWHERE[0]: on_node(1, node=1)},
    files={"capture-2": ("../capture-1/segments", "state-by-4.3")},
)
