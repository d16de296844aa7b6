"""What is new since the night before."""

from tests.tools import report_rows as rows
from txn_analysis.plan.standing import Night, Since, ToldFinding, since
from txn_analysis.tables import Finding
from txn_analysis.verdict import Verdict


def told(finding: Finding) -> ToldFinding:
    return ToldFinding(*(getattr(finding, name) for name in ToldFinding._fields))


def night(number: int, *findings: Finding) -> Night:
    return Night(f"run-{number}", f"capture-{number}", number, tuple(map(told, findings)))


def compared(today: list[Finding], *behind: Night, is_all: bool = True) -> Since:
    found = since(today, iter(behind), is_all=is_all)
    assert found is not None
    return found


LOST = rows.finding()
LIVE = rows.live_finding()


def test_the_first_night_has_nothing_to_be_held_against() -> None:
    assert since([LOST], iter(()), is_all=True) is None


def test_what_the_night_before_did_not_tell_of_is_new_and_what_it_alone_told_of_is_gone() -> None:
    found = compared([LOST], night(1, LIVE))
    assert found.new == (LOST.finding_id,)
    assert [one.finding_id for one in found.gone] == [LIVE.finding_id]
    assert found.still == ()
    assert (found.run_id, found.capture, found.as_of_ms) == ("run-1", "capture-1", 1)


def test_what_is_in_progress_is_no_news() -> None:
    busy = rows.finding(verdict=Verdict.IN_PROGRESS)
    found = compared([busy], night(1, LOST))
    assert found.new == ()
    assert [one.finding_id for one in found.gone] == [LOST.finding_id]


def test_nights_are_counted_back_to_the_first_in_a_row() -> None:
    (one,) = compared([LOST], night(3, LOST), night(2, LOST, LIVE), night(1, LIVE), night(0, LOST)).still
    assert (one.night_count, one.first_run_id, one.first_as_of_ms, one.is_counted_whole) == (3, "run-2", 2, True)


def test_a_count_that_reaches_the_last_night_that_was_looked_at_may_be_too_small() -> None:
    (one,) = compared([LOST], night(3, LOST), night(2, LOST), is_all=False).still
    assert (one.night_count, one.is_counted_whole) == (3, False)
    (one,) = compared([LOST], night(3, LOST), night(2, LIVE), is_all=False).still
    assert (one.night_count, one.is_counted_whole) == (2, True)


def test_a_start_that_moved_between_two_nights_is_the_same_transaction() -> None:
    earlier = rows.finding(finding_id="other", txn_start_offset=150, last_offset=None)
    found = compared([LOST], night(1, earlier))
    assert (found.new, found.gone) == ((), ())


def test_a_later_transaction_of_the_same_producer_is_another_one() -> None:
    earlier = rows.finding(finding_id="other", txn_start_offset=100, last_offset=154)
    found = compared([LOST], night(1, earlier))
    assert found.new == (LOST.finding_id,)
    assert [one.finding_id for one in found.gone] == ["other"]


def test_no_more_nights_are_read_than_the_oldest_finding_needs() -> None:
    behind = iter([night(3, LOST), night(2), night(1, LOST)])
    since([LOST], behind, is_all=True)
    assert [one.run_id for one in behind] == ["run-1"]


def test_of_some_topics_only_what_is_on_them_is_told() -> None:
    found = compared([LOST, LIVE], night(1, LOST, rows.inconclusive()))
    assert found.new == (LIVE.finding_id,)
    of_payments = found.of_topics(["payments"], [LIVE])
    assert (of_payments.new, of_payments.still, of_payments.gone) == ((LIVE.finding_id,), (), ())
