import gzip
import lzma
import struct

import google_crc32c
import pytest

from tests.tools.cases import cases
from txn_analysis.reading.inputs.recognise import Recognition, recognise
from txn_analysis.reading.inputs.refusals import Refusal
from txn_analysis.reading.inputs.sections import Body, DumpedFile, describe_body, parse_dump_path, read_header

DUMP = b"Dumping orders-0/00000000000000000000.log\nLog starting offset: 0\n"
SLF4J = b"SLF4J: Failed to load class\n"
DEPRECATED = (
    b"kafka.serializer.StringDecoder is deprecated. Please use org.apache.kafka.tools.api.StringDecoder instead\n"
)
SHALLOW = (
    b"baseOffset: 0 lastOffset: 3 count: 4 baseSequence: 0 lastSequence: 3 producerId: 0 producerEpoch: 0 "
    b"partitionLeaderEpoch: 0 isTransactional: true"
)
TIME = b" position: 0 CreateTime: 1795230189041"
TAIL = b" size: 294 magic: 2 compresscodec: none crc: 3148272365"
BATCH_LINES = {
    "3.2+": SHALLOW + b" isControl: false deleteHorizonMs: OptionalLong.empty" + TIME + TAIL + b" isvalid: true\n",
    "2.2-3.1": SHALLOW + b" isControl: false" + TIME + TAIL + b" isvalid: true\n",
    "2.1": SHALLOW + b" isControl: false" + TIME + b" isvalid: true" + TAIL + b"\n",
}
PRE_2_1 = SHALLOW + TIME + b" isvalid: true" + TAIL + b"\n"
RECORD = b"| offset: 0 CreateTime: 1 keySize: 2 valueSize: 3 sequence: 0 headerKeys: []"
OLD_RECORD = (
    b"offset: 0 position: 0 CreateTime: 1 isvalid: true keysize: 19 valuesize: 37 magic: 2 compresscodec: NONE "
    b"producerId: -1%s sequence: -1 isTransactional: false headerKeys: []"
)
ORDERS = DumpedFile("log", "orders", 0, 0)
STATE = DumpedFile("log", "__transaction_state", 3, 0)


@pytest.mark.parametrize("noise", [b"", SLF4J, DEPRECATED, DEPRECATED + SLF4J + b"\n"])
def test_a_dump_may_follow_what_its_environment_printed(noise: bytes) -> None:
    assert recognise(noise + DUMP, 1000) == Recognition("dump", len(noise))


@pytest.mark.parametrize(
    ("head", "kind", "grammar"),
    [
        (b"a::TransactionMetadata(transactionalId=a, producerId=3, ", "console_text", "0.11-3.9"),
        (b"a\nb::c::TransactionMetadata(transactionalId=a\nb::c, producerId=3, ", "console_text", "0.11-3.9"),
        (b"gone::NULL\n", "console_text", "0.11-3.9"),
        (b"SLF4J: a::TransactionMetadata(transactionalId=SLF4J: a, producerId=3, \n", "console_text", "0.11-3.9"),
        (b"WARN a\nb::TransactionMetadata(transactionalId=WARN a\nb, producerId=3, ", "console_text", "0.11-3.9"),
        (b"SLF4J: a::NULL\n", "console_text", "0.11-3.9"),
        (b'{"key":{"version":0,"data":{"transactionalId":"x"}},"value":null}', "console_json", "3.9"),
        (b'{"key":{"type":0,"data":{"transactionalId":"x"}},"value":null}', "console_json", "4.0+"),
    ],
)
def test_exports_of_the_console_consumer(head: bytes, kind: str, grammar: str) -> None:
    assert recognise(head, len(head)) == Recognition(kind, 0, grammar)


@pytest.mark.parametrize(
    ("old", "new"), [(b"consumer.config", b"command-config"), (b"property", b"formatter-property")]
)
def test_an_export_may_follow_what_the_console_consumer_says_of_its_options(old: bytes, new: bytes) -> None:
    """Tools 4.2 and newer say on stdout which option is the new one."""
    noise = b"Option --%s is deprecated and will be removed in a future version. Use --%s instead.\n" % (old, new)
    head = noise + b'{"key":{"type":0,"data":{"transactionalId":"x"}},"value":null}'
    assert recognise(head, len(head)) == Recognition("console_json", len(noise), "4.0+")


SEGMENT = struct.pack(">qiib", 0, 100, 0, 2) + bytes(95)
SNAPSHOT = struct.pack(">hIi", 1, 7, 1) + bytes(46)
TXNINDEX = struct.pack(">hqqqq", 0, 5, 1, 2, 3)
# The first batch of a partition's `0-1-v1.log`: size, base offset, type, the CRC of Kafka's form, attributes, last
# offset delta, two timestamps, producer id and epoch, base sequence, record count.
_TIME_MS = 1_795_229_916_182
_REDPANDA = struct.pack("<iqbIhiqqqhii", 131, 0, 2, 0x1EDC6F41, 0, 0, _TIME_MS, _TIME_MS, -1, -1, -1, 1)
REDPANDA = struct.pack("<I", google_crc32c.value(_REDPANDA)) + _REDPANDA + bytes(70)
BOOKKEEPER = b"BKLO\x00\x00\x00\x01".ljust(1024, b"\x00")


