"""Records of the state are read once, by partition; what they say does not depend on where those of an id lie."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from tests.coordinator.builders import YESTERDAY, state_row, states_of
from txn_analysis.columns.arrays import ABSENT, numbers
from txn_analysis.columns.values import NAMED, rows_named, values_in
from txn_analysis.coordinator.chain import chains_of
from txn_analysis.coordinator.partition_count import StateCount
from txn_analysis.coordinator.sections import file_sums_added_up, sums_of_records
from txn_analysis.coordinator.state_records import (
    READ_WITH,
    STATES,
    Placing,
    Placings,
    hashed_to,
    histories_in,
    histories_of,
)
from txn_analysis.coordinator.steps import placed, state_step
from txn_analysis.engine.in_process import InProcess

if TYPE_CHECKING:
    from tests.coordinator.builders import Row
    from txn_analysis.coordinator.chain import StateChain
    from txn_analysis.coordinator.history import History
    from txn_analysis.coordinator.sections import StateSums

PARTITIONS = 3
NAMES = "abcd"
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
        state=draw(st.sampled_from(("Empty", "Ongoing", "PrepareCommit", "CompleteCommit"))),
        state_partition=partition,
        ordinal=offset,
        last_update_ms=10 * offset,
        producer_id=number,
        is_undecodable=is_undecodable,
        transactional_id=NAMES[number] if has_id else None,
        transactional_id_hash=number if has_id else None,
    )


def told(rows: list[Row], bucket_count: int) -> tuple[list[History], dict[int, dict[int, StateChain]], list[StateSums]]:
    """The histories, the chains by audit, and the sums by audit, that the step makes of records in some buckets."""
    bare = states_of(*rows).select(STATES.names[:-1]).combine_chunks().to_batches()
    states = pa.Table.from_batches(placed(PLACINGS)(iter(bare)), READ_WITH)
    engine = InProcess(bucket_count=bucket_count)
    made = engine.grouped(["audit", "read_with"], state_step(PLACINGS), NAMED, states=engine.made(states))
    found = engine.collected(made).to_batches()
    histories: list[History] = []
    for batch in rows_named("histories")(iter(found)):
        histories += histories_in(batch["history"])
    chains: dict[int, dict[int, StateChain]] = {}
    sums: dict[int, list[StateSums]] = {n: [] for n in AUDITS}
    for batch in rows_named("chains")(iter(found)):
        for own in values_in(batch):
            for audit, (of_partitions, of_files) in own.items():
                chains.setdefault(audit, {}).update(of_partitions)
                sums[audit].append(of_files)
    return histories, {n: own for n, own in chains.items() if own}, [file_sums_added_up(sums[n]) for n in AUDITS]


def held_by(row: Row) -> int | None:
    """Its partition, or that of an export's id."""
    number: int | None = row["transactional_id_hash"]
    partition: int | None = row["state_partition"]
    return number % PARTITIONS if partition is None and number is not None else partition


@given(st.lists(records(), min_size=1, max_size=12), st.integers(1, 5))
def test_wherever_records_lie_each_counts_once_and_a_history_has_all_of_its_id(
    rows: list[Row], bucket_count: int
) -> None:
    audit, rank = (np.array(values) for values in ([row["audit"] for row in rows], [0] * len(rows)))
    states = states_of(*(row | {"held_by": held_by(row)} for row in rows))
    histories, chains, sums = told(rows, bucket_count)
    assert sorted(histories, key=repr) == sorted(histories_in(histories_of(states, audit, rank)["history"]), key=repr)
    assert chains == chains_of(states, audit, rank, dict.fromkeys(AUDITS))
    for n in AUDITS:
        own = states.filter(pa.array(audit == n))
        assert sums[n] == sums_of_records(own, numbers(hashed_to(own, PARTITIONS), ABSENT))
