"""Working in a Spark session that somebody else made, as fast as in one of our own, and leaving it as it was.

The work is done in a session beside theirs, a clone with its files, its credentials and its executors, so that none of
their settings is touched. What Python or a SparkContext has only one of is changed for the call and put back.
"""

from __future__ import annotations

import os
import sys
import threading
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from pyspark.core.rdd import RDD
from pyspark.errors import utils as debugging
from pyspark.sql import SparkSession

from txn_analysis.errors import MissingToolError
from txn_analysis.spark.parallel import threads_begin_with
from txn_analysis.spark.session import WORKER_ENVIRONMENT, is_local, with_delta, work_options

if TYPE_CHECKING:
    from collections.abc import Iterator

# Settings under these names go back to Spark's and Delta's defaults in the clone: with some of them Arrow hands over
# other types, a missing or damaged file is passed over without a word, a table is made otherwise than it is declared,
# or is read as it was minutes ago.
_NOT_TAKEN_OVER = (
    "spark.databricks.delta.",
    "spark.sql.execution.arrow.",
    "spark.sql.files.ignore",
    "spark.sql.legacy.",
    "spark.sql.pyspark.udf.profiler",
)


def check_usable(spark: SparkSession) -> None:
    """Refuse a session that cannot be worked in.

    Raises:
        MissingToolError: the session has no Delta, or it is one of Spark Connect, whose Java cannot be reached.
    """
    if not hasattr(spark, "_jsparkSession"):
        raise MissingToolError(
            "this is a session of Spark Connect, which leaves its Java out of reach: audit where the driver runs"
        )
    with_delta(spark)


@contextmanager
def borrowed(spark: SparkSession) -> Iterator[SparkSession]:
    """A session for one call, beside one that somebody else made; theirs is afterwards as it was, also on errors.

    Raises:
        MissingToolError: as with `check_usable`.
    """
    check_usable(spark)
    with _PROCESS.prepared(spark), _active_session_kept(spark):
        own = _clone(spark)
        # Delta asks for the active session of a thread, and takes the user's own where there is none.
        with threads_begin_with(partial(_make_active, own)):
            _make_active(own)
            yield own


def _clone(spark: SparkSession) -> SparkSession:
    own = SparkSession(spark.sparkContext, spark._jsparkSession.cloneSession())
    java: Any = own._jvm
    known = java.org.apache.spark.sql.internal.SQLConf
    for name in own.conf.getAll:
        # `isModifiable` is false of names that Delta has not registered, such as its defaults for new tables.
        if name.startswith(_NOT_TAKEN_OVER) and not known.isStaticConfigKey(name):
            own.conf.unset(name)
    for name, value in work_options(str(spark.sparkContext.master)).items():
        own.conf.set(name, value)
    return own


def _make_active(spark: SparkSession) -> None:
    _java_sessions(spark).setActiveSession(spark._jsparkSession)


def _java_sessions(spark: SparkSession) -> Any:
    return SparkSession._get_j_spark_session_class(spark._jvm)


@contextmanager
def _active_session_kept(spark: SparkSession) -> Iterator[None]:
    """Whatever makes a frame makes its session the active one of the thread."""
    active = _java_sessions(spark).getActiveSession()
    try:
        yield
    finally:
        if active.isDefined():
            _java_sessions(spark).setActiveSession(active.get())
        else:
            _java_sessions(spark).clearActiveSession()


class _Process:
    """What a process has one of: changed by the first call that needs it, put back by the last of several at once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._calls = 0
        self._changes = ExitStack()

    @contextmanager
    def prepared(self, spark: SparkSession) -> Iterator[None]:
        with self._lock:
            self._calls += 1
            if self._calls == 1:
                self._change(spark)
        try:
            yield
        finally:
            with self._lock:
                self._calls -= 1
                if self._calls == 0:
                    self._changes.close()

    def _change(self, spark: SparkSession) -> None:
        changed = self._changes.enter_context
        changed(_with(debugging, "_enable_debugging_cache", False))
        changed(_with(SparkSession, "_activeSession", SparkSession._activeSession))
        changed(_with(RDD, "toDF", RDD.toDF))  # each new session binds it to itself
        context = spark.sparkContext
        changed(_with(context, "environment", WORKER_ENVIRONMENT | context.environment))
        names_python = "PYSPARK_PYTHON" in os.environ or bool(spark.conf.get("spark.pyspark.python", ""))
        if is_local(str(context.master)) and not names_python:
            # Spark takes the first `python3` on PATH, which is another one in a notebook whose kernel names its own.
            changed(_with(context, "pythonExec", sys.executable))


@contextmanager
def _with(place: Any, name: str, value: Any) -> Iterator[None]:
    before = getattr(place, name)
    setattr(place, name, value)
    try:
        yield
    finally:
        setattr(place, name, before)


_PROCESS = _Process()
