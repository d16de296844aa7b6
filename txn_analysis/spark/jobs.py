"""Spark without its import: a session that is started once something needs it, and its jobs.

Little work needs no session. Small jobs mostly wait for the driver, not for each other, and run side by side; whoever
watches a stage is told how far they are. Each job has a description in the words of the pipeline.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from contextvars import ContextVar, copy_context
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Spark: TypeAlias = "SparkSession | Callable[[], SparkSession]"
"""A session, or what starts one."""


def running(spark: Spark) -> SparkSession:
    """The session, started by now."""
    return spark() if callable(spark) else spark


@contextmanager
def started_once(session: Callable[[], AbstractContextManager[SparkSession]]) -> Iterator[Callable[[], SparkSession]]:
    """A way to start a session, once, from whichever thread; it ends with the context."""
    with ExitStack() as started:
        lock = threading.Lock()
        sessions: list[SparkSession] = []

        def start() -> SparkSession:
            with lock:
                if not sessions:
                    sessions.append(started.enter_context(session()))
            return sessions[0]

        yield start


_MOST_AT_ONCE = 8


def in_parallel(*actions: Callable[[], Any]) -> list[Any]:
    """What some independent actions return, in their order; their jobs have the description that holds here."""
    with ThreadPoolExecutor(min(len(actions), _MOST_AT_ONCE) or 1) as pool:
        waiting = [pool.submit(copy_context().run, action) for action in actions]
        return [each.result() for each in waiting]


_description: ContextVar[str | None] = ContextVar("description", default=None)
_DESCRIPTION = "spark.job.description"


@contextmanager
def described(words: str) -> Iterator[None]:
    """Meanwhile jobs are described so in Spark's UI and event log, where `named_jobs` starts them."""
    before = _description.set(words)
    try:
        yield
    finally:
        _description.reset(before)


@contextmanager
def named_jobs(spark: SparkSession) -> Iterator[None]:
    """Meanwhile jobs that this thread starts have the description that holds here.

    It is a property of the thread, and is put back: the session may be somebody else's. There is no job group, as
    notebooks cancel by it. By Spark Connect it is a tag, which takes no comma.
    """
    words, context = _description.get(), getattr(spark, "sparkContext", None)
    if words is None:
        yield
    elif context is None:
        tag = words.replace(",", ";")
        spark.addTag(tag)
        try:
            yield
        finally:
            spark.removeTag(tag)
    else:
        before = context.getLocalProperty(_DESCRIPTION)
        context.setLocalProperty(_DESCRIPTION, words)
        try:
            yield
        finally:
            context.setLocalProperty(_DESCRIPTION, before)


_EVERY_S = 1.0


@contextmanager
def followed(tell: Callable[[float], None] | None) -> Iterator[None]:
    """Meanwhile tells every second which share of the tasks is done, of all stages of jobs that have begun since.

    The tasks of one job are about of a size: it is the share of its bytes, or of its partitions, as well. Where no
    Spark runs it stays 0.

    Args:
        tell: told the share, from 0 to 1; None where nobody wants to know.
    """
    if tell is None:
        yield
        return
    is_over = threading.Event()
    thread = threading.Thread(target=_follow, args=(tell, is_over), name="progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


def _follow(tell: Callable[[float], None], is_over: threading.Event) -> None:
    seen: dict[int, tuple[int, int]] = {}  # by stage: tasks that are done, and all
    furthest = 0.0
    while not is_over.wait(_EVERY_S):
        with suppress(Exception):  # of a session that ends at this moment
            _look(seen)
        total = sum(all_ for _, all_ in seen.values())
        if total:
            furthest = max(furthest, sum(done for done, _ in seen.values()) / total)  # further stages may begin
        tell(furthest)


def _look(seen: dict[int, tuple[int, int]]) -> None:
    pyspark = sys.modules.get("pyspark")
    context = None if pyspark is None else pyspark.SparkContext._active_spark_context
    if context is None:
        return
    tracker = context.statusTracker()
    active = set(tracker.getActiveStageIds())
    for stage in active | seen.keys():
        info = tracker.getStageInfo(stage)
        if info is not None:
            done = info.numCompletedTasks if stage in active else info.numTasks
            seen[stage] = (done, info.numTasks)
