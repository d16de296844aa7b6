"""The command of this version, and of an earlier one that is checked out in another folder."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks.processes import run

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.processes import Finished


@dataclass(frozen=True)
class Version:
    """A version of the command; `folder` is its checkout, None stands for the one that this program is of."""

    folder: Path | None = None

    def run(self, *words: str | Path, extra_env: dict[str, str] | None = None) -> Finished:
        """Run the command to its end, with the packages that are installed here.

        Raises:
            FailedError: it ended with an error.
        """
        # From its own folder, where Python looks first, also in Spark's workers.
        return run([sys.executable, "-m", "txn_analysis", *map(str, words)], extra_env, folder=self.folder)


THIS = Version()
