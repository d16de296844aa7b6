import os
from pathlib import Path

import pytest

from txn_analysis.errors import InputError
from txn_analysis.reading.inputs.find_files import find_files, place_of


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("b/2.txt", "a/1.txt", "a/.hidden", ".git/config", "z.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    return tmp_path


def names(folder: Path, *paths: str) -> list[str]:
    return [str(Path(found.path).relative_to(folder)) for found in find_files(list(paths))]


def test_a_folder_gives_all_its_files_in_order(folder: Path) -> None:
    assert names(folder, str(folder)) == ["a/1.txt", "b/2.txt", "z.txt"]


def test_globs_files_and_uris_give_each_file_once(folder: Path) -> None:
    given = (f"{folder}/*/*.txt", f"{folder}/a/1.txt", f"file://{folder}/z.txt", f"{folder}/**/2.txt")
    assert names(folder, *given) == ["a/1.txt", "b/2.txt", "z.txt"]


def test_a_name_with_glob_characters_is_found_as_it_is(folder: Path) -> None:
    (folder / "[1].txt").write_text("x")
    assert names(folder, f"{folder}/[1].txt") == ["[1].txt"]


def test_sizes_are_told(folder: Path) -> None:
    assert [found.size_bytes for found in find_files([f"{folder}/z.txt"])] == [5]


def test_a_relative_path_is_shown_as_given_and_opened_wherever_a_task_runs(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder / "a")
    (found,) = find_files(["../z.txt"])
    place = place_of(found.path)
    monkeypatch.chdir("/")
    assert found.path == "../z.txt"
    assert Path(place).read_text() == "z.txt"


@pytest.mark.parametrize(
    ("given", "what"),
    [("nowhere", "no such file"), ("*.log", "no such file"), ("ftp://host/x", "no storage that is known")],
)
def test_a_path_that_leads_nowhere_is_named(folder: Path, given: str, what: str) -> None:
    path = given if "://" in given else f"{folder}/{given}"
    with pytest.raises(InputError) as error:
        find_files([path, f"{folder}/z.txt"])
    assert error.value.problems == [next(p for p in error.value.problems if p.startswith(f"{path}: ") and what in p)]


def test_what_is_no_regular_file_is_named(folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    (folder / "out").symlink_to("/etc/hostname")
    (folder / "dangling").symlink_to(folder / "gone")
    (folder / "inside").symlink_to(folder / "z.txt")
    with pytest.raises(InputError) as error:
        find_files([str(folder)])
    named = [Path(problem.partition(":")[0]).name for problem in error.value.problems]
    assert named == ["dangling", "out", "pipe"]


def test_an_empty_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no files in this folder"):
        find_files([str(tmp_path)])
