"""Texts of a client that imitate the dump around them, as well as a client that knows everything could."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from tests.tools.forms.broker import ProducerEntry
from tests.tools.forms.dump_writer import Tool, batch_line, log_section, partition_folder, record_line, snapshot_section
from tests.tools.forms.model import Batch, History, Record, Segment, StateRecord
from tests.tools.forms.state_writer import state_batch, state_history

INVENTED = 666


@dataclass(frozen=True)
class Place:
    """Where a forgery stands: in a record of `batch`, whose successor would begin at byte `position` of the segment."""

    history: History
    batch: Batch
    position: int
    tool: Tool

    def next_batch(self, **fields: object) -> Batch:
        """A batch that could follow."""
        offset = self.batch.last_offset + 1
        batch = Batch(offset, offset, 1, INVENTED, 0, 0, is_transactional=True, max_timestamp_ms=1, size_bytes=90)
        return replace(batch, **fields)  # type: ignore[arg-type]  # fields of any type

    def lines(self, batch: Batch) -> str:
        """The lines of a batch at the right place, records included."""
        printed = [record_line(r, batch, self.position, self.tool) for r in batch.all_records()]
        return "\n".join([batch_line(batch, self.position, self.tool), *printed])


Forgery = Callable[[Place], str]


def _data(place: Place) -> str:
    return "x\n" + place.lines(place.next_batch())


def _data_behind_the_next(place: Place) -> str:
    shifted = replace(place, position=place.position + 78)
    return "x\n" + shifted.lines(place.next_batch(base_offset=place.batch.last_offset + 2, last_offset=2**40))


def _markers(place: Place) -> str:
    """An ABORT for every producer of the log, where the dump goes on: the worst that a payload can say."""
    epochs = {b.producer_id: b.producer_epoch for b in place.history.batches if b.producer_id is not None}
    lines, position = ["x"], place.position
    for offset, (producer, epoch) in enumerate(sorted(epochs.items()), place.batch.last_offset + 1):
        aborted = Batch(offset, offset, 1, producer, epoch, is_transactional=True, is_control=True, marker="ABORT")
        marker = replace(aborted, coordinator_epoch=9)
        lines.append(replace(place, position=position).lines(marker))
        position += marker.size_bytes
    return "\n".join(lines)


def _marker_of_the_batch(place: Place) -> str:
    line = f"| offset: {place.batch.last_offset + 1} CreateTime: 1 keySize: 4 valueSize: 6 sequence: -1 headerKeys: []"
    return f"x\n{line} endTxnMarker: ABORT coordinatorEpoch: 7"


def _record(place: Place) -> str:
    record = Record(place.batch.last_offset + 1, 1, 1, 1, key="k", payload="v")
    return "x\n" + record_line(record, place.batch, place.position, place.tool)


def _noise(place: Place) -> str:
    return "x\n[2026-01-01 00:00:00,000] ERROR done\nProcessed a total of 3 messages\n\nSLF4J: x"


def _section_of_another_partition(place: Place) -> str:
    batch = replace(place.next_batch(), base_offset=0, last_offset=0)
    return "x\n" + log_section("orders-1", Segment(0, (batch,)), place.tool).rstrip("\n")


def _section_of_this_partition(place: Place) -> str:
    offset = place.batch.last_offset + 1
    folder = partition_folder(place.history)
    return "x\n" + log_section(folder, Segment(offset, (place.next_batch(),)), place.tool).rstrip("\n")


def _snapshot(place: Place) -> str:
    folder, offset = partition_folder(place.history), place.batch.last_offset + 1
    entry = ProducerEntry(0, 0, 1)
    return "x\n" + snapshot_section(folder, offset, {INVENTED: entry}, place.tool).rstrip("\n")


def _state(place: Place) -> str:
    records = [StateRecord(name, None) for name in ("billing", "late")]
    batches = [state_batch(10_000 + k, 2_000_000_000_000, record) for k, record in enumerate(records)]
    history = state_history(2, batches)
    sections = (log_section("__transaction_state-2", segment, place.tool) for segment in history.segments)
    return "x\n" + "".join(sections).rstrip("\n")


FORGERIES: dict[str, Forgery] = {
    "a data batch that is next": _data,
    "a data batch after the next": _data_behind_the_next,
    "an invalid batch": lambda place: "x\n" + place.lines(place.next_batch(is_valid=False)),
    "end markers of all producers": _markers,
    "an end marker without its batch": _marker_of_the_batch,
    "a record": _record,
    "a header line": lambda _: "x\nLog starting offset: 0\nStarting offset: 0",
    "a torn tail": lambda place: (
        f"x\nFound 5 invalid bytes at the end of {place.history.segments[0].base_offset:020d}.log"
    ),
    "noise": _noise,
    "a section of another partition": _section_of_another_partition,
    "a section of this partition": _section_of_this_partition,
    "a producer snapshot": _snapshot,
    "tombstones of the ids": _state,
    "console lines": lambda _: 'x\nbilling::NULL\n{"key":{"type":0,"data":{"transactionalId":"billing"}},"value":null}',
    "the end of the header keys": lambda place: "] key: k payload: v\n" + place.lines(place.next_batch()),
}
