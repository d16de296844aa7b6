"""A process keeps the pages of freed buffers for its next ones."""

from __future__ import annotations

import subprocess
import sys

import pytest

_BUFFER_BYTES = 40 << 20
_NEW_PAGES = f"""
from resource import RUSAGE_SELF, getrusage
from txn_analysis.columns.memory import keep_pages
keep_pages()
b"x" * {_BUFFER_BYTES}
before = getrusage(RUSAGE_SELF).ru_minflt
b"x" * {_BUFFER_BYTES}
print(getrusage(RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="glibc only")
def test_a_second_buffer_takes_no_new_pages() -> None:
    done = subprocess.run([sys.executable, "-c", _NEW_PAGES], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 100  # 10,240 without
