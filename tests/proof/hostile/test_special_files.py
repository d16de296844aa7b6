"""What is no regular file is refused by its name and never opened; a link out of a given folder is not followed."""

import os
import socket
import threading
from pathlib import Path

import pytest

from txn_analysis.errors import InputError
from txn_analysis.reading.inputs.find_files import find_files

DEADLINE_S = 20


def refusal(path: Path | str) -> str:
    """What `find_files` says of a path; opening a FIFO would wait for a writer for ever."""
    said: list[str] = []

    def find() -> None:
        try:
            find_files([str(path)])
        except InputError as error:
            said.extend(error.problems)

    finder = threading.Thread(target=find, daemon=True)
    finder.start()
    finder.join(DEADLINE_S)
    assert not finder.is_alive(), f"{path} was opened"
    return "\n".join(said)


def test_a_fifo_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert "not a regular file" in refusal(tmp_path / "pipe")
    assert "not a regular file" in refusal(tmp_path)


def test_a_link_to_a_fifo_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "dump.txt").symlink_to("pipe")
    assert "not a regular file" in refusal(tmp_path / "dump.txt")


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/stdin", "/dev/null"])
def test_a_device_is_refused(device: str) -> None:
    assert "not a regular file" in refusal(device) or not Path(device).exists()


def test_a_socket_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # a socket's path has room for 100 bytes only
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("socket")
        assert "not a regular file" in refusal(tmp_path / "socket")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission_is_refused(tmp_path: Path) -> None:
    (tmp_path / "dump.txt").write_text("x")
    (tmp_path / "dump.txt").chmod(0)
    assert "no permission" in refusal(tmp_path / "dump.txt")


def test_links_in_a_circle_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    assert "cannot be read" in refusal(tmp_path / "a")
    assert refusal(tmp_path).count("link") >= 2


def test_a_folder_that_holds_itself_is_not_walked_into(tmp_path: Path) -> None:
    (tmp_path / "again").symlink_to(".")
    assert "again: a link out of the given folder, or to a folder" in refusal(tmp_path)


def test_a_link_out_of_a_given_folder_is_named_and_not_read(tmp_path: Path) -> None:
    outside, folder = tmp_path / "secret.txt", tmp_path / "capture"
    outside.write_text("x")
    folder.mkdir()
    (folder / "dump.txt").symlink_to(outside)
    (folder / "more").symlink_to(tmp_path)
    (folder / "own.txt").write_text("x")
    said = refusal(folder)
    assert "dump.txt: a link out of the given folder" in said
    assert "more: a link out of the given folder" in said


def test_a_link_that_is_given_itself_is_followed(tmp_path: Path) -> None:
    (tmp_path / "capture").mkdir()
    (tmp_path / "capture" / "dump.txt").write_text("x")
    (tmp_path / "file").symlink_to("capture/dump.txt")
    (tmp_path / "folder").symlink_to("capture")
    assert [Path(f.path).name for f in find_files([str(tmp_path / "file")])] == ["file"]
    assert [Path(f.path).name for f in find_files([str(tmp_path / "folder")])] == ["dump.txt"]
