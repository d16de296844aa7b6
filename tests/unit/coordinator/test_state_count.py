"""How many partitions the state has: which counts fit the ids that are in it, and which one is used."""

from collections.abc import Iterable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tools.cases import cases
from tests.tools.coordinator_rows import sums_of_ids
from txn_analysis.coordinator.partition_count import (
    DEFAULT,
    DERIVED,
    GIVEN,
    MOST_PARTITIONS,
    IdSums,
    StateCount,
    state_count,
    sums_of_columns,
    sums_of_files,
)
from txn_analysis.kafka.names import java_hash, state_partition

IDS = [f"billing-worker-{number}" for number in range(400)]
HASHES = st.integers(-(2**31), 2**31 - 1)


def seen(count: int, *, partitions: Iterable[int] | None = None, ids: list[str] = IDS) -> IdSums:
    """What the dumps of some partitions say where there are `count`."""
    wanted = set(range(count) if partitions is None else partitions)
    hashes = [java_hash(name) for name in ids]
    held = [(hashed, state_partition(hashed, count)) for hashed in hashes]
    return sums_of_ids((h, p) for h, p in held if p in wanted).plus(sums_of_files(wanted))


@pytest.mark.parametrize("count", [1, 4, 10, 49, 50])
def test_a_whole_state_proves_its_count(count: int) -> None:
    found = state_count(None, seen(count))
    assert (found.used, found.basis, [*found.fitting]) == (count, DERIVED, [count])


def test_ten_of_fifty_partitions_leave_three_counts_and_none_is_used() -> None:
    found = state_count(None, seen(50, partitions=range(10)))
    assert (found.used, found.basis, found.others) == (50, DEFAULT, "10, 25, 50")


def test_three_quarters_of_them_prove_it_too() -> None:
    assert state_count(None, seen(50, partitions=range(38))).basis == DERIVED


def test_a_file_without_a_record_is_a_partition_as_well() -> None:
    ten_of_fifty = seen(50, partitions=range(10))
    assert state_count(None, ten_of_fifty.plus(sums_of_files([30]))).used == 50
    assert state_count(None, ten_of_fifty.plus(sums_of_files([30]))).basis == DERIVED


def test_the_operators_count_is_used_and_what_fits_is_known() -> None:
    found = state_count(3, seen(4))
    assert (found.used, found.basis, found.others) == (3, GIVEN, "4")


def test_dumps_under_wrong_names_fit_no_count() -> None:
    swapped = sums_of_ids((java_hash(name), (java_hash(name) + 1) % 4) for name in IDS)
    found = state_count(None, swapped)
    assert (found.used, found.basis, found.others) == (50, DEFAULT, None)


def test_console_exports_prove_nothing() -> None:
    exported = [(java_hash(name), None) for name in IDS]
    assert state_count(None, sums_of_ids(exported)).coverage() == {
        "used": 50,
        "basis": DEFAULT,
        "fitting": None,
        "fitting_count": 0,
    }


def test_one_id_fits_very_many_counts_and_few_are_named() -> None:
    found = state_count(None, sums_of_ids([(5, 5)]))
    assert len(found.fitting) == MOST_PARTITIONS - 5
    assert found.others == "6 to 17 and 999983 more up to 1000000"


def test_the_hash_that_has_no_abs_is_zero_to_kafka() -> None:
    assert sums_of_ids([(-(2**31), 0)]).divisor == 0


@given(st.lists(HASHES, min_size=1), st.integers(1, 200))
def test_the_true_count_always_fits(hashes: list[int], count: int) -> None:
    assert count in sums_of_ids((h, state_partition(h, count)) for h in hashes).fitting()


@given(st.lists(st.tuples(HASHES, st.integers(0, 60)), min_size=2), st.data())
def test_sums_are_the_same_by_row_by_column_and_in_parts(held: list[tuple[int, int]], data: st.DataObject) -> None:
    whole, cut = sums_of_ids(held), data.draw(st.integers(0, len(held)))
    assert sums_of_ids(held[:cut]).plus(sums_of_ids(held[cut:])) == whole
    hashes, partitions = (np.array(column, np.int32) for column in zip(*held, strict=True))
    assert sums_of_columns(hashes, partitions) == whole


@cases(
    "said fitting expected",
    {
        "half-of-a-hundred-partitions-looks-like-fifty": (None, (10, 50, 100), "100"),
        "only-smaller-ones": (None, (10, 50), None),
        "the-operator-states-the-count": (50, (10, 50, 100), None),
    },
)
def test_larger_counts_that_fit(said: int | None, fitting: tuple[int, ...], expected: str | None) -> None:
    basis = DEFAULT if said is None else GIVEN
    assert StateCount(50, basis, fitting, 3).larger == expected
