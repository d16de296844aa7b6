"""A small cluster whose clients write hostile texts, and the truth about each of its open transactions."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from tests.proof.hostile.forgeries import FORGERIES, Forgery, Place
from tests.tools.forms.dump_writer import Tool
from tests.tools.forms.model import Batch, History, Record, Segment
from tests.tools.stories.histories import World
from tests.tools.stories.stories import ORDERS_0, Story, at
from tests.tools.world.texts import Copy, copy_of
from txn_analysis.settings import Settings

Files = dict[str, bytes]
Row = dict[str, Any]

SETTINGS: dict[str, Any] = {
    "transaction_state_partitions": 4,
    "max_clock_skew_ms": 0,
    "state_copied_last": True,
    "transaction_state_complete": True,
}
TOOLS = {
    "4.2 payload": Tool((4, 2), payload=True),
    "4.2 deep": Tool((4, 2), deep=True),
    "4.0 payload": Tool((4, 0), payload=True),
    "2.8 payload": Tool((2, 8), payload=True),
    "2.5 payload": Tool((2, 5), payload=True),
}
WHERE = ("key", "payload", "header", "closed header")
HOSTILE_IDS = {
    "newline": "a\nb",
    "NUL": "a\x00b",
    "tab": "a\tb",
    "carriage return": "a\r\nb",
    "ANSI": "\x1b[2J\x1b[31mred\x9b0m",
    "right-to-left": "abc\u202edef\u2066\u200f",
    "separators": "\u2028\u2029\x85\x0b\x0c\x1c",
    "quotes": "'\"`$(id);\\ && exit #",
    "formula": '=HYPERLINK("http://x","y")',
    "markup": "<script>alert(1)</script>|**b**|[x](y)",
    "longest": "x" * 32_767,
    "longest of newlines": "\n" * 32_767,
    "not in the basic plane": "\U0001f600" * 40,
    "state line": "a\n| offset: 1 CreateTime: 1 keySize: 5 valueSize: -1 sequence: -1 headerKeys: [] key: "
    "transaction_metadata::transactionalId=billing payload: <DELETE>",
    "state value": "a payload: producerId:1,producerEpoch:0,state=Empty,partitions=[],"
    "txnLastUpdateTimestamp=1,txnTimeoutMs=1\nb",
    "old state line": "x\ntransactionalId=billing payload: <DELETE>\noffset: 3 position: 0 CreateTime: 1 isvalid: true "
    "keysize: 11 valuesize: -1 magic: 2 compresscodec: NONE producerId: -1 producerEpoch: -1 sequence: -1 "
    "isTransactional: false headerKeys: [] key: transactionalId=billing payload: <DELETE>",
    "console line": "x\nbilling::TransactionMetadata(transactionalId=billing, producerId=1, producerEpoch=0, "
    "txnTimeoutMs=60000, state=CompleteAbort, pendingState=None, topicPartitions=HashSet(), txnStartTimestamp=1, "
    "txnLastUpdateTimestamp=99999999999999)\ny",
    "console tombstone": "billing::NULL\nbilling::NULL",
    "console start": "a::TransactionMetadata(transactionalId=a",
    "JSON": '"}} payload: {"version":"0","data":{}}{"key":null}',
    "section": "x\nDumping __transaction_state-0/00000000000000000000.log\nLog starting offset: 0",
}


COPIED_MS = at("10:00:20")
LONG_AGO_MS = -3 * 3_600_000
PAYMENTS, CLICKS = ("payments-eu", 0), ("clicks", 0)
NOBODYS_ID = 987_654_321
_STATES = 4
_NEVER_MS = 2**31 - 1


class Truth(StrEnum):
    """What is true of a transaction that is open in the copy."""

    LIVE = "live"  # the coordinator has the partition in an ongoing transaction of this producer
    PENDING = "pending"  # the outcome is decided, this partition's marker is on its way
    HANGING = "hanging"  # nobody will write a marker


@dataclass(frozen=True)
class Scene:
    """The files of one capture, and the open transactions of the cluster that it was copied from."""

    name: str
    files: Files
    truth: dict[tuple[str, int, int, int], Truth]

    def wrong(self, findings: list[Row]) -> list[Row]:
        """The findings that would be aborted, and must not be: of live transactions, or of none at all."""
        return [row for row in findings if row["verdict"] == "hanging" and self._is_wrong(row)]

    def _is_wrong(self, row: Row) -> bool:
        return self.truth.get(key_of(row)) is not Truth.HANGING


def key_of(row: Row) -> tuple[str, int, int, int]:
    """Topic, partition, producer id and start of a finding."""
    return row["topic"], row["partition"], row["producer_id"], row["txn_start_offset"]


LATE, LIVE = 2, 3
TRUTH = {
    (*ORDERS_0, NOBODYS_ID, 6): Truth.HANGING,
    (*PAYMENTS, LATE, 6): Truth.PENDING,
    (*ORDERS_0, LIVE, 8): Truth.LIVE,
    (*CLICKS, LIVE, 0): Truth.LIVE,
}


def copied(transactional_id: str = "billing") -> Copy:
    """One transaction in progress, one whose commit is decided, one aborted, and one orphan."""
    story = Story(World(Settings(transaction_state_partitions=_STATES), states={n: [] for n in range(_STATES)}))
    for number, (name, word) in enumerate((("settlement", "Commit"), ("refunds", "Abort"))):
        clock = f"10:00:0{number}"
        _transact(story, clock, name, number, PAYMENTS, ORDERS_0)
        story.decides(word, f"{clock}.500", f"{clock}.600", name=name, producer_id=number, on=[PAYMENTS, ORDERS_0])
        for place in (PAYMENTS, ORDERS_0):
            story.marks(f"{clock}.550", word.upper(), number, place)
    _transact(story, "10:00:03", "late", LATE, PAYMENTS)
    story.records("10:00:04", "PrepareCommit", name="late", producer_id=LATE, on=[PAYMENTS])
    _write(story, "10:00:05", NOBODYS_ID, ORDERS_0)
    _transact(story, "10:00:06", transactional_id, LIVE, ORDERS_0, CLICKS, timeout_ms=_NEVER_MS)
    _transact(story, "10:00:07", "done", 4, ORDERS_0)
    story.decides("Commit", "10:00:08", "10:00:09", name="done", producer_id=4).marks("10:00:08.500", producer_id=4)
    return copy_of(story.world)


def _transact(
    story: Story, clock: str, name: str, producer_id: int, *places: tuple[str, int], timeout_ms: int = 60_000
) -> None:
    """A new id begins a transaction and writes to some partitions, with a clock that is hours late."""
    whose: Row = {"name": name, "producer_id": producer_id, "timeout_ms": timeout_ms}
    story.records(clock, "Empty", **whose).records(clock, "Ongoing", start_ms=at(clock), on=places, **whose)
    for place in places:
        _write(story, clock, producer_id, place)


def _write(story: Story, clock: str, producer_id: int, place: tuple[str, int]) -> None:
    story.writes(clock, producer_id, place, record_count=2, max_timestamp_ms=at(clock) + LONG_AGO_MS)


def honest(tool: Tool) -> Scene:
    """The cluster without a hostile client."""
    copy = copied()
    return Scene(
        "honest",
        replace(copy, logs=tuple(_written(log, None, "key", tool) for log in copy.logs)).files(tool),
        TRUTH,
    )


def forged_scenes() -> Iterator[Scene]:
    """Every forgery in every place, printed by every tool that prints that place."""
    copy = copied()
    for tool_name, tool in TOOLS.items():
        for where in WHERE:
            if where in {"key", "payload"} and not tool.payload:
                continue
            for name, forgery in FORGERIES.items():
                logs = tuple(_written(log, forgery, where, tool) for log in copy.logs)
                yield Scene(
                    f"{name} in the {where}, {tool_name}",
                    replace(copy, logs=logs).files(tool),
                    TRUTH,
                )


def named_scenes() -> Iterator[Scene]:
    """Every hostile transactional id, in every form that prints ids."""
    for id_name, transactional_id in HOSTILE_IDS.items():
        copy = copied(transactional_id)
        for tool_name in ("4.2 payload", "4.0 payload", "2.8 payload", "2.5 payload"):
            yield Scene(f"id {id_name}, {tool_name}", copy.files(TOOLS[tool_name]), TRUTH)
        for form in ("text", "json"):
            yield Scene(f"id {id_name}, console {form}", copy.files(TOOLS["4.2 deep"], form), TRUTH)


def _written(history: History, forgery: Forgery | None, where: str, tool: Tool) -> History:
    """The history with a text for every record, and a forgery in the last record of every data batch.

    Batches keep their sizes, as if they were compressed, so that the positions in the forged lines are right.
    """
    segments = []
    roomy = [_roomy(segment) if forgery and where.endswith("header") else segment for segment in history.segments]
    for segment in roomy:
        batches = [
            _with_text(batch, forgery and forgery(Place(history, batch, position + batch.size_bytes, tool)), where)
            for position, batch in segment.with_positions()
        ]
        segments.append(replace(segment, batches=tuple(batches)))
    return replace(history, segments=tuple(segments))


def _roomy(segment: Segment) -> Segment:
    """Its data batches are compressed, and large enough for what their header keys will print."""
    return replace(
        segment,
        batches=tuple(b if b.is_control else replace(b, codec="zstd", size_bytes=4_000) for b in segment.batches),
    )


def _with_text(batch: Batch, text: str | None, where: str) -> Batch:
    if batch.is_control or not batch.record_count:
        return batch
    *first, last = (_sized(record, "key", "value") for record in batch.all_records())
    if text is not None and where == "closed header":  # the list that the line seems to print is empty
        last = replace(last, header_keys="]" + text.removeprefix("x"))
    elif text is not None and where == "header":
        last = replace(last, header_keys=text)
    elif text is not None:
        last = _sized(last, text, "value") if where == "key" else _sized(last, "key", text)
    return replace(batch, records=(*first, last))


def _sized(record: Record, key: str, payload: str) -> Record:
    return replace(record, key=key, key_bytes=len(key.encode()), payload=payload, value_bytes=len(payload.encode()))
