"""States of other clusters that gave out the same producer ids, as told by hand: the judge and the letter agree.

Producer 7 is in progress at its own coordinator. Its cluster is of transaction version 2, so that the twin's state may
have forgotten the producers of the other markers; what a state excuses proves nothing.
"""

import pytest

from tests.proof.world.test_by_the_letter import by_the_letter, rules_of_the_judge
from tests.tools.world.evidence import BEGAN_MS, Evidence
from tests.tools.world.model import Batch, StateRow

SECOND_MS, HOUR_MS = 1_000, 3_600_000
LAST_MS = BEGAN_MS + 2 * HOUR_MS

COMMIT_OF_6 = ((6, 1, LAST_MS, None), (6, 2, LAST_MS + SECOND_MS, "COMMIT"))
ABORT_OF_6 = ((6, 2, LAST_MS, None), (6, 3, LAST_MS + SECOND_MS, "ABORT"))
COMMIT_OF_5 = ((5, 1, LAST_MS, None), (5, 2, LAST_MS + SECOND_MS, "COMMIT"))


def log(*last: tuple[int, int, int, str | None]) -> tuple[Batch, ...]:
    """Producers 5 and 6 commit; what 7 writes stays open."""
    began = (
        (5, 0, BEGAN_MS, None),
        (5, 1, BEGAN_MS + SECOND_MS, "COMMIT"),
        (6, 0, BEGAN_MS + 2 * SECOND_MS, None),
        (6, 1, BEGAN_MS + 3 * SECOND_MS, "COMMIT"),
        (7, 4, BEGAN_MS + 4 * SECOND_MS, None),
        (6, 1, BEGAN_MS + 5 * SECOND_MS, None),
        (6, 2, BEGAN_MS + 6 * SECOND_MS, "COMMIT"),
    )
    return tuple(Batch(n, i, epoch, ms, ms, word, 0, 0) for n, (i, epoch, ms, word) in enumerate((*began, *last)))


def row(offset: int, name: str, state: str, producer_id: int, at_ms: int) -> StateRow:
    """A record of the twin; the offsets between are holes that its cleaner left."""
    listed = frozenset({0} if state == "PrepareCommit" else ())
    return StateRow(offset, name, state, producer_id, None, None, 9, listed, at_ms, at_ms, None, 60_000, 0)


FIRST = row(0, "z", "Empty", 900, BEGAN_MS - 10 * HOUR_MS)
TAIL = row(91, "c", "Ongoing", 801, LAST_MS + HOUR_MS)

TWINS = {
    "the twin knows 7 and 5, and all of it is compacted": (
        log(*COMMIT_OF_6),
        (
            FIRST,
            row(40, "a", "CompleteCommit", 7, BEGAN_MS - 2 * HOUR_MS),
            row(60, "b", "CompleteCommit", 5, LAST_MS + 20 * SECOND_MS),
            row(90, "c", "CompleteCommit", 801, LAST_MS + 30 * SECOND_MS),
        ),
    ),
    "the twin is compacted up to after the last commit, and the log goes on with an abort": (
        log(*ABORT_OF_6),
        (FIRST, row(90, "b", "CompleteCommit", 5, BEGAN_MS + 60 * SECOND_MS), TAIL),
    ),
    "a decision that hangs in the twin is older than every commit of its producer": (
        log(*COMMIT_OF_5),
        (
            FIRST,
            row(60, "b", "PrepareCommit", 5, BEGAN_MS - 60 * SECOND_MS),
            row(90, "c", "Empty", 801, BEGAN_MS + 10 * SECOND_MS),
            TAIL,
        ),
    ),
}


@pytest.mark.parametrize("says_last", [False, True])
@pytest.mark.parametrize("name", TWINS)
def test_a_twins_state_is_no_reason_to_abort(name: str, *, says_last: bool) -> None:
    batches, rows = TWINS[name]
    given = Evidence((batches,), (rows,), state_copied_last=says_last, no_records_lost=True)
    assert by_the_letter(given) == rules_of_the_judge([given])[0] == {(0, 7): "state_incomplete"}