@pytest.mark.parametrize(
    ("head", "reason", "remedy"),
    [
        (REDPANDA, "a segment of a Redpanda broker", "rpk cluster txn"),
        (REDPANDA[:60] + b"\x01" + REDPANDA[61:], "binary data", "leave the file out"),  # its checksum is wrong
        (BOOKKEEPER, "an entry log of Apache BookKeeper", "pulsar-admin"),
        (b"", "empty", "Copy it again"),
        (SEGMENT, "binary log segment (.log)", "kafka-dump-log"),
        (SNAPSHOT, "binary producer snapshot", "kafka-dump-log"),
        (TXNINDEX, "binary transaction index", "kafka-dump-log"),
        (b"\x7fELF\x00\x01\x02", "binary data", "leave the file out"),
        (b"orders-0/0.txt".ljust(257, b"\x00") + b"ustar\x0000", "a tar archive", "Unpack it"),
        (b"orders-0/0.txt".ljust(257, b"\x00") + b"ustar  \x00", "a tar archive", "Unpack it"),
        (b"PK\x03\x04\x14\x00", "a zip archive", "Unpack it"),
        (gzip.compress(b"Dumping", mtime=0), "a gzip archive", "Unpack it"),
        (lzma.compress(b"Dumping"), "an xz archive", "Unpack it"),
        ("Dumping a".encode("utf-16-le"), "UTF-16 text", "iconv -f UTF-16"),
        (b"\xff\xd8\xff\xe0 no text", "binary data", "leave the file out"),
        (DUMP.decode().encode("utf-16"), "UTF-16", "iconv"),
        (DUMP.replace(b"\n", b"\r\n"), "CR LF", "tr -d"),
        (BATCH_LINES["3.2+"], "begins inside a dump", "whole text"),
        (b"CreateTime:17\tPartition:0\tx\x00\x01", "default formatter", "--formatter"),
        (b"0\n2\norders 0 17\n", "small text file", "Leave it out"),
        (b"version: 0\ntopic_id: abc\n", "small text file", "Leave it out"),
        (b"# readme\n", "not a text that this version knows", "leave the file out"),
        (b"static x = Foo::NULLABLE;\n", "not a text that this version knows", "leave the file out"),
    ],
)
def test_what_is_refused_says_why_and_what_to_do(head: bytes, reason: str, remedy: str) -> None:
    refusal = recognise(head, len(head))
    assert isinstance(refusal, Refusal)
    assert reason in refusal.reason
    assert remedy in refusal.remedy


@pytest.mark.parametrize(
    ("path", "topic", "partition"),
    [
        ("orders-0/00000000000000000017.log", "orders", 0),
        ("/var/lib/kafka/my-topic.v1_x-12/00000000000000000017.log", "my-topic.v1_x", 12),
        (r"C:\kafka\data\a-b-1\00000000000000000017.log", "a-b", 1),
    ],
)
def test_the_partition_is_that_of_the_folder(path: str, topic: str, partition: int) -> None:
    assert parse_dump_path(path) == DumpedFile("log", topic, partition, 17)


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("00000000000000000000.log", "does not say which partition"),
        ("./00000000000000000000.log", "does not say which partition"),
        ("data/00000000000000000000.log", "does not say which partition"),
        ("..-0/00000000000000000000.log", "does not say which partition"),
        ("a b-0/00000000000000000000.log", "does not say which partition"),
        (f"{'x' * 250}-0/00000000000000000000.log", "does not say which partition"),
        ("a-99999999999/00000000000000000000.log", "does not say which partition"),
        (f"a-0.{'0f' * 16}-delete/00000000000000000000.log", "deleted log, not the partition's log"),
        (f"a-0.{'0f' * 16}-future/00000000000000000000.log", "future log, not the partition's log"),
        (f"a-0.{'0f' * 16}-stray/00000000000000000000.log", "stray log, not the partition's log"),
        ("a-0/00000000000000000000.index", "offset index"),
        ("a-0/00000000000000000000.timeindex", "offset index"),
        ("m-0/00000000000000000012-0000000001.checkpoint", "KRaft"),
        ("a-0/leader-epoch-checkpoint", "does not dump"),
        ("a-0/00000000000000000000.log.deleted", "does not dump"),
    ],
)
def test_dumps_that_are_no_evidence_are_refused(path: str, reason: str) -> None:
    refusal = parse_dump_path(path)
    assert isinstance(refusal, Refusal)
    assert reason in refusal.reason
    assert refusal.remedy


@pytest.mark.parametrize("path", ["", "orders-0/x.log", "orders-0/", "evil"])
def test_other_names_are_no_dumped_files(path: str) -> None:
    assert parse_dump_path(path) is None


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (b"Log starting offset: 17\nx", 24),
        (b"Starting offset: 17\n", 20),
        (b"Starting offset: 18\n", None),
        (b"Starting offset: 17", None),
        (b"baseOffset: 17\n", None),
    ],
)
def test_the_header_line_repeats_the_file_name(text: bytes, found: int | None) -> None:
    assert read_header(text, 0, 17) == found


