"""The groups in dumps of `__consumer_offsets`, by decoder version, and where there are none."""

from __future__ import annotations

import pytest

from txn_analysis.ingest.group_offsets import GroupOffset, group_offsets

BATCH = (
    "baseOffset: 1 lastOffset: 2 count: 2 baseSequence: 0 lastSequence: 1 producerId: {producer_id} producerEpoch: 0 "
    "partitionLeaderEpoch: 0 isTransactional: true isControl: false position: 0 CreateTime: 5 size: 123 magic: 2 "
    "compresscodec: none crc: 1 isvalid: true\n"
)
RECORD = "| offset: {offset} CreateTime: 5 keySize: 31 valueSize: 24 sequence: 0 headerKeys: []"
JSON = ' key: {"type":"1","data":{"group":"a\\n,b","topic":"t","partition":0}} payload: {"version":"4","data":{}}\n'
TEXT = " key: offset_commit::group=a,b,partition=t-0 payload: offset=5\n"
METADATA = ' key: {"type":"2","data":{"group":"a"}} payload: {"version":"3","data":{}}\n'


class InMemory:
    def __init__(self, text: str) -> None:
        self.data = text.encode()

    def read(self, start: int, end: int) -> bytes:
        return self.data[start:end]


def groups(text: str) -> list[GroupOffset]:
    return list(group_offsets(InMemory(text), 0, len(text.encode()), "3.2+", 0))


def lines(*records: str, producer_id: int = 7) -> str:
    found = BATCH.format(producer_id=producer_id)
    return found + "".join(RECORD.format(offset=1 + n) + record for n, record in enumerate(records))


@pytest.mark.parametrize(
    ("record", "group"),
    [pytest.param(JSON, "a\n,b", id="json"), pytest.param(TEXT, "a,b", id="text")],
)
def test_each_form_names_the_group_and_its_producer_once(record: str, group: str) -> None:
    assert groups(lines(record, record)) == [GroupOffset(group, 7, 2)]


def test_offsets_outside_a_transaction_have_no_producer() -> None:
    assert groups(lines(TEXT, producer_id=-1)) == [GroupOffset("a,b", None, 2)]


@pytest.mark.parametrize("record", ["\n", METADATA, ' key: {"type":"1","data":[]}\n', ' key: {"type":"1",\n'])
def test_what_is_no_offset_commit_gives_no_group(record: str) -> None:
    assert groups(lines(record)) == []
