"""What lies before the first open transaction is sought backwards, for a bounded number of bytes."""

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tools.log_dirs.encoder import encoded
from tests.unit.log_dir.test_segments import data, file_of, marker
from txn_analysis.capture.triage import look_back, whole_batches

SIZE = len(encoded(data(1_000)))
ONE_MARKER = [*(data(k, producer=9) for k in range(1_000)), marker(1_000), *(data(k) for k in range(1_001, 1_300))]


class Log:
    """A log that counts what is fetched of it."""

    def __init__(self, batches: list) -> None:  # type: ignore[type-arg]
        self.batches = batches
        self.fetched_bytes = 0

    def fetch(self, offset: int, max_bytes: int) -> bytes:
        behind = [encoded(batch) for batch in self.batches if batch.last_offset >= offset]
        data = b"".join(behind)[: max(max_bytes, len(behind[0]) if behind else 0)]
        self.fetched_bytes += len(data)
        return data


def back(log: Log, start: int, wanted: set[int], budget: int = 1 << 20) -> bytes:
    return b"".join(part.data for part in look_back(log.fetch, start, 0, wanted, budget))


def test_it_ends_with_the_window_in_which_the_marker_is() -> None:
    log = Log(ONE_MARKER)
    assert back(log, 1_300, {7}) == file_of(*(b for b in ONE_MARKER if b.base_offset >= 1_300 - 64 - 256))


def test_without_a_marker_it_goes_to_the_log_start() -> None:
    log = Log(ONE_MARKER)
    assert back(log, 1_300, {8}) == file_of(*ONE_MARKER)


def test_any_end_marker_bounds_when_the_data_was_appended() -> None:
    log = Log([marker(k, producer=5) for k in range(100)])
    assert back(log, 100, set()) == file_of(*log.batches[36:])


def test_what_costs_more_than_its_budget_is_left_where_it_is() -> None:
    log = Log(ONE_MARKER)
    found = back(log, 1_300, {8}, budget=100 * SIZE)
    assert found == file_of(*(b for b in ONE_MARKER if b.base_offset >= 1_300 - 64))
    assert log.fetched_bytes <= 101 * SIZE


def test_a_start_at_the_log_start_has_nothing_before() -> None:
    log = Log(ONE_MARKER)
    assert back(log, 0, {7}) == b""
    assert log.fetched_bytes == 0


@given(
    kept=st.lists(st.integers(0, 400), unique=True, max_size=60).map(sorted),
    start=st.integers(0, 400),
    budget=st.integers(1, 100),
)
@settings(max_examples=200, deadline=None)
def test_it_is_always_the_end_of_what_lies_below(kept: list[int], start: int, budget: int) -> None:
    """Also where compaction left holes: batches without a break up to the start, whatever they cost."""
    log = Log([data(offset, producer=9) for offset in kept])
    below = file_of(*(batch for batch in log.batches if batch.base_offset < start))
    assert below.endswith(back(log, start, {7}, budget * SIZE))


def test_half_a_batch_at_the_end_is_left_out() -> None:
    whole = file_of(data(0), marker(1))
    found = whole_batches(whole + encoded(data(2))[:-1])
    assert found is not None
    assert (found.data, found.first_offset, found.next_offset, found.marked) == (whole, 0, 2, frozenset({7}))


def test_of_half_a_batch_alone_nothing_is_whole() -> None:
    assert whole_batches(encoded(data(2))[:-1]) is None
