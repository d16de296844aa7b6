"""How far one walks through the code while one small capture is read and judged: `python -m tests.tools.walk`.

The capture `data/cases/kafka-4.2/capture-1` is audited. While sections of its logs are read, while those of its
`__transaction_state` are, and while what is open is judged and written, every call of a function of `txn_analysis` is
looked at. All modules but those of `capture` are imported before, and what an audit does at once is done one after the
other. One more audit is made before: what a process makes once, such as a pattern of its words, is not on the way of
each record. Counted are

* files: the files of `txn_analysis` of which at least one function is called, those that read and write rows included;
* lines: of the functions that are called, and of all of these files;
* calls up: from a function to one of a room above, by the order of rooms in `tests/unit/test_rooms.py`: a callback
  that was handed down, or a generator that is read down there. However often one function calls the other, it counts
  once.

A caller is the nearest function of `txn_analysis` on the stack, so that a call through a library counts as well.
"""

from __future__ import annotations

import ast
import pkgutil
import sys
import tempfile
from collections import Counter, defaultdict
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import txn_analysis
from tests.tools.repository import CASES
from tests.unit.test_rooms import MAY_KNOW
from txn_analysis.cli.main import app
from txn_analysis.kafka.names import STATE
from txn_analysis.pipeline import steps
from txn_analysis.pipeline.judging import Judged
from txn_analysis.reading import rows

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

CODE = Path(txn_analysis.__file__).parent
CAPTURE = CASES / "kafka-4.2/capture-1"
OPTIONS = ("--transaction-state-partitions", "4", "--max-clock-skew-ms", "0", "--exit-zero", "--quiet")

BATCH_LINES, STATE_RECORDS, VERDICTS = "batch lines", "state records", "verdicts"

Function = tuple[str, str]  # its file below `txn_analysis`, and its name


class Walk:
    """What is entered while it is on."""

    def __init__(self) -> None:
        self.files = Counter[str]()
        self.first_lines = defaultdict[str, set[int]](set)
        self.ups = Counter[tuple[Function, Function]]()

    def __enter__(self) -> Walk:
        """Looks at every call."""
        sys.setprofile(self._look)
        return self

    def __exit__(self, *_: object) -> None:
        """Looks no more."""
        sys.setprofile(None)

    def _look(self, frame: FrameType, event: str, _: Any) -> None:
        called = _function(frame) if event == "call" else None
        if called is None:
            return
        self.files[called[0]] += 1
        self.first_lines[called[0]].add(frame.f_code.co_firstlineno)
        back = frame.f_back
        while back is not None and _function(back) is None:
            back = back.f_back
        caller = None if back is None else _function(back)
        if caller is not None and _room(caller) in MAY_KNOW.get(_room(called), ()):
            self.ups[caller, called] += 1

    @property
    def rooms(self) -> str:
        """How many files of which room."""
        found = Counter(Path(file).with_suffix("").parts[0] for file in self.files)
        return ", ".join(f"{room} {number}" for room, number in found.most_common())

    @property
    def lines(self) -> tuple[int, int]:
        """Lines of the functions that are called, and of all files with any."""
        own = whole = 0
        for file, first_lines in self.first_lines.items():
            text = (CODE / file).read_text()
            whole += len(text.splitlines())
            own += len({line for node in ast.walk(ast.parse(text)) for line in _lines_of(node, first_lines)})
        return own, whole


def _lines_of(node: ast.AST, first_lines: set[int]) -> range:
    """The lines of a function that begins at one of these; none for whatever else."""
    if not isinstance(node, ast.FunctionDef | ast.Lambda):
        return range(0)
    decorators = [] if isinstance(node, ast.Lambda) else node.decorator_list
    first = min(each.lineno for each in (node, *decorators))
    return range(first, (node.end_lineno or first) + 1) if first in first_lines else range(0)


def _function(frame: FrameType) -> Function | None:
    """The function of a frame; None where it is not ours."""
    path = Path(frame.f_code.co_filename)
    return (str(path.relative_to(CODE)), frame.f_code.co_qualname) if path.is_relative_to(CODE) else None


def _room(function: Function) -> str:
    return Path(function[0]).with_suffix("").parts[0]


def _one_after_the_other(*actions: Callable[[], Any]) -> list[Any]:
    return [action() for action in actions]


def _audit() -> None:
    paths = [str(CAPTURE / folder) for folder in ("segments", "transaction-state")]
    with tempfile.TemporaryDirectory() as folder:
        warehouse, report = f"{folder}/warehouse", f"{folder}/report.txt"
        app(["audit", *paths, "--warehouse", warehouse, "-o", report, *OPTIONS], standalone_mode=False)


def walked() -> dict[str, Walk]:
    """Audits the capture, and looks at the reading of its batch lines, at that of its state records, and at `judge`."""
    for found in pkgutil.walk_packages([str(CODE)], "txn_analysis."):
        if not found.name.endswith("__main__") and ".capture" not in found.name:
            module = import_module(found.name)
            if "in_parallel" in vars(module):
                vars(module)["in_parallel"] = _one_after_the_other
    _audit()
    walks = {name: Walk() for name in (BATCH_LINES, STATE_RECORDS, VERDICTS)}
    read_section = vars(rows)["_read_section"]

    def on_the_way(function: Callable[..., Any]) -> Callable[..., Any]:
        def called(*arguments: Any) -> Any:
            with walks[VERDICTS]:
                return function(*arguments)

        return called

    def read(text: Any, parts: Any) -> Any:
        with walks[STATE_RECORDS if parts[0].section.kind == STATE else BATCH_LINES]:
            return [*read_section(text, parts)]

    vars(rows)["_read_section"] = read
    vars(steps)["judged_of"] = on_the_way(vars(steps)["judged_of"])
    Judged.write = on_the_way(Judged.write)  # type: ignore[method-assign]  # to look at its calls, too
    _audit()
    return walks


def main() -> None:
    """Prints for each walk its files with how often functions of each were called, its calls up, and the sums."""
    for name, walk in walked().items():
        print(name)
        for file, number in walk.files.most_common():
            print(f"{number:>8}  {file}")
        for (caller, called), number in walk.ups.most_common():
            print(f"{number:>8}  {' '.join(caller)} -> {' '.join(called)}")
        own, whole = walk.lines
        print(f"{name}: {len(walk.files)} files ({walk.rooms}), {len(walk.ups)} calls up")
        print(f"{own} lines of functions that are called, in files of {whole}\n")


if __name__ == "__main__":
    main()
