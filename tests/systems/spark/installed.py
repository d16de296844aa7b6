"""The wheel, as it lies on a machine that has no checkout: what Spark's processes import is what was built."""

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import pyspark

from tests.systems.spark.event_logs import event_log_options
from tests.tools.repository import ROOT

PROJECT = ROOT
SPARK_HOME = Path(pyspark.__file__).parent
_FAST_START = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC"
# The session of the command line chooses these for short runs in one process, and leaves executors, and jobs that are
# submitted, to their operator: here that is us.
_OF_EXECUTORS = {"spark.executor.extraJavaOptions": _FAST_START}
_OF_JOBS = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.driver.extraJavaOptions": _FAST_START,
}

_FORGET_CHECKOUTS = """
import sys
from pathlib import Path

sys.path[:] = [place for place in sys.path if not Path(place, "txn_analysis", "..", "pyproject.toml").exists()]
"""


class Printed(NamedTuple):
    """What a command wrote."""

    stdout: str
    stderr: str


@dataclass(frozen=True)
class Installed:
    """A wheel, the folder that it was installed into, and one whose `sitecustomize` hides every checkout."""

    wheel: Path
    folder: Path
    no_checkout: Path

    def environment(self, *, has_package: bool) -> dict[str, str]:
        """The environment of a process that finds the package only where it is installed, or not at all."""
        places = [self.no_checkout, self.folder] if has_package else [self.no_checkout]
        return {
            **{name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_"))},
            "PYTHONPATH": os.pathsep.join(map(str, places)),
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_HOME": str(SPARK_HOME),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_DAEMON_JAVA_OPTS": _FAST_START,
        }

    def archive(self, folder: Path) -> Path:
        """The wheel as `--py-files` takes it: Spark imports from archives by the names .zip and .egg only."""
        return Path(shutil.copy(self.wheel, folder / "txn_analysis.zip"))

    def audit(self, master: str, words: Sequence[str], events: Path) -> Printed:
        """Run the installed command `txn-analysis audit`, with an event log in a folder."""
        command = [str(self.folder / "bin/txn-analysis"), "audit", "--master", master, *words]
        own = _OF_EXECUTORS | event_log_options(events)
        options = {"PYSPARK_SUBMIT_ARGS": shlex.join([*_as_words(own), "pyspark-shell"])}
        return _run(command, self.environment(has_package=True) | options)

    def submit(
        self,
        master: str,
        words: Sequence[str],
        events: Path,
        *,
        py_files: Path | None = None,
        conf: Mapping[str, str] | None = None,
        job: str = "nightly_audit",
    ) -> Printed:
        """Run a script of `jobs/` by `spark-submit`, the package installed or brought along; see `audit`."""
        options = {"master": master}
        if py_files:
            options["py-files"] = str(py_files)
        command: list[str | Path] = [
            SPARK_HOME / "bin/spark-submit",
            *(f"--{name}={value}" for name, value in options.items()),
        ]
        command += [
            *_as_words(_OF_JOBS | _OF_EXECUTORS | event_log_options(events) | dict(conf or {})),
            PROJECT / f"jobs/{job}.py",
            *words,
        ]
        return _run(command, self.environment(has_package=py_files is None))


def install(folder: Path) -> Installed:
    """Build the wheel of this checkout, and install it alone into a folder."""
    source = folder / "source"
    shutil.copytree(PROJECT / "txn_analysis", source / "txn_analysis", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(PROJECT / name, source)
    _run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder], None, cwd=source)
    (wheel,) = folder.glob("*.whl")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--disable-pip-version-check"]
    _run([*pip, "--target", folder / "installed", wheel], None)
    no_checkout = folder / "no-checkout"
    no_checkout.mkdir()
    (no_checkout / "sitecustomize.py").write_text(_FORGET_CHECKOUTS)
    return Installed(wheel, folder / "installed", no_checkout)


def _as_words(options: Mapping[str, str]) -> list[str]:
    return [f"--conf={name}={value}" for name, value in options.items()]


def _run(command: Sequence[str | Path], environment: dict[str, str] | None, cwd: Path | None = None) -> Printed:
    done = subprocess.run(
        [str(word) for word in command], env=environment, cwd=cwd, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return Printed(done.stdout, done.stderr)
