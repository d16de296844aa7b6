"""Jars from Maven Central, with all that they need, resolved by the Ivy that comes with Spark."""

import subprocess
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from tests.tools.delta_jars import IVY_SETTINGS

_REASONS = ("Server access error", "download failed", "not found")  # in lines of Ivy's, those that say most first
_MODULE = """<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">
<info organisation="tests" module="jars"/>
<configurations><conf name="default"/></configurations><dependencies>{}</dependencies></ivy-module>
"""
_DEPENDENCY = '<dependency org="{}" name="{}" rev="{}" conf="default-&gt;default"/>'
_OF_TESTS = (
    '<dependency org="{0}" name="{1}" rev="{2}" transitive="false" conf="default-&gt;default">'
    '<artifact name="{1}" type="test-jar" ext="jar" m:classifier="test"/></dependency>'
)


class FetchError(Exception):
    """The jars cannot be fetched; the message says why, and what to do."""


def spark_jars() -> Path:
    """The folder of the jars that PySpark brings along."""
    pyspark = find_spec("pyspark")
    assert pyspark is not None
    assert pyspark.origin is not None
    return Path(pyspark.origin).parent / "jars"


def fetch_jars(
    what: str, artifacts: Sequence[tuple[str, str, str]], folder: Path, *, are_of_tests: bool = False
) -> None:
    """Fetch jars, and those that they need, into a folder.

    Args:
        what: how they are called where they cannot be had.
        artifacts: the organisation, name and version of each; the first must be there in the end.
        folder: made if it is missing.
        are_of_tests: the jars of the projects' own tests are wanted, and nothing that they need.

    Raises:
        FetchError: Java or Maven Central cannot be reached.
    """
    folder.mkdir(parents=True, exist_ok=True)
    module = folder / "ivy.xml"
    form = _OF_TESTS if are_of_tests else _DEPENDENCY
    module.write_text(_MODULE.format("".join(form.format(*artifact) for artifact in artifacts)))
    (ivy,) = spark_jars().glob("ivy-*.jar")
    words: list[str | Path] = ["-settings", IVY_SETTINGS, "-ivy", module, "-cache", folder / "ivy"]
    pattern = folder / "[artifact]-[revision](-[classifier]).[ext]"
    command = ["java", "-jar", ivy, *words, "-types", "jar", "bundle", "test-jar", "-retrieve", pattern, "-warn"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    except OSError as error:
        raise FetchError(f"cannot fetch {what}: java cannot be started ({error.strerror})") from error
    _, name, version = artifacts[0]
    jar = f"{name}-{version}-test.jar" if are_of_tests else f"{name}-{version}.jar"
    if done.returncode != 0 or not (folder / jar).is_file():
        raise FetchError(_failure(what, done.stdout + done.stderr))


def _failure(what: str, output: str) -> str:
    lines = [line.strip() for line in output.splitlines()]
    said = next((line for reason in _REASONS for line in lines if reason in line), "Ivy gives no reason")
    return f"cannot fetch {what} ({said}): give this machine access to Maven Central once"
