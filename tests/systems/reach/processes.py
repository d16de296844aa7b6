"""Programs in processes of their own: what they said, and what they took."""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from typing import NamedTuple
from urllib.error import HTTPError, URLError
from urllib.request import urlopen

from tests.tools.repository import ROOT

COMMAND = (sys.executable, "-m", "txn_analysis")


class Ran(NamedTuple):
    """A command that ended: its exit code, what it said, and what it took."""

    code: int
    out: str
    err: str
    wall_s: float
    cpu_s: float


def run(environment: dict[str, str], *words: str) -> Ran:
    """Run the command line in a process of its own."""
    return run_program(environment, *COMMAND, *words)


def run_program(environment: dict[str, str], *words: str) -> Ran:
    """Run a program to its end."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        began = time.monotonic()
        process = start_program(environment, words, out.fileno(), err.fileno())
        _, status, used = os.wait4(process.pid, 0)
        wall_s = time.monotonic() - began
        process.returncode = os.waitstatus_to_exitcode(status)
        for file in (out, err):
            file.seek(0)
        said = out.read().decode(), err.read().decode()
    return Ran(process.returncode, *said, wall_s, used.ru_utime + used.ru_stime)


def start_program(environment: dict[str, str], words: Sequence[str], out: int, err: int) -> subprocess.Popen[bytes]:
    """A program that runs."""
    return subprocess.Popen([*words], env=os.environ | environment, cwd=ROOT, stdout=out, stderr=err)


def answer_of(address: str) -> str:
    """What a server on loopback says; nothing while it does not listen."""
    try:
        with urlopen(address) as answer:
            return str(answer.read().decode())
    except HTTPError as error:
        return str(error)
    except URLError:
        return ""
