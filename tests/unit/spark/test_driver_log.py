"""What a submitted job says beside its answer: by Java's stderr, or by its own where Java is gone."""

import os
import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark import SparkContext

from txn_analysis.spark.driver_log import stderr_on_drivers_log


@pytest.fixture
def java_that(monkeypatch: pytest.MonkeyPatch) -> Callable[[Any], None]:
    """A Java of `spark-submit` whose `System.err.print` is given."""

    def java(print_: Any) -> None:
        system = SimpleNamespace(err=SimpleNamespace(print=print_))
        jvm = SimpleNamespace(java=SimpleNamespace(lang=SimpleNamespace(System=system)))
        monkeypatch.setattr(SparkContext, "_ensure_initialized", lambda: None)
        monkeypatch.setattr(SparkContext, "_jvm", jvm)
        monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")

    return java


def say(text: str) -> None:
    with stderr_on_drivers_log():
        sys.stderr.write(text)


def test_a_submitted_jobs_progress_goes_to_javas_stderr(java_that: Callable[[Any], None]) -> None:
    printed = list[str]()
    java_that(printed.append)
    say("judging")
    assert printed == ["judging"]


@pytest.mark.parametrize("error", [Py4JNetworkError("gone"), Py4JError("closed"), ConnectionRefusedError(111)])
def test_where_java_is_gone_the_last_words_go_to_the_jobs_own(
    java_that: Callable[[Any], None], capfd: pytest.CaptureFixture[str], error: Exception
) -> None:
    def gone(_: str) -> None:
        raise error

    java_that(gone)
    say("error: cut short")
    assert capfd.readouterr().err == "error: cut short"


def test_a_mistake_of_ours_is_not_hidden(java_that: Callable[[Any], None]) -> None:
    def wrong(_: str) -> None:
        raise TypeError(os.sep)

    java_that(wrong)
    with pytest.raises(TypeError):
        say("judging")
