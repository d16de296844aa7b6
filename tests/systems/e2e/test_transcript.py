"""A topic that is stuck is repaired by the lines of the transcripts, and they print what stands there."""

import pytest

from tests.systems.e2e.transcript import TOOLS, Retold, normalised, printed_on, retell, sections

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module", params=list(TOOLS))
def told(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Retold:
    section = sections()[request.param]
    return retell(request.param, section, tmp_path_factory.mktemp("transcript"))


def test_every_line_prints_what_the_page_shows(told: Retold) -> None:
    page = sections()[told.version]
    here, there = (
        [(normalised(line), normalised(shown)) for line, shown in printed_on(text)] for text in (told.text, page)
    )
    assert len(there) == len(told.typed)
    assert here == there


def test_consumers_were_stuck_and_read_to_the_end(told: Retold) -> None:
    assert told.read_before < told.end_before
    assert told.read_after == told.end_after


def test_in_the_end_verify_says_repaired(told: Retold) -> None:
    last = told.typed[-1]
    assert (last.line, last.code) == ("txn-analysis verify", 0)
    assert "1 repaired, 0 ended_by_coordinator, 0 still_hanging" in last.shown


def test_only_what_must_be_refused_was_refused(told: Retold) -> None:
    failed = [done.line for done in told.typed if done.code]
    fencing = ("sh plan.sh --dry-run", "--owner-gone", "kafka-producer-perf-test.sh", "sh plan.sh --ended")
    older = [*fencing, "txn-analysis audit"] if told.version == "2.8.2" else []
    expected = ["txn-analysis audit", *older]
    assert [words in line for words, line in zip(expected, failed, strict=True)] == [True] * len(failed)
