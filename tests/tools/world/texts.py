"""What was copied of a world, or of a story told by hand, as the texts that Kafka's own tools print of it."""

import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from zlib import crc32

from tests.tools.forms.broker import ProducerEntry, replay
from tests.tools.forms.dump_writer import Tool, log_files, partition_folder, snapshot_section
from tests.tools.forms.model import Batch, History, Segment, StateRecord, StateValue, batch_bytes
from tests.tools.forms.state_writer import console_json, console_text, state_batch, state_history
from tests.tools.stories.histories import Row, World

CONSOLE = "console"
_MARKER_BYTES, _RECORD_BYTES = 78, 100
_ROLLS, _DELETES = 0.1, 0.2


@dataclass(frozen=True)
class Copy:
    """Files copied off brokers; producer snapshots by the folder of their partition and their offset."""

    logs: tuple[History, ...]
    states: tuple[History, ...]
    snapshots: Mapping[tuple[str, int], Mapping[int, ProducerEntry]] = field(default_factory=dict)

    def files(self, tool: Tool, form: str = "dump") -> dict[str, bytes]:
        """Texts by file name; `form` is how the state was exported: dump, text or json."""
        texts = log_files(self.logs, tool)
        for (folder, offset), producers in self.snapshots.items():
            texts[f"{folder}.{offset}.snapshot.txt"] = snapshot_section(folder, offset, producers, tool).encode()
        if form == "dump":
            return texts | log_files(self.states, replace(tool, deep=True, payload=True))
        return texts | {f"{CONSOLE}.txt": self.console(as_json=form == "json")}

    def console(self, *, as_json: bool) -> bytes:
        """The state as an export by a console consumer."""
        batches = (batch for history in self.states for batch in history.batches)
        records = [record.state for batch in batches for record in batch.all_records() if record.state]
        return (console_json(records) if as_json else console_text(records)).encode()


def copy_of(copied: World) -> Copy:
    """Logs in one segment each, and the state; without all else that was copied."""
    logs = (History(topic, number, (_segment(tuple(_batches(rows))),)) for (topic, number), rows in copied.logs.items())
    states = (state_history(number, _state_batches(rows)) for number, rows in copied.states.items())
    return Copy(tuple(logs), tuple(states))


def rolled(copy: Copy, seed: str, *, may_delete: bool) -> Copy:
    """With segments where brokers rolled them, and the snapshots that they wrote there.

    Of one seed the same offsets begin segments in every copy. With `may_delete` the first segments may be gone.
    """
    logs, snapshots = list[History](), dict[tuple[str, int], Mapping[int, ProducerEntry]]()
    for history in copy.logs:
        source = random.Random(f"{seed}, {history.partition}, deletes")
        bases = [b.base_offset for b in history.batches if b.base_offset > 0 and _is_rolled(seed, history, b)]
        first = source.choice(bases) if may_delete and bases and source.random() < _DELETES else 0
        starts = [base for base in (0, *bases) if base >= first]
        ends = [*starts[1:], history.end_offset]
        logs.append(
            replace(
                history,
                segments=tuple(
                    Segment(start, tuple(b for b in history.batches if start <= b.base_offset < end))
                    for start, end in zip(starts, ends, strict=True)
                ),
            )
        )
        folder = partition_folder(history)
        snapshots |= {(folder, at): replay(history.batches, below=at).snapshot() for at in starts if at > 0}
    return Copy(tuple(logs), copy.states, snapshots)


def _is_rolled(seed: str, history: History, batch: Batch) -> bool:
    return random.Random(f"{seed}, {history.partition}, {batch.base_offset}").random() < _ROLLS


def _segment(batches: tuple[Batch, ...]) -> Segment:
    return Segment(batches[0].base_offset if batches else 0, batches)


def _batches(rows: Iterable[Row]) -> Iterator[Batch]:
    next_offset, sequences = 0, Counter[tuple[int, int]]()
    for row in rows:
        producer, is_control = (row["producer_id"], row["producer_epoch"]), row.get("is_control", False)
        base, count = row.get("offset", next_offset), row.get("record_count", 1)
        next_offset = base + count
        yield Batch(
            base,
            base + count - 1,
            count,
            *producer,
            None if is_control else sequences[producer],
            is_transactional=row["is_transactional"],
            is_control=is_control,
            marker=row.get("marker"),
            coordinator_epoch=row.get("coordinator_epoch"),
            max_timestamp_ms=row["max_timestamp_ms"],
            size_bytes=_MARKER_BYTES if is_control else batch_bytes([(None, _RECORD_BYTES)] * count),
            leader_epoch=row.get("leader_epoch", 0),
            crc=crc32(f"{producer} {base} {row['max_timestamp_ms']}".encode()),
        )
        sequences[producer] += count


def _state_batches(rows: Iterable[Row]) -> Iterator[Batch]:
    for number, row in enumerate(rows):
        value = None if row["state"] is None else _value(row)
        record = StateRecord(row["transactional_id"], value)
        yield state_batch(row.get("offset", number), row["recorded_ms"], record, row.get("leader_epoch", 0))


def _value(row: Row) -> StateValue:
    places = tuple((place["topic"], place["partition"]) for place in row["topic_partitions"])
    times = row["last_update_ms"], row["timeout_ms"], row["start_ms"]
    return StateValue(row["producer_id"], row["producer_epoch"], row["state"], places, *times)
