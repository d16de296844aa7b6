"""The command line does without pandas: Arrow imports it with its first array, wherever it is installed.

That takes a third of a second, more than most questions, and serves conversions that no command asks for. PySpark asks
for pandas itself.
"""

from __future__ import annotations

import sys


class _Hidden:
    """A finder that says that pandas is not installed; a None in `sys.modules` Arrow would take for the module."""

    @staticmethod
    def find_spec(name: str, *_: object) -> None:
        if name == "pandas":
            raise ModuleNotFoundError("No module named 'pandas'", name=name)


def hide_pandas() -> None:
    """Let nothing find pandas, until `show_pandas`; for a process that only runs a command."""
    sys.meta_path.insert(0, _Hidden)


def show_pandas() -> None:
    """Let PySpark find pandas. Arrow goes on without it once it has made an array."""
    if _Hidden in sys.meta_path:
        sys.meta_path.remove(_Hidden)
