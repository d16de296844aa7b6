"""How much of the logs a warehouse keeps."""

from __future__ import annotations

from enum import StrEnum


class Depth(StrEnum):
    """`full` keeps every batch. `quick` keeps the folds, and the batches of files that another copy or a snapshot cuts.

    Verdicts are the same.
    """

    FULL = "full"
    QUICK = "quick"
