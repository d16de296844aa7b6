"""A standalone cluster on loopback: a master and its workers, each a Java process of its own."""

import subprocess
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.systems.spark.installed import SPARK_HOME
from tests.tools.processes import wait_until

_DEPLOY = "org.apache.spark.deploy"
_ANY_PORT = ("--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
_MASTER_STARTED = "Starting Spark master at "
_WORKER_STARTED = "Successfully registered with master"


@contextmanager
def standalone_cluster(
    folder: Path, environment: Mapping[str, str], *, workers: int = 2, cores: int = 1, memory: str = "2g"
) -> Iterator[str]:
    """The URL of its master; all processes end with the block.

    Args:
        folder: for their logs and work folders.
        environment: what the workers, and the executors that they start, find.
        workers: how many there are.
        cores: of each worker, whatever this machine has.
        memory: for the executors of each worker.
    """
    with ExitStack() as running:
        master = _Daemon(folder / "master.log", environment, f"{_DEPLOY}.master.Master", *_ANY_PORT)
        running.callback(master.stop)
        url = master.line_with(_MASTER_STARTED).partition(_MASTER_STARTED)[2].strip()
        started = []
        for number in range(workers):
            options = ("--cores", str(cores), "--memory", memory, "--work-dir", str(folder / f"worker-{number}"))
            log = folder / f"worker-{number}.log"
            started.append(_Daemon(log, environment, f"{_DEPLOY}.worker.Worker", *_ANY_PORT, *options, url))
            running.callback(started[-1].stop)
        for worker in started:
            worker.line_with(_WORKER_STARTED)
        yield url


class _Daemon:
    """One Java process; `spark-class` becomes it, so its process id is the one to end."""

    def __init__(self, log: Path, environment: Mapping[str, str], *words: str) -> None:
        self._log = log
        with open(log, "wb") as output:
            command = [str(SPARK_HOME / "bin/spark-class"), *words]
            self._process = subprocess.Popen(command, env=environment, stdout=output, stderr=subprocess.STDOUT)

    def line_with(self, words: str) -> str:
        """The first line of its log with some words, once it is there."""
        wait_until(lambda: self._process.poll() is not None or words in self._log.read_text(), words)
        lines = [line for line in self._log.read_text().splitlines() if words in line]
        assert lines, self._log.read_text()
        return lines[0]

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait()
