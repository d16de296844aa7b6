"""Brokers of five versions, started once for all tests; the figures of the whole at the end."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial

import pytest
from pyspark.sql import SparkSession

from tests.systems.e2e.captures import Audits
from tests.systems.e2e.story import FirstNight, Story, begin, first_night, go_on
from tests.systems.e2e.summary import summary
from tests.tools.kafka_jars import VERSIONS, kafka_jars

_told: dict[str, Story] = {}


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """With `--brief` some tests are left out."""
    if not config.getoption("--brief"):
        return
    left_out = [item for item in items if item.get_closest_marker("lengthy") or _version_of(item) in VERSIONS[1:-1]]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in left_out]


def _version_of(item: pytest.Item) -> str | None:
    """Of whose brokers a test is, where it is of a story."""
    return item.callspec.params.get("story") if hasattr(item, "callspec") else None


@pytest.fixture(scope="session")
def first_nights(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, FirstNight]]:
    """All brokers, which hang from now on: what may be repaired only after eight minutes ripens during other tests."""
    folder = tmp_path_factory.mktemp("brokers")
    asked = {_version_of(item) for item in request.session.items}
    versions = [version for version in VERSIONS if version in asked]
    with ThreadPoolExecutor(len(versions)) as pool, ExitStack() as running:
        list(pool.map(kafka_jars, versions))
        starting = {version: pool.submit(first_night, version, folder / version) for version in versions}
        for night in starting.values():
            if night.exception() is None:
                running.callback(night.result().scene.close)
        yield {version: night.result() for version, night in starting.items()}


@pytest.fixture(scope="session")
def audits(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Audits]:
    """The audits of one broker's captures, in one warehouse for all."""
    return partial(Audits, spark, str(tmp_path_factory.mktemp("e2e-warehouse")))


@pytest.fixture(scope="session", autouse=True)
def ripening(request: pytest.FixtureRequest) -> None:
    """Where a story is asked for later on, its brokers start before every other test."""
    if any("story" in getattr(item, "fixturenames", ()) for item in request.session.items):
        request.getfixturevalue("begun")


@pytest.fixture(scope="session")
def begun(first_nights: dict[str, FirstNight], audits: Callable[[str], Audits]) -> dict[str, Story]:
    """The first plan of every broker, while it is too early to execute it."""
    return {version: begin(first, audits(version)) for version, first in first_nights.items()}


@pytest.fixture(scope="session", params=VERSIONS)
def story(
    request: pytest.FixtureRequest,
    first_nights: dict[str, FirstNight],
    begun: dict[str, Story],
    audits: Callable[[str], Audits],
) -> Story:
    """The whole story of one broker, told once."""
    version = request.param
    if version not in _told:
        _told[version] = go_on(begun[version], first_nights[version], audits(version))
    return _told[version]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """One line per broker: what was made, found and repaired."""
    if _told:
        terminalreporter.section("from recommendation to repair")
        terminalreporter.write(summary(_told))
