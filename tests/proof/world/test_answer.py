"""The pure core: one history in, findings and plan out; no Spark, no file, no order that matters."""

import random
from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tools.records import plain
from tests.tools.stories.answer import Answer, answer_of, answers_of
from tests.tools.stories.histories import World, data, marker, record
from tests.tools.stories.history import History
from tests.tools.stories.random_world import BEGAN_MS, HOUR_MS, random_history
from txn_analysis.coordinator.partition_count import DERIVED
from txn_analysis.kafka.names import java_hash, state_partition
from txn_analysis.verdict import Verdict

SEEDS = st.integers(min_value=0, max_value=1_000_000)
ORDERS_0 = [{"topic": "orders", "partition": 0}]


def late_write_after_abort() -> World:
    """Producer 7 of `billing` writes once more after its abort; two hours later others still end transactions."""
    world = World(logs={("orders", 0): []})
    for state, at_ms in (("Ongoing", 0), ("PrepareAbort", 1_000)):
        world.record(record("billing", state, 7, BEGAN_MS + at_ms, topic_partitions=ORDERS_0, start_ms=BEGAN_MS))
    world.record(record("billing", "CompleteAbort", 7, BEGAN_MS + 1_002, start_ms=BEGAN_MS))
    return written_late(world)


def written_late(world: World) -> World:
    """Data, its abort, and data again; others go on."""
    world.record(record("other", "CompleteAbort", 8, BEGAN_MS + 2 * HOUR_MS))
    world.logs["orders", 0] = [
        data(7, BEGAN_MS),
        marker(7, BEGAN_MS + 1_001, "ABORT"),
        data(7, BEGAN_MS + 1_500),
        marker(8, BEGAN_MS + 2_000, "ABORT"),
        marker(8, BEGAN_MS + 2 * HOUR_MS, "ABORT"),
    ]
    return world


def shown(answer: Answer) -> list[dict[str, Any]]:
    return [plain(finding) for finding in answer.findings]


def in_four_partitions(stated: int | None) -> Answer:
    """The late write where many ids fill four partitions of the state."""
    world = late_write_after_abort()
    rows = [row for own in world.states.values() for row in own]
    world.states = {number: [] for number in range(4)}
    world.settings = world.settings.model_copy(update={"transaction_state_partitions": 4})
    for row in [*(record(f"app-{n}", "Empty", 100 + n, BEGAN_MS - HOUR_MS) for n in range(40)), *rows]:
        world.record(row)
    for number in range(4):  # every partition reaches past the data
        name = next(f"late-{n}" for n in range(99) if state_partition(java_hash(f"late-{n}"), 4) == number)
        world.record(record(name, "Empty", 200 + number, BEGAN_MS + 2 * HOUR_MS))
    world.settings = world.settings.model_copy(update={"transaction_state_partitions": stated})
    return answer_of(world.history())


def test_the_only_count_of_partitions_that_fits_all_ids_is_used() -> None:
    derived, stated = in_four_partitions(None), in_four_partitions(4)
    assert derived.state is not None
    assert (derived.state.count.used, derived.state.count.basis) == (4, DERIVED)
    assert shown(derived) == shown(stated)
    assert [finding.verdict for finding in derived.findings] == [Verdict.HANGING]


def test_a_wrong_count_does_not_fit_and_names_the_one_that_does() -> None:
    (finding,) = in_four_partitions(3).findings
    assert finding.rule == "state_does_not_fit"
    assert "of the counts up to 1000000 only 4 would fit" in finding.missing_evidence[0]


def late_write_of_flink() -> World:
    """A sink of Flink's writes once more after its abort; what it adds afterwards is another partition's."""
    world, name = World(logs={("orders", 0): []}), "orders-sink-4-1700"
    for state, at_ms in (("Empty", -1_000), ("Ongoing", 0), ("PrepareAbort", 1_000)):
        listed = [] if state == "Empty" else ORDERS_0
        world.record(record(name, state, 7, BEGAN_MS + at_ms, topic_partitions=listed))
    world.record(record(name, "CompleteAbort", 7, BEGAN_MS + 1_002))
    return written_late(world)


