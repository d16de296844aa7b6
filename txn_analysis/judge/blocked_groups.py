"""The consumer groups behind an open transaction in `__consumer_offsets`: who waits for it, and who shares its log.

A list of names is whole, or it is not known: where a record that could name one more group was not read, there is none.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from txn_analysis.columns.arrays import by_key, is_in
from txn_analysis.columns.values import BatchFunction
from txn_analysis.kafka.names import GROUP_TOPIC, LOG
from txn_analysis.tables import GROUP_OFFSETS, Transaction
from txn_analysis.tables.inputs import InputSection
from txn_analysis.tables.schema import given_schema

_SECTION = ("input_id", "section_index")
_STRETCH = (*_SECTION, "text_start_bytes", "text_end_bytes")
_KEY = ("audit", "partition", "group_id", "producer_id", *_STRETCH)
OFFSETS = pa.schema([f.with_nullable(True) for f in given_schema(GROUP_OFFSETS, *_KEY[1:], "last_offset")])
"""One row is a stretch of text in which all groups were read; or a group with offsets of an open producer, or of any
other, and names neither that one nor its stretch."""

_Span = tuple[int, int]  # offsets, or bytes of a text: the first one, and the one after the last

_BEHIND_ALL = 2**63
_PARTITION = attrgetter("partition")


class Groups(NamedTuple):
    """The groups of one partition, sorted; None where not all of them are known.

    Pending groups have offsets in an open transaction, which nobody can fetch until it ends (UNSTABLE_OFFSET_COMMIT);
    waiting groups share the partition, whose compaction stands still.
    """

    pending_groups: tuple[str, ...] | None = None
    waiting_groups: tuple[str, ...] | None = None


class ReadStretch(NamedTuple):
    """A stretch of a file's text in which the groups of all records were read: a row of `group_offsets` without one."""

    input_id: str
    section_index: int
    partition: int
    text_start_bytes: int
    text_end_bytes: int


class GroupCommit(NamedTuple):
    """A row of `group_offsets` with a group: the last offset of a batch in which a producer committed for it."""

    partition: int
    group_id: str
    producer_id: int | None
    last_offset: int


class GroupOffsets(NamedTuple):
    """What was read of the groups in some files of `__consumer_offsets`."""

    stretches: tuple[ReadStretch, ...] = ()
    commits: tuple[GroupCommit, ...] = ()

    @classmethod
    def of(cls, rows: Iterable[Mapping[str, Any]]) -> GroupOffsets:
        """Rows of the table `group_offsets`; those with a group may be summed up, and name no file then."""
        every = list(rows)
        return cls(
            tuple(ReadStretch._make(map(row.get, ReadStretch._fields)) for row in every if row["group_id"] is None),
            tuple(GroupCommit._make(map(row.get, GroupCommit._fields)) for row in every if row["group_id"] is not None),
        )


def of_sections(sections: Collection[tuple[str, int]], producers: Collection[int]) -> BatchFunction:
    """Of rows of `group_offsets` those of some sections, summed up with regard to some producers."""
    asked = pa.array(sorted(producers), pa.int64())

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            rows = batch.filter(pa.array(is_in(batch, _SECTION, sections)))
            is_stretch, is_asked = pc.is_null(rows["group_id"]), pc.is_in(rows["producer_id"], asked)
            kept = dict.fromkeys(_STRETCH, is_stretch) | {"producer_id": is_asked}
            columns = [
                pc.if_else(kept[f.name], rows[f.name], pa.scalar(None, f.type)) if f.name in kept else rows[f.name]
                for f in OFFSETS
            ]
            yield from _summed_up(pa.table(columns, OFFSETS.names)).to_batches()

    return run


def sum_step(tables: Mapping[str, pa.Table]) -> pa.Table:
    """By partition and group, of `offsets`: each once, with its last offset."""
    return _summed_up(tables["offsets"])


def _summed_up(rows: pa.Table) -> pa.Table:
    grouped = rows.group_by([*_KEY]).aggregate([("last_offset", "max")])
    return pa.table([grouped[name] for name in (*_KEY, "last_offset_max")], OFFSETS.names).cast(OFFSETS)


def group_files(sections: Iterable[InputSection]) -> list[InputSection]:
    """The files of `__consumer_offsets` among all sections of the evidence."""
    return [section for section in sections if section.kind == LOG and section.topic == GROUP_TOPIC]


