"""Records of the state are read once, by partition; what they say does not depend on where those of an id lie."""

from collections.abc import Collection
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from tests.tools.coordinator_rows import YESTERDAY, Row, state_row, states_of
from txn_analysis.columns.arrays import ABSENT, numbers
from txn_analysis.columns.records import records_of
from txn_analysis.columns.values import values_in
from txn_analysis.coordinator.chain import StateChain, chains_of
from txn_analysis.coordinator.history import History
from txn_analysis.coordinator.partition_count import StateCount
from txn_analysis.coordinator.sections import StateSums, sums_of_records
from txn_analysis.coordinator.state_records import (
    READ_STATES,
    READ_WITH,
    Placing,
    Placings,
    by_id,
    hashed_to,
    histories_in,
    histories_of,
)
from txn_analysis.coordinator.steps import OF_STATE, placed, state_step
from txn_analysis.engine.in_process import InProcess
from txn_analysis.kafka.transactions import StateRecord

PARTITIONS = 3
NAMES = "abcd"
OLD_PRODUCER = len(NAMES)  # as many ids had it as draw it
ABORTS = 2
AUDITS = (0, 1)
PLACINGS = Placings({n: Placing(StateCount(PARTITIONS, "given"), 0, None) for n in AUDITS})


@st.composite
def records(draw: st.DrawFn) -> Row:
    """One of any id, in any partition of the state, whichever its id hashes to; or in an export, or undecodable."""
    number, is_undecodable = draw(st.integers(0, len(NAMES) - 1)), draw(st.integers(0, 9)) == 0
    partition, offset = draw(st.one_of(st.none(), st.integers(0, PARTITIONS - 1))), draw(st.integers(0, 5))
    has_id = not is_undecodable or draw(st.booleans())
    return state_row(
        None if partition is None else offset,
        audit=draw(st.sampled_from(AUDITS)),
        rank=draw(st.sampled_from((0, YESTERDAY))),
        state=draw(st.sampled_from(("Empty", "Ongoing", "PrepareCommit", "CompleteCommit", "PrepareAbort"))),
        state_partition=partition,
        input_id="export" if partition is None else f"partition {partition}",
        ordinal=offset,
        last_update_ms=10 * offset,
        producer_id=number,
        previous_producer_id=draw(st.sampled_from((None, OLD_PRODUCER))),
        is_tombstone=draw(st.booleans()),
        is_undecodable=is_undecodable,
        transactional_id=NAMES[number] if has_id else None,
        transactional_id_hash=number if has_id else None,
    )


class Told(NamedTuple):
    """What the step says: histories, newest records of ids, chains by audit, and sums by audit."""

    histories: list[History]
    aborted: list[History]
    newest: list[StateRecord]
    chains: dict[int, dict[int, StateChain]]
    sums: dict[int, StateSums]


def told(rows: list[Row], bucket_count: int, asked: Collection[int]) -> Told:
    """What the step makes of records in some buckets, where logs name some producers."""
    bare = states_of(*rows).select(READ_STATES.names).combine_chunks().to_batches()
    states = pa.Table.from_batches(placed(PLACINGS)(iter(bare)), READ_WITH)
    engine = InProcess(bucket_count=bucket_count)
    step = state_step(PLACINGS, np.array(sorted({*asked}), np.int64), ABORTS)
    made = engine.grouped(["audit", "read_with"], step, OF_STATE, states=engine.made(states))
    kinds = {kind: engine.collected(engine.of_kind(made, kind)) for kind in OF_STATE.names}
    histories, aborted = (histories_in(kinds[kind]["history"]) for kind in ("histories", "aborted"))
    chains: dict[int, dict[int, StateChain]] = {}
    sums = {n: StateSums({}, {}) for n in AUDITS}
    for of_some in values_in(kinds["chains"]):
        for audit, (of_partitions, of_files) in of_some.items():
            chains.setdefault(audit, {}).update(of_partitions)
            assert not sums[audit].files.keys() & of_files.files.keys(), "records of one file were summed up apart"
            assert not sums[audit].console.keys() & of_files.console.keys()
            sums[audit].update(of_files)
    newest = records_of(StateRecord, kinds["newest"])
    of_audits = {n: own for n, own in chains.items() if own}
    return Told(histories, aborted, newest, of_audits, sums)


def held_by(row: Row) -> int | None:
    """Its partition, or that of an export's id."""
    number: int | None = row["transactional_id_hash"]
    partition: int | None = row["state_partition"]
    return number % PARTITIONS if partition is None and number is not None else partition


def whole_histories(rows: list[Row]) -> list[History]:
    """The histories of all ids."""
    audit, rank = (np.array(values) for values in ([row["audit"] for row in rows], [0] * len(rows)))
    states = states_of(*(row | {"held_by": held_by(row)} for row in rows))
    return sorted(histories_in(histories_of(states, audit, by_id(states, audit, rank))["history"]), key=repr)


@given(st.lists(records(), min_size=1, max_size=12), st.integers(1, 5), st.sets(st.integers(0, OLD_PRODUCER)))
def test_what_a_log_asks_about_or_was_aborted_often_has_its_whole_history_and_every_id_its_newest_record(
    rows: list[Row], bucket_count: int, asked: set[int]
) -> None:
    whole, found = whole_histories(rows), told(rows, bucket_count, asked)
    missing = [own for own in whole if own not in found.histories]
    assert sorted([*found.histories, *missing], key=repr) == whole
    for own in missing:
        assert not any(asked.intersection(record.producer_ids) for record in own)
    often = [own for own in whole if sum(record.state == "PrepareAbort" for record in own) >= ABORTS]
    assert sorted(found.aborted, key=repr) == often
    assert sorted(found.newest, key=repr) == sorted((own[-1] for own in whole), key=repr)


def test_of_ids_that_no_log_asks_about_few_have_a_history() -> None:
    ids = [
        state_row(0, producer_id=n, state_partition=1, transactional_id=f"id-{n}", transactional_id_hash=1)
        for n in range(2_000)
    ]
    assert 100 <= len(told(ids, 1, range(0, 2_000, 20)).histories) < 100 + 1_900 // 8


def test_an_id_that_was_aborted_often_has_its_history_though_no_log_asks_about_it() -> None:
    aborts = [
        state_row(offset, state="PrepareAbort", state_partition=1, transactional_id=name, transactional_id_hash=1)
        for offset, name in enumerate(["often", "once", "often"])
    ]
    (history,) = told(aborts, 1, ()).aborted
    assert [record.transactional_id for record in history] == ["often"] * ABORTS


@given(st.lists(records(), min_size=1, max_size=12), st.integers(1, 5))
def test_wherever_records_lie_each_counts_once_and_a_history_has_all_of_its_id(
    rows: list[Row], bucket_count: int
) -> None:
    audit, rank = (np.array(values) for values in ([row["audit"] for row in rows], [0] * len(rows)))
    states = states_of(*(row | {"held_by": held_by(row)} for row in rows))
    found = told(rows, bucket_count, range(OLD_PRODUCER + 1))
    assert sorted(found.histories, key=repr) == whole_histories(rows)
    assert found.chains == chains_of(states, audit, rank, dict.fromkeys(AUDITS))
    for n in AUDITS:
        own = states.filter(pa.array(audit == n))
        assert found.sums[n] == sums_of_records(own, numbers(hashed_to(own, PARTITIONS), ABSENT))
