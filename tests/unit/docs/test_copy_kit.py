"""The copy kit, under the shells that brokers have: what it copies, in which order, and what its manifest proves."""

import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.systems.audits.test_manifests import audited
from tests.tools.docs.commands import blocks_of
from tests.tools.repository import CASES, ROOT
from txn_analysis.cli.main import app
from txn_analysis.cli.shell_verbs import SCRIPT
from txn_analysis.errors import InputError

pytestmark = pytest.mark.cluster  # each copies a log directory by hundreds of processes

COPIED = CASES / "kafka-4.2-edge/capture-1/log-dirs"
STATE = "__transaction_state"
MANIFEST = "txn-capture.json"
SHELLS = ("dash", "bash", "busybox")
LOG, NEXT = "trades-eu-0/00000000000000000000.log", "trades-eu-0/00000000000000000999.log"
NOT_READ = {"bootstrap.checkpoint", "cleaner-offset-checkpoint", "recovery-point-offset-checkpoint"}

# Calls the real dd; before that, what the test says happens to the broker.
DD = """#!/bin/sh
echo x >> {folder}/calls
{happens}
exec {dd} "$@"
"""
TOPICS = """#!/bin/sh
echo x >> {folder}/asked
if [ "$(grep -c x {folder}/asked)" -le {until} ]; then cat {folder}/first; else cat {folder}/then; fi
"""
DUMP_LOG = """#!{python}
import sys
files = sys.argv[sys.argv.index("--files") + 1].split(",")
kind = "state" if "--transaction-log-decoder" in sys.argv else "log"
with open("{folder}/calls", "a") as calls:
    print(kind, len(files), file=calls)
for file in files:
    print("Dumping", file)
"""


def program(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)


@dataclass
class Broker:
    """A broker's log directory, and the programs that a call of the kit finds first."""

    folder: Path
    shell: str

    @property
    def log_dir(self) -> Path:
        return self.folder / "kafka"

    @property
    def copy(self) -> Path:
        return self.folder / "copy"

    @property
    def programs(self) -> Path:
        return self.folder / "programs"

    def runs(self, *words: str, pause: int = 0, dirs: Sequence[Path] = ()) -> subprocess.CompletedProcess[bytes]:
        """One call; the busybox shell has nothing but busybox."""
        where = os.environ["PATH"] if self.shell != "busybox" else str(_applets(self.folder))
        command = ["busybox", "sh"] if self.shell == "busybox" else [self.shell]
        given = [str(path) for path in dirs or [self.log_dir]]
        return subprocess.run(
            [shutil.which(command[0]) or "", *command[1:], str(SCRIPT), *words, "--pause", str(pause), *given],
            env={"PATH": f"{self.programs}:{where}", "TMPDIR": str(self.folder)},
            capture_output=True,
            check=False,
        )

    def copies(self, *words: str, pause: int = 0, dirs: Sequence[Path] = ()) -> dict[str, Any]:
        """A call that is to end well, and its manifest."""
        done = self.runs("--to", str(self.copy), *words, pause=pause, dirs=dirs)
        assert done.returncode == 0, done.stderr
        return self.manifest()

    def manifest(self) -> dict[str, Any]:
        said: dict[str, Any] = json.loads((self.copy / MANIFEST).read_text())
        return said

    def describes(self, *, leader: int = 1, then: int = 1, until: int = 1) -> None:
        """What the controller says of every partition, in the first calls and in those that follow."""
        for name, broker in (("first", leader), ("then", then)):
            lines = [_described(path.name, broker) for path in sorted(self.log_dir.iterdir()) if path.is_dir()]
            (self.folder / name).write_text("Topic: trades-eu\tTopicId: x\tPartitionCount: 2\n" + "".join(lines))
        program(self.programs / "kafka-topics.sh", TOPICS.format(folder=self.folder, until=until))

    def happens_at(self, call: int, what: str) -> None:
        """Something happens before the n-th reading of a file."""
        self.happens(f'if [ "$(grep -c x {self.folder}/calls)" = {call} ]; then\n{what}\nfi')

    def happens(self, what: str) -> None:
        """Something happens before each reading of a file."""
        real = shutil.which("dd") if self.shell != "busybox" else f"{shutil.which('busybox')} dd"
        program(self.programs / "dd", DD.format(folder=self.folder, happens=what, dd=real))


