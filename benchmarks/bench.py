"""Where a bench works, how large its inputs are, and its audits of them."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING

from benchmarks.audits import Audit, audit
from benchmarks.processes import fastest, in_memory

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

GIB = 2**30
SIZES = ("small", "large")


@dataclass(frozen=True)
class Bench:
    """Where and how large.

    Attributes:
        work: an empty folder; what a step leaves in it, later steps use.
        sizes_bytes: of the small and of the large input.
        repeats: how often each process runs; the fastest counts.
    """

    work: Path
    sizes_bytes: dict[str, int]
    repeats: int

    def audits(
        self,
        inputs: Mapping[str, list[Path]],
        *words: str,
        repeats: int = 0,
        has_events: bool = False,
        kept: Path | None = None,
    ) -> dict[str, Audit]:
        """Of each input the fastest of some audits, by its name; each writes into the folder `warehouse`.

        Args:
            inputs: files or folders, by the name of the audit.
            words: further options.
            repeats: instead of the bench's.
            has_events: whether Spark logs what it does.
            kept: the tables that are in the warehouse before; none by default.
        """

        def made(paths: list[Path]) -> Audit:
            shutil.rmtree(self.warehouse, ignore_errors=True)
            if kept:
                shutil.copytree(kept, self.warehouse)
            return audit(paths, self.warehouse, *words, events_to=self.work / "events" if has_events else None)

        with in_memory(chain(*inputs.values())):
            return fastest({name: partial(made, paths) for name, paths in inputs.items()}, repeats or self.repeats)

    @property
    def warehouse(self) -> Path:
        """Where audits write; a step that needs the tables of another one keeps them elsewhere."""
        return self.work / "warehouse"

    @property
    def kept_warehouse(self) -> Path:
        """The tables of the large audit of shallow dumps."""
        return self.work / "kept-warehouse"

    def shallow(self, size: str) -> Path:
        """The folder of the shallow dumps of one size."""
        return self.work / f"shallow-{size}"

    @property
    def next_segments(self) -> Path:
        """The segments that follow those of the large shallow dumps: one hundredth of their size."""
        return self.work / "shallow-next"
