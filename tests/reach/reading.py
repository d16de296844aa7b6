"""A program that reads a place as an audit does, without judging: what listing, survey and scan cost, as JSON.

`python -m tests.reach.reading PLACE --way headers` reads of every batch the header alone, `whole` all bytes, and
`chosen` as the program decides. The requests of each step are what the proxy of tests.reach counted meanwhile.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import sys
import time
from functools import partial
from typing import TYPE_CHECKING, NoReturn
from unittest.mock import patch
from urllib.request import urlopen

from txn_analysis.pipeline.ingest_tasks import READ_KINDS, read_tasks
from txn_analysis.reading.inputs.find_files import find_files
from txn_analysis.reading.inputs.planning import plan_inputs, split_ranges
from txn_analysis.settings import Settings
from txn_analysis.storage import opening
from txn_analysis.stores.places import place_of
from txn_analysis.stores.remote_file import Cost, cost_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeVar

    Result = TypeVar("Result")

WAYS = {"headers": 0, "whole": 1 << 40, "chosen": None}
"""Below which size batches are read whole; None where the program decides."""
STEPS = ("list", "survey", "scan")
Step = tuple[float, int, int, int]  # seconds, requests, bytes, and the most memory so far in MiB


def main(arguments: Sequence[str] | None = None) -> int:
    """Print what each step took, and below which size batches were read whole in the end. Returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.reach.reading", description=__doc__)
    parser.add_argument("place")
    parser.add_argument("--way", choices=[*WAYS], default="chosen")
    parser.add_argument("--until", choices=STEPS, default=STEPS[-1], help="the last step")
    given = parser.parse_args(arguments)
    opening.most_in_memory_bytes = lambda: 1 << 50  # all in this process, however much it is
    bound = WAYS[given.way]
    forced = partial(patch.object, Cost, "bytes_per_request", bound)
    found = dict[str, Step]()
    with forced() if bound is not None else patch.dict(os.environ):
        files = _step(found, "list", lambda: find_files([given.place]))
        if given.until != "list":
            inputs = _step(found, "survey", lambda: plan_inputs(_no_session, files).inputs)
            assert all(plan.problem is None for plan in inputs), [plan.problem for plan in inputs if plan.problem][:3]
        if given.until == "scan":
            ranges = split_ranges(inputs, READ_KINDS, Settings().range_bytes, 1)
            count = _step(
                found,
                "scan",
                lambda: sum(len(rows) for _, rows in read_tasks(ranges, "reading", is_on_spark=False).all_rows()),
            )
            print(f"{count} rows", file=sys.stderr)
    place = place_of(given.place)
    bound = cost_of(place.root).bytes_per_request if place else 0
    print(json.dumps({"steps": found, "files": len(files), "bytes_per_request": bound}))
    return 0


def _no_session() -> NoReturn:
    raise AssertionError("Spark was asked for")


def _step(found: dict[str, Step], name: str, does: Callable[[], Result]) -> Result:
    _counted()
    began = time.monotonic()
    result = does()
    most_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    found[name] = (time.monotonic() - began, *_counted(), most_mib)
    return result


def _counted() -> tuple[int, int]:
    if "AWS_ENDPOINT_URL" not in os.environ:
        return 0, 0
    with urlopen(f"{os.environ['AWS_ENDPOINT_URL']}/.counts") as answer:
        requests, sent = answer.read().split()
    return int(requests), int(sent)


if __name__ == "__main__":
    sys.exit(main())
