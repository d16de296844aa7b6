"""How a store is reached: by the environment first, then by a profile."""

import sys
from pathlib import Path

import pytest

from tests.tools.s3_server import Bucket
from txn_analysis.files.places import client_options, has_profile
from txn_analysis.files.store import StoreError, store_at

KEYS = "aws_access_key_id = of-{0}\naws_secret_access_key = secret-of-{0}\n"


@pytest.fixture(autouse=True)
def profiles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two profiles; nothing in the environment."""
    (tmp_path / "credentials").write_text(f"[default]\n{KEYS.format('default')}[night]\n{KEYS.format('night')}")
    (tmp_path / "config").write_text("[profile night]\nregion = eu-west-1\n[profile single-sign-on]\nsso_session = x\n")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    for name in ("AWS_PROFILE", "AWS_ACCESS_KEY_ID", "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ENDPOINT_URL"):
        monkeypatch.delenv(name, raising=False)


def test_a_profile_is_read_unless_the_environment_has_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    assert has_profile("s3a://kept")
    assert not any(map(has_profile, ("gs://kept", "abfss://c@a.dfs.core.windows.net", "hdfs://names")))
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "of-environment")
    assert not has_profile("s3a://kept")


def test_without_boto3_a_profile_is_refused_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "obstore.auth.boto3", None)
    with pytest.raises(StoreError, match="pip install boto3"):
        store_at("s3://of-a-profile")


def test_a_connection_is_plain_only_where_the_endpoint_is_named_so(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not client_options("s3://kept")["allow_http"]
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9000")
    assert client_options("s3://kept")["allow_http"]
    assert not client_options("gs://kept")["allow_http"]


def test_a_store_is_reached_by_a_profile(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("boto3")
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    monkeypatch.setenv("AWS_PROFILE", "night")
    bucket.put("x", b"y")
    assert [found.key for found in store_at("s3://kept").listed("")] == ["x"]
