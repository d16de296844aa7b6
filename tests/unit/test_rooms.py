"""Rooms know only those below them: a batch line goes one way through the folders, from its file to its verdict."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

import txn_analysis

ROOT = Path(txn_analysis.__file__).parent
ANYBODY = {"errors", "logic", "settings", "verdict"}
GROUND = {"columns", "kafka", "tables", "text"}
SOURCES = {"coordinator", "log"}
MAY_KNOW = {
    "text": set(),
    "columns": set(),
    "tables": {"columns", "kafka", "text"},
    "kafka": {"columns", "text"},
    "capture": {"kafka", "text"},
    "spark": {"columns", "text"},
    "files": set(),
    "warehouse": {"columns", "spark", "files", "tables", "text"},
    "engine": {"columns", "spark", "warehouse", "files", "tables", "text"},
    "reading": {*GROUND, "spark", "warehouse", "files"},
    "log": GROUND,
    "coordinator": GROUND,
    "judge": {*GROUND, *SOURCES},
    "plan": {*GROUND, *SOURCES, "judge"},
    "report": {*GROUND, *SOURCES, "judge", "plan"},
    "runs": {*GROUND, *SOURCES, "judge", "plan", "warehouse", "files"},
    "questions": {*GROUND, *SOURCES, "judge", "plan", "report", "runs", "warehouse"},
    "pipeline": {
        *GROUND,
        *SOURCES,
        "judge",
        "plan",
        "reading",
        "report",
        "runs",
        "spark",
        "warehouse",
        "files",
        "engine",
    },
}
OF_READING = ("grammar", "text", "log_dir", "dump", "state", "inputs")  # each knows those before it
TOP = {"__init__", "__main__", "cli", "library", "sources"}  # which may know all
USES_SPARK = {"cli", "engine", "library", "pipeline", "reading/inputs/survey_files", "sources", "spark", "warehouse"}


def modules(room: str = "") -> list[Path]:
    return sorted((ROOT / room).rglob("*.py"))


def room_of(module: Path) -> str:
    return module.relative_to(ROOT).with_suffix("").parts[0]


@cache
def imported_by(module: Path) -> set[str]:
    """Every module that a file imports anywhere, also for types alone; with the names that it takes from each."""
    found = set()
    for node in ast.walk(ast.parse(module.read_text())):
        if isinstance(node, ast.ImportFrom):
            found |= {f"{node.module}.{name.name}" for name in node.names}
        elif isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
    return found


def rooms_known_by(module: Path) -> set[str]:
    return {name.split(".")[1] for name in imported_by(module) if name.startswith("txn_analysis.")}


def test_every_folder_is_a_room() -> None:
    assert {room_of(module) for module in modules()} - ANYBODY - TOP == MAY_KNOW.keys()


@pytest.mark.parametrize("room", MAY_KNOW)
def test_a_room_knows_only_those_below_it(room: str) -> None:
    known = {(str(module.relative_to(ROOT)), other) for module in modules(room) for other in rooms_known_by(module)}
    allowed = {room, *ANYBODY, *MAY_KNOW[room]}
    assert not {(module, other) for module, other in known if other not in allowed}


def test_every_folder_of_reading_has_its_place() -> None:
    assert {path.name for path in (ROOT / "reading").iterdir() if (path / "__init__.py").exists()} == {*OF_READING}


@pytest.mark.parametrize("place", range(len(OF_READING)), ids=OF_READING)
def test_a_folder_of_reading_knows_only_those_before_it(place: int) -> None:
    known = {
        (str(module.relative_to(ROOT)), name)
        for module in modules(f"reading/{OF_READING[place]}")
        for name in imported_by(module)
        if name.startswith("txn_analysis.reading.")
    }
    allowed = OF_READING[: place + 1]
    assert not {(module, name) for module, name in known if name.split(".")[2] not in allowed}


@pytest.mark.parametrize("name", sorted(ANYBODY - {"settings"}))
def test_what_anybody_may_know_knows_nobody(name: str) -> None:
    assert rooms_known_by(ROOT / f"{name}.py") <= ANYBODY


def test_settings_know_kafkas_bounds_alone() -> None:
    assert rooms_known_by(ROOT / "settings.py") <= {*ANYBODY, "kafka"}


def test_only_where_rows_are_moved_is_spark_known() -> None:
    users = {
        str(module.relative_to(ROOT).with_suffix(""))
        for module in modules()
        if any(name.startswith("pyspark") for name in imported_by(module))
    }
    assert not {
        user for user in users if not any(user == place or user.startswith(f"{place}/") for place in USES_SPARK)
    }


def test_no_room_has_a_public_name() -> None:
    """`from txn_analysis import audit` is the function in any order of imports."""
    assert {room_of(module) for module in modules()} & set(txn_analysis.__all__) == {"sources"}  # a module for users


def test_a_module_can_be_read_in_one_go() -> None:
    longest = {str(m.relative_to(ROOT)): lines for m in modules() if (lines := len(m.read_text().splitlines())) > 400}
    assert not longest


OF_ANY_TUPLE = {"_replace", "_asdict", "_fields"}
PRIVATE_OF_THE_JUDGE = re.compile(r"txn_analysis\.judge[\w.]*\._[a-z]")


def private_names(test: Path) -> set[str]:
    """What a test takes from inside of the judge's modules, by attribute, by import or by name for a patch."""
    tree = ast.parse(test.read_text(encoding="utf-8"))
    imported = [
        n for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) and str(n.module).startswith("txn_analysis.judge")
    ]
    names = {alias.asname or alias.name for node in imported for alias in node.names}
    texts = [n.value for n in ast.walk(tree) if isinstance(n, ast.Constant) and isinstance(n.value, str)]
    private = [n for n in ast.walk(tree) if isinstance(n, ast.Attribute) and re.match("_[a-z]", n.attr)]
    found = {name for name in names if name.startswith("_")}
    found |= {n.attr for n in private if n.attr not in OF_ANY_TUPLE and ast.unparse(n.value) in names}
    return found | {text for text in texts if PRIVATE_OF_THE_JUDGE.match(text)}


def test_no_test_rests_on_how_the_judge_is_cut_into_functions() -> None:
    tests = Path(__file__).parents[1].rglob("*.py")
    assert {str(path): names for path in tests if (names := private_names(path))} == {}
