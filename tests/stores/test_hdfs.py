"""Files as the client of Hadoop reads and writes them, by which HDFS is reached; here in a folder of this disk."""

import io
from pathlib import Path

import pytest

from txn_analysis.stores.hdfs import HdfsStore

LARGE = bytes(range(256)) * (80 << 10)  # 20 MiB: some steps of a stream


@pytest.mark.parametrize("content", [b"one commit", LARGE], ids=["small", "large"])
def test_what_is_put_is_read_again(tmp_path: Path, content: bytes) -> None:
    store = HdfsStore(f"file://{tmp_path}")
    store.put("audit/bytes", content)
    store.put("audit/stream", io.BytesIO(content))
    assert store.whole("audit/bytes") == store.whole("audit/stream") == content


def test_what_is_there_is_not_made_new(tmp_path: Path) -> None:
    store = HdfsStore(f"file://{tmp_path}")
    store.put("audit/first", b"one", is_new=True)
    with pytest.raises(FileExistsError):
        store.put("audit/first", b"two", is_new=True)
    assert store.whole("audit/first") == b"one"
