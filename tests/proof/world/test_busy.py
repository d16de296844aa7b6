"""Ids that use up producer ids: what they leave in logs and state is what Kafka leaves."""

from dataclasses import replace

import pytest

from tests.tools.world.evidence import BEGAN_MS
from tests.tools.world.kinds import BUSY as IS_BUSY
from tests.tools.world.kinds import COMPACTED, WHOLE, kind_of
from tests.tools.world.known_ways import BUSY, BUSY_ELSEWHERE, COMMITTED, COMPACT, PASS, WRITE_LATE, plot
from tests.tools.world.model import EPOCHS, LAST_EPOCH, Log, Step, World
from tests.tools.world.steps import after


def busy(epochs: int, *steps: Step) -> World:
    """The world after some steps, in which a producer id of version 2 has so many epochs."""
    world = World(BEGAN_MS, 2, (Log(),), epochs=epochs)
    for step in steps:
        following = after(world, step)
        assert following is not None, step
        world = following
    return world


@pytest.mark.parametrize("epochs", [2, 8, EPOCHS])
def test_the_first_and_the_last_transaction_of_a_producer_id_are_at_kafkas_epochs(epochs: int) -> None:
    batches = busy(epochs, BUSY).logs[0].batches
    assert [(b.producer_id, b.word, b.epoch) for b in batches] == [
        (1, None, 0),
        (1, "COMMIT", 1),
        (1, None, LAST_EPOCH),
        (1, "COMMIT", LAST_EPOCH + 1),
    ]


@pytest.mark.parametrize("epochs", [2, 8, EPOCHS])
def test_an_id_goes_on_at_epoch_0_of_another_producer_id(epochs: int) -> None:
    row = busy(epochs, BUSY, BUSY_ELSEWHERE).last("a")
    assert row is not None
    assert (row.state, row.producer_id, row.previous_producer_id, row.epoch) == ("CompleteCommit", 3, 2, 0)


@pytest.mark.parametrize(("epochs", "records"), [(2, 7), (8, 25), (EPOCHS, 3 * 2 + 1)])
def test_of_few_epochs_every_record_is_there(epochs: int, records: int) -> None:
    assert len(busy(epochs, BUSY).states[0].rows) == records


def test_of_all_epochs_most_are_gone_with_a_hole_as_long_as_they_were() -> None:
    world = busy(EPOCHS, BUSY)
    assert world.states[0].next_offset == 1 + 3 * EPOCHS


@pytest.mark.parametrize("epochs", [2, 8, EPOCHS])
def test_after_two_rotations_and_a_compaction_nothing_names_the_first_producer_id(epochs: int) -> None:
    rows = busy(epochs, BUSY, BUSY_ELSEWHERE, COMPACT).states[0].rows
    assert not any(1 in (r.producer_id, r.previous_producer_id, r.next_producer_id) for r in rows)


def test_a_commit_of_the_next_instance_ends_late_data_of_version_1_at_a_higher_epoch() -> None:
    (*_, data, marker) = plot(*COMMITTED, Step("restart", "a", 0)).world().logs[0].batches
    assert (data.word, data.epoch, marker.word, marker.epoch) == (None, 0, "COMMIT", 1)


@pytest.mark.parametrize(
    ("steps", "kind"),
    [
        ((*COMMITTED, WRITE_LATE, PASS), WHOLE),
        ((*COMMITTED, WRITE_LATE, COMPACT, PASS), COMPACTED),
        ((*COMMITTED, BUSY, BUSY_ELSEWHERE, COMPACT, PASS), IS_BUSY),
        ((*COMMITTED, BUSY, BUSY_ELSEWHERE, COMPACT), None),  # no decision in the state has its marker in the log
        ((*COMMITTED, Step("lose", "", 0), PASS), None),
    ],
)
def test_of_which_kind_a_history_is(steps: tuple[Step, ...], kind: str | None) -> None:
    is_busy = BUSY in steps
    told = replace(plot(*steps, says_last=True, says_nothing_lost=True), version=2 if is_busy else 1, epochs=8)
    assert kind_of(told, told.world()) == kind


def test_without_the_operators_words_it_is_of_no_kind() -> None:
    silent = plot(*COMMITTED, WRITE_LATE, PASS)
    assert kind_of(silent, silent.world()) is None