def _described(name: str, broker: int) -> str:
    topic, _, partition = name.rpartition("-")
    return f"\tTopic: {topic}\tPartition: {partition}\tLeader: {broker}\tReplicas: 1\tIsr: 1\n"


def _applets(folder: Path) -> Path:
    found = folder / "applets"
    if not found.exists():
        found.mkdir()
        busybox = shutil.which("busybox") or ""
        for name in subprocess.run([busybox, "--list"], capture_output=True, text=True, check=True).stdout.split():
            (found / name).symlink_to(busybox)
    return found


@pytest.fixture(params=SHELLS)
def broker(request: pytest.FixtureRequest, tmp_path: Path) -> Broker:
    if shutil.which(request.param) is None:
        pytest.skip(f"{request.param} is not installed")
    made = Broker(tmp_path, request.param)
    shutil.copytree(COPIED, made.log_dir)
    made.programs.mkdir()
    (made.log_dir / "meta.properties").write_text("#\n#Thu Nov 26 00:00:00 UTC 2026\ncluster.id=abc\nnode.id=1\n")
    (made.log_dir / "trades-eu-0/00000000000000000000.index").write_bytes(bytes(1 << 20))
    (made.log_dir / "trades-eu-0/00000000000000000000.timeindex").write_bytes(b"x")
    return made


@pytest.fixture
def dash(tmp_path: Path) -> Broker:
    made = Broker(tmp_path, "dash" if shutil.which("dash") else "sh")
    shutil.copytree(COPIED, made.log_dir)
    made.programs.mkdir()
    (made.log_dir / "meta.properties").write_text("#\ncluster.id=abc\nnode.id=1\n")
    for folder in made.log_dir.glob("__consumer_offsets-*"):
        shutil.rmtree(folder)
    return made


def files_of(folder: Path) -> set[str]:
    found = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    return {name for name in found if not name.startswith(".copy-kit") and name != MANIFEST}


def test_it_copies_what_is_read_the_state_last_and_proves_it(broker: Broker) -> None:
    broker.describes()
    said = broker.copies("--bootstrap-server", "localhost:9092", pause=4 if broker.shell == "busybox" else 2)
    wanted = {f for f in files_of(broker.log_dir) if not f.endswith("index") or f.endswith(".txnindex")} - NOT_READ
    assert files_of(broker.copy) == wanted == {file["path"] for file in said["files"]}
    for file in said["files"]:
        content = (broker.copy / file["path"]).read_bytes()
        assert content == (broker.log_dir / file["path"]).read_bytes()
        assert (file["size_bytes"], file["sha256"]) == (len(content), hashlib.sha256(content).hexdigest())
    order = [file["path"].startswith(STATE) for file in sorted(said["files"], key=lambda file: file["sequence"])]
    assert order == sorted(order)
    of_partition = [file for file in said["files"] if file["topic"] is not None]
    assert all(file["is_leader_confirmed"] and file["is_end_confirmed"] for file in of_partition)
    assert {file["topic_id"] for file in of_partition if file["topic"] == "accounts"} != {None}
    report = audited(broker.copy)
    assert report.coverage.transaction_state["copied"]["is_state_last"]
    assert [finding.topic for finding in report.hanging] == ["accounts"]


def test_without_a_description_it_confirms_no_leader_and_says_so(dash: Broker) -> None:
    done = dash.runs("--to", str(dash.copy))
    assert b"confirms no leader" in done.stderr
    assert not any(file["is_leader_confirmed"] for file in dash.manifest()["files"])


def test_a_description_of_afterwards_can_come_afterwards(dash: Broker) -> None:
    dash.describes()
    description = dash.folder / "first"
    dash.copies("--describe-before", str(description))
    assert not any(file["is_leader_confirmed"] for file in dash.manifest()["files"])
    after = dash.folder / "after"
    after.write_text(description.read_text())
    newer = (dash.copy / ".copy-kit/ended").stat().st_mtime + 2
    os.utime(after, (newer, newer))
    dash.copies("--finish", "--describe-after", str(after))
    assert any(file["is_leader_confirmed"] for file in dash.manifest()["files"])


