"""Files as the client of Hadoop reads and writes them, by which HDFS is reached; here in a folder of this disk."""

import io
from pathlib import Path

import pytest

from txn_analysis.files.hdfs import HdfsStore
from txn_analysis.files.store import StoreError

LARGE = bytes(range(256)) * (80 << 10)  # 20 MiB: some steps of a stream


def whole(store: HdfsStore, key: str) -> bytes:
    found = store.head(key)
    assert found is not None
    return store.read(key, 0, found.version.size_bytes, found.version)


@pytest.mark.parametrize("content", [b"one commit", LARGE], ids=["small", "large"])
def test_what_is_put_is_read_again(tmp_path: Path, content: bytes) -> None:
    store = HdfsStore(f"file://{tmp_path}")
    store.put("audit/bytes", content)
    store.put("audit/stream", io.BytesIO(content))
    assert whole(store, "audit/bytes") == whole(store, "audit/stream") == content


def test_where_nobody_answers_it_says_what_to_check() -> None:
    with pytest.raises(StoreError, match=r"does not answer as it should \(.*\)\. Check that its name node runs"):
        HdfsStore("hdfs://127.0.0.1:1").head("audit/bytes")
