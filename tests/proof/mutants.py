"""Mutants: modules that decide, each with one place changed. Some test of theirs must fail.

The places are those of cosmic-ray: operators, comparisons, numbers, conditions, loops. Each mutant has a process of its
own, forked from one that has imported what the project needs, and imports the project anew; compiled loops run as plain
Python. A mutant that lives lacks a test, or stands in `living_mutants.txt` with the reason why it may.
"""

import argparse
import ast
import importlib.util
import json
import os
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from itertools import islice, pairwise
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import pytest
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator

import tests.conftest  # noqa: F401 what its imports need is there before any mutant is
from tests.tools.repository import ROOT

LISTED = Path(__file__).parent / "living_mutants.txt"
TIMEOUT_S = 60  # of a processor, for tests that take a few seconds; an endless loop is killed with its mutant
ARROW = "  =>  "

_STORIES = "tests/proof/world/test_no_wrong_abort.py"
_OF_RULES = (
    *(f"tests/unit/judge/test_{name}.py" for name in ("proof_table", "loss", "log_reach", "assurances", "outcome")),
    *(
        "tests/unit/judge/test_words.py",
        "tests/unit/judge/test_being_written.py",
        "tests/unit/judge/test_no_none.py",
        _STORIES,
    ),
    *(
        "tests/unit/report/test_settling.py",
        "tests/unit/judge/test_causes.py",
        "tests/proof/world/test_what_was_not_read.py",
    ),
)
_OF_FIT = ("tests/unit/coordinator/test_fit.py", _STORIES)
_OF_HISTORY = (
    *("tests/unit/coordinator/test_decisions.py", "tests/unit/coordinator/test_history.py"),
    *(
        "tests/unit/coordinator/test_coordinator.py",
        "tests/unit/judge/test_proof_table.py",
        "tests/unit/judge/test_endings.py",
    ),
    _STORIES,
)
_OF_CHAIN = ("tests/unit/coordinator/test_state_chain.py", "tests/unit/coordinator/test_state_coverage.py", _STORIES)
_OF_LOG = (
    *(
        "tests/unit/log/test_exact_start.py",
        "tests/unit/log/test_producer_appends.py",
        "tests/unit/log/test_what_brokers_forget.py",
    ),
    *("tests/unit/log/test_open_rows.py", "tests/unit/log/test_described.py", "tests/unit/log/test_problem_kinds.py"),
    *(
        "tests/unit/log/test_contested_lines.py",
        "tests/unit/log/test_copies.py",
        "tests/unit/log/test_against_broker.py",
    ),
    "tests/unit/log/test_summarized_anew.py",
)
_OF_PLAN = (
    *("tests/unit/plan/test_abort_plan.py", "tests/unit/plan/test_renderings.py", "tests/unit/plan/test_repair.py"),
    *("tests/unit/plan/test_plan_file.py", "tests/unit/plan/test_since.py", _STORIES),
)
_OF_SCRIPT = (
    *("tests/unit/plan/test_renderings.py", "tests/unit/plan/test_fencing.py"),
    *("tests/unit/plan/test_script_checks.py", "tests/unit/plan/test_script.py"),
)
TESTS: dict[str, Sequence[str]] = {
    "judge/case.py": _OF_RULES,
    "judge/rules.py": _OF_RULES,
    "judge/sentences.py": _OF_RULES,
    "judge/words.py": _OF_RULES,
    "judge/settling.py": _OF_RULES,
    "coordinator/history.py": _OF_HISTORY,
    "coordinator/fit.py": _OF_FIT,
    "coordinator/marker_checks.py": _OF_FIT,
    "coordinator/producer_bounds.py": _OF_FIT,
    "coordinator/chain.py": _OF_CHAIN,
    "log/producer_state.py": _OF_LOG,
    "log/snapshots.py": _OF_LOG,
    "log/producer_appends.py": _OF_LOG,
    "plan/abort_plan.py": _OF_PLAN,
    "plan/script.py": _OF_SCRIPT,
}
"""The modules, and the tests that kill their mutants: those first that kill most for a second."""