@pytest.mark.parametrize("grammar", BATCH_LINES)
def test_the_batch_line_tells_the_tool(grammar: str) -> None:
    assert describe_body(ORDERS, BATCH_LINES[grammar]) == Body("log", grammar)


OLD_BATCH = b"offset: 4 position: 0 CreateTime: 1 %ssize: 90 magic: 1 compresscodec: NONE crc: 1%s\n"
STATE_RECORD = RECORD + b" key: transactionalId=a payload: producerId:1\n"


@cases(
    "file body expected",
    {
        "empty": (ORDERS, b"", Body("log", "empty")),
        "empty-state": (STATE, b"", Body("state", "empty")),
        "shallow-state-has-no-state": (STATE, BATCH_LINES["3.2+"], Body("log", "3.2+")),
        "deep-state-has-no-state": (STATE, BATCH_LINES["3.2+"] + RECORD + b"\n", Body("log", "3.2+")),
        "state": (STATE, BATCH_LINES["2.2-3.1"] + STATE_RECORD, Body("state", "2.2-3.1")),
        "state-after-emptied-batches": (
            STATE,
            BATCH_LINES["3.2+"].replace(b"count: 4", b"count: 0") * 2 + BATCH_LINES["3.2+"] + STATE_RECORD,
            Body("state", "3.2+"),
        ),
        "state-before-2.2": (
            STATE,
            OLD_RECORD % b" producerEpoch: -1" + b" key: transactionalId=a payload: producerId:2\n",
            Body("state", "2.1-deep"),
        ),
        "legacy-first": (ORDERS, OLD_BATCH % (b"", b" isvalid: true") + BATCH_LINES["3.2+"], Body("log", "3.2+")),
        "legacy-only": (ORDERS, OLD_BATCH % (b"isvalid: true ", b""), Body("log", "2.1")),
        "noise-first": (ORDERS, SLF4J + BATCH_LINES["2.1"], Body("log", "2.1")),
    },
)
def test_what_a_log_section_holds(file: DumpedFile, body: bytes, expected: Body) -> None:
    assert describe_body(file, body) == expected


SNAPSHOT_FILE = DumpedFile("snapshot", "orders", 0, 205)
SNAPSHOT_LINE = b"producerId: 0 producerEpoch: 14 coordinatorEpoch: 0 currentTxnFirstOffset: %s\n"


@pytest.mark.parametrize(
    ("line", "grammar"),
    [
        (b"None firstSequence: 0 lastSequence: 0 lastOffset: 197 offsetDelta: 0 timestamp: 1", "1.1-3.0"),
        (b"Some(138) ", "1.1-3.0"),
        (b"None lastTimestamp: 1 ", "3.1-3.4"),
        (b"OptionalLong[54] lastTimestamp: 1 firstSequence: 0 lastSequence: 1", "3.5+"),
        (b"OptionalLong.empty lastTimestamp: 1 ", "3.5+"),
        (b"OptionalLong.empty lastTimestamp: 1", "3.5+"),
    ],
)
def test_snapshot_lines_tell_the_tool(line: bytes, grammar: str) -> None:
    assert describe_body(SNAPSHOT_FILE, SNAPSHOT_LINE % line) == Body("snapshot", grammar)


@pytest.mark.parametrize(
    ("file", "body", "reason"),
    [
        (ORDERS, PRE_2_1, "before 2.0.1"),
        (ORDERS, PRE_2_1.replace(b" count: 4", b""), "before 2.0.1"),
        (ORDERS, OLD_RECORD % b" producerEpoch: -1" + b"\n", "before 2.2"),
        (STATE, OLD_RECORD % b" producerEpoch: -1" + b"\n", "before 2.2"),
        (STATE, OLD_RECORD % b"" + b" key: transactionalId=a payload: producerId:2\n", "before 2.2"),
        (ORDERS, BATCH_LINES["3.2+"] + b"| key: a payload: b\n", "--skip-record-metadata"),
        (ORDERS, BATCH_LINES["3.2+"] + b"\n\n\n\n", "--skip-record-metadata"),
        (ORDERS, b"java.lang.IllegalStateException\n", "not one that kafka-dump-log"),
        (ORDERS, BATCH_LINES["3.2+"][:99] + b"\n", "not one that kafka-dump-log"),
        (SNAPSHOT_FILE, b"producerId: 0 producerEpoch: 0 lastSequence: 1 lastOffset: 2\n", "before 1.1"),
        (SNAPSHOT_FILE, b"version: 0\n", "not one that kafka-dump-log"),
        (DumpedFile("txnindex", "a", 0, 0), b"producerId: 0\n", "not one that kafka-dump-log"),
    ],
)
def test_sections_that_cannot_answer_are_refused(file: DumpedFile, body: bytes, reason: str) -> None:
    refusal = describe_body(file, body)
    assert isinstance(refusal, Refusal)
    assert reason in refusal.reason
    assert refusal.remedy
