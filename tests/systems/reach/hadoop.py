"""HDFS and YARN of one node each, on loopback: Hadoop's own servers from Maven Central, kept in `.reach/`."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from tests.systems.reach.processes import answer_of
from tests.tools.maven_jars import fetch_jars, spark_jars
from tests.tools.processes import wait_until
from tests.tools.repository import ROOT

JARS = ROOT / ".reach" / "hadoop"
_HADOOP = "3.5.0"
# The last two are what the resource manager asks for beside them.
_ARTIFACTS = (
    ("org.apache.hadoop", "hadoop-client-minicluster", _HADOOP),
    ("org.bouncycastle", "bcprov-jdk18on", "1.78.1"),
    ("org.bouncycastle", "bcpkix-jdk18on", "1.78.1"),
)
_FILES, _NAMES, _DATA, _NODES = 7190, 7191, 7192, 7195
_HDFS = "org.apache.hadoop.hdfs.server"
_YARN = "org.apache.hadoop.yarn.server"
_SERVERS = (
    f"{_HDFS}.namenode.NameNode",
    f"{_HDFS}.datanode.DataNode",
    f"{_YARN}.resourcemanager.ResourceManager",
    f"{_YARN}.nodemanager.NodeManager",
)
_STATE_OF_NAMES = "Hadoop:service=NameNode,name=FSNamesystemState"


class Hadoop(NamedTuple):
    """Servers that run.

    Attributes:
        uri: the root of the file system.
        configuration: the folder that `HADOOP_CONF_DIR` names.
    """

    uri: str
    configuration: Path

    @property
    def environment(self) -> dict[str, str]:
        """What lets a process, and Spark, find it."""
        return {"HADOOP_CONF_DIR": str(self.configuration), "SPARK_LOCAL_IP": "127.0.0.1"}

    def put(self, folder: Path, path: str) -> None:
        """Copy a folder into the file system, by Hadoop's own shell."""
        words = ["org.apache.hadoop.fs.FsShell", "-put", str(folder), path]
        subprocess.run([*_java(self.configuration), *words], check=True, capture_output=True)


@contextmanager
def hadoop(folder: Path) -> Iterator[Hadoop]:
    """A file system and a resource manager, empty, for as long as the context lasts."""
    if not (JARS / f"hadoop-client-minicluster-{_HADOOP}.jar").is_file():
        fetch_jars(f"Hadoop {_HADOOP}", _ARTIFACTS, JARS)
    configuration = folder / "conf"
    configuration.mkdir(parents=True)
    for name, properties in _properties(folder).items():
        lines = (f"<property><name>{key}</name><value>{value}</value></property>" for key, value in properties.items())
        (configuration / f"{name}-site.xml").write_text(f"<configuration>{''.join(lines)}</configuration>")
    subprocess.run([*_java(configuration), _SERVERS[0], "-format", "-force"], check=True, capture_output=True)
    with ExitStack() as running:
        for server in _SERVERS:
            log = running.enter_context(open(folder / f"{server.rpartition('.')[2]}.log", "wb"))
            process = subprocess.Popen([*_java(configuration), server], stdout=log, stderr=subprocess.STDOUT)
            running.callback(process.wait)
            running.callback(process.terminate)
        _wait_for(f"http://127.0.0.1:{_NAMES}/jmx?qry={_STATE_OF_NAMES}", '"NumLiveDataNodes" : 1')
        _wait_for(f"http://127.0.0.1:{_NODES}/ws/v1/cluster/metrics", '"activeNodes":1')
        yield Hadoop(f"hdfs://127.0.0.1:{_FILES}", configuration)


def _properties(folder: Path) -> dict[str, dict[str, str | float]]:
    return {
        "core": {"fs.defaultFS": f"hdfs://127.0.0.1:{_FILES}", "hadoop.tmp.dir": str(folder / "data")},
        "hdfs": {
            "dfs.replication": 1,
            "dfs.namenode.http-address": f"127.0.0.1:{_NAMES}",
            "dfs.datanode.address": f"127.0.0.1:{_DATA}",
            "dfs.datanode.http.address": f"127.0.0.1:{_DATA + 1}",
            "dfs.datanode.ipc.address": f"127.0.0.1:{_DATA + 2}",
            "dfs.datanode.hostname": "127.0.0.1",
        },
        "yarn": {
            "yarn.resourcemanager.hostname": "127.0.0.1",
            "yarn.resourcemanager.bind-host": "127.0.0.1",
            "yarn.resourcemanager.webapp.address": f"127.0.0.1:{_NODES}",
            "yarn.nodemanager.hostname": "127.0.0.1",
            "yarn.nodemanager.bind-host": "127.0.0.1",
            "yarn.nodemanager.resource.memory-mb": 8192,
            "yarn.nodemanager.resource.cpu-vcores": 8,
            "yarn.nodemanager.vmem-check-enabled": "false",
            "yarn.nodemanager.pmem-check-enabled": "false",
            "yarn.nodemanager.disk-health-checker.enable": "false",
            "yarn.nodemanager.local-dirs": str(folder / "local"),
            "yarn.nodemanager.log-dirs": str(folder / "logs"),
            "yarn.scheduler.minimum-allocation-mb": 256,
            "yarn.scheduler.capacity.maximum-am-resource-percent": 0.8,
            "yarn.scheduler.capacity.root.queues": "default",
            "yarn.scheduler.capacity.root.default.capacity": 100,
        },
    }


def _java(configuration: Path) -> list[str]:
    logging = [*spark_jars().glob("slf4j-api-*.jar"), *spark_jars().glob("log4j-*.jar")]
    places = os.pathsep.join(map(str, [configuration, *logging, JARS / "*"]))
    return ["java", "-Xmx512m", "-Djava.net.preferIPv4Stack=true", "-cp", places]


def _wait_for(address: str, said: str) -> None:
    wait_until(lambda: said in answer_of(address), f"{said} of {address}")
