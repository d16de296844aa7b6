"""Commands that need no pandas do not wait for it: Arrow imports it with its first array, wherever it is installed.

That takes a third of a second, and is for conversions that no command asks for. PySpark asks for it.
"""

from __future__ import annotations

import sys

_NAME = "pandas"
OF_WORKERS = "TXN_ANALYSIS_HIDES_PANDAS"
"""The variable in the environment of Spark's workers that says that they are nobody else's either."""


class _Hiding:
    """A finder that says of pandas that it is not installed."""

    @staticmethod
    def find_spec(name: str, *_: object) -> None:
        if name == _NAME:
            raise ModuleNotFoundError(f"No module named {_NAME!r}", name=_NAME)


_hiding = _Hiding()


def hide_pandas() -> None:
    """In this process nothing finds pandas, until `show_pandas`; for a process that is nobody else's."""
    if _hiding not in sys.meta_path:
        sys.meta_path.insert(0, _hiding)


def show_pandas() -> bool:
    """It is found again; Arrow, once it had an array, goes on without it, and takes a Series for any other sequence.

    Returns:
        Whether it was hidden.
    """
    was_hidden = _hiding in sys.meta_path
    if was_hidden:
        sys.meta_path.remove(_hiding)
    return was_hidden