# Of the tool's replacements those by the nearest neighbour and by the contrary; any test kills the others.
_OPERATORS = (
    *("Add_Sub", "Sub_Add", "Mul_FloorDiv", "FloorDiv_Mul", "Mod_FloorDiv", "BitAnd_BitOr", "BitOr_BitAnd"),
    *("BitXor_BitAnd", "LShift_RShift", "RShift_LShift"),
)
_COMPARISONS = (
    *("Eq_NotEq", "NotEq_Eq", "Is_IsNot", "IsNot_Is"),
    *("Lt_LtE", "LtE_Lt", "Gt_GtE", "GtE_Gt", "Lt_GtE", "LtE_Gt", "Gt_LtE", "GtE_Lt"),
)
_OTHERS = (
    *("AddNot", "ReplaceTrueWithFalse", "ReplaceFalseWithTrue", "ReplaceAndWithOr", "ReplaceOrWithAnd"),
    *("ReplaceBreakWithContinue", "ReplaceContinueWithBreak", "ExceptionReplacer", "NumberReplacer"),
    *("ZeroIterationForLoop", "ReplaceUnaryOperator_Delete_Not", "ReplaceUnaryOperator_Delete_Invert"),
    *("ReplaceUnaryOperator_USub_UAdd",),
)
OPERATORS = (
    *(f"ReplaceBinaryOperator_{name}" for name in _OPERATORS),
    *(f"ReplaceComparisonOperator_{name}" for name in _COMPARISONS),
    *_OTHERS,
)


class Mutant(NamedTuple):
    """A module's text with one line changed. `name` is the same wherever the line stands."""

    module: str
    line: int
    name: str
    text: str


class Place(NamedTuple):
    """Where the tool can change a module: by one of its operators, so many of whose places come before."""

    module: str
    operator: str
    occurrence: int


def places_of(module: str) -> Iterator[Place]:
    """Every place, also where a change makes no other program."""
    nodes = list(ast_nodes(get_ast(_source(module))))
    for name in OPERATORS:
        operator = get_operator(f"core/{name}")()
        count = sum(1 for node in nodes for _ in operator.mutation_positions(node))
        yield from (Place(module, name, occurrence) for occurrence in range(count))


def mutant_at(place: Place) -> Mutant | None:
    """The mutant; None where only types are another, or no Python comes out."""
    source = _source(place.module)
    text = mutate_code(source, get_operator(f"core/{place.operator}")(), place.occurrence)
    program = _program(text)
    return None if program is None or program == _program(source) else _named(place.module, source, text)


@cache
def _source(module: str) -> str:
    return (ROOT / "txn_analysis" / module).read_text()


def _named(module: str, source: str, text: str) -> Mutant:
    pairs = zip(source.splitlines(), text.splitlines(), strict=False)
    line, was, became = next((n, a, b) for n, (a, b) in enumerate(pairs, 1) if a != b)
    return Mutant(module, line, f"{module}: {' '.join(was.split())}{ARROW}{' '.join(became.split())}", text)


class _WithoutTypes(ast.NodeTransformer):
    """What runs; annotations are strings here, and what is imported for them is not imported."""

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        """Frozen or with slots, a record is the same."""
        node.decorator_list = [ast.Name(ast.unparse(each).partition("(")[0]) for each in node.decorator_list]
        return self.generic_visit(node)

    def visit_arg(self, node: ast.arg) -> ast.arg:
        node.annotation = None
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = None
        return self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        node.annotation = ast.Constant("")
        return self.generic_visit(node)

    def visit_If(self, node: ast.If) -> ast.AST | None:
        return None if "TYPE_CHECKING" in ast.unparse(node.test) else self.generic_visit(node)

    def visit_Assert(self, node: ast.Assert) -> None:
        """It says to mypy what holds anyway."""


@cache
def _program(text: str) -> str | None:
    try:
        return ast.dump(_WithoutTypes().visit(ast.parse(text)))
    except SyntaxError:
        return None


def listed() -> dict[str, str]:
    """The mutants that may live, each with its reason: a line of the name, and under it `# reason`."""
    lines = list(filter(None, LISTED.read_text().splitlines()))
    return {line: why.removeprefix("# ") for line, why in pairwise(lines) if ARROW in line and why.startswith("# ")}


class Tried(NamedTuple):
    """A mutant, and whether its tests passed."""

    mutant: Mutant
    lives: bool
    seconds: float


