"""Loops over bytes and rows that no array operation expresses, compiled by Numba on their first call.

Numba is imported by the first call too, so that work too small to be worth it never pays for either.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from types import FunctionType
from typing import Any, Generic, ParamSpec, TypeVar, cast

P = ParamSpec("P")
R = TypeVar("R")

LOADING_US = 400_000  # of Numba, with the first function that it kept on disk
NEXT_US = 20_000  # of each further function

NO_PLACE = -1  # where a loop over bytes would give the place of what is not there

# Nothing is allocated, so that no references need to be counted; that, with a call for each small step, would take ten
# times as long as the steps.
_OPTIONS: dict[str, Any] = {"_nrt": False, "forceinline": True}


class Compiled(Generic[P, R]):
    """A function that is compiled when it is first called.

    What it calls must be compiled as well, and be declared before it. It fills arrays that it is given, and makes none.
    Arithmetic is that of 64-bit machine words: sums may wrap around.
    """

    _all_spent_us = 0.0  # by all functions
    _is_numba_loaded = False

    def __init__(self, function: Callable[P, R]) -> None:
        self._function = cast("FunctionType", function)
        self._spent_us = 0.0
        self.__doc__ = function.__doc__

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Calls it, compiled."""
        return cast("R", self.machine_code(*args, **kwargs))

    def count(self, python_us: float) -> None:
        """Adds work that takes so many microseconds without it to what this process has met."""
        self._spent_us += python_us
        Compiled._all_spent_us += python_us

    @property
    def is_worth_loading(self) -> bool:
        """The work that was counted would have taken as long as to load the compiled code.

        Numba is loaded for all functions at once, so that the work of all of them pays for it.
        """
        if Compiled._is_numba_loaded or Compiled._all_spent_us >= LOADING_US:
            return self._spent_us >= NEXT_US
        return False

    def for_work(self, python_us: float) -> Callable[P, R]:
        """Counts some work, and gives what to do it with: itself, or the function as Python runs it."""
        self.count(python_us)
        return self if self.is_worth_loading else self.plain

    @cached_property
    def plain(self) -> Callable[P, R]:
        """As Python runs it, with all that it calls."""
        return cast("Callable[P, R]", self._with({name: f.plain for name, f in self._called.items()}))

    @cached_property
    def machine_code(self) -> Any:
        """What Numba made of it; other compiled functions call this."""
        import numba  # noqa: PLC0415 a quarter of a second, for long work only

        Compiled._is_numba_loaded = True
        linked = self._with({name: f.machine_code for name, f in self._called.items()})
        # What is kept on disk for the next process is known by the age of its own file, and by this name.
        others = sorted(self._files - {inspect.getfile(self._function)})
        linked.__qualname__ += "".join(f"_{Path(file).stat().st_mtime_ns:x}" for file in others)
        try:
            return numba.njit(cache=True, **_OPTIONS)(linked)
        except RuntimeError:  # no folder to keep it in: neither beside the code nor in the user's home
            return numba.njit(**_OPTIONS)(linked)

    @property
    def _called(self) -> dict[str, Compiled[..., Any]]:
        known = self._function.__globals__
        return {name: known[name] for name in self._function.__code__.co_names if isinstance(known.get(name), Compiled)}

    @property
    def _files(self) -> set[str]:
        """The source of it, and of all that it calls."""
        return {inspect.getfile(self._function)}.union(*(f._files for f in self._called.values()))

    def _with(self, called: dict[str, Any]) -> FunctionType:
        plain = self._function
        copied = FunctionType(plain.__code__, plain.__globals__ | called, plain.__name__) if called else plain
        copied.__module__, copied.__qualname__ = plain.__module__, plain.__qualname__
        return copied


def compiled(function: Callable[P, R]) -> Compiled[P, R]:
    """Let Numba compile a function when it is first called; see `Compiled`."""
    return Compiled(function)
