"""All that happens on brokers and is kept in `data/cases`.

`python -m tests.systems.e2e.scenarios NAME…` makes these cases anew, or all: producer ids, offsets and times are new.
"""

import argparse
import shutil
import tempfile
from pathlib import Path

from tests.systems.e2e import (
    busy,
    find_hanging,
    lost_marker,
    mixed,
    newest_tools,
    rotation,
    three_nodes,
    tiered,
    tomorrow,
    upgrade,
    wrong_order,
)
from tests.systems.e2e.scenario import play
from tests.tools.repository import CASES

SCENARIOS = {
    part.SCENARIO.case: part.SCENARIO
    for part in (
        *(lost_marker, find_hanging, rotation, three_nodes, tiered, wrong_order, busy, upgrade, tomorrow, mixed),
    )
}


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.systems.e2e.scenarios", description=__doc__)
    known = [*SCENARIOS, newest_tools.CASE]
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of {', '.join(known)}")
    for name in parser.parse_args().names or known:
        shutil.rmtree(CASES / name, ignore_errors=True)
        with tempfile.TemporaryDirectory(prefix=f"{name}-") as folder:
            if name in SCENARIOS:
                play(SCENARIOS[name], Path(folder) / "brokers", CASES / name)
            else:
                newest_tools.make(CASES / name)


if __name__ == "__main__":
    main()
