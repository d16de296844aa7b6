"""One warehouse for all captures: clusters never mix, and tables are created once."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="session")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tmp_path_factory.mktemp("warehouse"))
