"""What is private to Spark is used of one version alone."""

from __future__ import annotations

import pytest

from txn_analysis.errors import MissingToolError
from txn_analysis.spark.private_api import check_version


def test_the_version_that_is_installed_is_the_one() -> None:
    check_version()


@pytest.mark.parametrize("version", ["4.1.1", "4.20.0", "5.0.0", "3.5.7"])
def test_another_one_is_refused_in_a_line(version: str) -> None:
    with pytest.raises(MissingToolError, match=rf"this is PySpark {version}: install pyspark 4\.2"):
        check_version(version)
