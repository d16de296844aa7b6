"""The captures of a warehouse as a table to print."""

from __future__ import annotations

from typing import TYPE_CHECKING

from txn_analysis.report.formats import Answer, Column
from txn_analysis.text.words import iso_utc

if TYPE_CHECKING:
    from collections.abc import Iterable

    from txn_analysis.runs.captures import Capture

CAPTURES = (
    Column("Cluster"),
    Column("Capture"),
    Column("CopiedAt"),
    Column("Inputs"),
    Column("Runs"),
    Column("LastRun"),
    Column("NewestMomentMs"),
    Column("SizeBytes"),
    Column("RunIds"),
)
_IN_TEXT = 6


def captures_answer(found: Iterable[Capture]) -> Answer:
    """One row per capture."""
    rows = tuple(
        (
            each.cluster,
            each.name,
            None if each.newest_moment_ms is None else iso_utc(each.newest_moment_ms),
            each.input_count,
            len(each.runs),
            each.runs[-1] if each.runs else None,
            each.newest_moment_ms,
            each.size_bytes,
            list(each.runs),
        )
        for each in found
    )
    return Answer(CAPTURES, rows, _IN_TEXT)
