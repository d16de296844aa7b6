"""Noise at a few places of every capture; `make proof` tries every place of the small ones."""

from tests.proof.hostile.noise import run_noise


def test_noise_anywhere_changes_nothing_without_a_reason() -> None:
    report = run_noise(percent=1)
    assert report.problems == []
    assert report.same > 0
