"""What a capture costs where the same megabyte hides behind ever more log: `python -m tests.e2e.capture_cost 1 5`.

The numbers are GB of log in front of the open transaction; a line of a Markdown table for each.
"""

import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from tests.e2e.broker import Cluster
from tests.e2e.driver import Driver
from tests.e2e.hangs import HOUR_MS, Hanger, now_ms
from tests.e2e.raw_client import RawClient

VERSION, TOPIC, RECORD_BYTES = "4.3.1", "orders", 10_000
_LARGE_BYTES = 900_000  # below the brokers' own limit of a batch


def main(words: Sequence[str]) -> None:
    """One broker for each size, one after the other."""
    print("| GB of log | bytes fetched | bytes stored | seconds | CPU seconds |\n|---:|---:|---:|---:|---:|")
    for word in words:
        with tempfile.TemporaryDirectory(prefix="capture-cost-") as folder:
            print(_row(float(word), Path(folder)), flush=True)


def _row(gigabytes: float, folder: Path) -> str:
    cluster = Cluster(VERSION, folder / "broker")
    try:
        cluster.start()
        driver = Driver(VERSION, cluster.bootstrap, folder / "driver.log")
        raw = RawClient(cluster.ports[0])
        try:
            driver.create_topic(TOPIC, [1])
            _fill(cluster, folder / "payload", gigabytes)
            _write(cluster, 100)
            driver.begin("importer")
            driver.send("importer", (TOPIC, 0), 5)
            driver.commit("importer")
            Hanger(raw, driver, now_ms() - 3 * HOUR_MS).late_write_after_the_abort("owner", (TOPIC, 0))
            _write(cluster, 100)  # the megabyte behind it
        finally:
            raw.close()
            driver.close()
        program = str(Path(sys.executable).with_name("txn-capture"))
        began = time.monotonic()
        words = [program, "--bootstrap-server", cluster.bootstrap, "--to", str(folder / "capture")]
        done = subprocess.run(["/usr/bin/time", "-f", "%U %S", *words], capture_output=True, text=True, check=True)
        seconds = time.monotonic() - began
        cpu = sum(map(float, done.stderr.splitlines()[-1].split()))
        fetched = sum(file.stat().st_size for file in (folder / "capture").glob("*/*.log"))
        stored = sum(file.stat().st_size for file in cluster.log_dir().glob("[_o]*-[0-9]*/*.log"))
        (said,) = re.findall(r"fetched (.*?):", done.stdout)
        return f"| {gigabytes:g} | {fetched} ({said}) | {stored} | {seconds:.1f} | {cpu:.1f} |"
    finally:
        cluster.stop()


def _fill(cluster: Cluster, payload: Path, gigabytes: float) -> None:
    """Batches of one large record each, uncompressed: as much as the broker can store in a short time."""
    payload.write_text("x" * _LARGE_BYTES)
    _perform(cluster, round(gigabytes * 1e9 / _LARGE_BYTES), "--payload-file", str(payload))


def _write(cluster: Cluster, count: int) -> None:
    _perform(cluster, count, "--record-size", str(RECORD_BYTES))


def _perform(cluster: Cluster, count: int, *words: str) -> None:
    asked = ["--topic", TOPIC, "--num-records", str(count), "--throughput", "-1", *words]
    cluster.run("org.apache.kafka.tools.ProducerPerformance", *asked, "--bootstrap-server", cluster.bootstrap)


if __name__ == "__main__":
    main(sys.argv[1:])
