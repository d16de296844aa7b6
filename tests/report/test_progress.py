from __future__ import annotations

import io
import re

import pytest

from txn_analysis.report.progress import LineProgress, LiveProgress, progress_on, silent


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_log_gets_one_line_a_stage() -> None:
    stream = io.StringIO()
    with progress_on(stream).stage("ingest", "7 files, 0.4 MB\n\x1b[2J"):
        pass
    assert re.fullmatch(r"txn-analysis: ingest: 7 files, 0\.4 MB\\n\\x1b\[2J \.\.\. \d+\.\d s\n", stream.getvalue())


def test_a_failed_stage_says_so() -> None:
    stream = io.StringIO()
    with pytest.raises(ValueError, match="boom"), LineProgress(stream).stage("judge"):
        raise ValueError("boom")
    assert re.fullmatch(r"txn-analysis: judge \.\.\. failed after \d+\.\d s\n", stream.getvalue())


def test_a_terminal_gets_a_live_display_with_nested_stages() -> None:
    stream = Terminal()
    progress = progress_on(stream)
    assert isinstance(progress, LiveProgress)
    with progress.stage("ingest", "[red]7 files"), progress.stage("scan"):
        pass
    with progress.stage("judge"):
        pass
    assert all(word in stream.getvalue() for word in ("ingest: [red]7 files", "scan", "judge"))


def test_a_dumb_terminal_gets_lines() -> None:
    assert isinstance(progress_on(Terminal(), is_dumb=True), LineProgress)


def test_silence() -> None:
    with silent().stage("anything"):
        pass
