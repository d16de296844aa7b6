"""What Spark writes into its log: errors alone, on stderr. As Spark comes it is thousands of lines for one audit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

UNTIL_IT_RUNS = {"spark.log.level": "ERROR"}
"""Options of a session while Spark starts, when it takes its own configuration once more, whatever was set before."""

_OF_SPARK = "/org/apache/spark/log4j2-defaults.properties"


def java_option() -> str:
    """For a Java that we start."""
    return f"-Dlog4j2.configurationFile={_location(Path(__file__))}"


def is_as_it_comes(jvm: Any) -> bool:
    """Whether nobody chose how a Java logs that `spark-submit` has started, in Spark's `conf/` or by an option."""
    used = _context(jvm).getConfiguration().getConfigurationSource().getLocation()
    return used is None or bool(used.endswith(_OF_SPARK))


def replace(jvm: Any) -> None:
    """Let a Java whose Spark runs log as one that we start."""
    _context(jvm).setConfigLocation(jvm.java.net.URI(_location(Path(__file__))))


def _context(jvm: Any) -> Any:
    return jvm.org.apache.logging.log4j.LogManager.getContext(False)


def _location(module: Path) -> str:
    """The file beside this module, which may be in a zip that `--py-files` brought along."""
    file = module.with_name("log4j2.properties")
    archive = next((folder for folder in file.parents if folder.is_file()), None)
    return f"jar:{archive.as_uri()}!/{file.relative_to(archive)}" if archive else file.as_uri()
