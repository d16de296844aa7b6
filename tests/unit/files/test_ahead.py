"""Many small objects are asked for side by side, each a bounded number of times; a wrong one is named as before."""

import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tools.s3_server import Bucket
from tests.unit.files.test_audits import CAPTURE, LOG_DIR, audited
from txn_analysis.files.remote_file import ahead

SEGMENTS = CAPTURE / "segments"


def test_outcomes_come_in_the_order_of_their_items_and_items_are_taken_as_there_is_room() -> None:
    taken: list[int] = []

    def items() -> Iterator[int]:
        for number in range(100):
            taken.append(number)
            yield number

    outcomes = ahead(lambda number: number * 2, items(), at_once=4)
    item, outcome = next(outcomes)
    assert (item, outcome(), len(taken)) == (0, 0, 5)
    assert [(item, outcome()) for item, outcome in outcomes] == [(n, 2 * n) for n in range(1, 100)]


def test_large_items_are_held_one_at_a_time() -> None:
    taken: list[int] = []
    outcomes = ahead(taken.append, range(5), size_of=lambda _: 100 << 20)
    for number, _ in outcomes:
        assert len(taken) <= number + 1


def test_what_fails_is_said_where_its_outcome_is_looked_at() -> None:
    def failing(number: int) -> int:
        return 1 // number

    outcomes = dict(ahead(failing, [1, 0, 1]))
    with pytest.raises(ZeroDivisionError):
        outcomes[0]()
    assert outcomes[1]() == 1


@pytest.mark.cluster  # an audit for each look
@pytest.mark.parametrize("folder", [LOG_DIR, SEGMENTS], ids=["log directory", "dumps"])
@pytest.mark.parametrize("look", [1, 2, 3, 4], ids=["heads", "plans", "what is outside", "rows"])
def test_an_answer_is_not_waited_for_before_the_next_object_is_asked_for(
    bucket: Bucket, tmp_path: Path, folder: Path, look: int
) -> None:
    bucket.put_folder(folder, "copies")
    looks, both, late = Counter[str](), threading.Barrier(2), list[str]()

    def held_back(kind: str, key: str) -> None:
        if kind == "GET" and key.startswith("copies/") and key.endswith((".log", ".txt")):
            looks[key] += 1
            if looks[key] == look and sum(count >= look for count in looks.values()) <= 2 and not late:
                try:
                    both.wait(timeout=5)
                except threading.BrokenBarrierError:
                    late.append(key)

    bucket.fault = held_back
    audited("s3://kept/copies", str(tmp_path / "w"))
    assert not late


def test_a_small_object_costs_four_requests(bucket: Bucket, tmp_path: Path) -> None:
    """One for its head, one for its plan, one for what is in no section, one for its rows."""
    bucket.put_folder(SEGMENTS, "copies")
    audited("s3://kept/copies", str(tmp_path / "w"))
    assert bucket.requests["GET"] == 4 * len(bucket.objects)
