"""How much of a capture this process holds depends on the memory that is free, and never on what files it has read."""

from pathlib import Path

import pytest

from txn_analysis.errors import WarehouseError
from txn_analysis.storage import opening
from txn_analysis.storage.roots import root_at

MIB = 1 << 20


@pytest.mark.parametrize(
    ("free_mib", "held_mib"),
    [(24_000, 1024), (5_120, 1024), (1_000, 200), (100, 20), (60, 16), (0, 16)],
    ids=["much", "just-enough", "a-fifth-of-it", "little", "less", "none"],
)
def test_a_fifth_of_the_free_memory_is_held(monkeypatch: pytest.MonkeyPatch, free_mib: int, held_mib: int) -> None:
    monkeypatch.setattr(opening, "free_memory_bytes", lambda: free_mib * MIB)
    assert opening.most_in_memory_bytes() == held_mib * MIB
    assert opening.fits_in_memory(held_mib * MIB)
    assert not opening.fits_in_memory(held_mib * MIB + 1)


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
    monkeypatch.setattr(opening, "_CONTROL_GROUP", tmp_path)
    monkeypatch.setattr(opening, "_MACHINE", tmp_path / "none")
    assert opening.most_in_memory_bytes() == held_mib * MIB


@pytest.mark.parametrize("name", ["ware%20house", "ware\\house", "ware\nhouse"])
def test_a_folder_whose_name_deltas_library_takes_for_another_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(WarehouseError, match="Move it to another name") as refused:
        root_at(str(tmp_path / name / "audits"))
    assert "\n" not in str(refused.value)
