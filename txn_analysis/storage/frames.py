"""Frames that are known to be small, as plain data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

AT_HAND_BYTES = 16 * 2**20
"""Of text that a run rests on, earlier captures included; some ten thousand batches or records at most."""


def is_at_hand(text_bytes: int) -> bool:
    """What was read of so much text is held on the driver, where no job of Spark is as fast."""
    return text_bytes <= AT_HAND_BYTES


def collected(frame: DataFrame) -> list[dict[str, Any]]:
    """All rows on the driver, structs as dictionaries; what grows with batches is never asked for."""
    return [row.asDict(recursive=True) for row in frame.collect()]
