"""A text that something altered on its way is refused by what stands in it, with the command that undoes it."""

import json
import re
import shutil
import subprocess
from collections.abc import Callable

import pytest

from tests.tools.cases import cases
from tests.tools.dump_texts import plan
from tests.tools.forms.model import StateRecord, StateValue
from tests.tools.forms.state_writer import console_json, console_text
from tests.tools.noisy import said
from tests.tools.repository import CASES

SHALLOW = (CASES / "grammar/4.2.0/orders-0.shallow.txt").read_bytes()
SNAPSHOT = (CASES / "field/p-clean/f.txt").read_bytes()
EXPORT = (CASES / "field/s1-json-number/f.txt").read_bytes()
OBJECT = json.loads(EXPORT)


def each(prefix: bytes, text: bytes = SHALLOW) -> bytes:
    return re.sub(rb"(?m)^(?=.)", prefix, text)


def numbered(form: bytes) -> bytes:
    return b"".join(form % number + line for number, line in enumerate(SHALLOW.splitlines(keepends=True), 1))


IDS = "order-service-3", "billing"
STATE = console_text([StateRecord(name, StateValue(7, 3, "Ongoing", (), 1795, 60000, 1790)) for name in IDS]).encode()


UNDONE = {
    "compose": (each(b"kafka-1  | "), "`kafka-1  | ` stands in front of what line 1 says"),
    "stamps": (each(b"2026-11-28T05:00:00.123Z "), "`2026-11-28T05:00:00.123Z ` stands in front of what line 1 says"),
    "byte order mark": (b"\xef\xbb\xbf" + SHALLOW, "byte order mark"),
    "colours": (each(b"\x1b[32m").replace(b"\n", b"\x1b[0m\n"), "colours of a terminal"),
    "indented": (each(b"\t"), "spaces stand in front"),
    "quoted": (each(b"> "), "`> ` stands in front"),
    "grep -n": (numbered(b"%d:"), "numbers of lines"),
    "cat -n": (numbered(b"%6d\t"), "numbers of lines"),
    "a prompt": (b"$ kafka-dump-log.sh --files x\n" + SHALLOW, "which is line 2"),
    "two lines": (b"Script started\nDefaulted container\n" + SHALLOW, "which is line 3"),
    "spaces at the end": (re.sub(rb"\n", b"  \n", SHALLOW), "its lines end in spaces"),
    "prefix behind the header": (
        b"".join(SHALLOW.splitlines(keepends=True)[:2])
        + each(b"a | ", b"".join(SHALLOW.splitlines(keepends=True)[2:])),
        "`a | ` stands in front of its lines",
    ),
    "glued": (SNAPSHOT.replace(b".snapshot\n", b".snapshot"), "without a newline"),
    "an export in Windows' lines": (STATE.replace(b"\n", b"\r\n"), "CR LF"),
    "an export behind a prompt": (b"$ kafka-console-consumer.sh\n" + STATE, "which is line 2"),
    "an export through compose": (each(b"kafka-1  | ", STATE), "`kafka-1  | ` stands in front of what line 1 says"),
    "comments": (SNAPSHOT.replace(b"producerId", b"# producerId"), "`# ` stands in front of its lines"),
}


@pytest.mark.parametrize("write", [console_json, console_text])
def test_an_export_without_its_front_is_never_cut_into_one_that_looks_whole(
    write: Callable[[list[StateRecord]], str],
) -> None:
    records = [StateRecord(name, StateValue(7, 3, "Ongoing", (), 1795, 60000, 1790)) for name in IDS]
    first, text = write(records[:1]).encode().rstrip(b"\n"), write(records).encode()
    for cut in range(1, len(first)):
        assert plan(text[cut:]).problem is not None
        assert "NEW_FILE" not in (plan(text[cut:]).problem or ""), text[cut : cut + 40]


def undone_by(command: str, text: bytes) -> bytes:
    typed = ["sh", "-c", command.removesuffix(" FILE > NEW_FILE").removesuffix(" <")]
    return subprocess.run(typed, input=text, capture_output=True, check=True).stdout


@pytest.mark.skipif(shutil.which("jq") is None, reason="without jq there is nothing to undo")
@cases(
    "text",
    {
        "jq": json.dumps(OBJECT, indent=2).encode(),
        "jq -S": json.dumps(OBJECT, sort_keys=True, separators=(",", ":")).encode(),
        "jq -s": json.dumps([OBJECT]).encode(),
    },
)
def test_the_printed_command_undoes_what_formatted_an_export(text: bytes) -> None:
    problem = plan(text).problem or ""
    assert json.loads(undone_by(problem.partition("Put it back: ")[2], text)) == OBJECT


@pytest.mark.parametrize("how", UNDONE)
def test_the_printed_command_undoes_it(how: str) -> None:
    text, reason = UNDONE[how]
    problem = plan(text).problem
    assert problem is not None
    assert reason in problem
    undone = undone_by(problem.rpartition(": ")[2], text)
    assert said(undone) == said(SNAPSHOT if b".snapshot" in text else STATE if IDS[0].encode() in text else SHALLOW)


@cases(
    "text reason",
    {
        "without its first line": (SHALLOW.partition(b"\n")[2], "begins inside a dump"),
        "an error": (b"ERROR no\n" + SHALLOW, "line 2. Dump it again, without 2>&1"),
        "an error behind the header": (
            SHALLOW.replace(b"baseOffset", b"ERROR it failed\nbaseOffset", 1),
            "a line of others stands in front of its first one. Dump the file again, without 2>&1",
        ),
        "a line between Dumping and its header": (
            SHALLOW.replace(b"Log starting", b"pulled 3 layers\nLog starting", 1),
            "another line stands before its header",
        ),
        "list": (b"TransactionalId\tCoordinator\tProducerId\tTransactionState\nx\t1\t2\tOngoing\n", "a table of"),
        "find-hanging": (b"Topic\tPartition\tProducerId\tProducerEpoch\tStartOffset\n", "a table of"),
        "wrapped": (
            b"\n".join(line[at : at + 80] for line in SHALLOW.splitlines() for at in range(0, len(line), 80)) + b"\n",
            "broken into several",
        ),
        "fields": ((CASES / "field/p-fields/f.txt").read_bytes(), "broken into several"),
    },
)
def test_what_no_short_command_undoes_is_said(text: bytes, reason: str) -> None:
    assert reason in (plan(text).problem or "")


def test_a_text_of_somebody_else_is_not_shown() -> None:
    problem = plan(b"secret of a client baseOffset: 0 lastOffset: 0 count: 1\nand more\n").problem
    assert problem is not None
    assert "secret" not in problem


def test_double_spaced_text_is_read() -> None:
    assert said(SHALLOW.replace(b"\n", b"\n\n")) == said(SHALLOW)
