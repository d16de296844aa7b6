"""Holds the documents to plain sentences and words: `make check`. CONTRIBUTING.md names the words that they avoid."""

import re
import sys
from collections.abc import Iterator

from tests.docs.commands import without_blocks
from tests.docs.examples import DOCUMENTS, ROOT

SHORTEST, LONGEST, MOST_PERCENT = 5, 25, 3  # what is shorter is a label
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
    return int(too_many or bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
