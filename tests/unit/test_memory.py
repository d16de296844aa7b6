"""A process keeps the pages of freed buffers for its next ones, whichever of its threads freed them."""

import os
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
_OF_ANOTHER_THREAD = f"""
from resource import RUSAGE_SELF, getrusage
from threading import Event, Thread
from txn_analysis.columns.memory import keep_pages, take_from_one_heap
take_from_one_heap()
keep_pages()
freed, over = Event(), Event()
def fill():
    return len([bytes(1000) for _ in range({_BUFFER_BYTES} // 1000)])
def work():
    fill()
    freed.set()
    over.wait()
Thread(target=work).start()
freed.wait()
before = getrusage(RUSAGE_SELF).ru_maxrss
fill()
print(getrusage(RUSAGE_SELF).ru_maxrss - before)
over.set()
"""
_ARROWS = """
from txn_analysis.columns.memory import take_from_one_heap
take_from_one_heap()
import pyarrow
print(pyarrow.default_memory_pool().backend_name)
"""

of_glibc = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="glibc only")


def printed(program: str) -> str:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ARROW_")}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@of_glibc
def test_a_second_buffer_takes_no_new_pages() -> None:
    assert int(printed(_NEW_PAGES)) < 100  # 10,240 without


@of_glibc
def test_what_one_thread_freed_another_one_takes() -> None:
    assert int(printed(_OF_ANOTHER_THREAD)) < 10_000  # KiB; 40,000 without


def test_arrow_takes_its_memory_where_all_others_do() -> None:
    assert printed(_ARROWS) == "system"
