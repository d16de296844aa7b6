"""Is there a JDK that Spark can use? Answered before anything slow, with the standard library only.

`python -m txn_analysis.spark.jdk` prints one line and ends with 2 where there is none; set-up runs it first of all.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping

from txn_analysis.errors import MissingToolError

SUPPORTED_JDKS = (17, 21)
REMEDY = "install one (Debian, Ubuntu: apt-get install openjdk-17-jdk-headless) and set JAVA_HOME to its folder"

_VERSION = re.compile(r'version "(?P<version>(?:1\.)?(?P<major>\d+)[^"]*)"')


def check_jdk(env: Mapping[str, str]) -> str:
    """The version of the `java` that Spark will start, which is a JDK 17 or 21.

    Spark takes `$JAVA_HOME/bin/java`, or the first `java` of `PATH` where `JAVA_HOME` is not set.

    Raises:
        MissingToolError: there is none, it cannot be run, it has another version, or it lacks a module.
    """
    java = java_program(env)
    # Spark starts Java with this module; the small runtimes that some Python wheels carry do not have it.
    answer = _run(java, "--add-modules=jdk.incubator.vector", "-version")
    version_match = _VERSION.search(answer.stderr) or _VERSION.search(_run(java, "-version").stderr)
    if version_match is None:
        raise _missing(f"{java} does not tell its version")
    if int(version_match["major"]) not in SUPPORTED_JDKS:
        raise _missing(f"{java} is version {version_match['version']}")
    if answer.returncode != 0:
        raise _missing(f"{java}, version {version_match['version']}, lacks the module jdk.incubator.vector")
    return version_match["version"]


def java_program(env: Mapping[str, str]) -> str:
    """The `java` that Spark will start.

    Raises:
        MissingToolError: there is none.
    """
    home = env.get("JAVA_HOME")
    if home:
        java = os.path.join(home, "bin", "java")
        if not os.access(java, os.X_OK):
            raise _missing(f"JAVA_HOME is {home}, which has no bin/java")
        return java
    java_on_path = shutil.which("java", path=env.get("PATH", os.defpath))
    if java_on_path is None:
        raise _missing("there is no java on PATH, and JAVA_HOME is not set")
    return java_on_path


def _run(*command: str) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    except OSError as problem:
        raise _missing(f"{command[0]} cannot be run ({problem.strerror})") from problem


def _missing(problem: str) -> MissingToolError:
    return MissingToolError(f"Spark needs a JDK 17 or 21, but {problem}: {REMEDY}")


def main() -> int:
    """Print why there is no usable JDK, if so. Returns the exit code."""
    try:
        check_jdk(os.environ)
    except MissingToolError as problem:
        print(f"error: {problem}", file=sys.stderr)
        return problem.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
