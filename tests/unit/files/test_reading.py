"""Objects as inputs: found by name, folder and glob; read in ranges, in one version or not at all."""

import gzip

import pyarrow as pa
import pytest

from tests.tools.repository import CASES
from tests.tools.s3_server import Bucket, Fault
from tests.tools.sessions import no_session
from txn_analysis.errors import InputError
from txn_analysis.files.store import ChangedError, StoreError, store_at
from txn_analysis.reading.inputs.accounting import rejected_outside
from txn_analysis.reading.inputs.find_files import SourceFile, find_files
from txn_analysis.reading.inputs.planning import plan_inputs
from txn_analysis.reading.text.text import GZIP, ZSTD, Text

MIB = 1 << 20
DUMP = CASES / "kafka-4.2/capture-1/segments/n1.orders-0.txt"
COPY = "copies/a b%20c#ä"


def big(bucket: Bucket, size_bytes: int) -> tuple[bytes, SourceFile]:
    """The bytes of an object that is read in ranges, and as what it is found."""
    data = bytes(range(256)) * (size_bytes // 256)
    bucket.put("big", data)
    (file,) = find_files(["s3://kept/big"])
    return data, file


def names(*given: str) -> list[str]:
    return [file.path.removeprefix("s3://kept/") for file in find_files([f"s3://kept/{name}" for name in given])]


@pytest.fixture
def copies(bucket: Bucket) -> Bucket:
    """Files of two partitions and of the coordinator, a hidden one, and what some tools write for a folder."""
    for name in ("orders-0/1.log", "orders-0/.2.log", "orders-1/1.log", "orders-1/deep/2.log", "other"):
        bucket.put(f"{COPY}/{name}", name.encode())
    bucket.put(f"{COPY}/orders-0/", b"")
    bucket.put(f"{COPY}2/no", b"not below the folder")
    return bucket


def test_a_folder_is_all_that_lies_below_it(copies: Bucket) -> None:
    below = ["orders-0/1.log", "orders-1/1.log", "orders-1/deep/2.log", "other"]
    assert names(COPY) == names(f"{COPY}/") == [f"{COPY}/{name}" for name in below]


def test_an_object_is_named_and_a_glob_matches_as_in_a_shell(copies: Bucket) -> None:
    assert names(f"{COPY}/orders-1/1.log") == [f"{COPY}/orders-1/1.log"]
    assert names(f"{COPY}/orders-?/*.log") == [f"{COPY}/orders-0/1.log", f"{COPY}/orders-1/1.log"]
    assert names(f"{COPY}/**/2.log") == [f"{COPY}/orders-1/deep/2.log"]
    assert names(f"{COPY}/orders-[!0]") == [f"{COPY}/orders-1/1.log", f"{COPY}/orders-1/deep/2.log"]


def test_what_is_not_there_is_named_beside_what_else_is_wrong(copies: Bucket) -> None:
    with pytest.raises(InputError) as refused:
        names("nothing", f"{COPY}/*.txt", "other/")
    assert [problem.partition(": ")[0] for problem in refused.value.problems] == [
        f"s3://kept/{name}" for name in (f"{COPY}/*.txt", "nothing", "other/")
    ]


def test_the_coordinators_state_is_listed_last(copies: Bucket) -> None:
    def rolled(kind: str, key: str) -> None:
        if kind == "LIST" and "state" in key:
            copies.put(f"{COPY}/__transaction_state-3/2.log", b"rolled meanwhile")

    copies.put(f"{COPY}/__transaction_state-3/1.log", b"state")
    copies.fault = rolled
    assert [name for name in names(COPY) if "state" in name] == [
        f"{COPY}/__transaction_state-3/{number}.log" for number in (1, 2)
    ]


def test_thousands_of_objects_are_listed_by_pages(bucket: Bucket) -> None:
    for number in range(2500):
        bucket.put(f"many/{number:05}", b"x")
    assert len(names("many")) == 2500
    assert bucket.requests["LIST"] < 10


def test_a_range_costs_its_bytes_and_one_request(bucket: Bucket) -> None:
    data, file = big(bucket, MIB)
    before = bucket.request_count
    with Text(file.path, None, file.version) as text:
        assert text.read(1000, 1096) == data[1000:1096]
        assert text.read(MIB - 5, MIB + 100) == data[-5:]
    assert (bucket.request_count - before, bucket.bytes_read) == (2, 96 + 5)


def test_a_reader_that_looks_back_reads_nothing_twice(bucket: Bucket) -> None:
    data, file = big(bucket, 20 * MIB)
    with Text(file.path, None, file.version) as text:
        pieces = [text.read(0, 8 * MIB), text.read(8 * MIB - 1, 16 * MIB), text.read(4 * MIB, 4 * MIB + 99)]
    assert pieces == [data[: 8 * MIB], data[8 * MIB - 1 : 16 * MIB], data[4 * MIB : 4 * MIB + 99]]
    assert bucket.bytes_read == 16 * MIB


def test_ranges_that_come_while_others_are_worked_on_are_read_once(bucket: Bucket) -> None:
    data, file = big(bucket, 20 * MIB)
    with Text(file.path, None, file.version) as text:
        text.will_read([(19 * MIB, 20 * MIB), (-1, 9 * MIB)])
        text.will_read([(9 * MIB - 5, 19 * MIB)])
        places = [(19 * MIB, 19 * MIB + 9), (0, 5 * MIB), (4 * MIB, 9 * MIB + 5), (10 * MIB, 20 * MIB)]
        assert [text.read(start, end) for start, end in places] == [data[start:end] for start, end in places]
    assert bucket.bytes_read == 20 * MIB


def test_what_is_to_come_already_is_asked_for_once(bucket: Bucket) -> None:
    data, file = big(bucket, 20 * MIB)
    with Text(file.path, None, file.version) as text:
        text.will_read([(0, 20 * MIB)])
        for start, end in ((0, 4), (3, 7), (7, 11), (10, 13), (13, 20)):
            text.will_read([(start * MIB, end * MIB)])
            assert text.read(start * MIB, end * MIB) == data[start * MIB : end * MIB]
    assert bucket.bytes_read == 20 * MIB


def test_an_object_that_is_replaced_while_a_range_of_it_comes_is_read_in_neither_version(bucket: Bucket) -> None:
    def replaced(kind: str, key: str) -> None:
        if kind == "GET":
            bucket.put("log", b"a another" * MIB)

    bucket.put("log", b"the first" * MIB)
    (file,) = find_files(["s3://kept/log"])
    bucket.fault = replaced
    with Text(file.path, None, file.version) as text:
        text.will_read([(0, 9 * MIB)])
        with pytest.raises(ChangedError):
            text.read(0, 9)


@pytest.mark.parametrize("compression", [GZIP, ZSTD])
def test_a_packed_object_is_read_from_its_front(bucket: Bucket, compression: str) -> None:
    data = b"".join(b"%d\n" % number for number in range(1_500_000))
    bucket.put("packed", gzip.compress(data) if compression == GZIP else pa.compress(data, ZSTD, asbytes=True))
    with Text("s3://kept/packed", compression) as text:
        assert text.read(0, 100) + text.read(100, len(data) + 1) == data
        assert text.read(5, 10) == data[5:10]


@pytest.mark.parametrize("has_tags", [True, False], ids=["known by its entity tag", "known by its time"])
def test_an_object_that_was_replaced_is_read_in_neither_version(bucket: Bucket, *, has_tags: bool) -> None:
    bucket.has_tags = has_tags
    bucket.put("log", b"the first" * MIB)
    (file,) = find_files(["s3://kept/log"])
    with Text(file.path, None, file.version) as text:
        assert text.read(0, 9) == b"the first"
        bucket.put("log", b"a another" * MIB)
        with pytest.raises(ChangedError):
            text.read(9, 18)
        bucket.objects.clear()
        with pytest.raises(ChangedError):
            text.read(9, 18)


def test_a_store_that_fails_now_and_then_is_asked_again(bucket: Bucket) -> None:
    asked: list[str] = []
    faults = [Fault(status=503), Fault(cut_at_bytes=MIB), Fault(cut_at_bytes=9)]

    def failing(kind: str, key: str) -> Fault | None:
        asked.append(kind)
        return faults.pop() if kind == "GET" and faults else None

    data = bytes(range(256)) * (2 * MIB // 256)
    bucket.put("log", data)
    bucket.fault = failing
    with Text("s3://kept/log", None) as text:
        assert text.read(0, 2 * MIB) == data
    assert asked.count("GET") == 4


@pytest.mark.parametrize(
    ("status", "line"),
    [
        (403, "the store refuses access (403 Forbidden)"),
        (503, "the store failed 6 times (503 Service Unavailable)"),
        (301, "the bucket is in another region. Set AWS_REGION to it"),
    ],
)
def test_a_store_that_always_fails_is_said_in_one_line(bucket: Bucket, status: int, line: str) -> None:
    bucket.fault = lambda *_: Fault(status=status)
    with pytest.raises(InputError) as refused:
        names("log")
    assert refused.value.problems[0].startswith(f"s3://kept/log: {line}")
    assert "\n" not in refused.value.problems[0]
    assert bucket.request_count <= 6
    with pytest.raises(StoreError) as error:
        store_at("s3://kept").head("log")
    assert "secret" not in str(error.value)


@pytest.mark.parametrize(
    ("status", "line"),
    [(403, "the store refuses access"), (503, "the store failed 6 times"), (412, "the file changed")],
)
def test_a_store_that_fails_behind_the_survey_is_no_changed_object(bucket: Bucket, status: int, line: str) -> None:
    """The lines between logs are looked at last."""
    bucket.put("orders-0.txt", DUMP.read_bytes())
    (planned,) = plan_inputs(no_session, find_files(["s3://kept/orders-0.txt"])).inputs
    bucket.fault = lambda kind, _: Fault(status=status) if kind == "GET" else None
    with pytest.raises(InputError) as refused:
        rejected_outside(planned)
    assert refused.value.problems[0].startswith(f"s3://kept/orders-0.txt: {line}")
