"""Failures of storage are told from errors of the program, and named by their problem."""

import pytest
from deltalake.exceptions import DeltaError

from txn_analysis.files.store import StoreError
from txn_analysis.warehouse.errors import storage_error


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (OSError(28, "No space left on device", "/w/runs"), "no space left on the disk"),
        (OSError(122, "Disk quota exceeded", "/w/runs"), "no space left on the disk"),
        (PermissionError(13, "Permission denied", "/w/.locks"), "permission denied"),
        (OSError(30, "Read-only file system", "/w/.locks"), "the file system is read-only"),
        (NotADirectoryError(20, "Not a directory", "/w/.locks"), "a part of this path is a file"),
        (ConnectionRefusedError(111, "Connection refused"), "Spark's Java process ended in the middle"),
        (RuntimeError("Python worker exited unexpectedly (crashed)"), "a Python worker of Spark died"),
        (StoreError("the store refuses access (403 Forbidden)"), "the store refuses access (403 Forbidden)"),
        (RuntimeError("… txn_analysis.files.store.StoreError: the store failed"), "the store failed. What earlier"),
        (DeltaError("Generic S3 error: Error performing GET …"), "the store does not answer as it should"),
        (DeltaError("Kernel error"), "the warehouse is damaged here"),
    ],
)
def test_what_storage_did(error: Exception, words: str) -> None:
    known = storage_error(error, "/w")
    assert known is not None
    assert str(known).startswith("/w: ")
    assert words in str(known)


@pytest.mark.parametrize("error", [ValueError("too many values to unpack"), KeyError("ingest_id")])
def test_an_error_of_the_program_stays_one(error: Exception) -> None:
    assert storage_error(error, "/w") is None
