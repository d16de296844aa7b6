"""What tests share: one Spark session, repeatable hypothesis runs, and golden files."""

from __future__ import annotations

import difflib
import gc
import itertools
import os
import shutil
import signal
from functools import cache
from typing import TYPE_CHECKING, Any

import hypothesis
import pytest

from tests.tools.sessions import no_session
from txn_analysis.errors import AuditError
from txn_analysis.warehouse.opening import open_warehouse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from playwright.sync_api import Browser
    from pyspark.sql import SparkSession

    from tests.tools.inputs import InputReader
    from tests.tools.s3_server import Bucket
    from tests.tools.scene import Scene

# The same examples every time, so that a red build is red for everybody; `--hypothesis-profile=explore` looks further
# and prints what repeats a failure.
# `make proof` tries 40 times as many, from another seed.
hypothesis.settings.register_profile("repeatable", max_examples=50, derandomize=True, deadline=None, print_blob=True)
hypothesis.settings.register_profile("explore", max_examples=2000, deadline=None, print_blob=True)
hypothesis.settings.load_profile("repeatable")


_SHOWN_LINES = 60  # of a difference to a golden file
_OF_CLUSTER = {"spark", "browser"}
# What one process runs where two are started: a file, or all that asks for something that takes long to make.
_SHARED = {"spark": "spark", "browser": "browser", "audit_of": "audits"}
# The groups that take longest come first, so that in the end no process waits for the other one.
_LONGEST = (
    *("spark", "audits", "test_script.py"),
    *("test_copy_kit.py", "browser", "test_ways.py", "test_warehouse.py", "test_safety.py", "test_forgeries.py"),
    *("test_answer.py", "test_state_records.py", "test_against_broker.py", "test_texts.py"),
)


# Hardly a query is asked twice here, and each is of a few rows: to compile it, or to plan it anew, takes longer than it
# does itself. Many audits in one process would hold a page of many MiB for each sort and join.
_FOR_SMALL_QUERIES = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.buffer.pageSize": "1m",
}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden", action="store_true", help="write the golden files instead of comparing with them"
    )
    parser.addoption(
        "--brief", action="store_true", help="of end-to-end tests: the oldest and the newest brokers, nothing long"
    )
    parser.addoption(
        "--times", type=int, default=0, help="so many times the examples of each property, from `--hypothesis-seed`"
    )


def pytest_configure() -> None:
    """A job in the background ignores Ctrl-C, under `nohup` its terminal, and so would all commands tests start."""
    plain = (
        (signal.SIGINT, signal.default_int_handler),
        (signal.SIGQUIT, signal.SIG_DFL),
        (signal.SIGHUP, signal.SIG_DFL),
    )
    for number, handler in plain:
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, handler)


@pytest.hookimpl(tryfirst=True)  # xdist reads the groups in the same hook
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Tests with a Spark or a browser are `cluster`; those that share something long run in one process, and first."""
    for item in items:
        is_placed = any(item.get_closest_marker(name) for name in ("e2e", "quick"))
        if _OF_CLUSTER.intersection(getattr(item, "fixturenames", ())) and not is_placed:
            item.add_marker(pytest.mark.cluster)
    if times := config.getoption("--times"):
        for test in {item.obj for item in items if isinstance(item, pytest.Function)}:
            _try_more_examples(test, times)
    if not hasattr(config, "workerinput"):  # only the processes that xdist starts share tests out
        return
    groups = {item: _group(item) for item in items}
    for item, group in groups.items():
        item.add_marker(pytest.mark.xdist_group(group))
    places = {name: place for place, name in enumerate(_LONGEST)}
    items.sort(key=lambda item: places.get(groups[item].rpartition("/")[2], len(places)))


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Without a JDK the quick tests by Spark are left out, and the last lines say so."""
    if item.get_closest_marker("quick") is not None and (why := _no_jdk()) is not None:
        pytest.skip(why)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """What a row of skipped tests does not say."""
    if any("test_on_spark" in report.nodeid for report in terminalreporter.getreports("skipped")):
        terminalreporter.write_sep(
            "!", f"Spark was not started, so the pipeline in its tasks was not tested: {_no_jdk()}"
        )