def lives(mutant: Mutant) -> Tried:
    """Runs the tests of a mutant in a process of its own."""
    began = time.monotonic()
    pid = os.fork()
    if pid == 0:
        os._exit(_child(mutant))
    _, status = os.waitpid(pid, 0)
    tried = Tried(mutant, status == 0, time.monotonic() - began)
    if tried.lives and mutant.name not in listed():
        print(f"LIVES  {mutant.name} (line {mutant.line})", flush=True)
    return tried


def _child(mutant: Mutant) -> int:
    signal.setitimer(signal.ITIMER_PROF, TIMEOUT_S)  # ends the process; what waits for others does not count
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), 1)
        os.dup2(nowhere.fileno(), 2)
    for name in [name for name in sys.modules if name.split(".")[0] in {"txn_analysis", "tests"}]:
        del sys.modules[name]
    sys.meta_path.insert(0, _Finder(mutant))
    try:
        compiled = import_module("txn_analysis.columns.compiled")
        compiled.Compiled.machine_code = property(lambda self: self.plain)
        options = ("-x", "-q", "-n", "0", "-p", "no:cacheprovider", "-m", "not cluster", "-W", "ignore")
        return int(pytest.main([*options, *(str(ROOT / test) for test in TESTS[mutant.module])]))
    except BaseException:  # noqa: BLE001 a mutant that cannot be imported is dead
        return 1


class _Finder(MetaPathFinder, Loader):
    """Gives the mutant's text instead of its module's."""

    def __init__(self, mutant: Mutant) -> None:
        self.mutant, self._path = mutant, str(ROOT / "txn_analysis" / mutant.module)
        self._name = "txn_analysis." + mutant.module.removesuffix(".py").removesuffix("/__init__").replace("/", ".")

    def find_spec(self, fullname: str, _path: object, _target: object = None) -> ModuleSpec | None:
        if fullname != self._name:
            return None
        is_package = self._path.endswith("__init__.py")
        places = [str(Path(self._path).parent)] if is_package else None
        return importlib.util.spec_from_file_location(
            fullname, self._path, loader=self, submodule_search_locations=places
        )

    def create_module(self, _spec: ModuleSpec) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        exec(compile(self.mutant.text, self._path, "exec", dont_inherit=True), vars(module))


class Report(NamedTuple):
    """What became of some mutants."""

    tried: Sequence[Tried]
    places: int

    @property
    def living(self) -> list[Tried]:
        """Those that no test found."""
        return [each for each in self.tried if each.lives]

    @property
    def unlisted(self) -> list[str]:
        """Those of them that stand nowhere with a reason."""
        known = listed()
        names = ((each.mutant.name, each.mutant.line) for each in self.living)
        return sorted(f"{name} (line {line})" for name, line in names if name not in known)


def report_of(count: int, seed: int, modules: Sequence[str] = tuple(TESTS), skipped: int = 0) -> Report:
    """Tries so many mutants of the modules, behind the skipped ones: of each module as many as it has of all."""
    places = [place for module in modules for place in places_of(module)]
    random.Random(seed).shuffle(places)
    mutants = islice(filter(None, map(mutant_at, places)), skipped, skipped + count)
    return Report(list(map(lives, mutants)), len(places))


def main(words: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.proof.mutants", description=__doc__)
    parser.add_argument("--mutants", type=int, default=100_000, help="how many; all without it")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--skip", type=int, default=0, help="so many of them: the whole in pieces")
    parser.add_argument("--module", action="append", choices=TESTS, help="of this module; again for more")
    given = parser.parse_args(words)
    report = report_of(given.mutants, given.seed, given.module or tuple(TESTS), given.skip)
    tried = Counter(each.mutant.module for each in report.tried)
    dead = Counter(each.mutant.module for each in report.tried if not each.lives)
    for module, count in tried.items():
        print(f"{dead[module]:5} of {count:5} killed  {module}")
    killed = len(report.tried) - len(report.living)
    print(
        json.dumps({"places": report.places, "tried": len(report.tried), "killed": killed, "unlisted": report.unlisted})
    )
    return int(bool(report.unlisted))


if __name__ == "__main__":
    sys.exit(main())
