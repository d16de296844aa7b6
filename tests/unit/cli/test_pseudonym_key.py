"""The key of pseudonyms: made once, for its owner's eyes alone."""

import stat
from pathlib import Path

import pytest

from txn_analysis.cli.audit_verbs import pseudonym_key
from txn_analysis.errors import ConfigError


def test_a_key_is_made_on_first_use_and_kept(tmp_path: Path) -> None:
    file = tmp_path / "config" / "key"
    made = pseudonym_key(str(file))
    assert len(made) >= 32
    assert pseudonym_key(str(file)) == made
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700


def test_two_keys_are_not_alike(tmp_path: Path) -> None:
    assert pseudonym_key(str(tmp_path / "one")) != pseudonym_key(str(tmp_path / "other"))


@pytest.mark.parametrize(
    ("mode", "text", "why"), [(0o640, "k" * 64, "others may read it"), (0o600, "k" * 31, "is no key")]
)
def test_a_key_that_protects_nothing_is_refused(tmp_path: Path, mode: int, text: str, why: str) -> None:
    file = tmp_path / "key"
    file.write_text(text)
    file.chmod(mode)
    with pytest.raises(ConfigError, match=why):
        pseudonym_key(str(file))


def test_a_key_that_cannot_be_made_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="name a file that can be written"):
        pseudonym_key(str(tmp_path / "file" / "key"))
