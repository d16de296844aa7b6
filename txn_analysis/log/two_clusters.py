"""Files of two clusters under one name: nearly all of their partitions are of two logs, or the ids of clusters differ.

It is said, and judges nothing: what contradicts itself is not whole already, and keeps its answers inconclusive.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import chain, takewhile
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, NamedTuple

from txn_analysis.kafka.sections import CLUSTER_ID, LOG_KINDS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from txn_analysis.log.two_logs import TwoLogs

Place = tuple[str, int]
Sides = tuple[tuple[str, ...], tuple[str, ...]]

_LEAST_PARTITIONS = 2
_LEAST_SHARE = 0.75


class TwoClusters(NamedTuple):
    """What looks like two clusters.

    `sides` are their folders, or files where they lie in one folder; those of the judged capture first where they are
    of two captures, and `other_capture` is then the earlier one. Of `shared_count` partitions that both have,
    `partition_count` are of two logs; both are 0 where only ids of clusters tell. `cluster_ids` are those, if they
    differ.
    """

    sides: tuple[tuple[str, ...], ...]
    other_capture: str | None
    partition_count: int
    shared_count: int
    cluster_ids: tuple[str, ...]


def two_clusters(
    found: Mapping[Place, Sequence[TwoLogs]], sections: Iterable[Mapping[str, Any]], captures: Sequence[str]
) -> TwoClusters | None:
    """What looks like two clusters in some evidence; None where nothing does.

    Args:
        found: by partition, its files that are of two logs.
        sections: rows of `Evidence.section_rows`.
        captures: by rank; the first one is judged.
    """
    rows = list(sections)
    return _in_one_capture(found, rows) or _in_two_captures(found, rows, captures)


def _in_one_capture(found: Mapping[Place, Sequence[TwoLogs]], rows: Sequence[Mapping[str, Any]]) -> TwoClusters | None:
    own = {place: [t for t in logs if t.capture_rank == t.other_capture_rank == 0] for place, logs in found.items()}
    ids = _folders_by_cluster(row for row in rows if row["capture_rank"] == 0)
    sides: tuple[tuple[str, ...], ...] | None = tuple(map(tuple, map(sorted, ids.values()))) if len(ids) > 1 else None
    sides = sides or _sides(chain.from_iterable(own.values()))
    if sides is None:
        return None
    held: defaultdict[Place, set[int]] = defaultdict(set)
    for row in rows:
        if row["capture_rank"] == 0 and _has_batches(row):
            held[row["topic"], row["partition"]] |= {n for n, side in enumerate(sides) if _is_below(row["path"], side)}
    shared = sum(len(numbers) > 1 for numbers in held.values())
    differing = sum(bool(logs) for logs in own.values())
    told = tuple(sorted(ids)) if len(ids) > 1 else ()
    return TwoClusters(sides, None, differing, shared, told) if told or _are_nearly_all(differing, shared) else None


def _in_two_captures(
    found: Mapping[Place, Sequence[TwoLogs]], rows: Sequence[Mapping[str, Any]], captures: Sequence[str]
) -> TwoClusters | None:
    held: defaultdict[int, set[Place]] = defaultdict(set)
    for row in filter(_has_batches, rows):
        held[row["capture_rank"]].add((row["topic"], row["partition"]))
    ids = {rank: _folders_by_cluster(row for row in rows if row["capture_rank"] == rank).keys() for rank in held}
    for rank in sorted(held.keys() - {0}):
        across = [[t for t in logs if (t.capture_rank, t.other_capture_rank) == (0, rank)] for logs in found.values()]
        differing = sum(map(bool, across))
        shared = len(held[0] & held[rank])
        told = ids[0] ^ ids[rank] if ids[0] and ids[rank] and not ids[0] & ids[rank] else set()
        if told or _are_nearly_all(differing, shared):
            parted = {_apart(t.path, t.other_path) for t in chain.from_iterable(across)}
            sides = tuple(tuple(sorted(folders)) for folders in map(set, zip(*parted, strict=True)))
            return TwoClusters(sides, captures[rank], differing, shared, tuple(sorted(told)))
    return None


def _are_nearly_all(differing: int, shared: int) -> bool:
    return differing >= _LEAST_PARTITIONS and differing >= _LEAST_SHARE * shared


def _has_batches(row: Mapping[str, Any]) -> bool:
    return row["kind"] in LOG_KINDS and row["first_offset"] is not None


def _folders_by_cluster(rows: Iterable[Mapping[str, Any]]) -> dict[str, set[str]]:
    """By `cluster.id` the log directories whose `meta.properties` state it."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for row in rows:
        if row["kind"] == CLUSTER_ID:
            found[row["stated"]].add(str(PurePosixPath(row["path"]).parent))
    return found


def _is_below(path: str, folders: Iterable[str]) -> bool:
    return any(path == folder or path.startswith(f"{folder}/") or folder == "." for folder in folders)


def _sides(pairs: Iterable[TwoLogs]) -> Sides | None:
    """The folders of two clusters, as the pairs tell them apart; None where they do not."""
    beside: defaultdict[str, set[str]] = defaultdict(set)
    for pair in pairs:
        one, other = _apart(pair.path, pair.other_path)
        beside[one].add(other)
        beside[other].add(one)
    side_of: dict[str, int] = {}
    for first in sorted(beside):
        waiting = [] if first in side_of else [(first, 0)]
        while waiting:
            folder, side = waiting.pop()
            if side_of.setdefault(folder, side) != side:
                return None
            waiting += [(other, 1 - side) for other in beside[folder] if other not in side_of]
    if any(side_of[other] == side for folder, side in side_of.items() for other in beside[folder]):
        return None
    sides = [tuple(f for f in sorted(side_of) if side_of[f] == side) for side in (0, 1)]
    return (sides[0], sides[1]) if all(sides) else None


def _apart(path: str, other_path: str) -> tuple[str, str]:
    """The folders in which two paths part, or the files themselves."""
    parts, other_parts = path.split("/"), other_path.split("/")
    common = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(parts, other_parts, strict=False)))
    return "/".join(parts[: common + 1]), "/".join(other_parts[: common + 1])
