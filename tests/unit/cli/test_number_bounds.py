"""A number that no Kafka can mean is refused before Spark starts, whatever option it is given to."""

import pytest

from tests.tools.program import program
from tests.unit.cli.stubs import Library

pytestmark = pytest.mark.usefixtures("library")

ABSURD = "9" * 26


@pytest.mark.parametrize(
    "words",
    [
        ("audit", "DUMP", "--as-of", ABSURD),
        ("audit", "DUMP", "--as-of", "-5"),
        ("audit", "DUMP", "--transaction-state-partitions", "30000000"),
        ("audit", "DUMP", "--transaction-max-timeout-ms", ABSURD),
        ("audit", "DUMP", "--max-clock-skew-ms", ABSURD),
        ("audit", "DUMP", "--transactional-id-expiration-ms", ABSURD),
        ("audit", "DUMP", "--free-bytes", ABSURD),
        ("audit", "DUMP", "--width", ABSURD),
        ("find-hanging", "--topic", "orders", "--partition", ABSURD),
        ("find-hanging", "--producer-id", ABSURD),
        ("find-hanging", "--duration-filter", ABSURD),
        ("list", "--duration-filter", ABSURD),
        ("list", "--coordinator", f"__transaction_state-{ABSURD}"),
        ("list", "--coordinator", f"__transaction_state-{'9' * 5000}"),
        ("describe-producers", "--topic", "orders", "--partition", ABSURD),
        ("explain", "--topic", "orders", "--partition", ABSURD),
        ("explain", "--start-offset", ABSURD),
        ("explain", "--topic", "orders", "--partition", "0", "--offset", ABSURD),
        ("ended", "--limit", ABSURD),
        ("ended", "--by", "id", "--limit", ABSURD),
        ("ended", "--by", "id", "--since", ABSURD),
        ("explain", "--producer-id", ABSURD),
        ("abort-plan", "--topic", "orders", "--partition", ABSURD),
        ("abort-plan", "--max-records", ABSURD),
    ],
    ids=" ".join,
)
def test_an_absurd_number_is_refused_before_spark_starts(library: Library, dump: str, words: tuple[str, ...]) -> None:
    done = program(*(dump if word == "DUMP" else word for word in words))
    assert (done.code, done.out) == (2, "")
    assert [line for line in done.err.splitlines() if line.lower().startswith("error: ")] == [done.err.splitlines()[-1]]
    assert library.sessions == []
