"""How many histories the pure core answers in a second on one core: `python -m tests.core.rate`."""

import argparse
import gc
import sys
import time
from dataclasses import dataclass

from tests.core.answer import answers_of
from tests.core.random_world import BATCHES, random_history

AT_ONCE = 1_000
_ROUNDS_TO_WARM_UP = 2


@dataclass(frozen=True)
class Rate:
    """What one measurement came to; making the histories is not in its seconds."""

    histories: int
    batches: int
    findings: int
    cpu_seconds: float

    @property
    def per_second(self) -> float:
        """Histories a second of one core."""
        return self.histories / self.cpu_seconds


def measured(count: int, first_seed: int = 0) -> Rate:
    """Answer so many random histories, some hundred at a time, as a proof does."""
    for _ in range(_ROUNDS_TO_WARM_UP):  # compiled code is loaded once there has been enough work for it
        answers_of([random_history(seed) for seed in range(AT_ONCE)])
    batches = findings = 0
    spent = 0.0
    for seed in range(first_seed, first_seed + count, AT_ONCE):
        histories = [random_history(s) for s in range(seed, min(seed + AT_ONCE, first_seed + count))]
        gc.collect()
        gc.freeze()  # what was imported and what was made up is not looked at again and again
        began = time.process_time()
        answers = answers_of(histories)
        spent += time.process_time() - began
        gc.unfreeze()
        batches += sum(len(part) for history in histories for part in history.batches)
        findings += sum(len(answer.findings) for answer in answers)
    return Rate(count, batches, findings, spent)


def main(words: list[str]) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.core.rate", description=__doc__)
    parser.add_argument("--histories", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(words)
    rate = measured(given.histories, given.seed)
    print(
        f"{rate.histories} histories of {rate.batches / rate.histories:.0f} batches (at least {BATCHES}), "
        f"{rate.findings} findings: {rate.cpu_seconds:.1f} s of one core, {rate.per_second:.0f} histories a second"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
