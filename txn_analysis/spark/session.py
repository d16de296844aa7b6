"""The one place that starts Spark: quiet, with Delta, in UTC, and bound to this machine where it runs locally."""

from __future__ import annotations

import os
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from txn_analysis.errors import MissingToolError
from txn_analysis.spark.delta_jars import DELTA_COORDINATES, delta_jars, jars_folder, resolve_jars
from txn_analysis.spark.interrupts import delete_when_interrupted
from txn_analysis.spark.jdk import check_jdk
from txn_analysis.spark.private_api import check_version, close_spark_folders, delete_with_java

_DELTA_EXTENSION = "io.delta.sql.DeltaSparkSessionExtension"
_JVM_NOISE = b"WARNING: Using incubator modules:"  # Java says it at every start of Spark, and has no switch for it

# What any session needs that an audit works in, and that can be set while Spark runs.
_WORK_OPTIONS = {
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "200000",
    # Below the largest, Spark 4.2 measures the whole batch anew for every row, which is quadratic in nested rows.
    "spark.sql.execution.arrow.maxBytesPerBatch": "2147483647",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.databricks.delta.snapshotPartitions": "1",  # 50 by default: 50 tasks to read a log of a few files
}
WORKER_ENVIRONMENT = {
    # Else a worker gives its memory back after each array, and page faults take up to half of its time: glibc maps
    # large arrays by themselves, and trims its heap whenever one at its end is freed.
    "MALLOC_MMAP_THRESHOLD_": str(1 << 30),
    "MALLOC_TRIM_THRESHOLD_": str(1 << 30),
}
_OPTIONS = _WORK_OPTIONS | {
    "spark.sql.extensions": _DELTA_EXTENSION,
    "spark.sql.catalogImplementation": "in-memory",  # tables are addressed by path; no Hive metastore in the cwd
    "spark.sql.warehouse.dir": tempfile.gettempdir(),  # never used, but made where it is missing: by default in the cwd
    "spark.python.worker.reuse": "true",
    **{f"spark.executorEnv.{name}": value for name, value in WORKER_ENVIRONMENT.items()},
    # Off, building a plan takes a sixth of the time: otherwise every Column call also looks up its line of Python.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.ui.enabled": "false",
}
_LOCAL_OPTIONS = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "2g",
}
_LOCAL_WORK_OPTIONS = {"spark.sql.shuffle.partitions": "4"}  # what is shuffled grows with producers, not with batches
# Without Java's optimising compiler an audit of 100 MB takes half of the processor's time, and a start less; its code
# cache is 48 MiB then by default, which Spark and Delta fill.
_LOCAL_JAVA = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC"


def session(master: str | None = None, app_name: str = "txn-analysis") -> SparkSession:
    """The Spark session to work in: the active one, the one of `spark-submit`, or a new one.

    Options given to `spark-submit`, or by `PYSPARK_SUBMIT_ARGS`, win over the defaults of this module.

    Args:
        master: where to run, `local[*]` if None; not used where Spark is running already, or under `spark-submit`.
        app_name: the name in Spark's own listings.

    Raises:
        MissingToolError: no usable JDK, no Delta jars, or the running Spark has no Delta.
    """
    if SparkContext._active_spark_context is not None:
        return with_delta(SparkSession.builder.getOrCreate())
    is_submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    options = _OPTIONS | {"spark.app.name": app_name}
    if not is_submitted:
        options |= _launch_options(master or "local[*]")
        _launch_jvm(options)
    SparkContext._ensure_initialized()
    is_loud = is_submitted and _logs_as_spark_comes(SparkContext._jvm)
    if is_loud:
        options |= {"spark.log.level": "ERROR"}  # while Spark starts, when it takes its own configuration once more
    conf = SparkConf()
    for key, value in options.items():
        conf.setIfMissing(key, value)
    if not is_submitted:
        conf.setMaster(options["spark.master"])
    # Spark only warns about an extension that it cannot load, and fails much later, at the first table.
    if not _is_delta_loadable():
        raise MissingToolError(f"spark-submit was started without Delta: add --packages {DELTA_COORDINATES}")
    spark = SparkSession.builder.config(conf=conf).getOrCreate()
    if is_loud:
        jvm: Any = SparkContext._jvm
        _log_context(jvm).setConfigLocation(jvm.java.net.URI(_log_configuration()))
    close_spark_folders(spark)
    return with_delta(spark)


def _launch_options(master: str) -> dict[str, str]:
    """What can only be said when the JVM starts, and depends on where it runs."""
    folder = jars_folder(os.environ)
    jars = delta_jars(folder)
    if not jars:
        print(f"fetching the Delta jars once, into {folder}", file=sys.stderr, flush=True)
        jars = resolve_jars(folder)
    java = _LOCAL_JAVA if is_local(master) else ""
    return {
        "spark.master": master,
        "spark.jars": ",".join(map(str, jars)),
        "spark.driver.extraClassPath": os.pathsep.join(map(str, jars)),
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={_log_configuration()} {java}",
        **(_LOCAL_OPTIONS if is_local(master) else {}),
        **work_options(master),
    }


def work_options(master: str) -> dict[str, str]:
    """Of the options of a session of our own, those that can be set while Spark runs."""
    return _WORK_OPTIONS | (_LOCAL_WORK_OPTIONS if is_local(master) else {})


def is_local(master: str) -> bool:
    """Whether driver and executors are one process, in one environment."""
    return master == "local" or master.startswith("local[")


def _launch_jvm(options: dict[str, str]) -> None:
    """Start the JVM, unless this process has one, with its stderr passed on but for the known noise."""
    if SparkContext._gateway is not None:
        return
    check_jdk(os.environ)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
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
    delete_with_java(SparkContext._jvm, folder)


def _pass_on(read_end: int) -> None:
    with open(read_end, "rb") as lines:
        for line in lines:
            if not line.startswith(_JVM_NOISE):
                sys.stderr.write(line.decode("utf-8", "replace"))
                sys.stderr.flush()


def _is_delta_loadable() -> bool:
    jvm: Any = SparkContext._jvm
    return jvm is not None and bool(jvm.org.apache.spark.util.Utils.classIsLoadable(_DELTA_EXTENSION))


def with_delta(spark: SparkSession) -> SparkSession:
    """The session, unless it is without Delta, or of a Spark that is not the one that this version is for.

    Raises:
        MissingToolError: it says how to get one.
    """
    check_version()
    if _DELTA_EXTENSION not in (spark.conf.get("spark.sql.extensions", "") or "") or not _is_delta_loadable():
        raise MissingToolError(
            "the running Spark session has no Delta: start it with"
            f" spark.sql.extensions={_DELTA_EXTENSION} and {DELTA_COORDINATES}, or let txn-analysis start it"
        )
    return spark


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
