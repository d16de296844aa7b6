"""The transcript of a repair types what was printed before: a document or an output that changes is noticed here."""

import pytest

from tests.systems.e2e.transcript import TOOLS, as_printed, of_the_documents, printed_on, sections, with_hosts

PARTS = sections()


def test_there_is_a_section_for_the_brokers_of_each_version() -> None:
    assert list(PARTS) == list(TOOLS)


@pytest.mark.parametrize("version", TOOLS)
def test_every_line_was_printed_before_it_is_typed(version: str) -> None:
    printed = list(of_the_documents())
    for line, shown in printed_on(PARTS[version]):
        assert as_printed(line, printed) == line
        printed += map(with_hosts, shown.splitlines())


def test_a_line_that_nobody_printed_is_not_typed() -> None:
    with pytest.raises(AssertionError, match="printed nowhere"):
        as_printed("sh plan.sh --yes", ["BROKERS=broker-1:9092 sh plan.sh --ended billing-worker-17"])


def test_a_line_is_typed_with_the_ids_of_this_run() -> None:
    printed = ["look txn-analysis explain --run run-1", "1. `txn-analysis report --run run-2`, or wait"]
    assert as_printed("txn-analysis report --run run-77", printed) == "txn-analysis report --run run-2"
