"""Forged ends of segments, from the text to the verdict: where the log has a hole, and where the text is cut."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest

from tests.proof.hostile.scenes import COPIED_MS, LONG_AGO_MS, SETTINGS, copied
from tests.proof.hostile.test_header_keys import batch, record
from tests.tools.forms.dump_writer import Tool, batch_line, log_section, record_line
from tests.tools.forms.model import Batch, Segment
from tests.tools.harness import Answer, audit_each
from tests.tools.inputs import InputReader
from txn_analysis.settings import Settings

COPY = copied()
NOW_MS = COPIED_MS
OPENED_MS = NOW_MS - 1_000  # by the brokers' clocks; clients say `LONG_AGO_MS`
VICTIM, INVENTED, ATTACKER = 4711, 9, 5
DEEP, PAYLOAD, SHALLOW = Tool((4, 2), deep=True), Tool((4, 2), payload=True), Tool((4, 2))
TOOLS = [pytest.param(DEEP, id="deep"), pytest.param(PAYLOAD, id="payload")]


def tick(offset: int, at_ms: int) -> Batch:
    """A batch that no transaction has, by the broker's clock."""
    return batch(
        record(offset), producer=3, is_transactional=False, max_timestamp_ms=at_ms, timestamp_type="LogAppendTime"
    )


def opens(offset: int, producer: int) -> Batch:
    return batch(record(offset), producer=producer, max_timestamp_ms=NOW_MS + LONG_AGO_MS, crc=offset)


def ends(offset: int, producer: int, marker: str) -> Batch:
    ended = Batch(offset, offset, 1, producer, 0, None, is_transactional=True, is_control=True, marker=marker)
    return replace(ended, coordinator_epoch=0, max_timestamp_ms=OPENED_MS + offset)


TRUE = (tick(0, OPENED_MS), opens(1, VICTIM), tick(2, OPENED_MS + 2))
FORGED_OPEN, FORGED_COMMIT = "an open transaction of nobody", "the end of a transaction that is open"


def forged(offset: int, story: str) -> tuple[Batch, ...]:
    """What an attacker says that follows, two offsets long."""
    first = ends(offset, VICTIM, "COMMIT") if story == FORGED_COMMIT else tick(offset, OPENED_MS + 3)
    return first, opens(offset + 1, INVENTED)


@dataclass(frozen=True)
class Attack:
    """The record at offset 3, behind `TRUE`, which prints in its header keys how the segment could go on."""

    tool: Tool
    story: str
    ends_line: bool = False

    def batch(self) -> Batch:
        """A batch that is exactly as large as its record, whatever the forged positions come to."""
        size = 0
        while True:
            made = batch(record(3, headers=self._headers(size)), producer=ATTACKER, is_transactional=False)
            if made.size_bytes == size:
                return replace(made, max_timestamp_ms=OPENED_MS + 3)
            size = made.size_bytes

    def _headers(self, size_bytes: int) -> str:
        position, lines = sum(b.size_bytes for b in TRUE) + size_bytes, []
        for made in forged(4, self.story):
            lines.append(batch_line(made, position, self.tool))
            lines += [record_line(r, made, position, self.tool) for r in made.all_records()]
            position += made.size_bytes
        closing = "] key: k payload: v" if self.tool.payload else "]"
        return f"a{closing}\n" + ("\n".join(lines) + "\n" if self.ends_line else "\n".join(lines).rpartition("]")[0])


def dump(tool: Tool, *batches: Batch) -> bytes:
    return log_section("orders-1", Segment(batches[0].base_offset, batches), tool).encode()


def audited(reader: InputReader, *dumps: bytes) -> Answer:
    (answer,) = audited_by(reader, (1 << 25,), *dumps)
    return answer


def audited_by(reader: InputReader, ranges_bytes: Sequence[int], *dumps: bytes) -> list[Answer]:
    """With the state, and the other logs, of a cluster in which nobody knows the victim or the invented producer."""
    files = COPY.files(DEEP) | {f"orders-1.{n}.txt": text for n, text in enumerate(dumps)}
    settings = Settings.model_validate({"warehouse": "none"} | SETTINGS)
    # No end marker is as late as the data, so that the state is the logs' own by its `cluster.id`.
    return audit_each(reader, [(files, range_bytes) for range_bytes in ranges_bytes], settings, "one cluster")


