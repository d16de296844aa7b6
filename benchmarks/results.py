"""The page `benchmarks/RESULTS.md`: several programs write it, each its own sections."""

from __future__ import annotations

import re
from pathlib import Path

RESULTS = Path(__file__).with_name("RESULTS.md")

_HEADING = re.compile(r"(?m)^(?=## )")


def merged(page: str, new: str) -> str:
    """The page with some sections anew.

    Args:
        page: what is there.
        new: sections, each from its heading to the next; text before the first heading is a section as well. What has
            one of the same heading takes its place.
    """
    sections = _sections(page) | {heading: text for heading, text in _sections(new).items() if text}
    return "\n\n".join(text for text in sections.values() if text) + "\n"


def write(new: str) -> None:
    """Put sections into the page; the others stay."""
    RESULTS.write_text(merged(RESULTS.read_text(encoding="utf-8") if RESULTS.exists() else "", new), encoding="utf-8")


def _sections(page: str) -> dict[str, str]:
    parts = [part.strip() for part in _HEADING.split(page)]
    named = {part.partition("\n")[0]: part for part in parts if part.startswith("## ")}
    return {"": "" if parts[0].startswith("## ") else parts[0]} | named
