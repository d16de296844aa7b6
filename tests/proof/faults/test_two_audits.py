"""Two audits at once on one warehouse: both succeed, and the tables are those of one after the other.

`make proof` lets many pairs meet, also the threads of one process.
"""

from pathlib import Path

from tests.proof.faults.pairs import two_processes
from tests.tools.scene import Scene


def test_two_processes_share_content_in_two_captures(scene: Scene, tmp_path: Path) -> None:
    assert two_processes(scene, tmp_path / "shared") == []
