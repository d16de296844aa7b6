"""A file system of Hadoop, asked by the client that `deltalake` brings along: no Java, and the usual configuration.

`HADOOP_CONF_DIR` names the folder of `core-site.xml` and `hdfs-site.xml`.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import IO, Any

import pyarrow as pa

from txn_analysis.files.store import ChangedError, Found, StoreError, Version

_STEP_BYTES = 8 << 20
_REMEDY = "Check that its name node runs, and that HADOOP_CONF_DIR names the folder of its configuration"


class HdfsStore:
    """As of `Store`. Files have no entity tag: their time and size are compared after each reading."""

    def __init__(self, root: str) -> None:
        from deltalake.fs import DeltaStorageHandler

        with _worded():
            self._handler: Any = DeltaStorageHandler(root)

    def listed(self, prefix: str) -> Iterator[Found]:
        """As of `Store`."""
        from pyarrow.fs import FileSelector

        with _worded():
            infos = self._handler.get_file_info_selector(FileSelector(prefix, allow_not_found=True, recursive=True))
        yield from (_file_of(info) for info in infos if info.is_file)

    def head(self, key: str) -> Found | None:
        """As of `Store`."""
        with _worded():
            (info,) = self._handler.get_file_info([key])
        return _file_of(info) if info.is_file else None

    def read(self, key: str, start: int, end: int, version: Version) -> bytes:
        """As of `Store`."""
        with _worded():
            file = self._handler.open_input_file(key)
            try:
                file.seek(start)
                data = bytes(file.read(end - start))
            finally:
                file.close()
        now = self.head(key) if version.tag else None
        if version.tag and (now is None or now.version != version):
            raise ChangedError
        return data

    def put(self, key: str, data: bytes | IO[bytes]) -> None:
        """As of `Store`."""
        source = io.BytesIO(data) if isinstance(data, bytes) else data
        # The handler's own stream refuses Arrow's buffers; a buffered one hands it bytes, of what is smaller than it.
        with _worded(), pa.BufferedOutputStream(self._handler.open_output_stream(key, None), 2 * _STEP_BYTES) as stream:
            while piece := source.read(_STEP_BYTES):
                stream.write(piece)

    def replace(self, key: str, data: bytes, version: Version | None) -> None:
        """As of `Store`; the file system compares nothing itself, so that of two in one moment the last one wins."""
        now = self.head(key)
        if (now and now.version) != version:
            raise ChangedError
        self.put(key, data)

    def drop(self, keys: Sequence[str]) -> None:
        """As of `Store`."""
        for key in keys:
            with suppress(FileNotFoundError), _worded():
                self._handler.delete_file(key)


def _file_of(info: Any) -> Found:
    return Found(info.path.strip("/"), Version(str(info.mtime_ns), info.size))


@contextmanager
def _worded() -> Iterator[None]:
    try:
        yield
    except FileNotFoundError:
        raise FileNotFoundError("there is no such file") from None
    except OSError as error:
        line = str(error).partition("\n")[0][:200]
        raise StoreError(f"the file system does not answer as it should ({line}). {_REMEDY}") from None
