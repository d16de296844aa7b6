"""Who somebody is, as text: one transaction on many partitions takes a line."""

import pytest

from txn_analysis.kafka.transactions import NEVER_TIMES_OUT_MS
from txn_analysis.questions.owners import Change, Kind, Opened, OwnerAnswer, Written
from txn_analysis.questions.owners_text import owner_text


def test_what_one_id_has_open_is_one_line_and_what_it_wrote_is_bounded() -> None:
    opened = [Opened("t", n, 7, "app", 10, "coordinated", "in_coordinator", blocks_partition=n == 4) for n in range(15)]
    written = [Written("t", n, 7, 0, None, None) for n in range(15)]
    answer = OwnerAnswer(
        run_id="run-1",
        kind=Kind.TRANSACTIONAL_ID,
        name="app",
        is_told=True,
        held_in=None,
        opened=tuple(opened),
        written=tuple(written),
    )
    text = " ".join(owner_text(answer).split())
    assert "t-4@10, producer id 7, app: coordinated (in_coordinator), holds the last stable offset" in text
    assert "; so are t-0@10, t-1@10" in text
    assert "and 6 more" in text
    assert text.count("txn-analysis explain") == 1
    assert "wrote t-0" in text
    assert "(7 other partitions left out)" in text


@pytest.mark.parametrize(
    ("timeout_ms", "says"),
    [
        (NEVER_TIMES_OUT_MS, "; transaction timeout none: its coordinator never aborts it (two-phase commit, KIP-939)"),
        (60_000, "; transaction timeout 1 min 0 s"),
        (None, ", epoch 0"),
    ],
)
def test_a_timeout_that_the_coordinator_never_looks_at_is_none(timeout_ms: int | None, says: str) -> None:
    change = Change(0, "app", "Ongoing", 7, 0, timeout_ms, ("t-0",))
    answer = OwnerAnswer(
        run_id="run-1", kind=Kind.TRANSACTIONAL_ID, name="app", is_told=True, held_in=None, changes=(change,)
    )
    (state,) = (line for line in " ".join(owner_text(answer).split()).split(" open ") if " state " in line)
    assert state.endswith(says)
