"""When a row of a table says that another one has nothing to add: in SQL for Delta, and on rows of the driver."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    Row = dict[str, Any]
    Key = tuple[Any, ...]


@dataclass(frozen=True)
class Alike:
    """Rows that hold the same in some columns, NULL as well, and something else in those of `but`."""

    same: tuple[str, ...]
    but: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The columns that it looks at."""
        return self.same + self.but

    @property
    def sql(self) -> str:
        """The condition in SQL, on rows `s` and `t`."""
        conditions = [f"t.{name} <=> s.{name}" for name in self.same]
        return " AND ".join(conditions + [f"NOT t.{name} <=> s.{name}" for name in self.but])

    def key(self, row: Row) -> Key:
        """What must be the same."""
        return tuple(row.get(name) for name in self.same)

    def is_met(self, row: Row, other: Row) -> bool:
        """Whether two rows with the same `key` are alike."""
        return all(row.get(name) != other[name] for name in self.but)


def unlike(rows: Sequence[Row], present: Sequence[Row], ways: Iterable[Alike]) -> list[Row]:
    """The rows that are alike to none of those that are present, in any of some ways."""
    for way in ways:
        known: defaultdict[Key, list[Row]] = defaultdict(list)
        for row in present:
            known[way.key(row)].append(row)
        rows = [row for row in rows if not any(way.is_met(row, other) for other in known[way.key(row)])]
    return [*rows]
