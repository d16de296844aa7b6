"""How a store is reached: by the environment first, then by a profile."""

from pathlib import Path

import pytest

from tests.stores.s3_server import Bucket
from txn_analysis.stores.places import client_options, delta_options, store_config
from txn_analysis.stores.store import store_at

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


def test_a_profile_says_keys_and_region_to_both_libraries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_PROFILE", "night")
    said = {"access_key_id": "of-night", "secret_access_key": "secret-of-night", "region": "eu-west-1"}
    assert store_config("s3://kept") == said
    assert delta_options("s3a://kept").items() >= {f"aws_{name}": value for name, value in said.items()}.items()


def test_without_a_name_it_is_the_default_one() -> None:
    assert store_config("s3://kept") == {"access_key_id": "of-default", "secret_access_key": "secret-of-default"}


def test_the_environment_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "of-environment")
    monkeypatch.setenv("AWS_PROFILE", "night")
    monkeypatch.setenv("AWS_REGION", "us-east-2")
    assert store_config("s3://kept") == {}


@pytest.mark.parametrize("root", ["gs://kept", "abfss://c@a.dfs.core.windows.net", "hdfs://names"])
def test_other_stores_are_told_none_of_it(root: str) -> None:
    assert store_config(root) == {}
    assert not any("aws" in name or "key" in name for name in delta_options(root))


def test_a_connection_is_plain_only_where_the_endpoint_is_named_so(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not client_options("s3://kept")["allow_http"]
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9000")
    assert client_options("s3://kept")["allow_http"]
    assert not client_options("gs://kept")["allow_http"]


def test_a_store_is_reached_by_a_profile(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    monkeypatch.setenv("AWS_PROFILE", "night")
    bucket.put("x", b"y")
    assert store_at("s3://kept").whole("x") == b"y"
