"""A bucket on loopback for each test, which the program finds by the environment."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.stores.s3_server import Bucket, environment, served
from txn_analysis.stores.store import store_at

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[Bucket]:
    kept = Bucket()
    with served(kept) as address:
        for name, value in environment(address).items():
            monkeypatch.setenv(name, value)
        store_at.cache_clear()
        yield kept
    store_at.cache_clear()
