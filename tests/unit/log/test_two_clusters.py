"""Files of two clusters share nothing in nearly all partitions: by that they are known, and told apart by folder."""

from typing import Any

import pytest

from tests.tools.records import sections_of
from txn_analysis.log.two_logs import TwoClusters, two_clusters
from txn_analysis.tables import TwoLogs

Row = dict[str, Any]
TODAY, YESTERDAY = 0, 1
CAPTURES = ("today", "yesterday")
PLACES = [("orders", number) for number in range(8)]


def row(place: tuple[str, int], path: str, rank: int = TODAY, **more: Any) -> Row:
    section = {"kind": "log", "topic": place[0], "partition": place[1], "path": path, "capture_rank": rank}
    return section | {"first_offset": 0, "stated": None} | more


def of_two(folder: str, other: str, places: list[tuple[str, int]], ranks: tuple[int, int] = (TODAY, TODAY)) -> Any:
    """By partition, files of two logs in two folders; and their sections."""
    paths = {place: (f"{folder}/{place[0]}-{place[1]}.txt", f"{other}/{place[0]}-{place[1]}.txt") for place in places}
    found = {place: [TwoLogs(one, ranks[0], two, ranks[1])] for place, (one, two) in paths.items()}
    return found, [
        row(place, path, rank) for place, both in paths.items() for path, rank in zip(both, ranks, strict=True)
    ]


def test_two_folders_that_share_nothing_are_named() -> None:
    found, rows = of_two("pile/2024/a", "pile/2022/b", PLACES)
    assert two_clusters(found, sections_of(rows), CAPTURES) == TwoClusters(
        (("pile/2022",), ("pile/2024",)), None, 8, 8, ()
    )


def test_brokers_of_each_cluster_stand_on_its_side() -> None:
    """Each broker of one cluster contradicts those of the other, never its own."""
    found, rows = of_two("copies/east-1", "copies/west-1", PLACES[:4])
    for folder, other in (("copies/east-2", "copies/west-1"), ("copies/east-1", "copies/west-2")):
        more, of_more = of_two(folder, other, PLACES[4:6] if "east-2" in folder else PLACES[6:])
        found, rows = found | more, rows + of_more
    seen = two_clusters(found, sections_of(rows), CAPTURES)
    assert seen is not None
    assert seen.sides == (("copies/east-1", "copies/east-2"), ("copies/west-1", "copies/west-2"))


def test_files_of_one_folder_are_named_themselves() -> None:
    found, rows = of_two("pile", "pile", [])
    for number in range(3):
        one, other = f"pile/a-{number}.txt", f"pile/b-{number}.txt"
        found["orders", number] = [TwoLogs(one, 0, other, 0)]
        rows += [row(("orders", number), one), row(("orders", number), other)]
    seen = two_clusters(found, sections_of(rows), CAPTURES)
    assert seen is not None
    assert sorted(map(len, seen.sides)) == [3, 3]


@pytest.mark.parametrize("differing", [0, 1, 5])
def test_a_few_partitions_that_differ_are_no_two_clusters(differing: int) -> None:
    """A topic that was made again, or an unclean election: most of what both hold agrees."""
    _, rows = of_two("east", "west", PLACES)
    found, _ = of_two("east", "west", PLACES[:differing])
    assert two_clusters(found, sections_of(rows), CAPTURES) is None


def test_a_capture_that_contradicts_an_earlier_one_is_named_with_the_folders_of_both() -> None:
    found, rows = of_two("tonight", "other", PLACES, ranks=(TODAY, YESTERDAY))
    assert two_clusters(found, sections_of(rows), CAPTURES) == TwoClusters(
        (("tonight",), ("other",)), "yesterday", 8, 8, ()
    )


def test_a_capture_that_was_given_by_an_absolute_path_has_a_name() -> None:
    found, rows = of_two("/tonight", "other", PLACES, ranks=(TODAY, YESTERDAY))
    seen = two_clusters(found, sections_of(rows), CAPTURES)
    assert seen is not None
    assert seen.sides == (("/tonight",), ("other",))


def test_what_only_earlier_captures_contradict_among_themselves_is_not_said_again() -> None:
    found, rows = of_two("b", "c", PLACES, ranks=(YESTERDAY, YESTERDAY + 1))
    rows += [row(place, "tonight/x", TODAY) for place in PLACES]
    assert two_clusters(found, sections_of(rows), (*CAPTURES, "before")) is None


def test_ids_of_clusters_tell_though_no_partition_is_in_both() -> None:
    ids = [
        row(("", -1), f"copies/{name}/meta.properties", kind="cluster_id", stated=f"id-{name}", first_offset=None)
        for name in ("east", "west")
    ]
    logs = [row(("orders", 0), "copies/east/orders-0/0.log"), row(("payments", 0), "copies/west/payments-0/0.log")]
    seen = two_clusters({}, sections_of(ids + logs), CAPTURES)
    assert seen == TwoClusters((("copies/east",), ("copies/west",)), None, 0, 0, ("id-east", "id-west"))
    found, dumps = of_two("dumps/a", "dumps/b", PLACES)
    told = two_clusters(found, sections_of(ids + logs + dumps), CAPTURES)
    assert told is not None
    assert told.partition_count <= told.shared_count, "dumps that no id places on a side are counted on neither"
    ids[1]["capture_rank"] = logs[1]["capture_rank"] = YESTERDAY
    assert two_clusters({}, sections_of(ids + logs), CAPTURES) == TwoClusters(
        (), "yesterday", 0, 0, ("id-east", "id-west")
    )