def test_where_a_leader_changed_it_copies_again(dash: Broker) -> None:
    dash.describes(leader=2, until=1)
    said = dash.copies("--bootstrap-server", "localhost:9092")
    assert all(file["is_leader_confirmed"] for file in said["files"] if file["topic"] is not None)
    assert (dash.folder / "asked").read_text().count("x") == 4


def test_another_brokers_partitions_are_not_confirmed(dash: Broker) -> None:
    dash.describes(leader=2, then=2)
    said = dash.copies("--bootstrap-server", "localhost:9092")
    assert not any(file["is_leader_confirmed"] for file in said["files"])


def test_a_segment_that_is_rolled_meanwhile_is_copied_too(dash: Broker) -> None:
    log = dash.log_dir
    dash.happens_at(2, f"printf more >> {log / LOG}; cp {log / LOG} {log / NEXT}")
    said = dash.copies()
    assert NEXT in {file["path"] for file in said["files"]}
    assert (dash.copy / LOG).read_bytes() == (log / LOG).read_bytes()


def test_a_cleaner_that_passes_while_the_state_is_read(dash: Broker) -> None:
    """What two segments held is in the first one by now, under another inode; the second one is gone."""
    folder = dash.log_dir / f"{STATE}-0"
    first, second = (folder / f"{number:020}.log" for number in (0, 999))
    shutil.copy(first, second)
    reads = 2 + sum(1 for name in files_of(dash.log_dir) if not name.startswith(STATE))
    dash.happens_at(reads, f"cat {second} {first} > {folder}/swap; mv {folder}/swap {first}; rm -f {second}")
    said = dash.copies()
    assert not second.exists()
    assert str(second.relative_to(dash.log_dir)) not in {file["path"] for file in said["files"]}
    assert not (dash.copy / second.relative_to(dash.log_dir)).exists()
    assert (dash.copy / first.relative_to(dash.log_dir)).read_bytes() == first.read_bytes()


@pytest.mark.parametrize("signal", [pytest.param("TERM", marks=pytest.mark.cluster), "KILL"])
def test_a_kit_that_is_killed_is_resumed(broker: Broker, signal: str) -> None:
    broker.describes()
    broker.happens_at(6, f"kill -{signal} $PPID")
    killed = broker.runs("--to", str(broker.copy), "--bootstrap-server", "localhost:9092")
    assert killed.returncode != 0
    assert broker.manifest()["is_complete"] is False
    assert bool(broker.manifest()["files"]) == (signal == "TERM")
    said = broker.copies("--bootstrap-server", "localhost:9092", pause=4 if broker.shell == "busybox" else 2)
    assert said["is_complete"] is True
    assert files_of(broker.copy) == {file["path"] for file in said["files"]}
    report = audited(broker.copy)
    assert report.coverage.transaction_state["copied"]["is_state_last"]


def test_a_second_kit_into_the_same_folder_is_refused(broker: Broker) -> None:
    """Each would write into the parts of the other one."""
    second = broker.folder / "second"
    shell = f"{shutil.which(broker.shell)} sh" if broker.shell == "busybox" else shutil.which(broker.shell)
    call = f"{shell} {SCRIPT} --to {broker.copy} --pause 0 {broker.log_dir} < /dev/null > {second} 2>&1"
    broker.happens_at(6, f"{call}; echo $? >> {second}")
    said = broker.copies()
    *_, why, code = second.read_text().splitlines()
    assert (code, "another copy kit copies into it" in why) == ("2", True)
    assert said["is_complete"] is True
    assert not (broker.copy / ".copy-kit/running").exists()
    assert broker.copies()["is_complete"] is True


def test_the_manifest_of_a_killed_kit_proves_nothing(dash: Broker) -> None:
    dash.happens_at(30, "kill -TERM $PPID")
    dash.runs("--to", str(dash.copy))
    report = audited(dash.copy)
    assert not report.coverage.transaction_state["copied"]["is_state_last"]


