"""What the last kept run of each part found, and the page that is made of it."""

import json
import re
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from tests.proof.part import Figure, Part, Result
from tests.proof.parts import PARTS
from tests.tools.repository import ROOT

RESULTS = Path(__file__).with_name("results.json")
PAGE = ROOT / "docs/proofs.md"
BEGIN, END = "<!-- proofs: written by `python -m tests.proof --write` -->\n", "<!-- /proofs -->\n"


def known_results() -> dict[str, Result]:
    """The last kept run of each part, by the part's name."""
    rows = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else []
    return {row["part"]: Result(**row | {"figures": [Figure(**figure) for figure in row["figures"]]}) for row in rows}


def keep(results: Sequence[Result]) -> None:
    """Take over what parts found, and write the page anew; of other parts the last runs stay."""
    known = known_results() | {result.part: result for result in results}
    rows = [asdict(known[part.name]) for part in PARTS if part.name in known]
    RESULTS.write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")
    PAGE.write_text(with_results(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


def with_results(page: str) -> str:
    """The page with the results as they are known now."""
    before, _, rest = page.partition(BEGIN)
    return f"{before}{BEGIN}\n{written(PARTS, known_results())}\n{END}{rest.partition(END)[2]}"


def written(parts: Sequence[Part], known: dict[str, Result]) -> str:
    """Results as Markdown: what each part shows, the size of its run, and how many figures are wrong."""
    lines = ["| part | what it shows | size | seconds | tried | wrong |", "|---|---|---:|---:|---|---:|"]
    return "\n".join([*lines, *(_row(part, known.get(part.name)) for part in parts)]) + "\n"


def _row(part: Part, result: Result | None) -> str:
    if result is None:
        return f"| `{part.name}` | {part.proves} | not run yet | | | |"
    tried, *_ = result.figures
    wrong = sum(not figure.is_right for figure in result.figures) + len(result.problems)
    (size,) = re.findall(r"--size (\d+)", result.command)
    return f"| `{part.name}` | {part.proves} | {size} | {result.seconds:,} | {tried.value:,} {tried.name} | {wrong} |"
