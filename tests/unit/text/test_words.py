import pytest

from txn_analysis.text import count, duration, iso_utc, listed, size


@pytest.mark.parametrize(
    ("duration_ms", "words"),
    [
        (None, "unknown"),
        (-1, "0 s"),
        (0, "0 s"),
        (59_999, "59 s"),
        (60_000, "1 min 0 s"),
        (3_599_999, "59 min 59 s"),
        (10_800_000, "3 h 0 min"),
        (86_399_999, "23 h 59 min"),
        (90_000_000, "1 d 1 h"),
        (-61_000, "-1 min 1 s"),
    ],
)
def test_duration(duration_ms: int | None, words: str) -> None:
    assert duration(duration_ms) == words


@pytest.mark.parametrize(
    ("time_ms", "words"),
    [
        (None, "unknown"),
        (1_795_219_116_073, "2026-11-20T23:58:36.073Z"),
        (0, "1970-01-01T00:00:00.000Z"),
        (2**63 - 1, "9223372036854775807 ms since 1970"),
        (-(2**63), "-9223372036854775808 ms since 1970"),
    ],
)
def test_iso_utc(time_ms: int | None, words: str) -> None:
    assert iso_utc(time_ms) == words


@pytest.mark.parametrize(
    ("size_bytes", "words"), [(None, "unknown size"), (999, "999 B"), (1000, "1.0 kB"), (48_000_000, "48.0 MB")]
)
def test_size(size_bytes: int | None, words: str) -> None:
    assert size(size_bytes) == words


def test_count_and_listed() -> None:
    assert (count(1, "record"), count(0, "record"), count(2, "query", "queries")) == (
        "1 record",
        "0 records",
        "2 queries",
    )
    assert (listed(["a", "b"], 2), listed(["a", "b", "c"], 2)) == ("a, b", "a, b and 1 more")
