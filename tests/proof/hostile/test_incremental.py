"""Captures that are fed one after another: the answer is that of feeding them at once, and nothing is forgotten."""

from dataclasses import replace

import pytest

from tests.proof.hostile.incremental import differences
from tests.tools.forms.dump_writer import Tool
from tests.tools.harness import Answer, audit_files
from tests.tools.inputs import InputReader
from tests.tools.stories.stories import ORDERS_0, ORDERS_1, Story, begun
from tests.tools.world.texts import Copy, copy_of

PAIRS = 10
STRAY = 77
TOOL = Tool(deep=True)


@pytest.mark.cluster  # an audit for each pair
@pytest.mark.parametrize("number", range(PAIRS))
def test_one_at_a_time_equals_at_once(reader: InputReader, number: int) -> None:
    assert differences(reader, f"pair {number}") == []


def strayed() -> Story:
    """Nobody gave out the producer id of the last batch."""
    story = begun().decides("Commit", "9:59:30", "9:59:31").marks("9:59:30")
    story.log(ORDERS_1)
    return story.others_commit("10:00").writes("10:01", STRAY)


def two_hours_later(story: Story) -> Copy:
    """All brokers' clocks have spoken since, and that of the state last."""
    return copy_of(story.others_commit("12:00").records("12:01", "Empty", name="idle", producer_id=11).world)


def judged(reader: InputReader, story: Story, **captures: Copy) -> Answer:
    files = {name: copy.files(TOOL) for name, copy in captures.items()}
    return audit_files(reader, files, story.world.settings, judged="later")


def test_a_start_that_is_only_in_the_earlier_capture_is_still_known(reader: InputReader) -> None:
    story = strayed()
    earlier = copy_of(story.world)
    deleted = len(story.log())
    whole = two_hours_later(story)
    log, *others = whole.logs
    (segment,) = log.segments
    cut = replace(segment, base_offset=deleted, batches=segment.batches[deleted:])
    later = replace(whole, logs=(replace(log, segments=(cut,)), *others))
    assert judged(reader, story, later=later).hanging == []
    (found,) = judged(reader, story, earlier=earlier, later=later).hanging
    assert (found["producer_id"], found["txn_start_offset"], found["is_txn_start_exact"]) == (STRAY, deleted - 1, True)


def test_a_partition_that_is_gone_from_the_newest_capture_stays_listed_as_inconclusive(reader: InputReader) -> None:
    story = strayed()
    earlier = copy_of(story.world)
    whole = two_hours_later(story)
    later = replace(whole, logs=tuple(log for log in whole.logs if (log.topic, log.partition) != ORDERS_0))
    answer = judged(reader, story, earlier=earlier, later=later)
    row = next(row for row in answer.findings if row["producer_id"] == STRAY)
    assert (row["verdict"], row["rule"]) == ("inconclusive", "evidence_broken")
    assert row["missing_evidence"] == ["the partition is not in this capture"]
