import io
import re

import pytest

from tests.tools.cases import cases
from txn_analysis.report.terminal import LineProgress, LiveProgress, Progress, how_far, progress_on


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_log_gets_one_line_a_stage() -> None:
    stream = io.StringIO()
    with progress_on(stream).stage("reading", "7 files, 0.4 MB\n\x1b[2J"):
        pass
    assert re.fullmatch(r"txn-analysis: reading: 7 files, 0\.4 MB\\n\\x1b\[2J \.\.\. \d+\.\d s\n", stream.getvalue())


def test_a_failed_stage_says_so() -> None:
    stream = io.StringIO()
    with pytest.raises(ValueError, match="boom"), LineProgress(stream).stage("judge"):
        raise ValueError("boom")
    assert re.fullmatch(r"txn-analysis: judge \.\.\. failed after \d+\.\d s\n", stream.getvalue())


def test_a_terminal_gets_a_live_display_with_nested_stages() -> None:
    stream = Terminal()
    progress = progress_on(stream)
    assert isinstance(progress, LiveProgress)
    with progress.stage("reading", "[red]7 files"), progress.stage("scan"):
        pass
    with progress.stage("judge"):
        pass
    assert all(word in stream.getvalue() for word in ("reading: [red]7 files", "scan", "judge"))


def test_a_dumb_terminal_gets_lines() -> None:
    assert isinstance(progress_on(Terminal(), is_dumb=True), LineProgress)


def test_silence() -> None:
    with Progress().stage("anything"):
        pass


def test_a_long_stage_says_how_far_it_is_and_when_it_will_end() -> None:
    assert how_far(0.25, 60, 4_000_000_000) == "1.0 GB done, about 3 min 0 s left"
    assert how_far(0.01, 10, 4_000_000_000) == "40.0 MB done, about 16 min 30 s left"


def test_a_log_is_told_so_from_time_to_time() -> None:
    stream = io.StringIO()
    with LineProgress(stream, every_s=0).stage("scan", total_bytes=2_000_000) as tell:
        assert tell is not None
        tell(0.5)
    often = stream.getvalue().splitlines()
    assert re.fullmatch(r"txn-analysis: scan: 2\.0 MB: 1\.0 MB done, about 0 s left", often[0])
    assert len(often) == 2

    stream = io.StringIO()
    with LineProgress(stream, every_s=3600).stage("scan", total_bytes=2_000_000) as tell:
        assert tell is not None
        tell(0.5)
    assert len(stream.getvalue().splitlines()) == 1


def test_a_terminal_shows_how_far_it_is() -> None:
    stream = Terminal()
    with LiveProgress(stream).stage("scan", total_bytes=2_000_000) as tell:
        assert tell is not None
        tell(0.5)
    assert "scan: 2.0 MB: 1.0 MB done" in stream.getvalue()


@cases(
    "share total_bytes",
    {
        "before-the-first-task-is-done": (0.0, 2_000_000),
        "after-the-last-one": (1.0, 2_000_000),
        "where-tasks-differ-in-size": (0.99, None),
    },
)
def test_no_figure_stands_still_while_work_goes_on(share: float, total_bytes: int | None) -> None:
    assert how_far(share, 40, total_bytes) is None
    stream = io.StringIO()
    with LineProgress(stream, every_s=0).stage("judging", total_bytes=total_bytes) as tell:
        assert tell is not None
        tell(share)
    assert re.fullmatch(r"txn-analysis: judging.*: 0 s so far", stream.getvalue().splitlines()[0])
    terminal = Terminal()
    with LiveProgress(terminal).stage("judging") as tell:
        assert tell is not None
        tell(share)
    assert "%" not in terminal.getvalue()
    assert "left" not in terminal.getvalue()
