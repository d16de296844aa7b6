"""Small segments that are surveyed together are planned as each by itself, whatever is wrong with some of them."""

import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tools.forms.history import histories
from tests.tools.forms.model import History
from tests.tools.log_dirs.encoder import as_written, segment_bytes
from tests.unit.log_dir.test_segments import damage, data, file_of
from txn_analysis.kafka.batch_headers import SMALL_FILE_BYTES
from txn_analysis.kafka.names import BINARY_VERIFIED, LOG, SNAPSHOT, STATE
from txn_analysis.reading.inputs.broker_files import whole_file
from txn_analysis.reading.inputs.broker_survey import is_small_log, survey_broker_file, survey_small_logs
from txn_analysis.reading.text.section import Section

WHAT_HAPPENS = ("nothing", "it is damaged", "it becomes shorter", "it grows", "it is deleted")


def listed(folder: Path, number: int, content: bytes, size_bytes: int, base_offset: int) -> tuple[Section, str]:
    """A segment as it was listed, and what the file holds by now."""
    path = folder / f"{number}.log"
    path.write_bytes(content)
    return whole_file(LOG, f"orders-{number}/{path.name}", size_bytes, "orders", number, base_offset), str(path)


@settings(max_examples=40, deadline=None)
@given(st.lists(histories(max_steps=12), min_size=1, max_size=4), st.booleans(), st.data())
def test_together_as_each_alone(logs: list[History], is_verified: bool, drawn: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        files: list[tuple[Section, str]] = []
        sound: list[bool] = []
        for each in (each for history in logs for each in as_written(history).segments):
            content, what = segment_bytes(each), drawn.draw(st.sampled_from(WHAT_HAPPENS))
            if what == "it is damaged" and content:
                content = drawn.draw(damage(content))
            now = content
            if what == "it becomes shorter" and content:
                now = content[: drawn.draw(st.integers(0, len(content) - 1))]
            elif what == "it grows":
                now = content + drawn.draw(st.binary(min_size=1, max_size=80))
            file, path = listed(Path(folder), len(files), now, len(content), each.base_offset)
            if what == "it is deleted":
                Path(path).unlink()
            if is_small_log(file):
                files.append((replace(file, grammar=BINARY_VERIFIED) if is_verified else file, path))
                sound.append(what in {"nothing", "it grows"})
        together = survey_small_logs(files)
        for (file, path), plan, is_sound in zip(files, together, sound, strict=True):
            assert plan in (None, survey_broker_file(file, path))
            assert plan is not None or not is_sound


@pytest.mark.parametrize(
    ("kind", "size_bytes", "is_small"),
    [
        (LOG, 0, False),
        (LOG, 1, True),
        (LOG, SMALL_FILE_BYTES, True),
        (LOG, SMALL_FILE_BYTES + 1, False),
        (STATE, 1, True),
        (SNAPSHOT, 1, False),
    ],
)
def test_what_is_surveyed_together_is_all_read_at_once(kind: str, size_bytes: int, is_small: bool) -> None:
    assert is_small_log(whole_file(kind, "orders-0/0.log", size_bytes)) is is_small


def test_a_log_that_lost_its_last_batch_since_it_was_listed_is_left(tmp_path: Path) -> None:
    """What is left of it is whole batches: only its size tells."""
    first, both = file_of(data(0)), file_of(data(0), data(1))
    file, path = listed(tmp_path, 0, first, len(both), 0)
    assert survey_small_logs([(file, path)]) == [None]
    assert survey_broker_file(file, path).is_gone
