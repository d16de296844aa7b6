"""What age took out of a warehouse: how it is written down and done, and what an audit that runs meanwhile must see.

A prune is done in three steps, and each can be killed anywhere and done again. First its row of `prunes` says what
goes; then the rows go with which it counted, those of `runs` and `inputs` (decision 0005). Not before a grace period
has passed are the other rows deleted, which an audit or a question that began before may still read; and their files
only once as long has passed again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import pyarrow as pa

from txn_analysis.columns.records import batch_of
from txn_analysis.errors import WarehouseError
from txn_analysis.tables import ALL_TABLES, ENDED_TRANSACTIONS, INPUTS, PRUNES, RUNS, Prune, Table
from txn_analysis.tables.keeping import TakenContent
from txn_analysis.text import clip
from txn_analysis.warehouse.delta_tables import Warehouse
from txn_analysis.warehouse.rows import Size, without

_OF_INGESTS = tuple(table for table in ALL_TABLES if "ingest_id" in table.partition_by)
_OF_RUNS = tuple(table for table in ALL_TABLES if "run_id" in table.partition_by)


class TakenInput(NamedTuple):
    """A file of a capture that goes, by the key of `inputs`."""

    cluster: str
    capture: str
    input_id: str


_READ: WeakKeyDictionary[Warehouse, tuple[int, tuple[Prune, ...]]] = WeakKeyDictionary()


def prunes_of(warehouse: Warehouse, cluster: str | None = None) -> list[Prune]:
    """What was pruned of a cluster, or of all, oldest first.

    An audit asks six times, each time for what is there now; the rows are read once for each version of the table.
    """
    if not warehouse.has(PRUNES):
        return []
    version = warehouse.versions([PRUNES])[PRUNES.name]
    version_read, prunes = _READ.get(warehouse, (None, ()))
    if version_read != version:
        every = warehouse.records(Prune, PRUNES)
        prunes = tuple(sorted(every, key=lambda prune: (prune.pruned_ms, prune.prune_id)))
        _READ[warehouse] = version, prunes
    return [prune for prune in prunes if cluster is None or prune.cluster == cluster]


def take(warehouse: Warehouse, prune: Prune, inputs: Sequence[TakenInput]) -> None:
    """Write a prune down, and take out the rows with which runs and files of captures count.

    Raises:
        WarehouseError: the warehouse cannot be written, or others were faster every time.
    """
    row = batch_of(Prune, [prune], PRUNES.arrow_schema)
    warehouse.insert(PRUNES, partial(without, row), "prune_id")
    if prune.runs:
        warehouse.revise(RUNS, partial(without, keys=_keys(RUNS, run_id=prune.runs)))
    if inputs:
        columns = zip(*inputs, strict=True)
        captured = dict(zip(TakenInput._fields, columns, strict=True))
        warehouse.revise(INPUTS, partial(without, keys=_keys(INPUTS, **captured)))


def clear(warehouse: Warehouse, now_ms: int) -> Size:
    """Delete the rows that prunes took so long ago that nobody reads them any more; what went.

    Of content and runs that somebody read or judged again since, nothing is deleted.

    Raises:
        WarehouseError: as of `take`.
    """
    prunes, cleared = prunes_of(warehouse), Size()
    for prune in prunes:
        if prune.cleared_ms is None and prune.clear_from_ms <= now_ms:
            younger = [one for one in prunes if one.clear_from_ms > now_ms]
            for table, keys in _left(warehouse, prune, younger):
                cleared = cleared.plus(warehouse.remove(table, keys))
            done = batch_of(Prune, [prune._replace(cleared_ms=now_ms)], PRUNES.arrow_schema)
            warehouse.replace([done], PRUNES, prune_id=prune.prune_id)
    return cleared


def _left(warehouse: Warehouse, prune: Prune, younger: Iterable[Prune]) -> Iterator[tuple[Table, pa.Table]]:
    """The rows of a prune that count for nothing still: tables, each with the keys of the rows."""
    runs = set(prune.runs) - {*warehouse.rows(RUNS, "run_id")["run_id"].to_pylist()}
    named = {*warehouse.records(TakenContent, INPUTS)}
    contents = set(prune.contents) - named
    for other in younger:
        runs, contents = runs - set(other.runs), contents - set(other.contents)
    yield from keys_of(runs, contents, {content.ingest_id for content in named})


def keys_of(
    runs: Collection[str], contents: Collection[TakenContent], ingests: Collection[str]
) -> Iterator[tuple[Table, pa.Table]]:
    """The rows of some runs and of some content: tables, each with keys of the rows.

    Args:
        runs: by id.
        contents: what was read.
        ingests: those that read other content as well, which stays.
    """
    for table in _OF_RUNS if runs else ():
        yield table, _keys(table, run_id=sorted(runs))
    if runs:
        yield ENDED_TRANSACTIONS, _keys(ENDED_TRANSACTIONS, ingest_id=sorted(runs))
    whole = sorted({content.ingest_id for content in contents} - {*ingests})
    parts = sorted(content for content in contents if content.ingest_id in ingests)
    for table in _OF_INGESTS:
        if whole:
            yield table, _keys(table, ingest_id=whole)
        if parts:
            columns = dict(zip(TakenContent._fields, zip(*parts, strict=True), strict=True))
            yield table, _keys(table, **columns)


def _keys(table: Table, **values: Sequence[Any]) -> pa.Table:
    return pa.table({name: pa.array([*column], table.arrow_schema.field(name).type) for name, column in values.items()})


def check_content(warehouse: Warehouse, contents: Collection[TakenContent]) -> None:
    """Refuse to name content that an audit found in the warehouse, and that a prune took meanwhile.

    Its rows may be deleted soon. State that is named and missing would make strangers of its producers.

    Args:
        warehouse: that the content is in.
        contents: what an earlier ingest read, and a capture is about to name.

    Raises:
        WarehouseError: some of it was taken, and no capture has it.
    """
    prunes = prunes_of(warehouse) if contents else []
    pruned = {content: prune for prune in prunes for content in prune.contents if content in contents}
    if pruned.keys() - {*warehouse.records(TakenContent, INPUTS)}:
        raise _pruned_meanwhile(warehouse, next(iter(pruned.values())))


def check_evidence(warehouse: Warehouse, contents: Collection[TakenContent], now_ms: int) -> None:
    """Refuse to complete a run whose evidence a prune has taken so long ago that its rows may be deleted already.

    Raises:
        WarehouseError: that is so.
    """
    due = [prune for prune in prunes_of(warehouse) if prune.clear_from_ms <= now_ms]
    pruned = {content: prune for prune in due for content in prune.contents if content in contents}
    if pruned.keys() - ({*warehouse.records(TakenContent, INPUTS)} if pruned else set()):
        raise _pruned_meanwhile(warehouse, next(iter(pruned.values())))


def check_order(warehouse: Warehouse, cluster: str, capture: str, moment_ms: int | None) -> None:
    """Refuse to judge a capture that is older than the one by which a prune decided what nothing newer needs.

    That one is not behind it: what it showed ended would be neither open nor ended here.

    Raises:
        WarehouseError: a prune knew a newer capture.
    """
    for prune in prunes_of(warehouse, cluster):
        newest_ms = prune.newest_moment_ms if prune.captures else None
        if newest_ms is not None and (moment_ms is None or moment_ms < newest_ms):
            newer = f"the newest one when {prune.prune_id} took what lay behind it"
            what = f"capture {clip(capture, 80)} is older than {newer}"
            raise WarehouseError(f"{warehouse.root}: {what}. Audit its files into a --warehouse of its own")


def _pruned_meanwhile(warehouse: Warehouse, prune: Prune) -> WarehouseError:
    what = f"{prune.prune_id} took files of captures that this audit had found here"
    return WarehouseError(f"{warehouse.root}: {what}. Run the same command again")


def unpruned_name(warehouse: Warehouse, name: str) -> str:
    """What a run or an ingest is called that may have been pruned before: made again, it has a name of its own.

    The rows of the old one may be deleted at any moment.
    """
    prunes = prunes_of(warehouse)
    pruned_names = {run for prune in prunes for run in prune.runs}
    pruned_names |= {content.ingest_id for prune in prunes for content in prune.contents}
    if name in pruned_names:
        pruned_names -= {*warehouse.rows(RUNS, "run_id", run_id=[name])["run_id"].to_pylist()}
    while name in pruned_names:
        name = f"{name}-again"
    return name
