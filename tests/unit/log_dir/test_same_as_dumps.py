"""A broker's own files give the rows that dumps of the same files give."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.systems.e2e.newest_tools import BROKERS
from tests.tools.bodies import plain_rows, read_state_section
from tests.tools.dump_texts import plan as plan_of_text
from tests.tools.forms.dump_writer import Tool, log_section
from tests.tools.forms.history import histories
from tests.tools.forms.model import History
from tests.tools.log_dirs.encoder import as_written, segment_bytes
from tests.tools.log_dirs.reading import Segment, batches_of, plans, rows_of
from tests.tools.log_evidence import MemoryText
from tests.tools.repository import CASES
from tests.unit.reading.test_state_records import BATCH_COLUMNS
from txn_analysis.kafka.names import LOG_KINDS
from txn_analysis.reading.dump.scan import scan_range
from txn_analysis.reading.inputs.planned_input import PlannedInput
from txn_analysis.reading.log_dir.producer_files import read_snapshot_section, read_txnindex_section
from txn_analysis.reading.state.console_export import read_console_json
from txn_analysis.reading.text.section import ScanRange, Section

Row = dict[str, Any]
CAPTURES = ("kafka-4.2/capture-1", "kafka-4.2-edge/capture-1", "kafka-4.2-edge/capture-2")
# Where a row stands in its file, and what only one of the two can know: record lines, checksums that decide nothing.
PLACE = {"ingest_id", "input_id", "section_index", "text_start_bytes", "text_bytes", "ordinal"}
ONLY_ONE_KNOWS = {"record_line_count", "is_valid"}
TEXT_READERS = {"state": read_state_section, "snapshot": read_snapshot_section, "txnindex": read_txnindex_section}


def facts(rows: list[Row]) -> list[Row]:
    """The rows without their places in a file."""
    return [{name: value for name, value in row.items() if name not in PLACE | ONLY_ONE_KNOWS} for row in rows]


def dumps_of(capture: Path) -> dict[tuple[str, str, int, int], tuple[MemoryText, Section]]:
    """The section of each dumped file of a capture."""
    found = {}
    for folder in ("segments", "transaction-state", "producer-snapshots", "aborted-transactions"):
        for path in sorted((capture / folder).glob("*.txt")):
            text = path.read_bytes()
            for s in plan_of_text(text).sections:
                found[s.kind, s.topic, s.partition, s.file_base_offset] = MemoryText(text), s
    return found


def dumped_batches(text: MemoryText, section: Section) -> list[Row]:
    part = ScanRange("path", None, "input", section, section.text_start_bytes, section.text_end_bytes)
    found = scan_range(text, part)
    return found.rows().to_pylist() if found else []


def pairs() -> list[Any]:
    """Each file of a log directory of which there is also a dump."""
    found = []
    for name in CAPTURES:
        dumps = dumps_of(CASES / name)
        for plan in plans(CASES / name / "log-dirs"):
            key = plan.sections and (plan.sections[0].kind, *_place(plan))
            if key in dumps:
                case = f"{name}/{plan.sections[0].dump_path}"
                found.append(pytest.param(plan, *dumps[key], id=case))
    return found


def _place(plan: PlannedInput) -> tuple[str, int, int]:
    section = plan.sections[0]
    return section.topic, section.partition, section.file_base_offset


PAIRS = pairs()


def test_all_kinds_of_files_are_compared() -> None:
    kinds = {pair.values[0].sections[0].kind for pair in PAIRS}
    assert kinds == {"log", "state", "snapshot", "txnindex"}
    assert len(PAIRS) > 25


@pytest.mark.parametrize(("plan", "text", "section"), PAIRS)
def test_real_files(plan: PlannedInput, text: MemoryText, section: Section) -> None:
    if section.kind in LOG_KINDS:
        rows = batches_of(plan).to_pylist()
        assert facts(rows) == facts(dumped_batches(text, section))
        assert False not in {row["is_valid"] for row in rows}
    if section.kind in TEXT_READERS:
        assert facts(rows_of(plan)) == facts(plain_rows(TEXT_READERS[section.kind](text, section)))


NEWEST_TOOLS = CASES / "tools-4.4"


def of_brokers(version: str) -> list[PlannedInput]:
    """The logs and the state of the brokers of a version, in the order of their paths."""
    capture = CASES / BROKERS[version] / "capture-1/log-dirs"
    found = [p for p in plans(capture) if p.sections and p.sections[0].kind in {"state", "log"}]
    return sorted(found, key=lambda plan: plan.path)


@pytest.mark.parametrize("version", BROKERS)
def test_dumps_by_the_newest_tools_give_the_rows_of_the_files(version: str) -> None:
    expected, found = of_brokers(version), []
    for name in ("logs", "state"):
        text = (NEWEST_TOOLS / version / f"{name}.txt").read_bytes()
        for section in plan_of_text(text).sections:
            (file,) = [p for p in expected if p.path.endswith(f"log-dirs/{section.dump_path}")]
            found.append(file)
            read = dumped_batches(MemoryText(text), section)
            assert facts(batches_of(file).to_pylist()) == facts(read)
            if section.kind == "state":
                assert facts(rows_of(file)) == facts(plain_rows(read_state_section(MemoryText(text), section)))
    assert {id(p) for p in found} == {id(p) for p in expected if "/__" not in p.path or "__transaction_state" in p.path}


@pytest.mark.parametrize("version", BROKERS)
def test_an_export_by_the_newest_formatter_gives_what_the_files_say(version: str) -> None:
    text = (NEWEST_TOOLS / version / "console.json").read_bytes()
    (section,) = plan_of_text(text).sections
    not_printed = {"state_partition", "offset", "recorded_ms", "is_after_gap", *BATCH_COLUMNS, "may_list_more"}
    states = [p for p in of_brokers(version) if p.sections[0].kind == "state"]
    expected = [row for p in states for row in facts(rows_of(p))]
    read = facts(plain_rows(read_console_json(MemoryText(text), section)))
    assert [without(row, not_printed) for row in read] == [without(row, not_printed) for row in expected]


def without(row: Row, names: set[str]) -> Row:
    return {name: value for name, value in row.items() if name not in names}


@settings(max_examples=60)
@given(histories(), st.booleans())
def test_any_log(history: History, is_verified: bool) -> None:
    """Random producers, markers, codecs, holes, epochs and clocks, written by an encoder of the tests.

    Lines that are much alike could all be header keys of a small compressed batch before them: a dump doubts them, and
    what the broker wrote has no such doubt.
    """
    written = as_written(history)
    for segment in written.segments:
        text = log_section("orders-0", segment, Tool(deep=True)).encode()
        (section,) = plan_of_text(text).sections
        found = Segment.of(segment_bytes(segment), base_offset=segment.base_offset, is_verified=is_verified)
        rows, dumped = found.batches(), dumped_batches(MemoryText(text), section)
        first_packed = next((n for n, batch in enumerate(segment.batches) if batch.codec != "none"), len(dumped))
        for row in dumped[first_packed + 1 :]:
            row["may_be_header_keys"] = False
        assert facts(rows) == facts(dumped)
        assert {row["is_valid"] for row in rows} <= ({True} if is_verified else {True, None})
