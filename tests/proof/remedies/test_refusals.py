"""Every refusal of a text is undone by what it says to do; a new kind of refusal without its lesson here fails.

A lesson alters texts of real captures, or names other files, and does what the words say: by the command that is
printed, with the capture's own files, or without the file.
"""

import gzip
import json
import re
import subprocess
import zipfile
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.tools.repository import CASES
from tests.tools.sessions import no_session
from tests.unit.reading.test_altered import UNDONE
from tests.unit.reading.test_recognise import BOOKKEEPER, PRE_2_1, REDPANDA
from txn_analysis.errors import InputError
from txn_analysis.kafka.names import MANIFEST_FILE, MANIFEST_FORMAT, MANIFEST_VERSION
from txn_analysis.reading.inputs.find_files import find_files
from txn_analysis.reading.inputs.manifest import manifest_inputs, split_manifests
from txn_analysis.reading.inputs.planned_input import PlannedInput, check_inputs
from txn_analysis.reading.inputs.planning import plan_inputs
from txn_analysis.reading.inputs.refusals import Refused

Files = dict[str, bytes]

DUMPS, LOG = CASES / "grammar/4.2.0", "orders-0.shallow.txt"
SHALLOW, DEEP, SNAPSHOT = ((DUMPS / f"orders-0.{kind}.txt").read_bytes() for kind in ("shallow", "deep", "snapshot"))
OLD_DEEP, OLD_SHALLOW = ((CASES / f"grammar/2.1.1/orders-0.{kind}.txt").read_bytes() for kind in ("deep", "shallow"))
EXPORT = (CASES / "field/s1-json-number/f.txt").read_bytes()
FOLDERS = CASES / "kafka-4.2/capture-1/log-dirs/n1"
SEGMENT = (FOLDERS / "orders-0/00000000000000000000.log").read_bytes()
META = (FOLDERS / "meta.properties").read_bytes()
HEADER = SHALLOW[: SHALLOW.index(b"baseOffset")]
DUMPING = HEADER.partition(b"\n")[0]


class Lesson(NamedTuple):
    """What is given, what the refusal says, and what is given then; None where the printed command makes it."""

    given: Files
    words: str
    then: Files | None = None


def dump(text: bytes) -> Files:
    return {LOG: text}


def by_command(how: str) -> Lesson:
    text, reason = UNDONE[how]
    return Lesson(dump(text), reason)


def dumping(name: bytes) -> Files:
    """A dump of another file."""
    return dump(SHALLOW.replace(DUMPING, b"Dumping " + name))


def beside(name: str, text: bytes) -> Files:
    """A file beside the dump."""
    return {LOG: SHALLOW, name: text}


def archive() -> bytes:
    packed = BytesIO()
    with zipfile.ZipFile(packed, "w") as files:
        files.writestr(LOG, SHALLOW)
    return packed.getvalue()


def in_lines_of(width: int, text: bytes) -> bytes:
    lines = (line[at : at + width] for line in text.splitlines() for at in range(0, len(line), width))
    return b"\n".join(lines) + b"\n"


AGAIN = dump(SHALLOW)
"""The capture's own file."""

