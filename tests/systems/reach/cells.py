"""What cells of the tables share: a real capture, the rows of a warehouse, and a line that says what came of it."""

from tests.systems.reach.processes import Ran
from tests.tools.repository import ROOT
from tests.tools.scene import Tables, tables
from tests.tools.sessions import no_session

CASES = ROOT / "data" / "cases"
WORDS = ("--transaction-state-partitions", "4", "--max-clock-skew-ms", "0", "--exit-zero", "--quiet")
TEXTS = ("kafka-4.2/capture-1/segments", "kafka-4.2/capture-1/transaction-state")
LOG_DIRS = ("kafka-4.2/capture-1/log-dirs",)
KINDS = {"texts": TEXTS, "log-directories": LOG_DIRS}


def stored(warehouse: str, cases: str) -> Tables:
    """All committed rows of a warehouse, whose inputs lie below `cases`."""
    found = tables(no_session, warehouse)  # type: ignore[arg-type]
    return {name: sorted(row.replace(cases, "CASES") for row in rows) for name, rows in found.items()}


class Cells:
    """The table that is made, and what did not hold."""

    def __init__(self) -> None:
        self.wrong: list[str] = []

    def row(self, what: str, ran: Ran, *, is_right: bool, said: str = "equal tables") -> None:
        """One line of the table."""
        shown = said if is_right else "**WRONG**"
        print(f"| {what} | {shown} | {ran.wall_s:.1f} | {ran.cpu_s:.1f} |", flush=True)
        if not is_right:
            self.wrong.append(f"{what}: exit code {ran.code}: {ran.err[-400:]}")
