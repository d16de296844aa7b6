"""What a path or URI names, before anything is opened."""

import pytest

from txn_analysis.files.places import Place, PlaceError, local_path, place_of, shown


@pytest.mark.parametrize(
    ("given", "root", "key"),
    [
        ("s3://copies/orders", "s3://copies", "orders"),
        ("s3a://copies/a%20b/c?d#e", "s3a://copies", "a%20b/c?d#e"),
        ("gs://copies", "gs://copies", ""),
        ("abfss://c@account.dfs.core.windows.net/x/", "abfss://c@account.dfs.core.windows.net", "x"),
        ("hdfs:///audits", "hdfs://", "audits"),
        ("hdfs://names:8020/audits", "hdfs://names:8020", "audits"),
    ],
)
def test_a_uri_names_a_store_and_a_key(given: str, root: str, key: str) -> None:
    assert place_of(given) == Place(root, key)
    assert shown(given) == given


@pytest.mark.parametrize("given", ["orders-0", "/copies/a:b", "file:///copies", "file:/copies", "FILE://localhost/x"])
def test_what_is_of_this_machine_is_no_store(given: str) -> None:
    assert place_of(given) is None


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ("ftp://host/x", "no storage that is known begins with ftp://"),
        ("s3://KEY:SECRET@copies/x", "credentials do not belong into a name"),
        ("s3://KEY@copies/x", "credentials do not belong into a name"),
        ("abfss://c:SECRET@account.dfs.core.windows.net/x", "credentials do not belong into a name"),
        ("s3:///x", "names no bucket"),
        ("abfss://account.dfs.core.windows.net/x", "names no account"),
    ],
)
def test_what_names_nothing_is_refused_and_no_secret_is_said(given: str, why: str) -> None:
    with pytest.raises(PlaceError, match=why) as refused:
        place_of(given)
    assert "SECRET" not in str(refused.value) + shown(given)


def test_a_disk_of_another_machine_is_refused() -> None:
    assert local_path("file:///a%20b") == "/a b"
    assert local_path("a%20b") == "a%20b"
    with pytest.raises(PlaceError, match="is on the disk of other"):
        local_path("file://other/x")
