"""Real brokers on loopback, one Java process each, and Kafka's own tools against them."""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path

from tests.tools.kafka_jars import TRANSACTIONS_TOOL, class_path, tools_version
from tests.tools.processes import wait_until

TRANSACTION_MAX_TIMEOUT_MS = 180_000
STATE_PARTITIONS = 4
HEAP = "-Xmx384m"
QUIET = ("-Dorg.slf4j.simpleLogger.defaultLogLevel=error", "-Dlog4j2.level=ERROR")

# Partition verification is off (3.6 and newer have it), so that what broken clients of old versions did can be done.
# Segments roll at once where a topic asks for it, and the files of deleted ones do not stay.
_PROPERTIES = {
    "offsets.topic.num.partitions": 3,
    "offsets.topic.replication.factor": 1,
    "transaction.state.log.replication.factor": 1,
    "transaction.state.log.min.isr": 1,
    "transaction.state.log.num.partitions": STATE_PARTITIONS,
    "transaction.max.timeout.ms": TRANSACTION_MAX_TIMEOUT_MS,
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": 1000,
    "transaction.partition.verification.enable": "false",
    "group.initial.rebalance.delay.ms": 0,
    "auto.create.topics.enable": "false",
    "log.segment.delete.delay.ms": 100,
    "connections.max.idle.ms": 3_600_000,
}


_PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"


def free_port() -> int:
    """A port of loopback that nobody listens on."""
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class Java:
    """One Java process, with its output in a file."""

    def __init__(self, version: str, log: Path, *words: str) -> None:
        self._log = log
        level = "-Dorg.slf4j.simpleLogger.defaultLogLevel=info"
        command = [
            "java",
            HEAP,
            "-XX:+UseSerialGC",
            "-XX:TieredStopAtLevel=1",
            level,
            "-cp",
            class_path(version),
            *words,
        ]
        with open(log, "wb") as output:
            # A group of its own: Ctrl-C ends the test, and the test ends the broker.
            self.process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, start_new_session=True)

    def wait_for(self, port: int) -> None:
        """Until it listens on a port."""
        wait_until(lambda: self.process.poll() is not None or listens(port), f"{self._log}: port {port}")
        assert self.process.poll() is None, self._log.read_text()[-4000:]

    def kill(self) -> None:
        """As a power failure would: `kill -9`."""
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        """A clean shutdown."""
        self.process.send_signal(signal.SIGCONT)
        self.process.terminate()
        self.process.wait()

    def pause(self) -> None:
        """From now on it answers nobody."""
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """It answers again."""
        self.process.send_signal(signal.SIGCONT)


def listens(port: int) -> bool:
    """Somebody does, on loopback."""
    with closing(socket.socket()) as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


