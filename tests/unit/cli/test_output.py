import subprocess
import sys

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


def test_a_terminal_without_unicode_gets_escapes() -> None:
    code = "from txn_analysis.cli.output import emit; emit('Gr\\u00f6\\u00dfe\\n', None)"
    environment = {"PYTHONIOENCODING": "ascii"}
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, env=environment)
    assert done.stdout == b"Gr\\xf6\\xdfe\n"