@cache
def _no_jdk() -> str | None:
    """Why Spark cannot start here; None where it can."""
    from txn_analysis.spark.jdk import check_jdk

    try:
        check_jdk(os.environ)
    except AuditError as error:
        return str(error)
    return None


def pytest_collection_finish() -> None:
    """What was imported and collected stays: to search it for cycles again and again takes a twentieth of all time."""
    gc.collect()
    gc.freeze()


def _try_more_examples(test: Any, times: int) -> None:
    if hypothesis.is_hypothesis_test(test):
        # Hypothesis has no public way to change the settings that a test was decorated with.
        own = test._hypothesis_internal_use_settings
        test._hypothesis_internal_use_settings = hypothesis.settings(
            own, max_examples=own.max_examples * times, derandomize=False, database=None, deadline=None
        )


def _group(item: pytest.Item) -> str:
    asked = getattr(item, "fixturenames", ())
    if (group := item.get_closest_marker("xdist_group")) is not None:
        return str(group.args[0])
    return next((group for fixture, group in _SHARED.items() if fixture in asked), str(item.path))


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """The one session of a test run; tests keep apart by their folders."""
    from tests.tools.delta_jars import session_with_delta

    spark = session_with_delta("local[2]", **_FOR_SMALL_QUERIES)
    yield spark
    spark.stop()


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[Bucket]:
    """A bucket of its own on loopback, which the program finds by the environment, whatever its name."""
    from tests.tools.s3_server import Bucket, environment, served
    from txn_analysis.files.store import store_at

    kept = Bucket()
    with served(kept) as address:
        for name, value in environment(address).items():
            monkeypatch.setenv(name, value)
        store_at.cache_clear()
        yield kept
    store_at.cache_clear()


@pytest.fixture(scope="session")
def empty_warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A warehouse whose tables were just made: tests work on copies of it."""
    folder = tmp_path_factory.mktemp("empty") / "warehouse"
    open_warehouse(no_session, str(folder)).create()
    return folder


@pytest.fixture(scope="session")
def warehouse(empty_warehouse: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """One warehouse for all audits that keep apart by their clusters."""
    return str(shutil.copytree(empty_warehouse, tmp_path_factory.mktemp("shared") / "warehouse"))


@pytest.fixture(scope="session")
def scene(spark: SparkSession, empty_warehouse: Path, tmp_path_factory: pytest.TempPathFactory) -> Scene:
    """An audited warehouse that faults happen to, each to a copy."""
    from tests.tools.scene import Scene

    return Scene(spark, tmp_path_factory.mktemp("scene"), empty=empty_warehouse)


@pytest.fixture(scope="module")
def reader() -> Iterator[InputReader]:
    """Reads contents as the product does, without Spark."""
    from tests.tools.inputs import InputReader

    reader = InputReader.in_memory()
    yield reader
    reader.close()


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Chromium, started once."""
    pytest.importorskip("playwright", reason="needs the extra `browser`")
    pytest.importorskip("axe_playwright_python", reason="needs the extra `browser`")
    from playwright.sync_api import sync_playwright

    from tests.systems.browser.chromium import CHROMIUM

    if CHROMIUM is None:
        pytest.skip("needs Chromium: apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM)
        yield browser
        browser.close()


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[Path, str], None]:
    """Compares a text with a file; a missing file fails, unless `make golden` writes it."""

    def check(file: Path, text: str) -> None:
        if request.config.getoption("--update-golden"):
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8", newline="")
        if not file.exists():
            pytest.fail(f"{file} is missing: `make golden` writes it", pytrace=False)
        expected = file.read_bytes().decode()
        if text != expected:
            lines = difflib.unified_diff(expected.splitlines(), text.splitlines(), str(file), "now", n=2, lineterm="")
            shown = "\n".join(itertools.islice(lines, _SHOWN_LINES))
            pytest.fail(f"{shown}\nIs it meant? `make golden`, then read `git diff`", pytrace=False)

    return check
