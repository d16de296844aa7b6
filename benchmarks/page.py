"""The page of measurements, docs/sizing.md, made of `benchmarks/results.json`: `python -m benchmarks.page`."""

import json
import os
import platform
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.rows import GIB, ROWS, Row

RESULTS = Path(__file__).with_name("results.json")
PAGE = Path(__file__).parents[1] / "docs/sizing.md"

_LOG_BYTES = 10 * 2**40
_BATCH_BYTES = (1024, 4096, 16384, 65536)
_CORES = (16, 64, 256)
_PAGE = """# Sizing

What audits cost, and what a large cluster needs. `make bench` measures anew and writes this page.

## What it costs

Each row is a ratio within one run on {machine}, the median of its rounds, inputs in the page cache. Scale 1 is as the
row says.

{results}

## What 10 TiB of log need

A dump has one line for each batch. So the size of the batches decides, not that of the log.

{needs}

Minutes are those of one audit by Spark's tasks that keeps every batch, if time falls with cores. A later audit reads
all bytes again, but parses and keeps only what is new. The driver holds a row for each file and each open transaction.
"""


@dataclass(frozen=True)
class Result:
    """One row, measured.

    Attributes:
        mine, other: what was measured, and the anchor, in `unit`.
        figures: by-products that the page needs.
    """

    name: str
    limit: float
    mine: float
    other: float
    unit: str
    figures: dict[str, float] = field(default_factory=dict)

    @property
    def is_missed(self) -> bool:
        """Whether it is beyond its limit."""
        return self.mine > self.limit * self.other

    def kept(self, scale: float) -> dict[str, Any]:
        """What the page is made of."""
        figures = {name: float(f"{value:.6g}") for name, value in self.figures.items()}
        one = {"mine": float(f"{self.mine:.4g}"), "other": float(f"{self.other:.4g}"), "unit": self.unit}
        return one | {"figures": figures, "scale": scale, "on": f"{datetime.now(UTC):%Y-%m-%d}"}

    def __str__(self) -> str:
        missed = ", MISSED" if self.is_missed else ""
        return (
            f"{self.name}: {self.mine / self.other:.3g} x (limit {self.limit:g} x{missed}),"
            f" {self.mine:.3g} {self.unit} against {self.other:.3g}"
        )


def page(kept: Mapping[str, Any]) -> str:
    """The page, from the results that are kept."""
    head = ("what", "limit", "measured", "that is", "scale", "on")
    results = table(head, [_cells(row, kept[row.name]) for row in ROWS if row.name in kept])
    needs_head = ("mean batch", "batches", "dump text", "warehouse", *[f"minutes, {cores} cores" for cores in _CORES])
    figures = kept["dumps-spark"]["figures"]
    needs = table(needs_head, [needs_of(figures, batch_bytes) for batch_bytes in _BATCH_BYTES])
    return _PAGE.format(machine=kept["machine"], results=results, needs=needs)


def _cells(row: Row, one: Mapping[str, Any]) -> tuple[str, ...]:
    words = f"{one['mine']:.3g} {one['unit']} against {one['other']:.3g}"
    return (
        row.what,
        f"≤ {row.limit:g} x",
        f"{one['mine'] / one['other']:.3g} x",
        words,
        f"{one['scale']:g}",
        one["on"],
    )


def needs_of(figures: Mapping[str, float], batch_bytes: int) -> list[str]:
    """What the log needs, with everything growing in proportion to the text of its dumps."""
    batches = _LOG_BYTES / batch_bytes
    text_gib = batches * figures["text_bytes_per_batch"] / GIB
    minutes = [
        (figures["start_s"] + text_gib * figures["s_per_gib"] * figures["cores"] / cores) / 60 for cores in _CORES
    ]
    sizes = [f"{batch_bytes // 1024} KiB", f"{batches / 1e6:,.0f} million", f"{text_gib:,.0f} GiB"]
    return [*sizes, f"{text_gib * figures['warehouse_share']:,.0f} GiB", *[f"{each:,.1f}" for each in minutes]]


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    return "\n".join(
        f"| {' | '.join(cell.replace('|', '/') for cell in line)} |" for line in [head, ["---"] * len(head), *rows]
    )


def machine() -> str:
    """This machine in words, without its name."""
    model = re.search(r"model name\s*: (.+)", Path("/proc/cpuinfo").read_text(encoding="utf-8"))
    return f"{os.cpu_count()} cores ({model[1].strip() if model else platform.machine()})"


if __name__ == "__main__":
    PAGE.write_text(page(json.loads(RESULTS.read_text(encoding="utf-8"))), encoding="utf-8")
