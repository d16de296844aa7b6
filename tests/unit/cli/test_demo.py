"""The demo unpacks a capture, and its commands tell of a hang and its repair."""

import shlex
from pathlib import Path

import pytest

from tests.tools.program import program


def test_its_five_commands_go_from_what_hangs_to_what_is_repaired(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    printed = program("demo").out
    typed = [shlex.split(line, comments=True)[1:] for line in printed.splitlines() if not line.startswith("#")]
    done = [program(*words) for words in typed]
    assert [one.code for one in done] == [1, 0, 0, 1, 1], [one.err for one in done]
    told = "".join(one.out for one in done)
    places = [told.index(text) for text in ("HANGING: 4 transactions", "late_write_after_marker", "\trepaired ")]
    assert places == sorted(places)


def test_a_folder_that_holds_something_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "kept.txt").write_text("mine")
    done = program("demo", "--to", str(tmp_path))
    assert (done.code, done.out) == (2, "")
    assert "this is not empty" in done.err
    assert [file.name for file in tmp_path.iterdir()] == ["kept.txt"]
