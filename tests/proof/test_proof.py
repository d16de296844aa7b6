"""The proof's own machinery: what it says is wrong is wrong, and its page tells of every part."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.proof import results
from tests.proof.__main__ import main
from tests.proof.part import Figure, Found, Part, none_of, run_part
from tests.proof.parts import PARTS
from tests.tools.repository import ROOT


def part(name: str, run: Callable[[int, int], Found], size: int = 50, sample: int = 5) -> Part:
    return Part(name, "something holds", run, size, sample)


def run_all(words: list[str], parts: list[Part]) -> int:
    """As the command does, but for its processes: to start one takes longer than these parts."""
    return main(words, parts, lambda: ThreadPoolExecutor(2))


def counts(size: int, seed: int) -> Found:
    return Found((Figure("tried", size), none_of("wrong", 0)))


def crashes(size: int, seed: int) -> Found:
    raise ValueError("nothing works")


@pytest.mark.parametrize(
    ("figure", "is_right", "must_be"),
    [
        (Figure("tried", 0), True, ""),
        (none_of("wrong", 0), True, "0"),
        (none_of("wrong", 1), False, "0"),
        (Figure("found", 2, least=2), True, "at least 2"),
        (Figure("found", 1, least=2), False, "at least 2"),
        (Figure("bytes", 2_000, most=1_999), False, "at most 1,999"),
    ],
)
def test_a_figure_keeps_its_bounds(figure: Figure, is_right: bool, must_be: str) -> None:
    assert (figure.is_right, figure.must_be) == (is_right, must_be)


@pytest.mark.parametrize(
    "found", [Found((none_of("wrong", 1),)), Found((Figure("found", 0, least=1),)), Found((), ["a word of warning"])]
)
def test_whatever_is_wrong_ends_in_exit_code_1(found: Found, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_all([], [part("broken", lambda *_: found), part("sound", counts)]) == 1
    assert "NOT as it must be: broken\n" in capsys.readouterr().out


def test_a_part_that_crashes_is_wrong_and_the_next_one_runs(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_all([], [part("crashes", crashes), part("sound", counts)]) == 1
    said = capsys.readouterr().out
    assert "ValueError: nothing works" in said
    assert "python -m tests.proof --only sound --size 50 --seed 1" in said


@pytest.mark.parametrize(
    ("words", "sizes"),
    [
        ([], {"first": 50, "second": 50, "tested": 50}),
        (["--sample"], {"first": 5, "second": 5}),
        (["--only", "second", "--seed", "7"], {"second": 50}),
        (["--only", "first", "--size", "8"], {"first": 8}),
    ],
)
def test_parts_run_at_their_sizes(words: list[str], sizes: dict[str, int], capsys: pytest.CaptureFixture[str]) -> None:
    parts = [part("first", counts), part("second", counts), part("tested", counts, sample=0)]
    assert run_all(words, parts) == 0
    said = capsys.readouterr().out
    seed = 7 if "7" in words else 1
    assert all(f"--only {name} --size {size} --seed {seed}\n" in said for name, size in sizes.items())
    assert said.count("python -m") == len(sizes)


def test_minutes_share_out_what_the_parts_took_last_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    parts = [part("first", counts), part("second", counts), part("new", counts)]
    monkeypatch.setattr(results, "RESULTS", tmp_path / "results.json")
    monkeypatch.setattr(results, "PAGE", tmp_path / "page.md")
    monkeypatch.setattr(results, "PARTS", parts)
    (tmp_path / "page.md").write_text("# Proofs\n")
    first, second = (run_part(one, one.size, 1) for one in parts[:2])
    results.keep([type(first)(**vars(first) | {"seconds": 300}), type(second)(**vars(second) | {"seconds": 900})])
    assert run_all(["--minutes", "3"], parts) == 0
    said = capsys.readouterr().out
    assert all(f"--only {name} --size {size} " in said for name, size in (("first", 10), ("second", 10), ("new", 5)))
    page = (tmp_path / "page.md").read_text()
    assert "| `second` | something holds | 50 | 900 | 50 tried | 0 |" in page
    assert "| `new` | something holds | not run yet | |" in page


def test_the_page_tells_what_the_parts_found_last() -> None:
    page = results.PAGE.read_text(encoding="utf-8")
    assert results.with_results(page) == page, "`make proof` writes it"
    assert [one.name for one in PARTS if f"| `{one.name}` | {one.proves} | " not in page] == []
    assert [one.name for one in PARTS if not 0 <= one.sample <= one.size] == []


def test_each_listed_mutant_changes_a_line_that_is_there() -> None:
    listed = [
        line for line in (Path(__file__).parent / "living_mutants.txt").read_text().splitlines() if "  =>  " in line
    ]
    for module, _, change in (line.partition(": ") for line in listed):
        source = (ROOT / "txn_analysis" / module).read_text()
        assert change.partition("  =>  ")[0] in [" ".join(line.split()) for line in source.splitlines()], change
