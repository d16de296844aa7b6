"""Holds documents to plain sentences and words, and code to names that say what a thing is: `make check`.

CONTRIBUTING.md names the words that documents avoid.
"""

import ast
import re
import sys
from collections import Counter
from collections.abc import Iterator

from tests.tools.docs.commands import without_blocks
from tests.tools.docs.examples import DOCUMENTS
from tests.tools.repository import ROOT

SHORTEST, LONGEST, MOST_PERCENT = 5, 25, 3  # what is shorter is a label
NO_NAMES = {"found", "own", "told", "said", "held", "taken"}  # with an underscore or without
MOST_NAMES = {
    "cli": 1,
    "questions": 1,
}
"""By room how often one of them is still bound; it only falls."""
_BEGINS = re.compile(r"(?m)^ *(?:[*-]|\d+\.|#+|\||(?=-{3,})) *")
_ENDS = re.compile(r"(?<=[.?!])[*)\"]*\s+(?=[*(\"]*[A-Z0-9])|\n\s*\n| \| ")


def sentences(text: str) -> Iterator[str]:
    """Those of paragraphs, items and cells, without labels; a link is its words, and code is one word."""
    prose = re.sub(r"(?s)<!--.*?-->|<a id=[^>]*></a>", "\n\n", without_blocks(text))
    prose = re.sub(r"!?\[([^]]*)\]\([^)]*\)", r"\1", re.sub(r"`[^`]*`", "CODE", prose))
    found = (" ".join(one.split()).strip("* |") for one in _ENDS.split(_BEGINS.sub("\n\n", prose)))
    return (one for one in found if len(one.split()) >= SHORTEST)


def avoided_words(contributing: str) -> list[str]:
    """The words in backticks on the line that lists them."""
    (line,) = re.findall(r"(?m)^`make check` refuses (.*)$", contributing)
    return re.findall(r"`([^`]+)`", line)


def bound_names(source: str) -> Iterator[str]:
    """Of variables, parameters, functions and classes."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name


def too_many_names() -> Iterator[str]:
    """The rooms that bind more of `NO_NAMES` than they did."""
    counts = Counter[str]()
    for path in (ROOT / "txn_analysis").rglob("*.py"):
        room = path.relative_to(ROOT / "txn_analysis").parts[0]
        counts[room] += sum(name.strip("_") in NO_NAMES for name in bound_names(path.read_text(encoding="utf-8")))
    for room, count in sorted(counts.items()):
        most = MOST_NAMES.get(room, 0)
        if count != most:
            print(f"txn_analysis/{room} binds {count} of {', '.join(sorted(NO_NAMES))}; MOST_NAMES says {most}")
        if count > most:
            yield room


def main() -> int:
    """Prints each long sentence while there are too many, and each avoided word; 1 if anything is wrong."""
    avoided = avoided_words((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"))
    every = [(path, one) for path in DOCUMENTS for one in sentences(path.read_text(encoding="utf-8"))]
    long = [(path, one) for path, one in every if len(one.split()) > LONGEST]
    wrong = [(path, one) for path, one in every if re.search(rf"(?i)\b({'|'.join(avoided)})\b", one)]
    print(f"{len(long)} of {len(every)} sentences have more than {LONGEST} words: {len(long) / len(every):.1%}")
    too_many = 100 * len(long) > MOST_PERCENT * len(every)
    for path, one in [*wrong, *(long if too_many or "--list" in sys.argv else [])]:
        print(f"{path.relative_to(ROOT)}: {one}")
    return int(too_many or bool(wrong) or any([*too_many_names()]))


if __name__ == "__main__":
    sys.exit(main())