def test_what_is_not_late_needs_no_remark_on_its_owner() -> None:
    world = late_write_of_flink()
    world.logs["orders", 0][2:] = [data(7, BEGAN_MS + 2 * HOUR_MS), marker(8, BEGAN_MS + 2 * HOUR_MS + 1, "ABORT")]
    (finding,) = answer_of(world.history()).findings
    assert finding.verdict is Verdict.IN_PROGRESS
    assert not any("Flink" in fact for fact in finding.evidence)


def test_a_topic_that_no_record_of_the_state_names_is_remarked() -> None:
    """A folder that somebody renamed is what it says; only this shows it."""
    world, renamed = late_write_after_abort(), late_write_after_abort()
    renamed.logs = {("odrers", 0): renamed.logs["orders", 0]}
    remark = "no record of __transaction_state names topic {}: was its folder renamed?"
    (rightly,), (wrongly,) = answer_of(world.history()).findings, answer_of(renamed.history()).findings
    assert remark.format("orders") not in rightly.evidence
    assert (wrongly.verdict, wrongly.evidence[-1]) == (Verdict.HANGING, remark.format("odrers"))


def test_a_contested_marker_says_nothing_of_whose_state_it_is() -> None:
    """Else one forged line, whose producer nobody knows, would make the state another cluster's."""
    world = late_write_after_abort()
    world.logs["orders", 0] = [data(7, BEGAN_MS)]
    honest = [finding.rule for finding in answer_of(world.history()).findings]
    world.logs["orders", 0].append(marker(4_711, BEGAN_MS + 2 * HOUR_MS, is_contested=True))
    assert [finding.rule for finding in answer_of(world.history()).findings] == [*honest[:-1], "evidence_broken"]


@settings(max_examples=8)
@given(SEEDS)
def test_what_is_answered_at_once_is_what_is_answered_alone(seed: int) -> None:
    numbers = [seed + n for n in range(12)]
    together = answers_of([random_history(n) for n in numbers])
    alone = [answer_of(random_history(n)) for n in numbers]
    assert [(shown(a), a.plan, a.health) for a in together] == [(shown(a), a.plan, a.health) for a in alone]


@settings(max_examples=20)
@given(SEEDS)
def test_no_order_of_what_was_read_matters(seed: int) -> None:
    histories = [random_history(seed + n) for n in range(12)]
    answers, shuffled = answers_of(histories), answers_of([_shuffled(h, seed) for h in histories])
    assert [(shown(a), a.plan, a.health) for a in answers] == [(shown(a), a.plan, a.health) for a in shuffled]


def _shuffled(history: History, seed: int) -> History:
    source = random.Random(seed)
    return replace(
        history,
        sections=source.sample(history.sections, len(history.sections)),
        batches=source.sample(history.batches, len(history.batches)),
        records=source.sample(history.records, len(history.records)),
    )


@settings(max_examples=20)
@given(SEEDS)
def test_the_plan_is_what_hangs(seed: int) -> None:
    answers = answers_of([random_history(seed + n) for n in range(20)])
    for answer in answers:
        hanging = [(f.topic, f.partition, f.producer_id, f.txn_start_offset) for f in answer.hanging]
        planned = [(r.topic, r.partition, r.producer_id, r.txn_start_offset) for r in answer.plan]
        assert sorted(hanging) == sorted(planned)


@settings(max_examples=20)
@given(SEEDS, st.data())
def test_state_that_is_taken_away_never_makes_anything_hang(seed: int, draw: st.DataObject) -> None:
    whole = [random_history(seed + n) for n in range(20)]
    kept = draw.draw(st.floats(min_value=0, max_value=1))
    less = [replace(h, records=h.records[: int(len(h.records) * kept)]) for h in whole]
    for before, after in zip(answers_of(whole), answers_of(less), strict=True):
        known = {(f.topic, f.partition, f.producer_id, f.txn_start_offset) for f in before.hanging}
        assert {(f.topic, f.partition, f.producer_id, f.txn_start_offset) for f in after.hanging} <= known
