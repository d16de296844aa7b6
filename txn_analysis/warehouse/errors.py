"""What Arrow, Delta's library and Spark throw when storage fails them, in the words of the problem.

The cause is looked for along the whole chain of Java exceptions: a full disk in a task arrives as a failed write of a
failed stage. Whatever is not known here stays an error of the program, with its traceback.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from txn_analysis.errors import AuditError, WarehouseError
from txn_analysis.files.store import StoreError

_INTACT = "What earlier runs wrote is intact"
_AGAIN = "the same command can be run again, and starts over"

_IS_DAMAGED = "the warehouse is damaged here"
_RESTORE = "Restore this folder from a backup, or audit the files again into a new --warehouse"
DAMAGED = f"{_IS_DAMAGED}. {_RESTORE}"

# What Delta's library and Arrow say of a table that lost files, or whose files were changed by something else.
_DAMAGE = (
    "Corrupt snappy",
    "Could not open Parquet input source",
    "Couldn't deserialize thrift",
    "FileNotFoundError: ",
    "Unexpected end of stream",
    "DeltaError: ",
)
# What Delta's library says of a store that failed it, which is no damage.
_NO_ANSWER = ("Error performing ", "Generic S3 error", "Generic GCS error", "Generic MicrosoftAzure error")
# What Spark says of Delta, and of every other query, where a session's settings name Delta and its jars are missing.
NO_JARS = ("Cannot find catalog plugin class", "Failed to find the data source: delta")
# The first problem whose sign is found anywhere along the chain: signs, what it is, what to do.
_PROBLEMS: tuple[tuple[tuple[str, ...], str, str], ...] = (
    (
        ("No space left on device", "Disk quota exceeded", "File too large", "not enough space on the disk"),
        "no space left on the disk",
        f"{_INTACT}. Free some space: {_AGAIN}",
    ),
    (("Read-only file system",), "the file system is read-only", f"{_INTACT}. Give a --warehouse that can be written"),
    (
        ("Permission denied", "AccessControlException", "AccessDenied", "Operation not permitted"),
        "permission denied",
        f"{_INTACT}. Give yourself permission to write there, or another --warehouse",
    ),
    (
        ("Not a directory", "Parent path is not a directory", "ParentNotDirectoryException"),
        "a part of this path is a file, not a folder",
        "Give another --warehouse",
    ),
    (
        ("Mkdirs failed to create",),
        "folders cannot be made here",
        f"{_INTACT}. Check that the disk is writable and not full: {_AGAIN}",
    ),
    (
        ("lacked the necessary privileges", "lacked valid authentication"),
        "the store refuses access",
        f"{_INTACT}. Check the credentials: the environment, the profile or the role",
    ),
    (_NO_ANSWER, "the store does not answer as it should", f"{_INTACT}: {_AGAIN}"),
    (_DAMAGE, _IS_DAMAGED, _RESTORE),
    (
        (
            "Python worker exited unexpectedly",
            "Python worker failed to connect back",
            "PythonWorkerFactory.createWorker",
        ),
        "a Python worker of Spark died: killed, or out of memory",
        f"{_INTACT}, and {_AGAIN}",
    ),
    (
        NO_JARS,
        "the session's settings name Delta, and Delta's jars are missing",
        "Start Spark with the jars, or without these settings (docs/lakehouse.md)",
    ),
    (("OutOfMemoryError",), "Spark ran out of memory", f"{_INTACT}. Raise spark.driver.memory: {_AGAIN}"),
)
_LOST_JVM = f"Spark's Java process ended in the middle: killed, or out of memory. {_INTACT}, and {_AGAIN}"

# Our own errors, raised in a task of Spark.
_OURS = re.compile(r"txn_analysis\.(?:files\.store\.(?:Store|Changed)Error|errors\.(?:Input|Audit)Error): ")
_SAID = re.compile(r"(StoreError|ChangedError|InputError|AuditError): (.*)")

_LOST_CONNECTION = "Py4JNetworkError"  # by name: questions do without Py4J

_FILE = re.compile(r"file:/*(/[^\s'`\"]+)")
_BROKEN = re.compile(r"BrokenRowError: (.*)")


class BrokenRowError(ValueError):
    """A row breaks a constraint of its table; the text says which."""


def storage_error(error: BaseException, place: str) -> WarehouseError | None:
    """The error that says what storage did to us; None if it is something else.

    Args:
        error: what was raised by a call into Spark.
        place: the table or warehouse that was worked on; used where the exception names no file.
    """
    if isinstance(error, ConnectionRefusedError) or type(error).__name__ == _LOST_CONNECTION:
        return WarehouseError(f"{place}: {_LOST_JVM}")
    chain = [*_java_chain(error)] or [f"{type(error).__name__}: {error}"]
    text = "\n".join(chain)
    if isinstance(error, StoreError) or _OURS.search(text):
        return _of_store(text, place)
    if broken := _BROKEN.search(text):
        return WarehouseError(
            f"{place}: a row breaks {broken[1]}; nothing of its slice was written. A dump that is damaged or forged in"
            " an unforeseen way can do that: please report it"
        )
    for signs, what, remedy in _PROBLEMS:
        if any(sign in text for sign in signs):
            return WarehouseError(f"{_place(text, place)}: {what}. {remedy}")
    return None


def _of_store(text: str, place: str) -> WarehouseError:
    """What a store did to a task, or to us; an input is named by whoever read it."""
    kind, message = _SAID.findall(text)[-1]
    return WarehouseError(message if kind in {"InputError", "AuditError"} else f"{place}: {message}. {_INTACT}")


def spark_words(error: BaseException) -> str:
    """What Spark says of a text in SQL, without the plan and the places in what was made of the text."""
    lines = str(error).strip().partition("\n")[0]
    return lines.partition(" SQLSTATE: ")[0].rstrip(".")


def too_busy(path: str) -> WarehouseError:
    """The error of a writer that others were faster than, every time."""
    return WarehouseError(f"{path}: other audits kept writing here at the same time. Run the same command again")


@contextmanager
def storage_errors_in_words(place: str) -> Iterator[None]:
    """What storage does meanwhile to work on a table or warehouse is said in the words of the problem.

    Raises:
        WarehouseError: `storage_error` knows what went wrong.
    """
    try:
        yield
    except AuditError:
        raise
    except Exception as error:
        if (problem := storage_error(error, place)) is None:
            raise
        raise problem from error


def _java_chain(error: BaseException) -> Iterator[str]:
    """`class: message` of a Java exception and of its causes, outermost first; nothing for errors of Python."""
    # PySpark's own exceptions keep the Java object in one place, Py4J's in another.
    cause: Any = getattr(error, "_origin", None)
    if cause is None:
        cause = getattr(error, "java_exception", None)
    while cause is not None:
        yield f"{cause.getClass().getName()}: {cause.getMessage()}"
        cause = cause.getCause()


def _place(text: str, place: str) -> str:
    """The file that the exception names, if it is of this warehouse; else the place as it is known here."""
    named = _FILE.search(text)
    return named[1].rstrip(".,:") if named and named[1].startswith(place) else place
