"""Records of the state are read once, by partition; what they say does not depend on where those of an id lie."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from tests.coordinator.builders import YESTERDAY, state_row, states_of
from txn_analysis.columns.values import NAMED, rows_named, values_in
from txn_analysis.coordinator.chain import chains_of
from txn_analysis.coordinator.partition_count import StateCount
from txn_analysis.coordinator.state_records import READ_WITH, STATES, Placing, Placings, histories_in, histories_of
from txn_analysis.coordinator.steps import placed, state_step
from txn_analysis.engine.in_process import InProcess

if TYPE_CHECKING:
    from tests.coordinator.builders import Row
    from txn_analysis.coordinator.chain import StateChain
    from txn_analysis.coordinator.history import History

PARTITIONS = 3
NAMES = "abcd"
PLACINGS = Placings({0: Placing(StateCount(PARTITIONS, "given"), 0, None)})


@st.composite
def records(draw: st.DrawFn) -> Row:
    """One of any id, in any partition of the state, whichever its id hashes to; or in an export, or undecodable."""
    number, is_undecodable = draw(st.integers(0, len(NAMES) - 1)), draw(st.integers(0, 9)) == 0
    partition, offset = draw(st.one_of(st.none(), st.integers(0, PARTITIONS - 1))), draw(st.integers(0, 5))
    has_id = not is_undecodable or draw(st.booleans())
    return state_row(
        None if partition is None else offset,
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


def told(rows: list[Row], bucket_count: int) -> tuple[list[History], dict[int, StateChain]]:
    """The histories and chains that the step makes of records, in a number of buckets."""
    bare = states_of(*rows).select(STATES.names[:-1]).combine_chunks().to_batches()
    states = pa.Table.from_batches(placed(PLACINGS)(iter(bare)), READ_WITH)
    engine = InProcess(bucket_count=bucket_count)
    made = engine.grouped(["audit", "read_with"], state_step(PLACINGS), NAMED, states=engine.made(states))
    found = engine.collected(made).to_batches()
    histories: list[History] = []
    for batch in rows_named("histories")(iter(found)):
        histories += histories_in(batch["history"])
    chains: dict[int, StateChain] = {}
    for batch in rows_named("chains")(iter(found)):
        for own in values_in(batch):
            chains |= own.get(0, ({},))[0]
    return histories, chains


def held_by(row: Row) -> int | None:
    """Its partition, or that of an export's id."""
    number: int | None = row["transactional_id_hash"]
    partition: int | None = row["state_partition"]
    return number % PARTITIONS if partition is None and number is not None else partition


@given(st.lists(records(), min_size=1, max_size=12), st.integers(1, 5))
def test_wherever_the_records_of_an_id_lie_its_history_has_all_of_them(rows: list[Row], bucket_count: int) -> None:
    none = np.zeros(len(rows), np.int64)
    states = states_of(*(row | {"held_by": held_by(row)} for row in rows))
    histories, chains = told(rows, bucket_count)
    assert sorted(histories, key=repr) == sorted(histories_in(histories_of(states, none, none)["history"]), key=repr)
    assert chains == chains_of(states, none, none, {0: None}).get(0, {})
