"""Captures that are fed one after another: the answer is that of feeding them at once, and nothing is forgotten."""

import pytest

from tests.oracle.dump_writer import Tool
from tests.oracle.recipes import HOUR_MS, ORDERS, RECIPES, Client, new_cluster
from tests.torture.harness import audit_files
from tests.torture.incremental import differences
from tests.torture.inputs import InputReader
from tests.torture.subjects import STATE_PARTITIONS, files_of, heartbeat
from txn_analysis.settings import Settings

PAIRS = 10
SETTINGS = Settings(transaction_state_partitions=STATE_PARTITIONS, max_clock_skew_ms=0)


@pytest.mark.cluster  # an audit for each pair
@pytest.mark.parametrize("number", range(PAIRS))
def test_one_at_a_time_equals_at_once(reader: InputReader, number: int) -> None:
    assert differences(reader, f"pair {number}") == []


def test_a_start_that_is_only_in_the_earlier_capture_is_still_known(reader: InputReader) -> None:
    cluster = new_cluster()
    heartbeat(cluster)
    (*_, producer, start), _ = RECIPES["unknown_producer"](cluster)
    cluster.roll(ORDERS)
    earlier = cluster.copy()
    Client(cluster, "billing").init().transact(ORDERS)
    cluster.sleep(2 * HOUR_MS)
    cluster.delete_records(ORDERS, cluster.logs[ORDERS].rolls[0][1])
    heartbeat(cluster)
    tool = Tool(deep=True)
    later = {n: d for n, d in files_of(cluster.copy(), tool, "dump").items() if "snapshot" not in n}
    alone = audit_files(reader, {"later": later}, SETTINGS)
    behind = audit_files(reader, {"earlier": files_of(earlier, tool, "dump"), "later": later}, SETTINGS)
    assert alone.hanging == []
    (found,) = behind.hanging
    assert (found["producer_id"], found["txn_start_offset"], found["is_txn_start_exact"]) == (producer, start, True)


def test_a_partition_that_is_gone_from_the_newest_capture_stays_listed_as_inconclusive(reader: InputReader) -> None:
    cluster = new_cluster()
    heartbeat(cluster)
    (*_, producer, start), _ = RECIPES["late_write_after_abort"](cluster)
    tool = Tool(deep=True)
    earlier = files_of(cluster.copy(), tool, "dump")
    cluster.sleep(2 * HOUR_MS)
    heartbeat(cluster)
    later = {n: d for n, d in files_of(cluster.copy(), tool, "dump").items() if not n.startswith("orders-0")}
    answer = audit_files(reader, {"earlier": earlier, "later": later}, SETTINGS)
    row = next(r for r in answer.findings if (r["producer_id"], r["txn_start_offset"]) == (producer, start))
    assert (row["verdict"], row["rule"]) == ("inconclusive", "evidence_broken")
    assert row["missing_evidence"] == ["the partition is not in this capture"]