def _covered_from(file: InputSection) -> int:
    """The offset in its name: it holds all that is left from there on, even if compaction took its start."""
    return file.file_base_offset if file.first_offset is None else min(file.file_base_offset, file.first_offset)


def files_that_count(files: Iterable[InputSection], partitions: Iterable[int]) -> list[InputSection]:
    """The files of some partitions of `__consumer_offsets` that say which groups are there.

    Those of the judged capture, and of an earlier one what begins before all newer captures' files: what compaction
    has removed since is gone.

    Args:
        files: every one of the evidence.
        partitions: the partitions that are asked about.
    """
    of_partition = by_key(files, _PARTITION)
    counting: list[InputSection] = []
    for partition in sorted(set(partitions)):
        begin = _BEHIND_ALL
        newest_first = sorted(of_partition[partition], key=attrgetter("capture_rank"))
        for _, copies in groupby(newest_first, key=attrgetter("capture_rank")):
            before = [file for file in copies if _covered_from(file) < begin]
            begin = min([begin, *map(_covered_from, before)])
            counting += before
    return counting


def blocked_groups(
    opened: Iterable[Transaction], files: Iterable[InputSection], offsets: GroupOffsets
) -> dict[int, Groups]:
    """By partition of `__consumer_offsets`, the groups behind its open transactions.

    Args:
        opened: the open transactions of that topic.
        files: the files of their partitions that count.
        offsets: what was read of the groups in these files; of commits the last offset of each partition, group and
            open producer is enough.
    """
    files_of, stretches, commits = (
        by_key(files, _PARTITION),
        by_key(offsets.stretches, _PARTITION),
        by_key(offsets.commits, _PARTITION),
    )
    return {
        partition: _groups(transactions, files_of[partition], stretches[partition], commits[partition])
        for partition, transactions in by_key(opened, _PARTITION).items()
    }


def _groups(
    opened: list[Transaction], files: list[InputSection], stretches: list[ReadStretch], commits: list[GroupCommit]
) -> Groups:
    """The answer for one partition."""
    if not _is_known(opened, files, stretches):
        return Groups()
    starts = {transaction.producer_id: transaction.txn_start_offset for transaction in opened}
    pending = {
        commit.group_id
        for commit in commits
        if commit.producer_id in starts and commit.last_offset >= starts[commit.producer_id]
    }
    waiting = {commit.group_id for commit in commits} - pending
    return Groups(tuple(sorted(pending)), tuple(sorted(waiting)))


def _is_known(opened: list[Transaction], files: list[InputSection], stretches: list[ReadStretch]) -> bool:
    """The groups of every record were read: of all files, or of others with the same offsets; none is missing.

    From the first open start on no offset may be in no file, as compaction never passes it.
    """
    texts: defaultdict[tuple[str, int], list[_Span]] = defaultdict(list)
    for one in stretches:
        texts[one.input_id, one.section_index].append((one.text_start_bytes, one.text_end_bytes))
    read: list[InputSection] = []
    unread: list[InputSection] = []
    for file in files:
        (read if _is_tiled(file, texts[file.input_id, file.section_index]) else unread).append(file)
    end_offsets = [file.end_offset for file in files if file.end_offset is not None]
    needed = [(f.first_offset, f.end_offset) for f in unread if f.first_offset is not None and f.end_offset is not None]
    if not end_offsets or len(needed) < len(unread):
        return False
    known = sorted((_covered_from(file), file.end_offset) for file in read if file.end_offset is not None)
    needed.append((min(transaction.txn_start_offset for transaction in opened), max(end_offsets)))
    is_exact = all(transaction.is_txn_start_exact for transaction in opened)
    return is_exact and all(_covers(known, span) for span in needed)


def _is_tiled(file: InputSection, texts: Iterable[_Span]) -> bool:
    """Stretches of text make up the whole body of a file."""
    at = file.text_start_bytes
    for start, end in sorted(texts):
        if start != at:
            return False
        at = end
    return at == file.text_end_bytes


def _covers(known: Sequence[_Span], span: _Span) -> bool:
    """Some spans, in order, leave nothing of another one out."""
    at, end = span
    for first, stop in known:
        if first <= at:
            at = max(at, stop)
    return at >= end
