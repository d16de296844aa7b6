"""What stands in for Spark and the library under a command, so that a test of the command line starts neither."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest


class Library:
    """Replaces functions of the library by name, and keeps what they were called with."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._monkeypatch = monkeypatch
        self.calls: list[tuple[Any, ...]] = []
        self.sessions: list[Any] = []
        monkeypatch.setattr("txn_analysis.cli.spark.spark_session", self._no_session)
        monkeypatch.setattr("txn_analysis.cli.audit_verbs.spark_when_needed", self._no_session)
        monkeypatch.setattr("txn_analysis.cli.spark.check_warehouse", lambda _: None)
        monkeypatch.setattr("txn_analysis.warehouse.opening.open_warehouse", lambda _, root: ("warehouse", root))
        tables = SimpleNamespace(believed_inputs={}, newer_run=None)
        monkeypatch.setattr("txn_analysis.runs.run_tables.run_tables", lambda *_: tables)
        # `import` looks a submodule up in its package first, where the real one may be already.
        self.module("txn_analysis.pipeline.steps")
        self.module("txn_analysis.questions.loaded_report")

    def module(self, name: str, **functions: Any) -> None:
        """Puts a module of these functions in the place of a real one."""
        module = ModuleType(name)
        for function_name, function in functions.items():
            setattr(module, function_name, function)
        self._monkeypatch.setitem(sys.modules, name, module)
        package, _, leaf = name.rpartition(".")
        self._monkeypatch.setattr(import_module(package), leaf, module, raising=False)

    def returns(self, name: str, result: Any) -> None:
        """A step of the library notes its arguments, and returns the result or raises it."""

        def called(*arguments: Any) -> Any:
            self.calls.append(arguments)
            if isinstance(result, BaseException):
                raise result
            return result

        for module in ("pipeline.steps", "questions.loaded_report"):
            self._monkeypatch.setattr(sys.modules[f"txn_analysis.{module}"], name, called, raising=False)

    @contextmanager
    def _no_session(self, settings: Any, input_bytes: int | None = 0) -> Iterator[str]:  # noqa: ARG002 as the real one
        self.sessions.append(settings)
        yield "spark"


def raising(error: BaseException) -> Callable[..., Any]:
    """A function that only raises."""

    def called(*_: Any, **__: Any) -> Any:
        raise error

    return called
