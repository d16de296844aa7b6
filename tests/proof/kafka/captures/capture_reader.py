"""Reads real captures back into histories, just well enough for the tests: magic 2, tools from 2.2 on."""

import json
import re
from collections.abc import Iterable

from tests.tools.forms.broker import OpenTransaction, ProducerEntry
from tests.tools.forms.model import Batch, History, Record, Segment, StateRecord, StateValue, TopicPartition
from tests.tools.forms.state_writer import STATE_CODES

SECTION = re.compile(
    rb"Dumping (?:.*/)?([^/\n]+)-(\d+)/(\d+)\.(log|snapshot|txnindex)\n"
    rb"(?:(?:Log s|S)tarting offset: \d+\n)?"
)
BATCH = re.compile(
    rb"baseOffset: (?P<base>\d+) lastOffset: (?P<last>\d+) count: (?P<count>\d+) baseSequence: (?P<sequence>-?\d+) "
    rb"lastSequence: -?\d+ producerId: (?P<producer>-?\d+) producerEpoch: (?P<epoch>-?\d+) "
    rb"partitionLeaderEpoch: (?P<leader>\d+) isTransactional: (?P<txn>\w+) isControl: (?P<control>\w+) "
    rb"(?:deleteHorizonMs: OptionalLong\S+ )?position: \d+ (?P<type>\w+): (?P<time>-?\d+) size: (?P<size>\d+) "
    rb"magic: 2 compresscodec: (?P<codec>\w+) crc: (?P<crc>\d+) isvalid: (?P<valid>\w+)\n"
)
RECORD = re.compile(
    rb"\| offset: (?P<offset>\d+) (?:isValid: true crc: null )?(?:\w+: (?P<time1>-?\d+) )?key[sS]ize: (?P<key>-?\d+) "
    rb"value[sS]ize: (?P<value>-?\d+) (?:\w+Time: (?P<time2>-?\d+) .*?)?"
    rb"sequence: -?\d+ headerKeys: \[(?P<headers>.*?)\]"
)
MARKER = re.compile(rb" (?:endTxnMarker|controlType): (\w+)(?:\(\d+\)| coordinatorEpoch: (-?\d+))")
DECODED = re.compile(rb" key: (.*?) payload: ([^\n]*)\n(?=baseOffset: |\| offset: |Dumping |\Z)", re.DOTALL)
STATE_TEXT = re.compile(
    r"producerId:(\d+),producerEpoch:(\d+),state=(\w+),partitions=\[(.*)\],"
    r"txnLastUpdateTimestamp=(\d+),txnTimeoutMs=(\d+)"
)
CONSOLE_TEXT = re.compile(
    r"(?P<id>.+?)::TransactionMetadata\(transactionalId=(?P=id), producerId=(\d+), "
    r"producerEpoch=(\d+), txnTimeoutMs=(\d+), "
    r"state=(\w+), pendingState=None, topicPartitions=HashSet\((.*?)\), "
    r"txnStartTimestamp=(-?\d+), txnLastUpdateTimestamp=(\d+)\)\n",
    re.DOTALL,
)
SNAPSHOT = re.compile(
    r"producerId: (\d+) producerEpoch: (\d+) coordinatorEpoch: (-?\d+) "
    r"currentTxnFirstOffset: [^\d ]*(\d*)\S? (?:lastTimestamp: (-?\d+) )?"
    r"(?:firstSequence: \d+ lastSequence: (-?\d+) lastOffset: (\d+) offsetDelta: (\d+) timestamp: (-?\d+))?"
)


def known(text: bytes | str) -> int | None:
    """A printed number; None for -1."""
    return None if int(text) == -1 else int(text)


