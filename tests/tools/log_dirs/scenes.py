"""A log directory of a broker that runs, written by the encoder of the tests."""

from pathlib import Path

from tests.tools.forms.broker import replay
from tests.tools.forms.model import History, Segment
from tests.tools.log_dirs.encoder import snapshot_bytes, write_log
from tests.unit.log_dir.test_segments import data, marker

PARTITIONS = 5
SEGMENTS = (
    Segment(0, (data(0, producer=1), marker(1, producer=1), data(2, producer=2))),
    Segment(3, (marker(3, producer=2), data(4, producer=3))),
    Segment(5, (data(5, producer=4), marker(6, producer=3))),
)


def live_log_dir(root: Path) -> Path:
    """Five partitions with the same log; each has a snapshot at its last segment.

    The checkpoint names one more, which is not in this folder.
    """
    (root / "replication-offset-checkpoint").write_bytes(b"0\n2\norders 0 7\nelsewhere 0 1\n")
    snapshot = snapshot_bytes(replay([b for s in SEGMENTS[:2] for b in s.batches]).snapshot())
    for partition in range(PARTITIONS):
        folder = write_log(root, History("orders", partition, SEGMENTS))
        (folder / f"{5:020}.snapshot").write_bytes(snapshot)
    return root
