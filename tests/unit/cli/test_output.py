import subprocess
import sys
from pathlib import Path

import pytest

from txn_analysis.cli.output import quiet_pipe
from txn_analysis.errors import AuditError

# The report is longer than a pipe holds, so that the writer meets the closed end whatever the timing.
_LONG_REPORT = """
import sys
from txn_analysis.cli.output import emit
emit("line\\n" * 200_000, None)
sys.exit(7)
"""


def test_a_reader_may_leave_early() -> None:
    writer = subprocess.Popen([sys.executable, "-c", _LONG_REPORT], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert writer.stdout is not None
    assert writer.stderr is not None
    assert writer.stdout.readline() == b"line\n"
    writer.stdout.close()
    errors = writer.stderr.read()
    writer.stderr.close()
    assert (errors, writer.wait()) == (b"", 7)


def test_a_full_disk_behind_stdout_is_said_in_words() -> None:
    with (
        Path("/dev/full").open("w") as full,
        pytest.raises(AuditError, match="stdout cannot be written: No space left"),
        quiet_pipe(full) as stream,
    ):
        stream.write("line\n")


@pytest.mark.parametrize(
    "words", ["--help", "", "--version", "--version --verbose", "list --help", "abort-plan --help"]
)
def test_help_on_a_full_disk_is_one_line_and_exit_code_2(words: str) -> None:
    with Path("/dev/full").open("w") as full:
        called = [sys.executable, "-m", "txn_analysis", *words.split()]
        done = subprocess.run(called, check=False, stdout=full, stderr=subprocess.PIPE)
    assert (done.returncode, done.stderr) == (2, b"error: stdout cannot be written: No space left on device\n")


def test_what_goes_to_a_closed_stdout_is_lost_and_nothing_else_is_said() -> None:
    done = subprocess.run(
        ["/bin/sh", "-c", '"$0" -m txn_analysis copy-kit >&-', sys.executable], check=False, capture_output=True
    )
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_closed_stderr_does_not_lead_to_stdout() -> None:
    call = '"$0" -m txn_analysis report --warehouse /nosuch --as-of 1 2>&-'
    done = subprocess.run(["/bin/sh", "-c", call, sys.executable], check=False, capture_output=True)
    assert (done.returncode, done.stdout) == (2, b"")


def test_a_terminal_without_unicode_gets_escapes() -> None:
    code = "from txn_analysis.cli.output import emit; emit('Gr\\u00f6\\u00dfe\\n', None)"
    environment = {"PYTHONIOENCODING": "ascii"}
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, env=environment)
    assert done.stdout == b"Gr\\xf6\\xdfe\n"
