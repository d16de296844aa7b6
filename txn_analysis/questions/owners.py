"""Who it is: a consumer group, a transactional id or a producer id, where Kafka keeps it, and what blocks it.

A group lies in one partition of `__consumer_offsets`, an id in one of `__transaction_state`, each by the hash of its
name (`GroupMetadataManager.partitionFor`, `TransactionStateManager.partitionFor`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from operator import attrgetter, itemgetter
from typing import Annotated, Any, NamedTuple

from txn_analysis.columns.records import records_of
from txn_analysis.coordinator.history import History
from txn_analysis.coordinator.partition_count import DEFAULT_COUNT, IdSums
from txn_analysis.errors import ConfigError
from txn_analysis.judge.blocked_groups import files_that_count, group_files
from txn_analysis.kafka.names import GROUP_TOPIC, STATE_TOPIC, java_hash, positive_hash, state_partition
from txn_analysis.kafka.transactions import TOMBSTONE, StateRecord
from txn_analysis.questions.answers import last_producers
from txn_analysis.questions.filters import LOOK_FOR
from txn_analysis.report.model import InJson, Item
from txn_analysis.report.owner import Owner, owner_of
from txn_analysis.runs.ask import ask, is_one_of
from txn_analysis.runs.asked_states import histories, of_ids
from txn_analysis.runs.past_run import PastRun
from txn_analysis.runs.run_tables import RunTables
from txn_analysis.tables import FINDINGS
from txn_analysis.text import clip, listed

MOST_CHANGES = 60
_WIDTH = 80
_MOST_NAMED = 5
_NOT_NAMED = f"no record of {STATE_TOPIC}-{{}}, which would hold it, names it; the verb `list` shows all"


class Kind(StrEnum):
    """What is asked about."""

    GROUP = "group"
    TRANSACTIONAL_ID = "transactional_id"
    PRODUCER_ID = "producer_id"


class Blocks(StrEnum):
    """What open transactions in its partition of `__consumer_offsets` do to a group."""

    NOTHING = "nothing"  # none is open there
    COMPACTION = "compaction"  # its offsets can be fetched; only compaction of the partition stands still
    OFFSETS = "offsets"  # nobody can fetch its offsets until the transaction ends (UNSTABLE_OFFSET_COMMIT)
    UNKNOWN = "unknown"


class Change(NamedTuple):
    """One record of the coordinator: the id's state from `at_ms` on, by the broker's clock."""

    at_ms: int | None
    transactional_id: str
    state: str | None
    producer_id: int | None
    producer_epoch: int | None
    timeout_ms: int | None
    partitions: tuple[str, ...]


class Written(NamedTuple):
    """What a producer left at the end of one partition's log."""

    topic: str
    partition: int
    producer_id: int
    producer_epoch: int | None
    last_timestamp_ms: int | None
    txn_start_offset: int | None


class Opened(NamedTuple):
    """One open transaction, with its verdict; `blocks_partition`: it holds the last stable offset."""

    topic: str
    partition: int
    producer_id: int
    transactional_id: str | None
    txn_start_offset: int
    verdict: str
    rule: str
    blocks_partition: bool


class Committed(NamedTuple):
    """Offsets of a group that one producer committed; `producer_id` is None outside of transactions."""

    producer_id: int | None
    last_offset: int
    transactional_ids: tuple[str, ...]
    is_pending: bool


class OwnerAnswer(Item):
    """Who a group, a transactional id or a producer id is; None where the files do not say.

    `held_in` is the partition that keeps it, of a producer id that of its transactional id. `changes` are the last of
    `change_count` records of its transactional ids, oldest first. `written` is where its producers left data at the end
    of logs, `opened` what is open of it, or what is open in a group's partition. `commits` and `blocks` are of groups.
    `owners` are of its transactional ids: whose each looks, and how its transaction ends. Where `is_told` is false,
    `missing` says what would tell.
    """

    run_id: str
    kind: Kind
    name: str
    is_told: bool
    held_in: str | None
    transactional_ids: tuple[str, ...] = ()
    producer_ids: tuple[int, ...] = ()
    changes: tuple[Annotated[Change, InJson(Change)], ...] = ()
    change_count: int = 0
    written: tuple[Annotated[Written, InJson(Written)], ...] = ()
    opened: tuple[Annotated[Opened, InJson(Opened)], ...] = ()
    commits: tuple[Annotated[Committed, InJson(Committed)], ...] = ()
    blocks: Blocks | None = None
    owners: tuple[Annotated[Owner, InJson(Owner)], ...] = ()
    missing: tuple[str, ...] = ()


