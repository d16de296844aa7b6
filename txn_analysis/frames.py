"""Frames that are known to be small, as plain data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def collected(frame: DataFrame) -> list[dict[str, Any]]:
    """All rows on the driver, structs as dictionaries; what grows with batches is never asked for."""
    return [row.asDict(recursive=True) for row in frame.collect()]
