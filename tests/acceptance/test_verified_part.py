"""A seventh of the segments each night: in a week all checksums were looked at, and what is damaged stays damaged."""

from pathlib import Path
from typing import Any

import pytest

from tests.log_dir.encoder import write_log
from tests.log_dir.test_segments import data, marker
from tests.oracle.model import History, Segment
from tests.sessions import no_session
from txn_analysis.errors import ConfigError
from txn_analysis.kafka.log_part import LogPart
from txn_analysis.pipeline import steps
from txn_analysis.questions.loaded_report import load_report
from txn_analysis.report.model import AuditReport, VerifiedPart
from txn_analysis.report.text_report import text_report
from txn_analysis.settings import Settings
from txn_analysis.storage.opening import open_warehouse

PARTITIONS, NIGHTS = 6, 7
SEGMENTS = tuple(
    Segment(base, (data(base, producer=1), data(base + 1, producer=1), marker(base + 2, producer=1)))
    for base in (0, 3, 6)
)


@pytest.fixture
def log_dir(tmp_path: Path) -> Path:
    """Six partitions of three segments, whose transactions have all ended: their data decides nothing."""
    for partition in range(PARTITIONS):
        write_log(tmp_path / "copy", History("orders", partition, SEGMENTS))
    return tmp_path / "copy"


def audited(log_dir: Path, night: int, **settings: Any) -> AuditReport:
    known = {"warehouse": str(log_dir.parent / "w"), "capture": f"night-{night}", "verify_part": f"{night}/{NIGHTS}"}
    return steps.audit(no_session, [str(log_dir)], Settings.model_validate(known | settings))


def looked_at(report: AuditReport) -> VerifiedPart:
    assert report.coverage.verified_part is not None
    return report.coverage.verified_part


def damage(log_dir: Path, partition: int, base_offset: int) -> None:
    """One bit of the records of the second batch is wrong."""
    file = log_dir / f"orders-{partition}" / f"{base_offset:020}.log"
    content = bytearray(file.read_bytes())
    first_bytes = int.from_bytes(content[8:12], "big") + 12
    content[first_bytes + 70] ^= 1
    file.write_bytes(content)


def test_in_a_week_every_segment_is_looked_at_once(log_dir: Path) -> None:
    nights = [looked_at(audited(log_dir, night)) for night in range(1, NIGHTS + 1)]
    assert sum(night.segment_count for night in nights) == PARTITIONS * len(SEGMENTS)
    assert {night.of_segment_count for night in nights} == {PARTITIONS * len(SEGMENTS)}
    assert sum(night.segment_bytes for night in nights) == nights[0].of_segment_bytes
    assert {night.damaged_count for night in nights} == {0}


def test_what_is_damaged_is_found_on_its_night_and_on_every_one_behind(log_dir: Path) -> None:
    damage(log_dir, 2, 3)
    own = next(n for n in range(1, NIGHTS + 1) if LogPart(n, NIGHTS).holds("orders", 2, 3))
    nights = [own % NIGHTS + 1, own, own % NIGHTS + 1, (own + 1) % NIGHTS + 1]
    for place, night in enumerate(nights):
        report = audited(log_dir, night, capture=f"night-{place}")
        broken = [f"{item.topic}-{item.partition}" for item in report.partitions if item.problems]
        assert (looked_at(report).damaged_count, broken) == ((1, ["orders-2"]) if place else (0, []))


def test_what_is_whole_is_the_same_input_on_every_night(log_dir: Path) -> None:
    ids = {tuple(item.input_id for item in audited(log_dir, night).inputs) for night in (1, 2, 3)}
    plain = audited(log_dir, 4, verify_part=None)
    assert ids == {tuple(item.input_id for item in plain.inputs)}
    assert plain.coverage.verified_part is None


def test_the_report_says_which_part_tonight_and_later(log_dir: Path) -> None:
    report = audited(log_dir, 3)
    part = looked_at(report)
    warehouse = open_warehouse(no_session, str(log_dir.parent / "w"))
    for said in (report, load_report(warehouse, Settings(warehouse=str(log_dir.parent / "w")))):
        words = " ".join(text_report(said).split())
        assert f"checksums part 3/7: all of {part.segment_count} of 18 segments, " in words
        assert "of the others those of what decides" in words


def test_all_and_a_part_are_not_asked_for_at_once(log_dir: Path) -> None:
    with pytest.raises(ConfigError, match="leave one of them out"):
        audited(log_dir, 1, verify=True)


@pytest.mark.parametrize("text", ["0/7", "8/7", "3", "3/0", "a/b", "-1/7"])
def test_a_part_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is no part such as 3/7"):
        LogPart.of(text)


def test_parts_are_of_about_the_same_size() -> None:
    sizes = [sum(LogPart(n, 7).holds("orders", p, b) for p in range(50) for b in range(100)) for n in range(1, 8)]
    assert sum(sizes) == 5000
    assert 0.9 < min(sizes) * 7 / 5000 < max(sizes) * 7 / 5000 < 1.1
