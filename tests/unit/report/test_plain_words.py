"""A report for tired eyes: what the golden texts of five cases say, and how shortly."""

import re
from pathlib import Path

import pytest

from tests.tools.repository import ROOT

TEXTS = sorted((ROOT / "tests/golden").glob("*/report.txt"))
COMMAND = re.compile(r"txn-analysis |kafka-transactions\.sh |BROKERS=")
FINDING = re.compile(r"(?m)^\d+\. \S+@\d+: ")


def blocks(text: str) -> list[list[str]]:
    """The lines of each finding."""
    parts = [text[found.start() :] for found in FINDING.finditer(text)]
    return [re.split(r"\n\n|\n-- ", part)[0].splitlines() for part in parts]


def prose(lines: list[str]) -> str:
    """The words of lines that are neither commands nor headings."""
    shown = (line for line in lines if not COMMAND.search(line) and not line.startswith("-- "))
    return " ".join(re.sub(r"^\d+\. ", "", line) for line in shown)


@pytest.mark.parametrize("file", TEXTS, ids=lambda file: file.parent.name)
def test_only_commands_are_longer_than_a_line(file: Path) -> None:
    long = [line for line in file.read_text().splitlines() if len(line) > 110 and not COMMAND.search(line)]
    assert long == []


@pytest.mark.parametrize("file", TEXTS, ids=lambda file: file.parent.name)
def test_what_hangs_what_is_blocked_and_what_to_do_take_sixty_words(file: Path) -> None:
    first = file.read_text()[: FINDING.search(file.read_text()).start()]  # type: ignore[union-attr]  # each has one
    assert first.startswith("HANGING: ")
    assert first.index("Blocked since ") < first.index("-- Do now -") < first.index("1. Write the plan")
    assert len(prose(first.splitlines()).split()) <= 60


@pytest.mark.parametrize("file", TEXTS, ids=lambda file: file.parent.name)
def test_a_finding_takes_twelve_lines_and_two_of_what_a_framework_needs_or_of_what_is_alike(file: Path) -> None:
    for lines in blocks(file.read_text()):
        more = [line for line in lines if line.startswith(("   caution", "   alike"))]
        assert len(lines) <= 12 + 3 * len(more)


@pytest.mark.parametrize("file", TEXTS, ids=lambda file: file.parent.name)
def test_no_sentence_of_what_to_do_has_more_than_twenty_words(file: Path) -> None:
    for lines in blocks(file.read_text()):
        done = " ".join(re.split(r"   (?:fence|check|explain) ", " ".join(lines).partition("   do ")[2])[0].split())
        assert [one for one in re.split(r"[.:] ", done) if len(one.split()) > 20] == []


def test_the_demo_takes_seventy_lines() -> None:
    assert len((ROOT / "tests/golden/demo/report.txt").read_text().splitlines()) <= 70
