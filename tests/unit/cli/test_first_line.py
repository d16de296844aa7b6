"""Who starts an audit sees at once that it works: before Arrow, Spark or a table is looked at."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.tools.repository import ROOT

CAPTURE = ROOT / "data/cases/kafka-4.2/capture-1/segments"
FIRST_LINE_WITHIN_S = 0.3
COUNTING = "import sys; sum(range(5_000_000)); print('here', file=sys.stderr); sys.stdin.read()"
COUNTING_S = 0.06  # what that works where the limit is meant as it stands
ATTEMPTS = 5
USER_TIME, SYSTEM_TIME = 11, 12  # of /proc/PID/stat, behind the name of the program


def seconds_to_the_first_line(*words: str) -> tuple[float, str]:
    """What a command has worked until its first line is there: without waiting for other programs on the machine."""
    with subprocess.Popen(
        [sys.executable, *words],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        line = process.stderr.readline()
        fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(") ")[2].split()
        process.kill()
    return (int(fields[USER_TIME]) + int(fields[SYSTEM_TIME])) / os.sysconf("SC_CLK_TCK"), line


@pytest.mark.cluster
def test_the_first_line_is_there_in_a_third_of_a_second(tmp_path: Path) -> None:
    """In the best of a few attempts; on a machine that is slower, in as much more as it takes to count."""
    audit = ("-m", "txn_analysis", "audit", str(CAPTURE), "--warehouse", str(tmp_path / "warehouse"))
    found = [
        (seconds_to_the_first_line("-c", COUNTING)[0], *seconds_to_the_first_line(*audit)) for _ in range(ATTEMPTS)
    ]
    assert {line.split(" ...")[0] for _, _, line in found} == {"txn-analysis: finding files: 7 files, 391.9 kB"}
    assert min(seconds / max(1, counting_s / COUNTING_S) for counting_s, seconds, _ in found) <= FIRST_LINE_WITHIN_S