def test_it_refuses_to_fill_the_disk(dash: Broker) -> None:
    done = dash.runs("--to", str(dash.copy), "--reserve-bytes", str(10**15))
    assert done.returncode == 2
    assert b"Nothing was copied" in done.stderr
    assert files_of(dash.copy) == set()


def test_a_dry_run_writes_nothing_and_says_how_much(broker: Broker) -> None:
    done = broker.runs("--dry-run", "--topic", "trades-eu")
    lines = [line.split() for line in done.stdout.decode().splitlines()]
    topics = {name.rpartition("-")[0] for _, name in lines[:-1] for name in [name.partition("/")[0]] if "-" in name}
    assert {"trades-eu", STATE} <= topics
    assert "accounts" not in topics
    assert int(lines[-1][0]) == sum(int(size) for size, _ in lines[:-1])
    assert not broker.copy.exists()


def test_a_stream_holds_the_same(broker: Broker) -> None:
    done = broker.runs("--tar")
    assert done.returncode == 0, done.stderr
    archive = broker.folder / "copy.tar"
    archive.write_bytes(done.stdout)
    with tarfile.open(archive) as tar:
        tar.extractall(broker.copy, filter="data")
    said = broker.manifest()
    assert said["is_complete"] is True
    assert files_of(broker.copy) == {file["path"] for file in said["files"]}
    assert all((broker.copy / f["path"]).stat().st_size == f["size_bytes"] for f in said["files"])
    assert audited(broker.copy).coverage.transaction_state["copied"]["manifest_count"] == 1


def test_a_segment_that_is_deleted_after_it_was_sent_is_no_part_of_the_copy(broker: Broker) -> None:
    deleted = "trades-eu-1/00000000000000000000.log"
    broker.happens_at(9, f"rm {broker.log_dir / deleted}")
    done = broker.runs("--tar")
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as tar:
        tar.extractall(broker.copy, filter="data")
    assert done.returncode == 0
    assert deleted in broker.manifest()["deleted"]  # and what lay beside it, which was the only one of its partition
    unnamed = files_of(broker.copy) - {file["path"] for file in broker.manifest()["files"]}
    assert unnamed == {*broker.manifest()["deleted"]}
    read = {item.path for item in audited(broker.copy).inputs}
    assert str(broker.copy / LOG) in read
    assert str(broker.copy / deleted) not in read


@pytest.mark.parametrize("words", [["--tar"], ["--to", "copy"]], ids=" ".join)
def test_a_segment_that_is_deleted_while_it_is_read_ends_nothing(dash: Broker, words: list[str]) -> None:
    first = min(path for path in dash.log_dir.glob("*/*.log") if not path.parent.name.startswith(STATE))
    dash.happens_at(2, f"rm {first}")
    done = dash.runs(*[str(dash.copy) if word == "copy" else word for word in words])
    if "--tar" in words:
        with tarfile.open(fileobj=io.BytesIO(done.stdout)) as tar:
            tar.extractall(dash.copy, filter="data")
    assert done.returncode == 0, done.stderr
    assert (str(first.relative_to(dash.log_dir)) in dash.manifest()["deleted"]) == ("--tar" in words)
    read = {item.path for item in audited(dash.copy).inputs}
    assert read
    assert str(dash.copy / first.relative_to(dash.log_dir)) not in read


def test_a_file_that_is_not_as_long_as_is_written_down_is_copied_again(dash: Broker) -> None:
    dash.copies()
    grown = dash.copy / LOG  # it was killed before the longer copy took the place of this one
    grown.write_bytes(grown.read_bytes()[:-100])
    said = dash.copies()
    assert grown.read_bytes() == (dash.log_dir / LOG).read_bytes()
    assert files_of(dash.copy) == {file["path"] for file in said["files"]}


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads every folder")
def test_a_folder_that_cannot_be_read_is_not_left_out_in_silence(dash: Broker) -> None:
    (dash.log_dir / "trades-eu-0").chmod(0)
    done = dash.runs("--to", str(dash.copy))
    assert done.returncode == 2
    assert b"trades-eu-0: cannot be read. Run this as the user who runs the broker" in done.stderr


