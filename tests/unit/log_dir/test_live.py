"""A log directory changes under the reader: what is missing then is coverage, and what is ended stays ended."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tools.log_dirs.encoder import encoded
from tests.tools.log_dirs.reading import plans
from tests.tools.log_dirs.scenes import live_log_dir
from tests.unit.log_dir.test_segments import data
from txn_analysis.reading.inputs import find_files as sources
from txn_analysis.reading.inputs.find_files import find_files
from txn_analysis.reading.inputs.planning import GONE, without_changed


@pytest.fixture
def log_dir(tmp_path: Path) -> Path:
    return live_log_dir(tmp_path)


def test_a_torn_end_is_a_remark(log_dir: Path) -> None:
    active = log_dir / "orders-0" / f"{5:020}.log"
    active.write_bytes(active.read_bytes() + encoded(data(7))[:-3])
    (plan,) = plans(active)
    assert plan.sections[0].torn_bytes == len(encoded(data(7))) - 3


def test_a_file_that_is_deleted_while_its_folder_is_listed_is_passed_over(
    log_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = sources._folder_files

    def listed(folder: str, problems: list[str], state_folders: list[str]) -> Iterator[str]:
        for path in known(folder, problems, state_folders):
            if path.endswith(f"orders-0/{0:020}.log"):
                (log_dir / "orders-0" / f"{0:020}.log").unlink()
            yield path

    monkeypatch.setattr(sources, "_folder_files", listed)
    assert len(find_files([str(log_dir)])) == 5 * 4 + 1 - 1


def test_the_state_is_listed_last(log_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that of brokers that run it reaches at least as far as the logs."""
    for folder in ("a-broker/__transaction_state-0", "__transaction_state-1"):
        (log_dir / folder).mkdir(parents=True)
        (log_dir / folder / f"{0:020}.log").write_bytes(b"")
    looked_at: list[str] = []
    known = sources._regular_file

    def regular_file(path: str) -> sources.SourceFile | None:
        looked_at.append(path)
        return known(path)

    monkeypatch.setattr(sources, "_regular_file", regular_file)
    files = find_files([str(log_dir / "a-broker"), str(log_dir)])
    assert set(looked_at) == {file.path for file in files}
    assert all("__transaction_state" in path for path in looked_at[-2:])


def test_only_the_last_segment_of_a_log_leaves_a_trace(log_dir: Path) -> None:
    """What retention deletes is missing as if it had been deleted before."""
    segments = [plan for plan in plans(log_dir / "orders-0") if plan.sections[0].kind == "log"]
    for gone in range(3):
        kept = without_changed(segments, {segments[gone].input_id})
        assert [p.input_id for p in kept[:2]] == [p.input_id for n, p in enumerate(segments) if n != gone]
        assert [p.rejects for p in kept[2:]] == ([((0, segments[2].size_bytes, GONE),)] if gone == 2 else [])
    all_gone = without_changed(segments, {p.input_id for p in segments})
    assert [p.sections[0].file_base_offset for p in all_gone] == [0, 3, 5]
    assert {p.input_id for p in all_gone}.isdisjoint(p.input_id for p in segments)