LESSONS: dict[Refused, Lesson] = {
    Refused.EMPTY: Lesson(dump(b""), "Copy it again", AGAIN),
    Refused.UNREADABLE: Lesson(
        {"orders.gz": gzip.compress(SHALLOW)[:-20]}, "Copy the file again", {"orders.gz": gzip.compress(SHALLOW)}
    ),
    Refused.CUT_LINE: Lesson(dump(SHALLOW[:-20]), "Copy the file again", AGAIN),
    Refused.CUT_BATCH: Lesson(dump(DEEP[: DEEP[:-1].rindex(b"\n") + 1]), "Copy the file again", dump(DEEP)),
    Refused.CUT_HEADER: Lesson(dump(DUMPING + b"\n"), "Copy the file again", AGAIN),
    Refused.NO_FIRST_LINE: Lesson(
        dump(SHALLOW[len(HEADER) :]), "Give it the whole text of kafka-dump-log, from its first line on", AGAIN
    ),
    Refused.NO_FIRST_RECORD: Lesson(
        dump((EXPORT.strip() + EXPORT)[100:]), "Export that partition again", {"state.json": EXPORT}
    ),
    Refused.CR_LF: Lesson(dump(SHALLOW.replace(b"\n", b"\r\n")), "tr -d '\\r'"),
    Refused.UTF_16: Lesson(dump(SHALLOW.decode().encode("utf-16")), "iconv -f UTF-16"),
    Refused.BYTE_ORDER_MARK: by_command("byte order mark"),
    Refused.FORMATTED_JSON: Lesson(
        {"state.json": json.dumps(json.loads(EXPORT), indent=2).encode()}, "jq -c", {"state.json": EXPORT}
    ),
    Refused.LINES_IN_FRONT: by_command("two lines"),
    Refused.STOPPED_IN_FRONT: Lesson(dump(b"ERROR no\n" + SHALLOW), "Dump it again, without 2>&1", AGAIN),
    Refused.LINES_OF_OTHERS: Lesson(
        dump(SHALLOW.replace(HEADER, HEADER + b"? what\n", 1)), "Dump the file again, without 2>&1", AGAIN
    ),
    Refused.COLOURS: by_command("colours"),
    Refused.INDENTED: by_command("indented"),
    Refused.NUMBERED: by_command("cat -n"),
    Refused.PREFIXED: by_command("compose"),
    Refused.SPACES_BEHIND: by_command("spaces at the end"),
    Refused.BROKEN_LINES: Lesson(dump(in_lines_of(80, SHALLOW)), "into a file, not from a window", AGAIN),
    Refused.GLUED_LINES: by_command("glued"),
    Refused.DEFAULT_FORMATTER: Lesson(
        {"state.txt": b"CreateTime:17\tPartition:0\tx\x00\x01"}, "--formatter kafka.coordinator", {"state.txt": EXPORT}
    ),
    Refused.OLD_SHALLOW: Lesson(dump(HEADER + PRE_2_1), "with kafka-dump-log 2.2 or newer", AGAIN),
    Refused.OLD_DEEP: Lesson(dump(OLD_DEEP), "again without --deep-iteration", dump(OLD_SHALLOW)),
    Refused.OLD_SNAPSHOT: Lesson(
        dump(SNAPSHOT.partition(b"\n")[0] + b"\nproducerId: 0 producerEpoch: 0 lastSequence: 1 lastOffset: 2\n"),
        "with kafka-dump-log 2.2 or newer",
        dump(SNAPSHOT),
    ),
    Refused.NO_METADATA: Lesson(
        dump(re.sub(rb"(?m)^\| .*$", b"| key: a payload: b", DEEP)), "again without --skip-record-metadata", dump(DEEP)
    ),
    Refused.UNKNOWN_LINE: Lesson(
        dump(HEADER + b"java.lang.IllegalStateException\n"), "with the tool of such a version", AGAIN
    ),
    Refused.NO_PARTITION: Lesson(dumping(b"00000000000000000000.log"), "by a path with its folder", AGAIN),
    Refused.NO_OFFSET: Lesson(dumping(b"orders-0/99999999999999999999.log"), "under its own name", AGAIN),
    Refused.NO_FILE_NAMED: Lesson(dumping(b"orders-0/copied"), "by its own name", AGAIN),
    Refused.SET_ASIDE: Lesson(
        beside("old.txt", SHALLOW.replace(b"orders-0/", b"orders-0.%s-delete/" % (b"0f" * 16))), "Leave it out", AGAIN
    ),
    Refused.INDEX: Lesson(
        beside("index.txt", b"Dumping orders-0/00000000000000000000.index\noffset: 1 position: 2\n"),
        "Dump the .log files only",
        AGAIN,
    ),
    Refused.KRAFT: Lesson(
        beside("kraft.txt", b"Dumping m-0/00000000000000000012-0000000001.checkpoint\nx\n"), "Leave it out", AGAIN
    ),
    Refused.NOT_DUMPED: Lesson(
        beside("epochs.txt", b"Dumping orders-0/leader-epoch-checkpoint\nx\n"), "Name only .log, .snapshot", AGAIN
    ),
    Refused.TABLE: Lesson(
        dump(b"Topic\tPartition\tProducerId\tProducerEpoch\tStartOffset\n"), "Give the files of the brokers", AGAIN
    ),
    Refused.BROKERS_TEXT: Lesson(beside("copied.txt", META), "Leave it out", AGAIN),
    Refused.BROKERS_BINARY: Lesson(
        {"0.log": SEGMENT}, "Give it as the broker has it", {"orders-0/00000000000000000000.log": SEGMENT}
    ),
    Refused.NOT_AS_WRITTEN: Lesson(
        {"n1/meta.properties": b"not one\n", "n1/orders-0/00000000000000000000.log": SEGMENT},
        "leave the file out",
        {"n1/orders-0/00000000000000000000.log": SEGMENT},
    ),
    Refused.ARCHIVE: Lesson({"copied.zip": archive()}, "Unpack it, and give what was in it", AGAIN),
    Refused.REDPANDA: Lesson(beside("redpanda.bin", REDPANDA), "Only Apache Kafka's files are read here", AGAIN),
    Refused.BOOKKEEPER: Lesson(beside("pulsar.bin", BOOKKEEPER), "Only Apache Kafka's files are read here", AGAIN),
    Refused.BINARY: Lesson(beside("photo.bin", b"\xff\xd8\xff\xe0 no text"), "leave the file out", AGAIN),
    Refused.UNKNOWN_TEXT: Lesson(beside("readme.txt", b"# readme\n"), "leave the file out", AGAIN),
}


