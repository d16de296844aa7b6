"""Warehouses that 1.0.0 wrote, and what it answered of one: `README.md` says how they were made."""

import json
import tarfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
NIGHTS, FORGED, CUT = "1.0.0", "1.0.0-forged", "1.0.0-cut"
ANSWERS: dict[str, Any] = json.loads((HERE / "1.0.0-answers.json").read_text(encoding="utf-8"))


def unpacked(name: str, folder: Path) -> Path:
    """A warehouse that 1.0.0 wrote, in a folder of the test's own."""
    with tarfile.open(HERE / f"{name}.tar.gz") as archive:
        archive.extractall(folder, filter="data")
    return folder / name
