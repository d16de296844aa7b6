"""What an engine does with rows: it reads, maps and groups them, and gives back what is small.

A step is a key and a pure function: of all rows of some keys the function makes other rows. How many keys it is given
at once is the engine's affair, so that a function holds thousands of them and no key costs anything by itself.
"""

from __future__ import annotations

import gc
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Generic, TypeVar

import pyarrow as pa

from txn_analysis.columns.values import BatchFunction, GroupFunction
from txn_analysis.engine import memory
from txn_analysis.errors import ConfigError
from txn_analysis.settings import EngineName, Settings
from txn_analysis.tables import Table
from txn_analysis.text import size


def is_on_spark(settings: Settings, text_bytes: int) -> bool:
    """Spark's tasks do the work on so much text; else this process does it.

    This is the one place that decides. Recognising files, reading, reconstructing, judging and planning ask it, each
    with the bytes that it works on.

    Raises:
        ConfigError: this process is asked for, and would hold more than it may.
    """
    most_bytes = memory.most_in_memory_bytes()
    is_little = text_bytes <= most_bytes
    if settings.engine is EngineName.LOCAL and not is_little:
        raise ConfigError(
            f"--engine local: there are {size(text_bytes)} to judge, earlier captures included, and this process holds "
            f"at most {size(most_bytes)}, which is {size(text_bytes - most_bytes)} less: leave --engine out, or give "
            "--engine spark"
        )
    is_asked_for = settings.engine is EngineName.AUTO and settings.master is not None
    return settings.engine is EngineName.SPARK or is_asked_for or not is_little


@contextmanager
def no_search_for_cycles() -> Iterator[None]:
    """Meanwhile Python does not look for unreachable cycles: records have none, and a step holds millions of them.

    Each search walks all of them, which is a quarter of the time of a step.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


Rows = TypeVar("Rows")

KeySizes = Mapping[tuple[Any, ...], int]
"""Bytes of text, by the values of the columns of a key."""


def kind_schema(schema: pa.Schema, kind: str, names: Collection[str]) -> pa.Schema:
    """The columns of one kind, of those of `schema_of_kinds`; all where none is named."""
    fields = schema.field(kind).type
    return pa.schema([field for field in fields if not names or field.name in names])


def joined_schema(left: pa.Schema, right: pa.Schema, key: Collection[str]) -> pa.Schema:
    """The columns of rows that are joined by a key."""
    return pa.schema([*left, *(field for field in right if field.name not in key)])


class Engine(ABC, Generic[Rows]):
    """Runs steps on rows that it holds in a way of its own (`Rows`).

    Attributes:
        name: what reports call it.
    """

    name: EngineName

    @abstractmethod
    def table(self, table: Table, *names: str, **one_of: Collection[Any]) -> Rows:
        """Some columns of the rows of a table of the warehouse, by values that columns may have; see `Warehouse`."""

    @abstractmethod
    def made(self, rows: pa.Table) -> Rows:
        """Rows that are here already."""

    @abstractmethod
    def together(self, *rows: Rows) -> Rows:
        """All rows of some that have the same columns."""

    @abstractmethod
    def mapped(self, rows: Rows, function: BatchFunction, schema: pa.Schema) -> Rows:
        """What a function makes of each batch, or of several."""

    @abstractmethod
    def grouped(
        self,
        key: Sequence[str],
        function: GroupFunction,
        schema: pa.Schema,
        size_bytes: KeySizes | None = None,
        **inputs: Rows,
    ) -> Rows:
        """What a function makes of all rows of each key, of inputs that all have the columns of the key.

        Args:
            key: the columns.
            function: of all rows of some keys.
            schema: of what it makes.
            size_bytes: how much text the rows of each key were read from, where that is known: tasks get equal shares.
            inputs: the rows, by the name under which the function gets them.
        """

    @abstractmethod
    def of_kind(self, rows: Rows, kind: str, *names: str) -> Rows:
        """The rows of one kind, of rows of `schema_of_kinds`; of all its columns, or of some."""

    @abstractmethod
    def matched(self, rows: Rows, known: pa.Table, key: Sequence[str], schema: pa.Schema) -> Rows:
        """The rows whose key one of some others has: a semi-join, or an inner one where columns of these are asked for.

        Args:
            rows: of which each has a key.
            known: the others, which are here already. Each has a key of its own.
            key: columns that both have.
            schema: of what is made: columns of the rows, and of `known`.
        """

    @abstractmethod
    def joined(self, left: Rows, right: Rows, key: Sequence[str]) -> Rows:
        """Every row of the left, with the columns of the one on the right that has its key; NULL where none has.

        No row of the left has NULL in its key.
        """

    @abstractmethod
    def kept(self, rows: Rows) -> AbstractContextManager[Rows]:
        """The same rows, made once, for whoever asks for them more than once."""

    @abstractmethod
    def collected(self, rows: Rows) -> pa.Table:
        """All rows, here; never of what grows with the input."""

    @abstractmethod
    def write(self, rows: Rows, function: BatchFunction, table: Table, **slice_of: str) -> None:
        """Make what a function makes of rows the whole content of one slice of a table of the warehouse."""
