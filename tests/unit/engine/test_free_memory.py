"""How much of a capture this process holds depends on the memory that is free, and never on what files it has read."""

from pathlib import Path

import pytest

from txn_analysis.engine import memory
from txn_analysis.engine.engine import is_on_spark
from txn_analysis.settings import Settings

MIB = 1 << 20


@pytest.mark.parametrize(
    ("free_mib", "held_mib"),
    [(24_000, 1024), (5_120, 1024), (1_000, 200), (100, 20), (60, 16), (0, 16)],
    ids=["much", "just-enough", "a-fifth-of-it", "little", "less", "none"],
)
def test_a_fifth_of_the_free_memory_is_held(monkeypatch: pytest.MonkeyPatch, free_mib: int, held_mib: int) -> None:
    monkeypatch.setattr(memory, "free_memory_bytes", lambda: free_mib * MIB)
    assert memory.most_in_memory_bytes() == held_mib * MIB
    assert not is_on_spark(Settings(), held_mib * MIB)
    assert is_on_spark(Settings(), held_mib * MIB + 1)


@pytest.mark.parametrize(
    ("name", "written", "held_mib"),
    [
        ("memory.max", str(500 * MIB), 100),
        ("memory.max", "max", 1024),
        ("memory/memory.limit_in_bytes", str(500 * MIB), 100),
        ("memory/memory.limit_in_bytes", str(2**63 - 4096), 1024),
    ],
)
def test_a_container_bounds_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str, written: str, held_mib: int
) -> None:
    (tmp_path / "memory").mkdir()
    (tmp_path / name).write_text(written)
    (tmp_path / "memory.current").write_text(str(499 * MIB))  # pages of files among them
    monkeypatch.setattr(memory, "_CONTROL_GROUP", tmp_path)
    monkeypatch.setattr(memory, "_MACHINE", tmp_path / "none")
    assert memory.most_in_memory_bytes() == held_mib * MIB
