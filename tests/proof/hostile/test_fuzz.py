from tests.proof.hostile.fuzz import run_fuzz

LINES = 2000
SEED = 20_261_121


def test_changed_lines_crash_nothing_and_lose_no_byte() -> None:
    report = run_fuzz(LINES, SEED)
    assert report.problems == [], f"seed {SEED}"
    assert report.lines >= LINES
