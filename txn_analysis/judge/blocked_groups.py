"""The consumer groups behind an open transaction in `__consumer_offsets`: who waits for it, and who shares its log.

A list of names is whole, or it is not known: where a record that could name one more group was not read, there is none.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

from txn_analysis.kafka.sections import LOG
from txn_analysis.kafka.topics import GROUP_TOPIC

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from txn_analysis.kafka.transactions import OpenTransaction

Row = dict[str, Any]
_Span = tuple[int, int]  # offsets, or bytes of a text: the first one, and the one after the last

_NO_OFFSET = 2**63  # behind all of them


class Groups(NamedTuple):
    """The groups of one partition, sorted; None where not all of them are known.

    Pending groups have offsets in an open transaction, which nobody can fetch until it ends (UNSTABLE_OFFSET_COMMIT);
    waiting groups share the partition, whose compaction stands still.
    """

    pending_groups: tuple[str, ...] | None = None
    waiting_groups: tuple[str, ...] | None = None


def sections_that_count(section_rows: Iterable[Row], partitions: Iterable[int]) -> list[Row]:
    """The files of some partitions of `__consumer_offsets` that say which groups are there.

    Those of the judged capture, and of an earlier one what begins before all newer captures' files: what compaction
    has removed since is gone.

    Args:
        section_rows: rows of `Evidence.section_rows`.
        partitions: the partitions that are asked about.
    """
    own = [row for row in section_rows if row["kind"] == LOG and row["topic"] == GROUP_TOPIC]
    found = []
    for partition in sorted(set(partitions)):
        begin = _NO_OFFSET
        of_partition = (row for row in own if row["partition"] == partition)
        for _, rows in groupby(sorted(of_partition, key=_capture_rank), key=_capture_rank):
            before = [row for row in rows if _covered_from(row) < begin]
            begin = min([begin, *map(_covered_from, before)])
            found += before
    return found


def of_sections(rows: Iterable[Row], sections: Iterable[Row]) -> list[Row]:
    """The rows of `group_offsets` that are of some files."""
    own = {(section["input_id"], section["section_index"]) for section in sections}
    return [row for row in rows if (row["input_id"], row["section_index"]) in own]


def _capture_rank(section: Row) -> int:
    return int(section["capture_rank"])


def blocked_groups(
    opened: Iterable[OpenTransaction], sections: Iterable[Row], group_offsets: Iterable[Row]
) -> dict[int, Groups]:
    """By partition of `__consumer_offsets`, the groups behind its open transactions.

    Args:
        opened: the open transactions of that topic.
        sections: the files of their partitions that count.
        group_offsets: rows of the table `group_offsets` of these files. Of rows with a group the last offset of each
            partition, group and open producer is enough.
    """
    of_partition: defaultdict[int, list[OpenTransaction]] = defaultdict(list)
    for transaction in opened:
        of_partition[transaction.partition].append(transaction)
    files, rows = _by_partition(sections), _by_partition(group_offsets)
    return {
        partition: _groups(transactions, files[partition], rows[partition])
        for partition, transactions in of_partition.items()
    }


def _by_partition(rows: Iterable[Row]) -> defaultdict[int, list[Row]]:
    found: defaultdict[int, list[Row]] = defaultdict(list)
    for row in rows:
        found[row["partition"]].append(row)
    return found


def _groups(opened: list[OpenTransaction], sections: list[Row], rows: list[Row]) -> Groups:
    """The answer for one partition."""
    if not _is_known(opened, sections, [row for row in rows if row["group_id"] is None]):
        return Groups()
    starts = {transaction.producer_id: transaction.txn_start_offset for transaction in opened}
    commits = [row for row in rows if row["group_id"] is not None]
    pending = {
        row["group_id"]
        for row in commits
        if row["producer_id"] in starts and row["last_offset"] >= starts[row["producer_id"]]
    }
    waiting = {row["group_id"] for row in commits} - pending
    return Groups(tuple(sorted(pending)), tuple(sorted(waiting)))


def _is_known(opened: list[OpenTransaction], sections: list[Row], stretches: list[Row]) -> bool:
    """The groups of every record were read: of all files, or of others with the same offsets; none is missing.

    From the first open start on no offset may be in no file, as compaction never passes it.
    """
    texts: defaultdict[Any, list[_Span]] = defaultdict(list)
    for row in stretches:
        texts[row["input_id"], row["section_index"]].append((row["text_start_bytes"], row["text_end_bytes"]))
    read: list[Row] = []
    unread: list[Row] = []
    for section in sections:
        is_read = _is_tiled(section, texts[section["input_id"], section["section_index"]])
        (read if is_read else unread).append(section)
    end_offsets = [section["end_offset"] for section in sections if section["end_offset"] is not None]
    if not end_offsets or any(section["end_offset"] is None for section in unread):
        return False
    known = sorted((_covered_from(s), s["end_offset"]) for s in read if s["end_offset"] is not None)
    needed = [(section["first_offset"], section["end_offset"]) for section in unread]
    needed.append((min(transaction.txn_start_offset for transaction in opened), max(end_offsets)))
    return all(transaction.is_txn_start_exact for transaction in opened) and all(
        _covers(known, span) for span in needed
    )


def _covered_from(section: Row) -> int:
    """The offset in a file's name: it holds all that is left from there on, even if compaction took its start."""
    base: int = section["file_base_offset"]
    return base if section["first_offset"] is None else min(base, section["first_offset"])


def _is_tiled(section: Row, texts: Iterable[_Span]) -> bool:
    """Stretches of text make up the whole body of a section."""
    at = section["text_start_bytes"]
    for start, end in sorted(texts):
        if start != at:
            return False
        at = end
    return bool(at == section["text_end_bytes"])


def _covers(known: Sequence[_Span], span: _Span) -> bool:
    """Some spans, in order, leave nothing of another one out."""
    at, end = span
    for first, stop in known:
        if first <= at:
            at = max(at, stop)
    return at >= end
