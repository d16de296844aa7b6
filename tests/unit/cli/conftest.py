from pathlib import Path

import pytest

from tests.unit.cli.stubs import Library


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Library:
    return Library(monkeypatch)


@pytest.fixture
def dump(tmp_path: Path) -> str:
    path = tmp_path / "orders-0.txt"
    path.write_text("Dumping /var/kafka/orders-0/00000000000000000000.log\nLog starting offset: 0\n")
    return str(path)
