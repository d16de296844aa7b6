"""When compiled code is worth loading, as tests want it."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from txn_analysis.columns import compiled

NOTHING, NEVER = 0.0, float("inf")


@contextmanager
def loading_takes(microseconds: float) -> Iterator[None]:
    """Compiled code is used at once, or not at all."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiled, "LOADING_US", microseconds)
        patch.setattr(compiled, "NEXT_US", microseconds)
        yield