def test_more_segments_than_a_call_can_take_are_listed_all(tmp_path: Path) -> None:
    folder = tmp_path / "orders-0"
    folder.mkdir()
    for number in range(600):
        (folder / f"{number:0240d}.log").touch()  # 128 KiB, which a small stack allows, have no room for so many names
    done = subprocess.run(
        ["sh", "-c", 'ulimit -s 256; exec sh "$0" --dry-run "$1"', str(SCRIPT), str(tmp_path)],
        capture_output=True,
        check=True,
    )
    assert done.stdout.endswith(b" bytes in 600 files\n")


def test_a_topic_that_is_deleted_meanwhile_is_no_part_of_the_copy(dash: Broker) -> None:
    folder = dash.log_dir / "trades-eu-0"
    index = dash.copy / "trades-eu-0/00000000000000000000.txnindex"
    # Once the index is there that lies beside its segments.
    dash.happens(f"if [ -e {index} ] && [ -e {folder} ]; then mv {folder} {folder}.0f-delete; fi")
    said = dash.copies()
    assert not folder.exists()
    assert not any("trades-eu-0/" in file["path"] for file in said["files"])
    assert files_of(dash.copy) == {file["path"] for file in said["files"]}
    assert audited(dash.copy).inputs


def test_a_stream_that_was_cut_is_not_taken_for_a_whole_copy(dash: Broker) -> None:
    done = dash.runs("--tar")
    dash.copy.mkdir()
    cut = done.stdout[: done.stdout.index(b"__transaction_state-3/0") + 600]  # in the last segment of the state
    assert subprocess.run(["tar", "x", "-C", str(dash.copy)], input=cut, capture_output=True, check=False).returncode
    with pytest.raises(InputError, match="the copy was cut short: it does not name"):
        audited(dash.copy, state_copied_last=True)  # as the next line of the README says


def test_the_lines_of_the_readme_copy_a_broker_and_audit_the_copy(dash: Broker) -> None:
    (line,) = [b for b in blocks_of((ROOT / "README.md").read_text(encoding="utf-8")) if "copy-kit" in b]
    audit = f'exec {sys.executable} -m txn_analysis "$@" --exit-zero'
    program(dash.programs / "txn-analysis", f'#!/bin/sh\n[ "$*" = copy-kit ] && exec cat {SCRIPT}\n{audit}\n')
    program(dash.programs / "ssh", '#!/bin/sh\n[ "$1" = broker-1 ] && shift 4 && exec sh -s -- --pause 0 "$@"\n')
    typed = line.replace("/var/lib/kafka", str(dash.log_dir))
    known = os.environ | {"PATH": f"{dash.programs}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["sh", "-eu", "-c", typed], cwd=dash.folder, env=known, check=True, capture_output=True, text=True
    )
    assert "You asserted --state-copied-last" in done.stdout or "state_copied_last True" in done.stdout
    (copies,) = (dash.folder / "copies").iterdir()
    assert audited(copies).coverage.transaction_state["copied"]["manifest_count"] == 1
    assert LOG in files_of(copies)


def test_several_log_directories_lie_side_by_side(dash: Broker) -> None:
    second = dash.folder / "second disk"
    second.mkdir()
    shutil.move(dash.log_dir / "accounts-1", second / "accounts-1")
    said = dash.copies(dirs=[dash.log_dir, second])
    assert {file["path"].split("/")[0] for file in said["files"]} == {"disk-1", "disk-2"}
    assert files_of(dash.copy) == {file["path"] for file in said["files"]}


def test_dumps_take_many_files_a_call_and_the_state_last(dash: Broker) -> None:
    program(dash.programs / "kafka-dump-log.sh", DUMP_LOG.format(python=sys.executable, folder=dash.folder))
    said = dash.copies("--dump")
    calls = [line.split() for line in (dash.folder / "calls").read_text().splitlines()]
    assert [kind for kind, _ in calls] == ["log", "state"]
    assert [file["path"] for file in said["files"]] == ["segments/1.txt", "state/1.txt"]
    assert not any(file["is_leader_confirmed"] for file in said["files"])


