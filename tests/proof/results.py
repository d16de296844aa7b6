"""What the last kept run of each part found, and the page that is made of it."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from tests.proof.part import Figure, Part, Result
from tests.proof.parts import PARTS

RESULTS = Path(__file__).with_name("results.json")
PAGE = Path(__file__).parents[2] / "docs/proofs.md"
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
    """Results as Markdown: what each part shows and what repeats it, then every figure."""
    lines = ["| Part | What it shows | Seconds | What repeats it |", "|---|---|---:|---|"]
    lines += [_part_row(part, known.get(part.name)) for part in parts]
    lines += ["", "| Part | Figure | Found | Must be |", "|---|---|---:|---|"]
    lines += [_figure_row(result, figure) for result in known.values() for figure in _figures(result)]
    return "\n".join(lines) + "\n"


def _part_row(part: Part, result: Result | None) -> str:
    if result is None:
        return f"| `{part.name}` | {part.proves} | not run yet | |"
    return f"| `{part.name}` | {part.proves} | {result.seconds:,} | `{result.command}` |"


def _figure_row(result: Result, figure: Figure) -> str:
    return f"| `{result.part}` | {figure.name} | {figure.value:,} | {figure.must_be} |"


def _figures(result: Result) -> list[Figure]:
    return [*result.figures, Figure("other problems", len(result.problems), 0, 0)]
