"""What an engine does with rows: it reads, maps and groups them, and gives back what is small.

A step is a key and a pure function: of all rows of some keys the function makes other rows. How many keys it is given
at once is the engine's affair, so that a function holds thousands of them and no key costs anything by itself.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Collection
    from contextlib import AbstractContextManager

    from txn_analysis.tables import Table

Rows = TypeVar("Rows")

BatchFunction = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
"""What becomes of batches, one after another; each call sees some of them."""
GroupFunction = Callable[[Mapping[str, pa.Table]], pa.Table]
"""What becomes of all rows of some keys, by the name of their input; an input without any is an empty table."""


class Engine(ABC, Generic[Rows]):
    """Runs steps on rows that it holds in a way of its own (`Rows`)."""

    @abstractmethod
    def table(self, table: Table, *names: str, **one_of: Collection[Any]) -> Rows:
        """Some columns of the rows of a table of the warehouse, by values that columns may have; see `Stored`."""

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
    def grouped(self, key: Sequence[str], function: GroupFunction, schema: pa.Schema, **inputs: Rows) -> Rows:
        """What a function makes of all rows of each key, of inputs that all have the columns of the key."""

    @abstractmethod
    def kept(self, rows: Rows) -> AbstractContextManager[Rows]:
        """The same rows, made once, for whoever asks for them more than once."""

    @abstractmethod
    def collected(self, rows: Rows) -> pa.Table:
        """All rows, here; never of what grows with the input."""
