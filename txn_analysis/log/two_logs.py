"""Files of one partition's name that are of two logs, and what looks like the files of two clusters.

Brokers of two clusters number their partitions alike, and a topic that was deleted and created again has the same
partitions. Copies of one log can contradict each other too (an unclean election), but only after offsets at which they
agree. That there are two clusters is reported and decides no verdict: a log that contradicts itself is not whole
already, and its transactions stay inconclusive.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, takewhile
from pathlib import PurePosixPath
from typing import NamedTuple

from txn_analysis.kafka.names import CLUSTER_ID, LOG_KINDS
from txn_analysis.tables import TwoLogs
from txn_analysis.tables.inputs import InputSection


def two_logs_of(a: InputSection, b: InputSection) -> TwoLogs:
    """Two files of two logs: the one of the newer capture first, else by path."""
    first, second = sorted((a, b), key=lambda section: (section.capture_rank, section.shown_path))
    return TwoLogs(first.shown_path, first.capture_rank, second.shown_path, second.capture_rank)


def of_another_topic(sections: Iterable[InputSection], first_other_rank: int) -> tuple[TwoLogs, ...]:
    """A file of the judged partition, and one of a capture that holds another topic of the same name; empty without."""
    logs = sorted((s for s in sections if s.kind in LOG_KINDS), key=lambda s: (s.capture_rank, s.shown_path))
    of_topic = [section for section in logs if section.capture_rank < first_other_rank]
    others = [section for section in logs if section.capture_rank >= first_other_rank]
    return (two_logs_of(of_topic[0], others[0]),) if of_topic and others else ()


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
    logs_of: Mapping[Place, Sequence[TwoLogs]], sections: Sequence[InputSection], captures: Sequence[str]
) -> TwoClusters | None:
    """What looks like two clusters in some evidence; None where nothing does.

    Args:
        logs_of: by partition, its files that are of two logs.
        sections: all of the evidence.
        captures: by rank; the first one is judged.
    """
    return _in_one_capture(logs_of, sections) or _in_two_captures(logs_of, sections, captures)


def _in_one_capture(logs_of: Mapping[Place, Sequence[TwoLogs]], sections: Sequence[InputSection]) -> TwoClusters | None:
    within = {
        place: [t for t in logs if t.capture_rank == t.other_capture_rank == 0] for place, logs in logs_of.items()
    }
    ids = _folders_by_cluster(s for s in sections if s.capture_rank == 0)
    sides: tuple[tuple[str, ...], ...] | None = tuple(map(tuple, map(sorted, ids.values()))) if len(ids) > 1 else None
    sides = sides or _sides(chain.from_iterable(within.values()))
    if sides is None:
        return None
    sides_with: defaultdict[Place, set[int]] = defaultdict(set)
    for one in sections:
        if one.capture_rank == 0 and _has_batches(one):
            sides_with[one.topic, one.partition] |= {
                n for n, side in enumerate(sides) if _is_below(one.shown_path, side)
            }
    shared = sum(len(numbers) > 1 for numbers in sides_with.values())
    differing = sum(bool(logs) and len(sides_with[place]) > 1 for place, logs in within.items())
    cluster_ids = tuple(sorted(ids)) if len(ids) > 1 else ()
    return (
        TwoClusters(sides, None, differing, shared, cluster_ids)
        if cluster_ids or _are_nearly_all(differing, shared)
        else None
    )


def _in_two_captures(
    logs_of: Mapping[Place, Sequence[TwoLogs]], sections: Sequence[InputSection], captures: Sequence[str]
) -> TwoClusters | None:
    places: defaultdict[int, set[Place]] = defaultdict(set)
    for one in filter(_has_batches, sections):
        places[one.capture_rank].add((one.topic, one.partition))
    ids = {rank: _folders_by_cluster(s for s in sections if s.capture_rank == rank).keys() for rank in {0, *places}}
    for rank in sorted(places.keys() - {0}):
        across = [[t for t in logs if (t.capture_rank, t.other_capture_rank) == (0, rank)] for logs in logs_of.values()]
        differing = sum(map(bool, across))
        shared = len(places[0] & places[rank])
        cluster_ids = ids[0] ^ ids[rank] if ids[0] and ids[rank] and not ids[0] & ids[rank] else set()
        if cluster_ids or _are_nearly_all(differing, shared):
            parted = {_apart(t.path, t.other_path) for t in chain.from_iterable(across)}
            sides = tuple(tuple(sorted(folders)) for folders in map(set, zip(*parted, strict=True)))
            return TwoClusters(sides, captures[rank], differing, shared, tuple(sorted(cluster_ids)))
    return None


def _are_nearly_all(differing: int, shared: int) -> bool:
    return differing >= _LEAST_PARTITIONS and differing >= _LEAST_SHARE * shared


def _has_batches(section: InputSection) -> bool:
    return section.kind in LOG_KINDS and section.first_offset is not None


def _folders_by_cluster(sections: Iterable[InputSection]) -> dict[str, set[str]]:
    """By `cluster.id` the log directories whose `meta.properties` state it."""
    folders: defaultdict[str, set[str]] = defaultdict(set)
    for section in sections:
        if section.kind == CLUSTER_ID and section.stated is not None:
            folders[section.stated].add(str(PurePosixPath(section.shown_path).parent))
    return folders


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
    # What stands in front of the first slash of an absolute path is no name.
    one, other = ["/".join(names[: common + 1]) or "/".join(names[:2]) for names in (parts, other_parts)]
    return one, other
