"""What Spark's plans show of an audit: read from the plans themselves."""

from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.tools.stories.answer import answer_of, answers_of
from tests.tools.stories.stories import Story
from txn_analysis.engine.on_spark import FrameRows, OnSpark

_BROADCASTS = "spark.sql.autoBroadcastJoinThreshold"


@pytest.fixture(params=["-1", "1g"])
def broadcasts(request: pytest.FixtureRequest, spark: SparkSession) -> Iterator[None]:
    """A session whose owner wants no join by broadcasts, or each."""
    before = spark.conf.get(_BROADCASTS) or ""
    spark.conf.set(_BROADCASTS, request.param)
    yield
    spark.conf.set(_BROADCASTS, before)


class Watched(OnSpark):
    """Remembers what it joined."""

    joins: list[FrameRows]

    def joined(self, left: FrameRows, right: FrameRows, key: Sequence[str]) -> FrameRows:
        self.joins.append(super().joined(left, right, key))
        return self.joins[-1]


def join_of(rows: FrameRows) -> Any:
    """The one join of a plan."""
    (source,) = rows.sources
    plan: Any = source.frame._jdf.queryExecution().optimizedPlan()
    while plan.nodeName() != "Join":
        (plan,) = (plan.children().apply(n) for n in range(plan.children().size()))
    return plan


def columns(plan: Any) -> list[str]:
    return [plan.output().apply(n).name() for n in range(plan.output().size())]


@pytest.mark.usefixtures("broadcasts")
def test_what_is_open_is_joined_to_the_state_by_audit_and_producer_id_alone(spark: SparkSession) -> None:
    engine = Watched(spark, 2)
    engine.joins = []
    history = Story().begins("10:00").writes("10:00:01").others_commit("10:30").world.history()
    assert answers_of([history], engine) == [answer_of(history)]
    (rows,) = engine.joins
    join = join_of(rows)
    assert join.joinType().toString() == "LeftOuter"
    assert columns(join.left()) == ["audit", "producer_id", "opened"]
    assert columns(join.right()) == ["audit", "producer_id", "state"]
    condition = join.condition().get()
    keys = {condition.references().toSeq().apply(n).name() for n in range(condition.references().size())}
    assert keys == {"audit", "producer_id"}
    assert condition.sql().count("=") == len(keys)
