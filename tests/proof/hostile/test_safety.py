"""The safety property: no evidence taken away, mixed or handed over differently makes a verdict wrong."""

import pytest

from tests.proof.hostile.safety import run_safety

MUTATIONS, SEED = 50, 1
LEAST_STILL_HANGING = 30


@pytest.mark.cluster  # the proof's part `safety` tries more; its sample is in `.ci/run`
def test_no_mutation_raises_what_its_coordinator_ends_and_none_loses_a_byte() -> None:
    report = run_safety(MUTATIONS, SEED)
    assert not report.problems, "\n".join(report.problems)
    assert (report.wrongly_raised, report.unaccounted_bytes) == (0, 0)
    assert report.still_hanging >= LEAST_STILL_HANGING, "the property would hold for an audit that finds nothing"
