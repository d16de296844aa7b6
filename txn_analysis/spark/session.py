"""The one place that starts Spark: quiet, and bound to this machine where it runs locally."""

from __future__ import annotations

import os
import re
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from txn_analysis.errors import AuditError, ConfigError
from txn_analysis.spark.delta import options_of_session
from txn_analysis.spark.driver_log import is_submitted
from txn_analysis.spark.hidden_pandas import show_pandas
from txn_analysis.spark.interrupts import delete_when_interrupted
from txn_analysis.spark.jdk import check_jdk
from txn_analysis.spark.workers import check_spark

_JVM_NOISE = b"WARNING: Using incubator modules:"  # Java says it at every start of Spark, and has no switch for it
_OWNER_ONLY = 0o700

_JAVA_SAYS = re.compile(r"^(?:Caused by)?: ?[\w.$]+(?:Exception|Error): (.+)", re.MULTILINE)
_SETTINGS = "Look at --master, at PYSPARK_SUBMIT_ARGS, and at conf/spark-defaults.conf of SPARK_HOME"

CONNECT = "sc://"
"""How the URL of a server of Spark Connect begins."""

_OPTIONS = {
    "spark.sql.catalogImplementation": "in-memory",  # no Hive metastore in the cwd
    "spark.sql.warehouse.dir": tempfile.gettempdir(),  # never used, but made where it is missing: by default in the cwd
    "spark.python.worker.reuse": "true",
    # Off, building a plan takes a sixth of the time: otherwise every Column call also looks up its line of Python.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.io.compression.codec": "zstd",  # what is shuffled takes half of the bytes that it takes by lz4
}
# On this machine alone, and on a port that is free: plans and descriptions may show transactional ids.
_NO_UI, _UI = {"spark.ui.enabled": "false"}, {"spark.ui.enabled": "true", "spark.ui.port": "0"}
_LOCAL_OPTIONS = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "2g",
    # With a limit of bytes Spark 4.2 adds up all columns of a batch for Python behind each row.
    "spark.sql.execution.arrow.maxBytesPerBatch": str(2**31 - 1),
}
# Without Java's optimising compiler an audit of 100 MB takes half of the processor's time, and a start less; its code
# cache is 48 MiB then by default, which Spark fills.
_LOCAL_JAVA = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC"
# Arrow checks each value that it reads or writes, which takes longer than the value.
_ARROW_JAVA = "-Darrow.enable_unsafe_memory_access=true -Darrow.enable_null_check_for_get=false"


def session(master: str | None = None, app_name: str = "txn-analysis", *, has_ui: bool = False) -> SparkSession:
    """The Spark session to work in: the active one, the one of `spark-submit`, or a new one.

    Options given to `spark-submit`, or by `PYSPARK_SUBMIT_ARGS`, win over the defaults of this module.

    Args:
        master: where to run, `local[*]` if None; not used where Spark is running already, or under `spark-submit`.
        app_name: the name in Spark's own listings.
        has_ui: a session that is started here has Spark's UI; under `spark-submit` its settings decide.

    Raises:
        MissingToolError: no usable JDK, or a Spark older than 4.0.
        ConfigError: Spark does not start with its settings.
    """
    show_pandas()
    with _settings_named():
        return check_spark(_session(master, app_name, has_ui=has_ui))


@contextmanager
def _settings_named() -> Iterator[None]:
    """Where Spark does not start, what it says of that in one line, and where its settings are."""
    try:
        yield
    except AuditError:
        raise
    except Exception as error:  # of Java, Py4J, gRPC or PySpark, as the setting will have it
        lines = _JAVA_SAYS.findall(str(error)) or str(error).splitlines() or [type(error).__name__]
        raise ConfigError(f"Spark does not start: {lines[-1].strip().rstrip('.')}. {_SETTINGS}") from error


def _session(master: str | None, app_name: str, *, has_ui: bool) -> SparkSession:
    if master is not None and master.startswith(CONNECT):
        return SparkSession.builder.remote(master).getOrCreate()
    if SparkContext._active_spark_context is not None:
        return SparkSession.builder.getOrCreate()
    is_started_here = not is_submitted()
    options = _OPTIONS | {"spark.app.name": app_name}
    if is_started_here:
        options |= (_UI if has_ui else _NO_UI) | options_of_session(os.environ)
        options |= _launch_options(master or "local[*]")
        _launch_jvm(options)
    SparkContext._ensure_initialized()
    is_loud = not is_started_here and _logs_as_spark_comes(SparkContext._jvm)
    if is_loud:
        options |= {"spark.log.level": "ERROR"}  # while Spark starts, when it takes its own configuration once more
    conf = SparkConf()
    for key, value in options.items():
        conf.setIfMissing(key, value)
    if is_started_here:
        conf.setMaster(options["spark.master"])
    spark = SparkSession.builder.config(conf=conf).getOrCreate()
    if is_loud:
        jvm: Any = SparkContext._jvm
        _log_context(jvm).setConfigLocation(jvm.java.net.URI(_log_configuration()))
    _close_folders(spark)
    return spark


