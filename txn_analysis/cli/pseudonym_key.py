"""The key of `report --anonymize`: a file of the operator's, made on first use, which nobody else may read."""

from __future__ import annotations

import os
import secrets
import stat
from pathlib import Path

from txn_analysis.errors import ConfigError

_KEY_BYTES = 32
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


def pseudonym_key(file: str) -> bytes:
    """The key in a file; where there is none, a new one, readable by its owner alone.

    Raises:
        ConfigError: it cannot be read or made, others may read it, or it is too short to be one.
    """
    path = Path(file).expanduser()
    try:
        _make(path)
        key = path.read_bytes().strip()
        mode = path.stat().st_mode
    except (OSError, RuntimeError) as error:
        why = getattr(error, "strerror", None) or error
        raise ConfigError(f"pseudonym_key {file}: {why}; name a file that can be written, of yours alone") from error
    if mode & _OTHERS:
        raise ConfigError(f"pseudonym_key {file}: others may read it, and undo every pseudonym: chmod 600 {file}")
    if len(key) < _KEY_BYTES:
        raise ConfigError(f"pseudonym_key {file}: is no key, {_KEY_BYTES} bytes or more; name another file")
    return key


def _make(path: Path) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        made = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return
    with os.fdopen(made, "w", encoding="ascii") as stream:
        stream.write(secrets.token_hex(_KEY_BYTES) + "\n")
