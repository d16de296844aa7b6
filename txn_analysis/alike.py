"""When a row of a table says that another one has nothing to add: in SQL for Delta, and on rows of the driver."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    Row = dict[str, Any]
    Key = tuple[Any, ...]

_ANYTHING = object()


@dataclass(frozen=True)
class Alike:
    """Rows that hold the same in some columns, NULL as well; and, if `but` names one, not the same in that."""

    same: tuple[str, ...]
    but: str | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The columns that it looks at."""
        return (*self.same, self.but) if self.but else self.same

    @property
    def sql(self) -> str:
        """The same as a condition on rows `s` and `t`."""
        conditions = [f"t.{name} <=> s.{name}" for name in self.same]
        return " AND ".join([*conditions, f"NOT t.{self.but} <=> s.{self.but}"] if self.but else conditions)


def unlike(rows: Sequence[Row], present: Sequence[Row], ways: Iterable[Alike]) -> list[Row]:
    """The rows that are alike to none of those that are present, in any of some ways."""
    for way in ways:
        known: defaultdict[Key, set[Any]] = defaultdict(set)
        for row in present:
            known[_key(row, way)].add(row[way.but] if way.but else _ANYTHING)
        rows = [row for row in rows if known[_key(row, way)] <= ({row.get(way.but)} if way.but else set())]
    return [*rows]


def _key(row: Row, way: Alike) -> Key:
    return tuple(row.get(name) for name in way.same)