def verdicts(answer: Answer) -> dict[tuple[int, int], tuple[str, str]]:
    rows: list[dict[str, Any]] = [row for row in answer.findings if row["topic"] == "orders" and row["partition"] == 1]
    return {(r["producer_id"], r["txn_start_offset"]): (r["verdict"], r["rule"]) for r in rows}


HANGS, BROKEN = ("hanging", "unknown_producer"), ("inconclusive", "evidence_broken")


def test_without_an_attack_the_victim_hangs(reader: InputReader) -> None:
    """Else nothing below would say anything."""
    assert verdicts(audited(reader, dump(DEEP, *TRUE), dump(DEEP, tick(3, NOW_MS)))) == {(VICTIM, 1): HANGS}


@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize("story", [FORGED_OPEN, FORGED_COMMIT])
def test_a_forged_end_that_fills_a_compacted_hole_is_not_believed(reader: InputReader, tool: Tool, story: str) -> None:
    """The attacker's record is the last one left of its segment; the next file begins where the forged batches end."""
    answer = audited(reader, dump(tool, *TRUE, Attack(tool, story).batch()), dump(tool, tick(6, NOW_MS)))
    assert verdicts(answer) == {(VICTIM, 1): BROKEN}


@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize("story", [FORGED_OPEN, FORGED_COMMIT])
@pytest.mark.parametrize("base_offset", [4, 5])
def test_a_forged_end_that_overlaps_the_next_file_is_not_believed(
    reader: InputReader, tool: Tool, story: str, base_offset: int
) -> None:
    segment = dump(tool, *TRUE, Attack(tool, story).batch())
    for following in (dump(tool, tick(base_offset, NOW_MS)), _begun(tool, base_offset)):
        found = verdicts(audited(reader, segment, following))
        assert found.keys() == {(VICTIM, 1)}
        assert found[VICTIM, 1] == BROKEN or base_offset == 4


def _begun(tool: Tool, base_offset: int) -> bytes:
    """A file that the broker has just begun."""
    return log_section("orders-1", Segment(base_offset, ()), tool).encode()


@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize("story", [FORGED_OPEN, FORGED_COMMIT])
def test_a_shallow_dump_of_the_segment_shows_that_an_end_is_forged(reader: InputReader, tool: Tool, story: str) -> None:
    segment = (*TRUE, Attack(tool, story).batch())
    answer = audited(reader, dump(tool, *segment), dump(SHALLOW, *segment), dump(tool, tick(4, NOW_MS)))
    assert verdicts(answer) == {(VICTIM, 1): HANGS}
    last = audited(reader, dump(tool, *segment), dump(SHALLOW, *segment))
    assert verdicts(last) == {(VICTIM, 1): HANGS}


RANGES_BYTES = (150, 450, 900, 2_000, 1 << 25)


def followed(tool: Tool, story: str, count: int = 6) -> tuple[Batch, ...]:
    """The attacker's record stands in the middle: what its header keys say is claimed by true batches as well."""
    true = (tick(4 + n, OPENED_MS + 10 + n) for n in range(count))
    return (*TRUE, Attack(tool, story, ends_line=True).batch(), *true)


@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize("story", [FORGED_OPEN, FORGED_COMMIT])
def test_lines_that_claim_the_places_of_true_batches_are_contested_however_the_text_is_cut(
    reader: InputReader, tool: Tool, story: str
) -> None:
    """Where a task begins between the forged lines and the true ones, each of two tasks takes its own."""
    segment = dump(tool, *followed(tool, story))
    found = [verdicts(answer) for answer in audited_by(reader, RANGES_BYTES, segment)]
    assert found == [{(VICTIM, 1): BROKEN}] * len(RANGES_BYTES)


@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize("story", [FORGED_OPEN, FORGED_COMMIT])
def test_a_shallow_dump_settles_contested_lines_however_the_text_is_cut(
    reader: InputReader, tool: Tool, story: str
) -> None:
    segment = followed(tool, story)
    dumps = dump(tool, *segment), dump(SHALLOW, *segment)
    found = [verdicts(answer) for answer in audited_by(reader, RANGES_BYTES, *dumps)]
    assert found == [{(VICTIM, 1): HANGS}] * len(RANGES_BYTES)