def address_of_ui(spark: SparkSession) -> str | None:
    """Where Spark shows its jobs; None where it does not, or where a server of Spark Connect does."""
    context: SparkContext | None = getattr(spark, "sparkContext", None)
    return None if context is None else context.uiWebUrl


def _launch_options(master: str) -> dict[str, str]:
    """What can only be said when the JVM starts, and depends on where it runs."""
    java = f"{_LOCAL_JAVA} {_ARROW_JAVA}" if is_local(master) else ""
    return {
        "spark.master": master,
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={_log_configuration()} {java}",
        **(_LOCAL_OPTIONS if is_local(master) else {}),
    }


def is_local(master: str) -> bool:
    """Whether driver and executors are one process, in one environment."""
    return master == "local" or master.startswith("local[")


def _launch_jvm(options: dict[str, str]) -> None:
    """Start the JVM, unless this process has one, with its stderr passed on but for the known noise."""
    if SparkContext._gateway is not None:
        return
    check_jdk(os.environ)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if is_local(options["spark.master"]):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")  # the UI listens on every address otherwise
    # What an audit writes names transactional ids, and Spark makes its folders with the modes that the umask leaves:
    # they are made in one that nobody but its owner can look into.
    folder = Path(tempfile.mkdtemp(prefix="txn-analysis-"))  # 0700, whatever the umask
    delete_when_interrupted(folder)
    conf = SparkConf(loadDefaults=False)
    # Spark's temporary files are there too, unless its own settings differ.
    java = f'{options["spark.driver.extraJavaOptions"]} "-Djava.io.tmpdir={folder}"'
    conf.setAll([*(options | {"spark.driver.extraJavaOptions": java}).items()])
    read_end, write_end = os.pipe()
    threading.Thread(target=_pass_on, args=(read_end,), name="spark-stderr", daemon=True).start()
    try:
        gateway = launch_gateway(conf, {"stderr": write_end})
    finally:
        os.close(write_end)
    SparkContext._ensure_initialized(gateway=gateway)
    _delete_with_java(SparkContext._jvm, folder)


def _pass_on(read_end: int) -> None:
    with open(read_end, "rb") as lines:
        for line in lines:
            if not line.startswith(_JVM_NOISE):
                sys.stderr.write(line.decode("utf-8", "replace"))
                sys.stderr.flush()


def _delete_with_java(jvm: Any, folder: Path) -> None:
    """Let Java delete its folder when it ends: it outlives this process for a moment, and still writes to it."""
    for made in folder.iterdir():  # by spark-submit, before there was a session
        if made.is_dir():
            made.chmod(_OWNER_ONLY)
    jvm.org.apache.spark.util.ShutdownHookManager.registerShutdownDeleteDir(jvm.java.io.File(str(folder)))


def _close_folders(spark: SparkSession) -> None:
    """Close the folders in which a driver that has just started will keep blocks, files and artifacts.

    Somebody else may have said where they are.
    """
    jvm: Any = spark._jvm
    environment = jvm.org.apache.spark.SparkEnv.get()
    blocks = environment.blockManager().diskBlockManager().localDirs()
    files = jvm.org.apache.spark.util.Utils.getLocalDir(environment.conf())
    artifacts = spark._jsparkSession.artifactManager().artifactRootPath().toString()
    for folder in (*blocks, files, artifacts):
        Path(str(folder)).chmod(_OWNER_ONLY)


# What Spark writes into its log are errors alone, on stderr. As Spark comes it is thousands of lines for one audit.


def _log_configuration() -> str:
    """The file beside this module, which may be in a zip that `--py-files` brought along."""
    file = Path(__file__).with_name("log4j2.properties")
    archive = next((folder for folder in file.parents if folder.is_file()), None)
    return f"jar:{archive.as_uri()}!/{file.relative_to(archive)}" if archive else file.as_uri()


def _logs_as_spark_comes(jvm: Any) -> bool:
    """Whether nobody chose how a Java logs that `spark-submit` has started, in Spark's `conf/` or by an option."""
    used = _log_context(jvm).getConfiguration().getConfigurationSource().getLocation()
    return used is None or bool(used.endswith("/org/apache/spark/log4j2-defaults.properties"))


def _log_context(jvm: Any) -> Any:
    return jvm.org.apache.logging.log4j.LogManager.getContext(False)
