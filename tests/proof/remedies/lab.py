"""A copy of a real capture, of which something is taken away; audits of it, and what each says is lacking."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from tests.tools.captures import PARAMETERS
from tests.tools.repository import CASES
from tests.tools.sessions import no_session
from txn_analysis.judge.lacks import Lack
from txn_analysis.pipeline import steps
from txn_analysis.report.model import AuditReport
from txn_analysis.settings import Settings


class Lab:
    """A folder with copies of captures, and warehouses beside it, each a copy of an empty one."""

    def __init__(self, root: Path, empty_warehouse: Path) -> None:
        self.root, self.empty_warehouse = root, empty_warehouse
        self.audits = 0

    def copy(self, capture: str, *parts: str) -> Lab:
        """Files of a capture as they are in data/cases; beside what is there."""
        for part in parts:
            place, whence = self.root / "files" / part, CASES / capture / part
            if whence.is_dir():
                shutil.copytree(whence, place, dirs_exist_ok=True)
            else:
                place.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(whence, place)
        return self

    def remove(self, *patterns: str) -> Lab:
        """Files or folders; each pattern names one at least."""
        for pattern in patterns:
            found = [*(self.root / "files").glob(pattern)]
            assert found, pattern
            for path in found:
                if path.is_dir():
                    shutil.rmtree(path)
                else:
                    path.unlink()
        return self

    def write(self, name: str, text: str) -> None:
        path = self.root / "files" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def audit(self, *, fresh: bool = True, **settings: Any) -> AuditReport:
        """Audit what is there; in a warehouse of its own, unless what came before is to count."""
        self.audits += fresh
        warehouse = self.root / f"warehouse-{self.audits}"
        if not warehouse.exists():
            shutil.copytree(self.empty_warehouse, warehouse)
        where = {"warehouse": str(warehouse)}
        return steps.audit(
            no_session, [str(self.root / "files")], Settings.model_validate(where | PARAMETERS | settings)
        )


def lacks(report: AuditReport) -> set[Lack]:
    """All that a report says is lacking."""
    return {remedy.lack for remedy in report.outcome.settled_by}
