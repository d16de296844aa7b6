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
        env = dict(extra_env or {}) | ({"PYTHONPATH": str(self.folder)} if self.folder else {})
        is_other = ["-P"] if self.folder else []  # else Python looks into the folder it was started in first
        return run([sys.executable, *is_other, "-m", "txn_analysis", *map(str, words)], env)


THIS = Version()