class LogReader:
    """A cursor over one dump. `decoded` says that keys and payloads are a decoder's text, without byte lengths."""

    def __init__(self, text: bytes, *, decoded: bool = False) -> None:
        """Start at the first section."""
        self.text, self.decoded, self.at = text, decoded, 0

    def take(self, pattern: re.Pattern[bytes]) -> re.Match[bytes] | None:
        """Match at the cursor and move behind it."""
        match = pattern.match(self.text, self.at)
        self.at = match.end() if match else self.at
        return match

    def history(self) -> History:
        """The partition that the dump holds."""
        segments: list[Segment] = []
        topic = partition = b""
        while section := self.take(SECTION):
            topic, partition = section[1], section[2]
            segments.append(Segment(int(section[3]), tuple(self.batches())))
        assert self.at == len(self.text), self.text[self.at : self.at + 200]
        return History(topic.decode(), int(partition), tuple(segments))

    def batches(self) -> Iterable[Batch]:
        """The batches up to the next section."""
        while line := self.take(BATCH):
            control, count = line["control"] == b"true", int(line["count"])
            is_deep = self.text.startswith(b"| offset: ", self.at)
            marker: tuple[bytes, bytes] | None = None
            records: list[Record] = []
            for _ in range(count if is_deep else 0):
                record, found = self.record()
                records.append(record)
                marker = found or marker
            yield Batch(
                int(line["base"]),
                int(line["last"]),
                count,
                known(line["producer"]),
                known(line["epoch"]),
                known(line["sequence"]),
                line["txn"] == b"true",
                control,
                marker[0].decode() if marker else None,
                known(marker[1] or b"-1") if marker else None,
                known(line["time"]),
                line["type"].decode(),
                int(line["size"]),
                int(line["leader"]),
                line["codec"].decode().lower(),
                int(line["crc"]),
                line["valid"] == b"true",
                None,
                tuple(records) if is_deep else None,
            )

    def record(self) -> tuple[Record, tuple[bytes, bytes] | None]:
        """One record line, and what its end marker says."""
        line = self.take(RECORD)
        assert line, self.text[self.at : self.at + 200]
        key_bytes, value_bytes = known(line["key"]), known(line["value"])
        marker = self.take(MARKER)
        state = key = payload = None
        if self.decoded and (match := self.take(DECODED)):
            self.at -= 1
            state = state_record(match[1].decode(), match[2].decode())
        elif not marker:
            key, payload = self.content(b" key: ", key_bytes), self.content(b" payload: ", value_bytes)
        self.at += 1
        time = known(line["time1"] or line["time2"])
        record = Record(
            int(line["offset"]), time, key_bytes, value_bytes, line["headers"].decode(), key, payload, state
        )
        return record, (marker[1], marker[2]) if marker else None

    def content(self, prefix: bytes, size: int | None) -> str | None:
        """Printed content, taken by its byte length."""
        if size is None or not self.text.startswith(prefix, self.at):
            return None
        start = self.at + len(prefix)
        self.at = start + size
        return self.text[start : self.at].decode()


def state_record(key: str, payload: str) -> StateRecord:
    """A record of `__transaction_state` from its decoder's text (2.5 and newer)."""
    if key.startswith("{"):
        transactional_id = json.loads(key)["data"]["transactionalId"]
        if payload == "<DELETE>":
            return StateRecord(transactional_id, None)
        value = json.loads(payload)
        return StateRecord(transactional_id, value_of(value["data"], int(value["version"])))
    transactional_id = key.removeprefix("transaction_metadata::transactionalId=")
    match = STATE_TEXT.fullmatch(payload)
    assert match, payload
    partitions = tuple(split_partition(name) for name in match[4].split(",") if name)
    numbers = int(match[1]), int(match[2]), match[3], partitions, int(match[5]), int(match[6])
    return StateRecord(transactional_id, StateValue(*numbers, start_ms=None))


def value_of(data: dict[str, object], version: int) -> StateValue:
    """A value from its JSON."""
    fields = {name: str(value) for name, value in data.items()}
    listed = data["transactionPartitions"] or []
    assert isinstance(listed, list)
    return StateValue(
        int(fields["producerId"]),
        int(fields["producerEpoch"]),
        next(name for name, code in STATE_CODES.items() if str(code) == fields["transactionStatus"]),
        tuple((entry["topic"], partition) for entry in listed for partition in entry["partitionIds"]),
        int(fields["transactionLastUpdateTimestampMs"]),
        int(fields["transactionTimeoutMs"]),
        known(fields["transactionStartTimestampMs"]),
        version,
        int(fields.get("clientTransactionVersion", 0)),
    )


def split_partition(name: str) -> TopicPartition:
    """`topic-7` at its last dash."""
    topic, _, partition = name.rpartition("-")
    return topic, int(partition)


def read_snapshots(text: str) -> dict[int, dict[int, ProducerEntry]]:
    """Producers by producer id, by the snapshot's offset."""
    found: dict[int, dict[int, ProducerEntry]] = {}
    for line in text.split("\n")[:-1]:
        if line.startswith("Dumping "):
            producers = found.setdefault(int(line.rpartition("/")[2].partition(".")[0]), {})
            continue
        match = SNAPSHOT.fullmatch(line)
        assert match, line
        producer, epoch, coordinator, start, last_time, last_sequence, last_offset, delta, time = match.groups()
        producers[int(producer)] = ProducerEntry(
            int(epoch),
            known(coordinator),
            known(last_time or time or "-1"),
            OpenTransaction(int(start), None, None) if start else None,
            known(last_sequence or "-1"),
            int(last_offset) if last_offset else None,
            int(delta or 0),
        )
    return found


def read_console_text(text: str) -> list[StateRecord]:
    """The records of an export by the old console formatter."""
    records: list[StateRecord] = []
    for match in CONSOLE_TEXT.finditer(text):
        name, producer, epoch, timeout, state, listed, start, updated = match.groups()
        partitions = tuple(split_partition(part) for part in listed.split(", ") if part)
        value = StateValue(int(producer), int(epoch), state, partitions, int(updated), int(timeout), known(start))
        records.append(StateRecord(name, value))
    return records


def split_json(text: str) -> list[str]:
    """The objects of a text that concatenates them without a newline."""
    decoder, at, parts = json.JSONDecoder(), 0, []
    while at < len(text):
        _, end = decoder.raw_decode(text, at)
        parts.append(text[at:end])
        at = end
    return parts
