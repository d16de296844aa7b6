"""One finished run, as the table `runs` keeps it."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class RunRecord:
    """One row of the table `runs`, whose columns are described there (`tables.inputs`).

    `run_number` is None before the row is written. `parameters`, `state_coverage` and `warnings` are JSON.
    """

    run_id: str
    cluster: str
    capture: str
    earlier_captures: tuple[str, ...]
    as_of_ms: int | None
    as_of_basis: str | None
    parameters: str
    input_count: int | None
    table_versions: Mapping[str, int] | None
    verdict_counts: Mapping[str, int] | None
    state_coverage: str
    warnings: str
    outcome: str
    run_number: int | None = None

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> RunRecord:
        """A row of the table, with all its columns."""
        said = {name: row.get(name) for name in _COLUMNS}
        return cls(**said | {"earlier_captures": tuple(row["earlier_captures"] or ())})

    def row(self) -> dict[str, Any]:
        """The record as plain data, as the table takes it."""
        said = {name: getattr(self, name) for name in _COLUMNS}
        return said | {"earlier_captures": list(self.earlier_captures)}

    @property
    def coverage(self) -> dict[str, Any]:
        """What was seen of `__transaction_state`, as `coordinator.coverage.StateCoverage` was written."""
        found: dict[str, Any] = json.loads(self.state_coverage)
        return found

    @property
    def number(self) -> int:
        """The order of its first completion; 0 before it is written."""
        return self.run_number or 0


_COLUMNS = tuple(field.name for field in fields(RunRecord))