def who_is(tables: RunTables, kind: Kind, name: str | int) -> OwnerAnswer:
    """Who a group, a transactional id or a producer id is.

    Of an id: its partition of the state, its records, and what is open of it; of a producer id the same of the ids that
    have it, or had it, and where it wrote; of a group what blocks the offsets in its partition of `__consumer_offsets`.

    Raises:
        ConfigError: all was read that would hold it, and there is no such group, id or producer.
    """
    if kind is Kind.GROUP:
        return _who_is_group(tables.finished, str(name))
    run, asked = tables.finished, [name] if isinstance(name, int) else []  # producer ids
    known = histories(run, asked).get(asked[0], {}) if asked else of_ids(run, [str(name)])
    homes = sorted({_home(run, one, known.get(one, ())) for one in (known if asked else [str(name)])})
    records = sorted((r for history in known.values() for r in history), key=lambda r: r.moment_ms or 0)
    opened = _opened(run, **{kind.value: [name]})
    named = {one for record in records for one in record.producer_ids if one is not None}
    of_id = sorted(named | {one.producer_id for one in opened})
    producers = asked or of_id
    written = _written(tables, producers)
    missing = [*_missing_of_state(tables, known, homes or range(int(tables.run.coverage["expected"])), name)]
    if not (known or opened or missing or (written and asked)):
        what, there = ("producer", LOOK_FOR["producer"]) if asked else ("id", _NOT_NAMED.format(homes[0]))
        flag = kind.value.replace("_", "-")
        raise ConfigError(f"--{flag} {clip(str(name), _WIDTH)}: this run saw no such {what}; {there}")
    return OwnerAnswer(
        run_id=tables.run_id,
        kind=kind,
        name=str(name),
        is_told=not missing,
        held_in=f"{STATE_TOPIC}-{homes[0]}" if len(homes) == 1 else None,
        missing=tuple(missing),
        transactional_ids=tuple(sorted(known)),
        producer_ids=tuple(producers),
        changes=tuple(map(_change, records[-MOST_CHANGES:])),
        change_count=len(records),
        written=tuple(written),
        opened=tuple(opened),
        owners=tuple(
            owner_of(name, history, tables.as_of_ms, tables.connect_groups, max_timeout_ms=tables.max_timeout_ms)
            for name, history in sorted(known.items())
        ),
    )


def _change(record: StateRecord) -> Change:
    return Change(
        record.moment_ms,
        record.transactional_id,
        TOMBSTONE if record.is_tombstone else record.state,
        record.producer_id,
        record.producer_epoch,
        record.timeout_ms,
        tuple(f"{topic}-{partition}" for topic, partition in sorted(record.topic_partitions)),
    )


def _home(run: PastRun, transactional_id: str, history: Iterable[StateRecord]) -> int:
    """The partition of the state that holds an id: the one that it was read from, or that of its hash."""
    seen = (record.state_partition for record in history if record.state_partition is not None)
    return next(seen, state_partition(java_hash(transactional_id), run.placing.partition_count))


def _missing_of_state(
    tables: RunTables, known: dict[str, History], wanted: Iterable[int], name: str | int
) -> Iterator[str]:
    """Which of some partitions of the state have records that could not be decoded, or were not given whole."""
    parts = {p["partition"]: p for p in tables.run.coverage.get("partitions") or ()}
    wanted = [*wanted]
    may_be = [number for number in wanted if number in parts and parts[number].get("undecodable")]
    undecoded = _undecoded(tables.finished, known, may_be, name) if may_be else []
    if undecoded:
        yield f"could not be decoded: records in {_listed(undecoded)} that may be of it"
    whole = {number for number, part in parts.items() if part["is_seen"] and part["is_complete"]}
    lacking = [number for number in wanted if number not in {*whole, *undecoded}]
    if lacking and not known:
        yield f"not given, or not whole: {_listed(lacking)}. The records that say whose it is may be there"


def _undecoded(run: PastRun, known: dict[str, History], partitions: list[int], name: str | int) -> list[int]:
    """Those partitions that have undecodable records which may be its: of its id and newer, or of no id that is known.

    Of a producer id without a transactional id that is any of them.
    """
    if not known and isinstance(name, int):
        return partitions
    hidden = [one for one, history in known.items() if history[-1].is_hidden] if known else [name]
    may_be = f"transactional_id IS NULL OR {is_one_of({'transactional_id': hidden})}"
    rows = ask(run, f"SELECT DISTINCT state_partition FROM transaction_states WHERE is_undecodable AND ({may_be})")  # noqa: S608 ours
    of_those = {*rows["state_partition"].to_pylist()}
    return [number for number in partitions if of_those & {number, None}]  # an export does not name it


def _listed(partitions: Iterable[int]) -> str:
    return listed([f"{STATE_TOPIC}-{number}" for number in partitions], _MOST_NAMED)


def _opened(run: PastRun, **one_of: Any) -> list[Opened]:
    opened = records_of(Opened, run.result_rows(FINDINGS, *Opened._fields, **one_of))
    return sorted(opened, key=attrgetter("topic", "partition", "txn_start_offset"))


def _written(tables: RunTables, producer_ids: Sequence[int]) -> list[Written]:
    rows = last_producers(tables.finished, producer_id=producer_ids)
    return records_of(Written, rows.select([*Written._fields]))


