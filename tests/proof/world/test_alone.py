"""One partition alone: no plan of it is wrong."""

import pytest

from tests.proof.world.alone import report_of

HISTORIES = 300


@pytest.mark.cluster  # hundreds of histories, each partition alone
def test_no_plan_of_a_partition_alone_is_wrong() -> None:
    report = report_of(HISTORIES, seed=1)
    assert (report.wrong, report.problems) == (0, [])
    assert report.hanging > report.found > 0
