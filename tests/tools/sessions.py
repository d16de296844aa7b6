"""For what runs in this process alone: nothing may start Spark."""

from pathlib import Path
from typing import Any

import pytest

from txn_analysis.warehouse.delta_tables import Warehouse
from txn_analysis.warehouse.opening import open_warehouse


def no_session(*_: Any, **__: Any) -> Any:
    """In place of a session of Spark; who starts one fails the test."""
    pytest.fail("Spark was started")


def opened(folder: Path | str) -> Warehouse:
    """A warehouse that no session of Spark reads."""
    return open_warehouse(no_session, str(folder))
