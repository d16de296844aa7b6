"""The demo tells of a repair by the verbs themselves: what it prints is what they print."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from txn_analysis.cli.tour import SCREENS

ROOT = Path(__file__).parents[2]


def told(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "txn_analysis", *words],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT), "JAVA_HOME": str(folder / "no-java")},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("demo")


@pytest.fixture(scope="module")
def story(folder: Path) -> str:
    """Where no Java is."""
    done = told(folder, "demo")
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_it_has_five_screens_in_order(story: str) -> None:
    titles = [story.index(f"\n{number} of 5  {screen.title}\n") for number, screen in enumerate(SCREENS, start=1)]
    assert titles == sorted(titles)


def test_it_goes_from_what_hangs_to_what_is_repaired(story: str) -> None:
    places = [story.index(text) for text in ("\nHANGING: 4 transactions", "late_write_after_marker", "\trepaired ")]
    assert places == sorted(places)


def test_a_text_that_is_no_terminal_has_no_colours(story: str) -> None:
    assert "\x1b" not in story


def test_a_command_that_it_shows_prints_the_same_when_it_is_typed(story: str, folder: Path) -> None:
    words = "verify --warehouse txn-analysis-demo/warehouse"
    assert f"$ txn-analysis {words}\n" in story
    assert told(folder, *words.split()).stdout in story


@pytest.mark.cluster  # the whole tour again
def test_it_is_made_anew_in_its_own_folder_and_in_no_other(folder: Path, story: str) -> None:
    (folder / "other").mkdir()
    (folder / "other/kept.txt").write_text("mine")
    refused = told(folder, "demo", "--to", "other")
    assert (refused.returncode, (folder / "other/kept.txt").read_text()) == (2, "mine")
    assert told(folder, "demo").stdout == story
