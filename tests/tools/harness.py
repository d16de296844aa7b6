"""The audit of a few captures in milliseconds: files are read as the product reads them, and its pure core judges."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from tests.tools.inputs import RANGE_BYTES, InputReader, ReadInput
from tests.tools.records import plain
from tests.tools.stories.answer import answers_of
from tests.tools.stories.history import History
from txn_analysis.kafka.names import state_partition
from txn_analysis.settings import Settings
from txn_analysis.tables import FINDINGS

Row = dict[str, Any]

_NOT_JUDGED_HERE = {"run_id", "finding_id", "impact"}


@dataclass(frozen=True)
class Item:
    """One input of one capture; the judged capture has rank 0, the one before it rank 1, and so on."""

    input: ReadInput
    rank: int


@dataclass(frozen=True)
class Answer:
    """What an audit says of one capture: rows of `findings` and `partition_health`, and the bytes that it lost.

    `state_seen_to_ms` is the last update that was seen in each partition of `__transaction_state`.
    """

    findings: list[Row]
    health: list[Row]
    unaccounted_bytes: int
    state_seen_to_ms: Mapping[int, int]

    @property
    def hanging(self) -> list[Row]:
        """The findings that would be aborted."""
        return [row for row in self.findings if row["verdict"] == "hanging"]


def audit_files(
    reader: InputReader,
    captures: Mapping[str, Mapping[str, bytes]],
    settings: Settings,
    *,
    judged: str | None = None,
    range_bytes: int = RANGE_BYTES,
) -> Answer:
    """Judge one capture (the newest by the brokers' clocks where none is named), with the older ones behind it.

    Args:
        reader: reads contents, and keeps what it read.
        captures: files of each capture, by path.
        settings: as for the audit; inputs that are not understood are left out, as with `--skip-unrecognised`.
        judged: name of the capture to judge.
        range_bytes: bytes of dump text that one task would parse.
    """
    return _answers([items_of(reader, captures, judged, range_bytes)], settings)[0]


def audit_each(
    reader: InputReader,
    captures: Iterable[tuple[Mapping[str, bytes], int]],
    settings: Settings,
    cluster_id: str | None = None,
) -> list[Answer]:
    """Judge captures that have nothing to do with each other in one go, which is quicker than one by one.

    Each comes with the bytes of dump text that one task would parse. `cluster_id` is that of the folders of all files.
    """
    items = [items_of(reader, {"capture": files}, None, range_bytes) for files, range_bytes in captures]
    return _answers(items, settings, cluster_id)


def _answers(captures: Sequence[list[Item]], settings: Settings, cluster_id: str | None = None) -> list[Answer]:
    histories = [history_of(items, settings, cluster_id) for items in captures]
    names = [name for name in FINDINGS.names if name not in _NOT_JUDGED_HERE]
    found = []
    for items, history, answer in zip(captures, histories, answers_of(histories), strict=True):
        findings = [{name: row[name] for name in names} for row in (plain(finding) for finding in answer.findings)]
        lost = sum(item.input.unaccounted_bytes for item in items)
        found.append(Answer(findings, list(answer.health), lost, _seen_to_ms(history)))
    return found


def history_of(items: Sequence[Item], settings: Settings, cluster_id: str | None = None) -> History:
    """What was read of some inputs, each content once with its newest capture's rank."""
    newest = {item.input.planned.input_id: item for item in sorted(items, key=lambda item: -item.rank)}
    return History(
        settings,
        [
            row | {"cluster_id": cluster_id}
            for item in items
            if item.input.planned.sections
            for row in _section_rows(item)
        ],
        [part for item in newest.values() for part in item.input.batches],
        [row for item in newest.values() for row in item.input.records if "snapshot_offset" in row],
        [row for item in newest.values() for row in _state_rows(item)],
    )


def items_of(
    reader: InputReader,
    captures: Mapping[str, Mapping[str, bytes]],
    judged: str | None,
    range_bytes: int = RANGE_BYTES,
) -> list[Item]:
    """The inputs that the judged capture rests on."""
    read = {
        name: {
            data.planned.input_id: data for path in sorted(files) for data in [reader.read(files[path], range_bytes)]
        }
        for name, files in captures.items()
    }
    moments = {
        name: max((i.moment_ms for i in inputs.values() if i.moment_ms is not None), default=None)
        for name, inputs in read.items()
    }
    names = sorted(moments, key=lambda name: (moments[name] is not None, moments[name] or 0, name))
    behind = reversed(names[: names.index(judged or names[-1]) + 1])
    return [Item(data, rank) for rank, n in enumerate(behind) for data in read[n].values()]


def _section_rows(item: Item) -> Iterator[Row]:
    """As `Evidence.sections`: a section's end is proven where the next one really begins."""
    planned = item.input.planned
    proven = [section.is_start_proven for section in planned.sections[1:]] + [True]
    problems = [None] * (len(planned.sections) - 1) + [planned.problem]
    of_input = {"input_id": planned.input_id, "capture_rank": item.rank}
    for section, is_end_proven, problem in zip(planned.sections, proven, problems, strict=True):
        of_section = {"section_index": section.index, "is_end_proven": is_end_proven, "input_problem": problem}
        yield asdict(section) | of_input | of_section


def _state_rows(item: Item) -> Iterator[Row]:
    ranked = {"capture_rank": item.rank, "input_moment_ms": item.input.moment_ms}
    return (row | ranked for row in item.input.records if "transactional_id" in row)


def _seen_to_ms(history: History) -> dict[int, int]:
    seen: dict[int, int] = {}
    for row in history.records:
        number, hashed, updated_ms = row["state_partition"], row["transactional_id_hash"], row["last_update_ms"]
        if number is None and hashed is not None:
            number = state_partition(hashed, history.placing.partition_count)
        if number is not None and updated_ms is not None:
            seen[number] = max(updated_ms, seen.get(number, 0))
    return seen