def test_zeros_of_preallocated_segments_take_no_room(dash: Broker) -> None:
    big = dash.log_dir / "trades-eu-1/00000000000000000500.log"
    big.write_bytes(bytes(8 << 20))
    dash.copies()
    copied = (dash.copy / big.relative_to(dash.log_dir)).stat()
    assert copied.st_size == 8 << 20
    assert copied.st_blocks * 512 < 1 << 20


def test_bytes_per_second_are_limited(dash: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    (dash.log_dir / "trades-eu-1/00000000000000000500.log").write_bytes(b"x" * (3 << 20))
    program(dash.programs / "sleep", f"#!/bin/sh\necho $1 >> {dash.folder}/slept\n")
    monkeypatch.delenv("TMPDIR", raising=False)
    dash.copies("--bytes-per-second", str(1 << 20))
    assert (dash.folder / "slept").read_text().split().count("1") == 2


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--to"], "--to needs a value"),
        (["--nonsense"], "no such option: --nonsense"),
        (["--bytes-per-second", "fast", "."], "bytes and seconds are whole numbers"),
        (["--to", "copy"], "name at least one folder"),
        (["--to", "copy", "nowhere"], "nowhere: no such folder"),
        (["."], "say where to with --to DIR, or --tar"),
        (["--tar", "--to", "copy", "."], "leave --to out"),
        (["--to", "inside", "."], "lies inside of a log directory"),
        (["--to", "copy", ".", "empty"], "empty: holds no partition. Name a folder of the broker's log.dirs"),
    ],
    ids=lambda each: " ".join(each) if isinstance(each, list) else "",
)
def test_what_is_typed_wrongly_is_refused(tmp_path: Path, words: list[str], said: str) -> None:
    (tmp_path / "orders-0").mkdir()
    (tmp_path / "empty").mkdir()
    done = subprocess.run(["sh", str(SCRIPT), *words], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert said in done.stderr


def test_the_verb_prints_what_lies_in_deploy(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        app(["copy-kit"])
    deployed = ROOT / "deploy/copy-kit.sh"
    assert capsys.readouterr().out == deployed.read_text() == SCRIPT.read_text()


# Whether a folder is whole: a cleaner that replaces segments while they are listed.

STAT = """#!/bin/sh
if [ -e {folder}/hides ]; then
    for file in "$@"; do
        [ "$file" != "{hidden}" ] || {{ rm {folder}/hides; hides=yes; }}
    done
fi
[ -n "${{hides:-}}" ] || exec {stat} "$@"
for file in "$@"; do
    shift
    [ "$file" = "{hidden}" ] || set -- "$@" "$file"
done
exec {stat} "$@"
"""


def state_of_two(broker: Broker) -> tuple[Path, Path]:
    """A partition of the state in two segments; the number of files that are read before the second one."""
    folder = broker.log_dir / f"{STATE}-0"
    first, second = (folder / f"{number:020}.log" for number in (0, 999))
    shutil.copy(first, second)
    broker.describes()
    return first, second


def reads_before(broker: Broker, segment: Path) -> int:
    """At which reading of a file a segment of the state's first partition is read."""
    others = {f for f in files_of(broker.log_dir) if not f.endswith("index") or f.endswith(".txnindex")} - NOT_READ
    logs = sum(not name.startswith(STATE) for name in others)
    return logs + 1 + sorted(segment.parent.glob("*.log")).index(segment) + 1


def whole_folders(said: dict[str, Any]) -> dict[str, bool]:
    """By partition whether its folder is whole; all of its files say the same."""
    found: dict[str, set[bool]] = {}
    for file in said["files"]:
        if file["topic"] is not None:
            found.setdefault(f"{file['topic']}-{file['partition']}", set()).add(file["is_folder_whole"])
    assert all(len(own) == 1 for own in found.values())
    return {name: own.pop() for name, own in found.items()}


def test_of_folders_in_which_nothing_moves_all_are_whole(broker: Broker) -> None:
    said = whole_folders(broker.copies())
    assert said
    assert all(said.values())


def test_a_cleaner_that_hangs_while_it_replaces_segments_leaves_a_folder_open(broker: Broker) -> None:
    """The group that it replaces has no plain name meanwhile: what is listed looks whole."""
    first, second = state_of_two(broker)
    swapped = f"mv {first} {first}.deleted; cp {first}.deleted {first}.swap"
    broker.happens_at(reads_before(broker, second) + 1, swapped)
    said = broker.copies("--bootstrap-server", "localhost:9092")
    assert str(first.relative_to(broker.log_dir)) not in {file["path"] for file in said["files"]}
    assert [name for name, is_whole in whole_folders(said).items() if not is_whole] == [f"{STATE}-0"]


def test_a_cleaner_that_comes_to_its_end_is_waited_for(dash: Broker) -> None:
    first, second = state_of_two(dash)
    swapped = f"mv {first} {first}.deleted; cp {first}.deleted {first}.swap"
    dash.happens_at(reads_before(dash, second) + 1, swapped)
    program(dash.programs / "sleep", f"#!/bin/sh\n[ ! -e {first}.swap ] || mv {first}.swap {first}\n")
    said = dash.copies()
    assert all(whole_folders(said).values())
    assert (dash.copy / first.relative_to(dash.log_dir)).read_bytes() == first.read_bytes()


def test_a_name_that_one_list_misses_is_looked_for_again(dash: Broker) -> None:
    """A folder that is read beside a rename may show neither name."""
    first, second = state_of_two(dash)
    real = shutil.which("stat")
    program(dash.programs / "stat", STAT.format(folder=dash.folder, hidden=first, stat=real))
    dash.happens_at(reads_before(dash, second) + 1, f": > {dash.folder}/hides")
    said = dash.copies()
    assert not (dash.folder / "hides").exists()
    assert str(first.relative_to(dash.log_dir)) in {file["path"] for file in said["files"]}
    assert all(whole_folders(said).values())


def test_of_dumps_no_folder_is_known_to_be_whole(dash: Broker) -> None:
    program(dash.programs / "kafka-dump-log.sh", DUMP_LOG.format(python=sys.executable, folder=dash.folder))
    assert {file["is_folder_whole"] for file in dash.copies("--dump")["files"]} == {None}


EMPTIED = CASES / "kafka-4.3-emptied-file/capture-1/log-dirs/node1"
OF_EMPTIED = {"transaction_max_timeout_ms": 20_000, "max_clock_skew_ms": 0, "transaction_state_partitions": 4}


@pytest.fixture
def compacted(dash: Broker) -> Broker:
    """A broker whose cleaner emptied the first file of a partition of the state; two transactions hang there."""
    shutil.rmtree(dash.log_dir)
    shutil.copytree(EMPTIED, dash.log_dir)
    dash.describes(leader=1)
    return dash


def rules_by_the_kit(broker: Broker) -> set[str]:
    broker.copies("--bootstrap-server", "localhost:9092", pause=1)
    return {finding.rule for finding in audited(broker.copy, no_records_lost=True, **OF_EMPTIED).findings}


def test_by_the_kit_what_hangs_behind_an_emptied_file_is_found(compacted: Broker) -> None:
    assert rules_by_the_kit(compacted) == {"partition_not_in_transaction"}


def test_while_a_cleaner_replaces_segments_it_is_not(compacted: Broker) -> None:
    folder = compacted.log_dir / f"{STATE}-0"
    shutil.copy(folder / "00000000000000004046.log", folder / "00000000000000000000.log.swap")
    assert rules_by_the_kit(compacted) == {"state_incomplete"}


def test_where_the_first_file_was_deleted_it_is_not(compacted: Broker) -> None:
    """As `cleanup.policy=compact,delete` does."""
    (compacted.log_dir / f"{STATE}-0/00000000000000000000.log").unlink()
    assert rules_by_the_kit(compacted) == {"state_incomplete"}