def _who_is_group(run: PastRun, group_id: str) -> OwnerAnswer:
    last = "SELECT `partition`, producer_id, max(last_offset) AS last_offset FROM group_offsets"
    of_it = f"{last} WHERE {is_one_of({'group_id': [group_id]})} GROUP BY `partition`, producer_id"
    rows, (partitions, basis) = ask(run, of_it).to_pylist(), _group_home(run, group_id)
    homes = sorted({row["partition"] for row in rows} or partitions)
    unread = [number for number in homes if not _is_read(run, number)]
    if not rows and homes and not unread:
        there = f"no record of {GROUP_TOPIC}-{homes[0]}, which would hold it, names it"
        raise ConfigError(f"--group {clip(group_id, _WIDTH)}: this run saw no such group; {there}")
    opened = [one for number in homes for one in _opened(run, topic=[GROUP_TOPIC], partition=[number])]
    commits = _commits(run, rows, opened) if rows else []
    blocks = _blocks(commits, opened, is_read=not unread, is_seen=bool(rows))
    what = "not all of its records were read: give its log, or a dump by kafka-dump-log --offsets-decoder"
    missing = [f"{GROUP_TOPIC}-{number}{basis if not rows else ''}: {what}" for number in unread]
    if not homes:
        missing.append(f"its groups do not say how many partitions {GROUP_TOPIC} has: which would hold it is not known")
    is_told = bool(rows) and blocks is not Blocks.UNKNOWN
    ids = sorted({name for commit in commits for name in commit.transactional_ids})
    return OwnerAnswer(
        run_id=run.run_id,
        kind=Kind.GROUP,
        name=group_id,
        is_told=is_told,
        held_in=f"{GROUP_TOPIC}-{homes[0]}" if len(homes) == 1 and (rows or not basis) else None,
        transactional_ids=tuple(ids),
        producer_ids=tuple(sorted({c.producer_id for c in commits if c.producer_id is not None})),
        opened=tuple(opened),
        commits=tuple(commits),
        blocks=blocks,
        missing=() if is_told else tuple(missing),
    )


def _group_home(run: PastRun, group_id: str) -> tuple[list[int], str]:
    """The partition that holds a group by the hash of its name, if one is known, and what is assumed.

    By how many partitions there are: the groups that were read tell, else Kafka's default if it fits them. The default
    is that of `offsets.topic.num.partitions`.
    """
    sums = IdSums(last_partition=max((f.partition for f in group_files(run.evidence.sections)), default=-1))
    groups = ask(run, "SELECT DISTINCT group_id, `partition` FROM group_offsets WHERE group_id IS NOT NULL")
    for name, partition in zip(*(column.to_pylist() for column in groups.columns), strict=True):
        sums = sums.plus(IdSums(1, abs(positive_hash(java_hash(name)) - partition), partition))
    hashed, fitting = positive_hash(java_hash(group_id)), sums.fitting()
    if len(fitting) == 1:
        return [hashed % fitting[0]], ""
    fits = DEFAULT_COUNT in fitting if fitting else sums.last_partition < DEFAULT_COUNT
    return ([hashed % DEFAULT_COUNT], f" (of {DEFAULT_COUNT})") if fits else ([], "")


def _is_read(run: PastRun, partition: int) -> bool:
    """The keys of all records of a partition of `__consumer_offsets` were read."""
    files = files_that_count(group_files(run.evidence.sections), [partition])
    read = f"""
        SELECT input_id, section_index, sum(text_end_bytes - text_start_bytes) AS size
        FROM (SELECT DISTINCT input_id, section_index, text_start_bytes, text_end_bytes FROM group_offsets
              WHERE group_id IS NULL AND `partition` = {partition}) ranges
        GROUP BY input_id, section_index
    """  # noqa: S608 ours
    sizes = {(row["input_id"], row["section_index"]): row["size"] for row in ask(run, read).to_pylist()}
    return bool(files) and all(
        sizes.get((file.input_id, file.section_index), 0) == file.text_end_bytes - file.text_start_bytes
        for file in files
    )


def _commits(run: PastRun, rows: Sequence[dict[str, Any]], opened: Sequence[Opened]) -> list[Committed]:
    """By producer, the last offset of a batch that holds offsets of the group; the last one first."""
    last = {row["producer_id"]: row["last_offset"] for row in sorted(rows, key=itemgetter("last_offset"))}
    starts = {one.producer_id: one.txn_start_offset for one in opened}
    known = histories(run, [producer for producer in last if producer is not None])
    return [
        Committed(producer, offset, tuple(sorted(known.get(producer, {}))), offset >= starts.get(producer, offset + 1))
        for producer, offset in reversed(last.items())
    ]


def _blocks(commits: Sequence[Committed], opened: Sequence[Opened], *, is_read: bool, is_seen: bool) -> Blocks:
    if any(commit.is_pending for commit in commits):
        return Blocks.OFFSETS
    if not is_seen or (opened and not is_read):
        return Blocks.UNKNOWN
    return Blocks.COMPACTION if opened else Blocks.NOTHING
