"""Copies with manifests: no plan is wrong, and every weaker reading of a manifest has one."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.proof.world.copies_proof import report_of
from tests.tools.world.disturbances import (
    BEHIND,
    CALM,
    CLEANED,
    DEMOTED,
    KILLED,
    SEVERAL,
    STALE,
    STATE_FIRST,
    STEPS,
    UNNAMED,
)
from txn_analysis.judge import copy_order
from txn_analysis.judge.case import Case
from txn_analysis.judge.copied import NOTHING_COPIED
from txn_analysis.judge.copy_order import OrderOfCopies
from txn_analysis.judge.manifest_proof import ManifestProof
from txn_analysis.log.snapshots import NOTHING_STATED, DescribedProducers, Snapshot

HISTORIES, OF_ONE_KIND = 300, 10


@pytest.mark.cluster  # hundreds of histories
def test_no_plan_is_wrong_and_hangs_are_found() -> None:
    report = report_of(HISTORIES, seed=3)
    assert (report.wrong, report.destroyed, report.problems) == (0, 0, [])
    assert report.proven
    assert report.reached
    assert report.disproved
    assert report.found
    assert report.described_planned


def test_what_is_fetched_beside_a_brokers_answer_is_judged_as_the_whole_log(monkeypatch: pytest.MonkeyPatch) -> None:
    """And not where the answer is left out of what counts."""
    assert not report_of(3 * OF_ONE_KIND, seed=4).misjudged

    def nobody(self: DescribedProducers) -> Snapshot:
        return Snapshot(self.first_offset, self.capture_rank, NOTHING_STATED)

    monkeypatch.setattr(DescribedProducers, "as_snapshot", nobody)
    assert report_of(3 * OF_ONE_KIND, seed=4).misjudged


def a_clock_is_believed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(copy_order, "_why_unsteady", lambda *_: None)


def a_leader_is_asked_once(patch: pytest.MonkeyPatch) -> None:
    def asked_before(_: Any, __: Any, files: Any) -> int | None:
        epoch: int | None = files[0].leader_epoch
        return epoch

    patch.setattr(ManifestProof, "_leaders_epoch", asked_before)


def no_other_file_is_asked(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ManifestProof, "_void", lambda *_: None)


def the_end_of_a_file_is_that_of_the_log(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ManifestProof, "_unended", lambda *_: None)


def a_kit_that_was_killed_counts(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ManifestProof, "_why_unclear", lambda *_: iter(()))
    patch.setattr(OrderOfCopies, "_undated", lambda *_: iter(()))


def what_nobody_names_was_copied_in_order(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(OrderOfCopies, "_undated", lambda *_: iter(()))


def the_files_cannot_disprove_it(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(OrderOfCopies, "_disproof", lambda *_: None)


def a_log_was_whole_when_its_last_byte_was_read(patch: pytest.MonkeyPatch) -> None:
    began = ManifestProof.reach_ms

    def ended(self: ManifestProof, where: Any, last_ms: Any) -> int | None:
        found = began(self, where, last_ms)
        files = [f for m in self.manifests for f in m.files if (f.topic, f.partition) == where]
        return None if found is None else max(f.ended_ms or 0 for f in files)

    patch.setattr(ManifestProof, "reach_ms", ended)


def only_the_copys_end_is_asked(patch: pytest.MonkeyPatch) -> None:
    """The last moment is moved for `log_may_end_early` alone: a lost commit is neither there nor missed."""
    for name in ("lost_commit", "may_be_of_earlier_decision"):
        patch.setattr(Case, name, without_manifests(vars(Case)[name].func))


def without_manifests(term: Callable[[Case], object]) -> property:
    return property(lambda case: term(replace(case, copied=NOTHING_COPIED)))


def a_collectors_clock_is_a_brokers(patch: pytest.MonkeyPatch) -> None:
    began = ManifestProof.reach_ms

    def by_any_clock(self: ManifestProof, where: Any, last_ms: Any) -> int | None:
        copy = self.whole.get(where)
        return copy.began_ms if copy is not None and self.order.is_proven else began(self, where, last_ms)

    patch.setattr(ManifestProof, "reach_ms", by_any_clock)


WEAKER: list[tuple[Callable[[pytest.MonkeyPatch], None], str, int]] = [
    (a_clock_is_believed, STEPS, 410),
    (a_leader_is_asked_once, DEMOTED, 30),
    (no_other_file_is_asked, STALE, 120),
    (the_end_of_a_file_is_that_of_the_log, BEHIND, 1660),
    (the_end_of_a_file_is_that_of_the_log, CLEANED, 200),
    (a_kit_that_was_killed_counts, KILLED, 30),
    (what_nobody_names_was_copied_in_order, UNNAMED, 110),
    (a_log_was_whole_when_its_last_byte_was_read, CALM, 110),
    (the_files_cannot_disprove_it, STATE_FIRST, 60),
    (only_the_copys_end_is_asked, CALM, 2750),
]
"""Each with the number from which on a history of its kind fools it."""


@pytest.mark.cluster  # hundreds of histories for each
@pytest.mark.parametrize(("weaken", "kind", "first"), WEAKER, ids=lambda each: getattr(each, "__name__", None))
def test_a_weaker_reading_is_fooled(
    weaken: Callable[[pytest.MonkeyPatch], None], kind: str, first: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not report_of(OF_ONE_KIND, seed=1, first=first, kind=kind, asks=False).wrong
    weaken(monkeypatch)
    assert report_of(OF_ONE_KIND, seed=1, first=first, kind=kind, asks=False).wrong


def test_who_takes_a_collectors_clock_for_a_brokers_is_fooled(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not report_of(OF_ONE_KIND, seed=1, first=270, kind=CALM).wrong
    a_collectors_clock_is_a_brokers(monkeypatch)
    assert report_of(OF_ONE_KIND, seed=1, first=270, kind=CALM).wrong


def test_several_brokers_have_several_clocks() -> None:
    assert not report_of(40, seed=1, kind=SEVERAL).proven
