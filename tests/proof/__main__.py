"""`make proof`: the long, seeded tests, two at a time, and one table of what they found.

Exits with 1 if any figure is not as it must be.
"""

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from contextlib import AbstractContextManager
from itertools import repeat

from tests.proof.part import Part, Result, run_part
from tests.proof.parts import PARTS
from tests.proof.processes import AT_ONCE, two_processes
from tests.proof.results import keep, known_results

SHOWN_PROBLEMS = 20


def main(
    words: Sequence[str] | None = None,
    parts: Sequence[Part] = PARTS,
    workers: Callable[[], AbstractContextManager[Executor]] = two_processes,
) -> int:
    """The command line."""
    given, began = _parsed(words, parts), time.monotonic()
    asked = [part for part in parts if not given.only or part.name in given.only]
    chosen = [part for part in asked if part.sample or not given.sample]
    sizes = [_size(part, given) for part in chosen]
    results = []
    with workers() as executor:
        for result in executor.map(run_part, chosen, sizes, repeat(given.seed)):
            print(said(result), flush=True)
            results.append(result)
    if given.write:
        keep(results)
    wrong = [result.part for result in results if not result.is_right]
    outcome = f"NOT as it must be: {', '.join(wrong)}" if wrong else "all as it must be"
    print(f"seed {given.seed}, {time.monotonic() - began:,.0f} s: {outcome}")
    return int(bool(wrong))


def _parsed(words: Sequence[str] | None, parts: Sequence[Part]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.proof", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="another one tries other examples")
    parser.add_argument("--only", action="append", choices=[part.name for part in parts], help="a part; again for more")
    sizes = parser.add_mutually_exclusive_group()
    sizes.add_argument("--size", type=int, help="of each part, in units of its own; by default that of a whole run")
    sizes.add_argument("--minutes", type=float, help="about so long in all, by how long each part took last time")
    sizes.add_argument("--sample", action="store_true", help="a little of each part of which other tests do less")
    parser.add_argument("--write", action="store_true", help="keep what is found, and write docs/proofs.md anew")
    return parser.parse_args(words)


def _size(part: Part, given: argparse.Namespace) -> int:
    if given.sample:
        return part.sample
    if given.minutes is None:
        return part.size if given.size is None else int(given.size)
    known = known_results()
    last_s = {name: result.seconds for name, result in known.items() if not given.only or name in given.only}
    last_all_s = max(sum(last_s.values()) / AT_ONCE, *last_s.values(), 1)
    share = given.minutes * 60 / last_all_s
    return max(part.sample, round(part.size * share)) if part.name in last_s else part.sample


def said(result: Result) -> str:
    """A result as text: what repeats it, its figures, and the first of its problems."""
    lines = [f"{result.seconds:6,} s  {result.part}: {result.command}"]
    for figure in result.figures:
        wrong = "" if figure.is_right else "   WRONG"
        must_be = f"   must be {figure.must_be}" if figure.must_be else ""
        lines.append(f"{figure.value:>12,}  {figure.name}{must_be}{wrong}")
    lines += [f"     PROBLEM  {problem}" for problem in result.problems[:SHOWN_PROBLEMS]]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
