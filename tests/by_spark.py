"""A warehouse on a disk, read and written as one in a store: by Spark alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest


def only_by_spark(patch: pytest.MonkeyPatch) -> None:
    """From now on no warehouse is taken for a folder of this machine."""
    patch.setattr("txn_analysis.storage.opening.local_folder", lambda *_: None)