class Cluster:
    """A cluster: one node that does everything, and as many more as are asked for."""

    def __init__(
        self,
        version: str,
        folder: Path,
        *,
        nodes: int = 1,
        has_guests: bool = False,
        properties: Mapping[str, object] | None = None,
        features: Sequence[str] = (),
        node_versions: Sequence[str] = (),
    ) -> None:
        """A cluster that is not started yet.

        Args:
            version: of Kafka.
            folder: for everything that its processes write.
            nodes: how many.
            has_guests: a second listener is for somebody without any right.
            properties: more of them, of all brokers.
            features: with which the cluster is formatted, as `name=level`; by default the newest of its version.
            node_versions: of each node, where they are not all of the one version, which the tools are then of.
        """
        self._features = features
        self.versions = node_versions or [version] * nodes
        self._more = dict(properties or {})
        self.version = version
        self._guest_port = free_port() if has_guests else None
        self.folder = folder
        self.ports = [free_port() for _ in range(nodes)]
        self._control = free_port()
        self.nodes: list[Java] = []
        self._others: list[Java] = []

    @property
    def has_zookeeper(self) -> bool:
        """Whether the brokers are told about each other by ZooKeeper."""
        return self.version.startswith("2.")

    @property
    def bootstrap(self) -> str:
        """Where the first node listens."""
        return f"127.0.0.1:{self.ports[0]}"

    @property
    def guest_bootstrap(self) -> str:
        """Where the first node listens for guests."""
        return f"127.0.0.1:{self._guest_port}"

    @property
    def guest_config(self) -> str:
        """What a client of a guest puts into its `--command-config`."""
        return _lines(
            {
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": "PLAIN",
                "sasl.jaas.config": f'{_PLAIN} username="guest" password="guest";',
            }
        )

    def log_dir(self, node: int = 0) -> Path:
        """The `log.dirs` of a node."""
        return self.folder / f"node-{node + 1}"

    def start(self, first_topic: Callable[[Cluster], None] | None = None) -> Cluster:
        """Start all nodes; returns once they listen.

        Args:
            first_topic: called when the first node listens: what is made then, is led by that node.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        if self.has_zookeeper:
            self._start_zookeeper()
        for node, port in enumerate(self.ports):
            conf = self.folder / f"node-{node + 1}.properties"
            conf.write_text(_lines(self._properties(node)))
            if not self.has_zookeeper:
                self._format(conf, self.versions[node])
            self.nodes.append(self._node(node))
            self.nodes[-1].wait_for(port)
            if first_topic is not None and node == 0:
                first_topic(self)
        return self

    def restart(self, node: int) -> None:
        """Start a node again that was killed or stopped."""
        self.nodes[node] = self._node(node)
        self.nodes[node].wait_for(self.ports[node])

    def _node(self, node: int) -> Java:
        conf = self.folder / f"node-{node + 1}.properties"
        return Java(self.versions[node], self.folder / f"node-{node + 1}.log", "kafka.Kafka", str(conf))

    def stop(self) -> None:
        """End all processes, the controller last."""
        for process in reversed([*self._others, *self.nodes]):
            process.stop()

    def run(self, main_class: str, *words: str, version: str | None = None, may_fail: bool = False) -> str:
        """The output of one of Kafka's own tools; those of the brokers' version unless another one is asked for."""
        jars = class_path(version or tools_version(self.version))
        command = ["java", "-Xmx256m", "-XX:TieredStopAtLevel=1", *QUIET, "-cp", jars]
        done = subprocess.run([*command, main_class, *words], capture_output=True, text=True, check=False)
        assert may_fail or done.returncode == 0, (words, done.stdout[-2000:], done.stderr[-2000:])
        return done.stdout

    def find_hanging(
        self, broker_id: int = 1, *places: str, minutes: int = TRANSACTION_MAX_TIMEOUT_MS // 60_000
    ) -> str:
        """What `kafka-transactions.sh find-hanging` prints, with a maximum timeout: the brokers' own, in minutes."""
        where = places or ("--broker-id", str(broker_id))
        words = ("--bootstrap-server", self.bootstrap, "find-hanging", *where)
        return self.run(TRANSACTIONS_TOOL, *words, "--max-transaction-timeout", str(minutes))

    def _start_zookeeper(self) -> None:
        conf = self.folder / "zookeeper.properties"
        conf.write_text(
            _lines(
                {
                    "dataDir": self.folder / "zookeeper",
                    "clientPort": self._control,
                    "clientPortAddress": "127.0.0.1",
                    "admin.enableServer": "false",
                }
            )
        )
        main_class = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
        self._others.append(Java(self.version, self.folder / "zookeeper.log", main_class, str(conf)))
        self._others[-1].wait_for(self._control)

    def _properties(self, node: int) -> dict[str, object]:
        plain = f"PLAINTEXT://127.0.0.1:{self.ports[node]}"
        own: dict[str, object] = {"log.dirs": self.log_dir(node), "advertised.listeners": plain}
        if self.has_zookeeper:
            own |= {"broker.id": node + 1, "listeners": plain, "zookeeper.connect": f"127.0.0.1:{self._control}"}
        else:
            control = f"127.0.0.1:{self._control}"
            own |= {
                "node.id": node + 1,
                "process.roles": "broker" if node else "broker,controller",
                "listeners": plain if node else f"{plain},CONTROLLER://{control}",
                "controller.quorum.voters": f"1@{control}",
                "controller.listener.names": "CONTROLLER",
                "inter.broker.listener.name": "PLAINTEXT",
                "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
            }
        return _PROPERTIES | self._more | own | (self._for_guests(own) if self._guest_port is not None else {})

    def _for_guests(self, own: Mapping[str, object]) -> dict[str, object]:
        kraft, zookeeper = "org.apache.kafka.metadata.authorizer.Standard", "kafka.security.authorizer.Acl"
        guests = f"SASL_PLAINTEXT://{self.guest_bootstrap}"
        return {
            "listeners": f"{own['listeners']},{guests}",
            "advertised.listeners": f"{own['advertised.listeners']},{guests}",
            "listener.security.protocol.map": (
                "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT"
            ),
            "sasl.enabled.mechanisms": "PLAIN",
            "listener.name.sasl_plaintext.plain.sasl.jaas.config": f'{_PLAIN} user_guest="guest";',
            "authorizer.class.name": f"{zookeeper if self.has_zookeeper else kraft}Authorizer",
            "super.users": "User:ANONYMOUS",
        }

    def _format(self, conf: Path, version: str) -> None:
        # Any 16 bytes in Kafka's base 64 are a cluster id.
        words = ("format", "--cluster-id", "dHhuLWFuYWx5c2lzLWUyZQ", "--config", str(conf))
        features = [word for each in self._features for word in ("--feature", each)]
        self.run("kafka.tools.StorageTool", *words, *features, version=version)  # it is in the brokers' own jar

    def copy_logs(self, target: Path, node: int = 0) -> Path:
        """Copy a node's log directory as docs/log-directories.md says: logs first, `__transaction_state` last."""
        folders = sorted(p for p in self.log_dir(node).iterdir() if p.is_dir())
        states = [p for p in folders if p.name.startswith("__transaction_state-")]
        for folder in [*(p for p in folders if p not in states), *states]:
            copy_folder(folder, target / folder.name)
        for file in self.log_dir(node).iterdir():
            if file.is_file() and not file.name.startswith("."):
                shutil.copy2(file, target)
        return target


def copy_folder(source: Path, target: Path) -> None:
    """Copy a folder that a broker writes to: files that disappear meanwhile are left out."""
    target.mkdir(parents=True, exist_ok=True)
    for file in list(source.iterdir()):
        try:
            shutil.copy2(file, target)
        except FileNotFoundError:
            continue


def _lines(properties: Mapping[str, object]) -> str:
    return "".join(f"{name}={value}\n" for name, value in properties.items())