@pytest.mark.parametrize("kind", [*LESSONS], ids=lambda kind: kind.value)
def test_what_a_refusal_says_undoes_it(kind: Refused, tmp_path: Path) -> None:
    lesson = LESSONS[kind]
    before = planned(tmp_path / "given", lesson.given)
    assert {refused for plan in before for refused in plan.refused} == {kind}
    with pytest.raises(InputError) as ended:
        check_inputs(before, skip_unrecognised=False)
    assert lesson.words in str(ended.value)
    after = planned(tmp_path / "then", lesson.then or {LOG: made_by_the_command(before, lesson)})
    check_inputs(after, skip_unrecognised=False)
    assert any(plan.sections for plan in after)


def planned(folder: Path, files: Files) -> list[PlannedInput]:
    for name, text in files.items():
        place = folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(text)
    return plan_inputs(no_session, find_files([str(folder)])).inputs


def made_by_the_command(before: list[PlannedInput], lesson: Lesson) -> bytes:
    (text,), command = lesson.given.values(), str(before[0].problem).rpartition(": ")[2]
    line = command.removesuffix(" > NEW_FILE").replace(" FILE", "").replace(" < FILE", "").removesuffix(" <")
    return subprocess.run(["sh", "-c", line], input=text, capture_output=True, check=True).stdout


def manifest(**said: object) -> Files:
    """A log of one segment, with the manifest of its copy; `said` changes what that says of the segment."""
    entry = {"path": COPIED, "size_bytes": len(SEGMENT), "sha256": sha256(SEGMENT).hexdigest()} | said
    copy = {"format": MANIFEST_FORMAT, "version": MANIFEST_VERSION, "clock": "broker", "is_complete": True}
    return {COPIED: SEGMENT, MANIFEST_FILE: json.dumps(copy | {"files": [entry]}).encode()}


COPIED = "orders-0/00000000000000000000.log"
COPIED_AGAIN = manifest()

MANIFESTS: dict[Refused, Lesson] = {
    Refused.MANIFEST_NOT_UNDERSTOOD: Lesson(manifest(size_bytes=-1), "Copy the files again", COPIED_AGAIN),
    Refused.MANIFEST_OF_TOMORROW: Lesson(
        COPIED_AGAIN | {MANIFEST_FILE: COPIED_AGAIN[MANIFEST_FILE].replace(b'"version": 1', b'"version": 2')},
        "version 2, made by a newer copy kit. Use a newer txn-analysis, or copy the files again",
        COPIED_AGAIN,
    ),
    Refused.NAMED_TWICE: Lesson(
        COPIED_AGAIN | {MANIFEST_FILE: re.sub(rb"\[(.*)\]", rb"[\1, \1]", COPIED_AGAIN[MANIFEST_FILE])},
        "Copy the files again",
        COPIED_AGAIN,
    ),
    Refused.CUT_SHORT: Lesson(
        COPIED_AGAIN | {MANIFEST_FILE: re.sub(rb"true(.*)\[.*\]", rb"false\1[]", COPIED_AGAIN[MANIFEST_FILE])},
        "cut short: it does not name 1 file. Copy again",
        COPIED_AGAIN,
    ),
    Refused.NOT_NAMED: Lesson(
        COPIED_AGAIN | {"orders-1/00000000000000000000.log": SEGMENT}, "Take it out of the folder", COPIED_AGAIN
    ),
    Refused.NOT_THERE: Lesson(
        {"n1/meta.properties": META, MANIFEST_FILE: COPIED_AGAIN[MANIFEST_FILE]}, "Copy it again", COPIED_AGAIN
    ),
    Refused.OTHER_SIZE: Lesson(COPIED_AGAIN | {COPIED: SEGMENT[:-1]}, "Copy it again", COPIED_AGAIN),
    Refused.OTHER_SUM: Lesson(
        COPIED_AGAIN | {COPIED: SEGMENT[:-1] + bytes([SEGMENT[-1] ^ 1])}, "Copy it again", COPIED_AGAIN
    ),
}


@pytest.mark.parametrize("kind", [*MANIFESTS], ids=lambda kind: kind.value)
def test_what_a_refusal_of_a_manifest_says_undoes_it(kind: Refused, tmp_path: Path) -> None:
    lesson = MANIFESTS[kind]
    refused, reasons = of_manifest(tmp_path / "given", lesson.given)
    assert kind in refused.refused
    assert refused.manifest is None
    assert any(lesson.words in reason for reason in reasons)
    read, none = of_manifest(tmp_path / "then", lesson.then or {})
    assert read.manifest is not None
    assert not none


def of_manifest(folder: Path, files: Files) -> tuple[PlannedInput, list[str]]:
    planned(folder, files)
    manifests, others = split_manifests(find_files([str(folder)]))
    inputs = plan_inputs(no_session, others).inputs
    (found,), reasons = manifest_inputs(manifests, others, inputs, is_verified=True)
    return found, reasons


def test_every_kind_of_refusal_has_its_lesson() -> None:
    assert LESSONS.keys() | MANIFESTS.keys() == set(Refused)
