"""What a large cluster needs follows from what the bench measured."""

import pytest

from benchmarks.sizing import FIGURES, PAGE, needs, page

GIB = 2**30
# 2 seconds per GiB on 4 cores beside 20 of start-up; a line of 256 bytes for each batch; a tenth of the text is kept.
FIGURES_OF_A_BENCH = {
    "cores": 4,
    "small_text_bytes": GIB,
    "large_text_bytes": 4 * GIB,
    "full_small_s": 22,
    "full_large_s": 28,
    "large_batches": 4 * GIB / 256,
    "full_large_warehouse_bytes": 0.4 * GIB,
}


def test_the_text_is_a_line_for_each_batch() -> None:
    assert needs(FIGURES_OF_A_BENCH, 1024 * GIB, 16384, 4).text_bytes == 16 * GIB


def test_time_is_the_start_and_the_text_shared_by_all_cores() -> None:
    assert needs(FIGURES_OF_A_BENCH, 1024 * GIB, 16384, 8).seconds == pytest.approx(20 + 16 * 2 * 4 / 8)


def test_the_warehouse_grows_with_the_text() -> None:
    assert needs(FIGURES_OF_A_BENCH, 1024 * GIB, 16384, 4).warehouse_bytes == pytest.approx(1.6 * GIB)


def test_the_page_is_made_of_the_last_figures() -> None:
    assert FIGURES.exists(), "`make bench` measures them"
    assert PAGE.read_text(encoding="utf-8") == page()
