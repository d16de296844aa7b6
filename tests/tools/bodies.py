"""Bodies of sections in memory, and the account of what a parser made of them."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from tests.tools.records import plain
from tests.tools.repository import CASES
from txn_analysis.reading.dump.scan import read_slice
from txn_analysis.reading.state.decoded_dump import StateDumpReader
from txn_analysis.reading.text.section import ScanRange, Section
from txn_analysis.reading.text.text import Text
from txn_analysis.reading.text.window import Reject

Row = dict[str, Any]
OF_ONGOING: Row = {
    "is_tombstone": False,
    "is_undecodable": False,
    "state": "Ongoing",
    "producer_id": 7,
    "previous_producer_id": None,
    "next_producer_id": None,
    "producer_epoch": 3,
    "timeout_ms": 60000,
    "topic_partitions": [{"topic": "a-b.c_d", "partition": 12}, {"topic": "orders", "partition": 0}],
    "last_update_ms": 1795,
    "client_transaction_version": None,
    "may_list_more": None,
    "may_name_more": None,
}
"""What a row has of the record that tests read, but its place, its id and its start."""
HOSTILE_IDS = (
    "plain",
    "a,state=Ongoing",
    "x\nDumping t-0/0.log",
    "a payload: <DELETE>",
    "a payload: producerId:1,producerEpoch:0,state=Empty,partitions=[],txnLastUpdateTimestamp=1,txnTimeoutMs=1\nb",
    "a\n| offset: 1 CreateTime: 1 keySize: 5 valueSize: -1 sequence: -1 headerKeys: [] key: transactionalId=b",
    '"}} payload: {"version":"0"',
    '"}}}{"key":null',
    "ends::NULL",
    "a::TransactionMetadata(transactionalId=a",
    "\U0001f600 \u2028\x85\x00\r\x1b[31m",
)


@dataclass(frozen=True)
class Body:
    """A section's body that lies in a text after `before`."""

    text: bytes
    grammar: str = "3.2+"
    topic: str = "orders"
    partition: int = 1
    file_base_offset: int = 0
    before: bytes = b""

    @property
    def text_start_bytes(self) -> int:
        return len(self.before)

    @property
    def text_end_bytes(self) -> int:
        return len(self.before) + len(self.text)

    def read(self, start: int, end: int) -> bytes:
        return (self.before + self.text)[start:end]


Parser = Callable[..., Iterator[Any]]


@dataclass(frozen=True)
class Parsed:
    """What a parser gave for one body; its records as rows of a table."""

    rows: list[Row]
    rejects: list[Reject]

    def ids(self) -> list[str | None]:
        """The ids of what was read; None for an undecodable record, whoever it is of."""
        return [None if row["is_undecodable"] else row["transactional_id"] for row in self.rows]

    @property
    def whose_undecodable(self) -> list[str | None]:
        """Of each undecodable record its id, as far as its key was read."""
        return [row["transactional_id"] for row in self.rows if row["is_undecodable"]]

    @property
    def has_undecodable(self) -> bool:
        return any(row["is_undecodable"] for row in self.rows)


def read_state_section(text: Text, section: Section) -> Iterator[Any]:
    """The records of a decoded section of `__transaction_state` and what was rejected, one by one."""
    return StateDumpReader(text, section).read(section.text_end_bytes)


def read_state_slices(text: Text, section: Section, cuts: Iterable[int]) -> Iterator[Any]:
    """The same as an ingest reads it, by ranges: records as they come, or many as rows."""
    edges = sorted({section.text_start_bytes, *cuts, section.text_end_bytes})
    reader = StateDumpReader(text, section)
    for start, end in pairwise(edges):
        own = read_slice(text, ScanRange("", None, "input", section, start, end))
        yield from reader.read(end if own is None or end == section.text_end_bytes else own.end, own)


def plain_rows(items: Iterable[Any]) -> list[Row]:
    """What a parser gave, as rows of a table and without rejects."""
    rows: list[Row] = []
    for item in items:
        if isinstance(item, pa.RecordBatch):
            rows += item.to_pylist()
        elif not isinstance(item, Reject):
            rows.append(item if isinstance(item, dict) else plain(item))
    return rows


def parse(parser: Parser, body: Body) -> Parsed:
    """Runs a parser, and checks what holds for every input: rejects lie in the body, apart, and in order."""
    items = list(parser(body, body))
    rejects = [item for item in items if isinstance(item, Reject)]
    at = body.text_start_bytes
    for reject in rejects:
        assert reject.offset_bytes >= at
        assert reject.length_bytes > 0
        at = reject.offset_bytes + reject.length_bytes
    assert at <= body.text_end_bytes
    rows = plain_rows(items)
    ordinals = [row["ordinal"] for row in rows if "ordinal" in row]
    assert ordinals == sorted(set(ordinals))
    return Parsed(rows, rejects)


def capture_body(path: str, *, header_lines: int, **place: Any) -> Body:
    """The body of a real capture with one section, after its first lines."""
    lines = (CASES / path).read_bytes().split(b"\n", header_lines)
    return Body(lines[-1], before=b"".join(line + b"\n" for line in lines[:-1]), **place)


def damaged(text: bytes) -> st.SearchStrategy[bytes]:
    """The text with one stretch cut out or overwritten."""
    places = st.integers(0, len(text))
    noise = st.one_of(st.just(b""), st.binary(max_size=3), st.sampled_from([b"\n", b"{", b"baseOffset: ", b"[" * 5000]))
    return st.builds(lambda a, b, put: text[: min(a, b)] + put + text[max(a, b) :], places, places, noise)


def single_flips(text: bytes) -> st.SearchStrategy[bytes]:
    """The text with one byte changed."""
    return st.builds(
        lambda at, byte: text[:at] + bytes([byte]) + text[at + 1 :], st.integers(0, len(text) - 1), st.integers(0, 255)
    )


def transactional_ids() -> st.SearchStrategy[str]:
    """Ids that a client may choose, those that imitate Kafka's output among them."""
    return st.one_of(
        st.sampled_from(HOSTILE_IDS),
        st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12),
        st.lists(st.sampled_from(HOSTILE_IDS), min_size=2, max_size=3).map("\n".join),
    )
