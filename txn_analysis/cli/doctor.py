"""What is here for an audit: Python's packages, Java, memory and disk, and which engine would judge how much.

Nothing is started but `java -version`, and nothing connects to anything: a store or a cluster is not asked.
"""

from __future__ import annotations

import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from importlib import import_module
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as version_of
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from txn_analysis.engine.memory import free_memory_bytes, most_in_memory_bytes
from txn_analysis.errors import MissingToolError, WarehouseError
from txn_analysis.files.places import PlaceError, local_path, place_of, shown
from txn_analysis.settings import Settings
from txn_analysis.spark.delta import delta_jars
from txn_analysis.spark.jdk import check_jdk, java_program
from txn_analysis.text import listed, size
from txn_analysis.warehouse.opening import check_writable

NAME = "txn-analysis"
# Of each package that an audit without Spark imports, a module: one that was built for another machine fails here.
_MODULES = {
    "pyarrow": "pyarrow",
    "deltalake": "deltalake",
    "numba": "numba",
    "numpy": "numpy",
    "obstore": "obstore",
    "blake3": "blake3",
    "google-crc32c": "google_crc32c",
}
_OLDEST_SPARK = 4
_SHOWN = ("pyarrow", "deltalake", "numba", "numpy", "obstore", "pydantic", "click", "pyspark", "delta-spark")
_OF_CAPTURES = "kafka-python"


class Check(BaseModel):
    """One thing that an audit needs here, or that a larger one needs.

    `is_needed` is false of what only Spark needs. `found` says what is here, and `remedy` what to do where `is_ok` is
    false.
    """

    model_config = ConfigDict(frozen=True)

    name: str
    is_ok: bool
    is_needed: bool
    found: str
    remedy: str | None = None


class Machine(BaseModel):
    """What is here for an audit.

    `can_audit` says that all that is needed without Spark is here; then files of up to `most_local_bytes` are judged in
    the command's own process. What is more needs `is_spark_ready`. `cluster` names what a cluster of Spark would need
    beside, as far as this machine can tell.
    """

    model_config = ConfigDict(frozen=True)

    version: str
    can_audit: bool
    is_spark_ready: bool
    most_local_bytes: int
    checks: tuple[Check, ...]
    cluster: tuple[str, ...]


def machine(settings: Settings, env: Mapping[str, str], version: str) -> Machine:
    """What is here for audits with some settings by a version; `env` are the variables Spark would be started with."""
    needed = (_python(), *_packages(), _memory(), *_disks(settings))
    for_spark = (_java(env), _spark())
    can_audit = all(check.is_ok for check in needed)
    return Machine(
        version=version,
        can_audit=can_audit,
        is_spark_ready=can_audit and all(check.is_ok for check in for_spark),
        most_local_bytes=most_in_memory_bytes(),
        checks=(*needed, *for_spark, _delta(env)),
        cluster=tuple(_missing_for_a_cluster(settings, env)),
    )


def versions(env: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """What a report of a bug needs beside the files: names, each with a version; nothing is imported for it."""
    yield "Python", f"{platform.python_version()}, {sys.executable}"
    yield "system", f"{platform.platform()}, {os.cpu_count()} cores"
    for package in (*_SHOWN, _OF_CAPTURES):
        yield package, _version(package) or "not installed"
    java = _java(env)
    yield "Java", java.found
    yield "installed", str(Path(__file__).parents[2])


def _needed(name: str, present: str, remedy: str | None = None) -> Check:
    """What every audit needs; there is something to do where it is missing."""
    return Check(name=name, is_ok=remedy is None, is_needed=True, found=present, remedy=remedy)


def _of_spark(name: str, present: str, remedy: str | None = None) -> Check:
    return _needed(name, present, remedy).model_copy(update={"is_needed": False})


def _python() -> Check:
    interpreter = f"{platform.python_version()}, {sys.executable}"
    return _needed("Python", interpreter, None if sys.version_info[:2] >= (3, 11) else "install Python 3.11")


def _packages() -> Iterator[Check]:
    for package, module in _MODULES.items():
        version, remedy = _version(package) or "not installed", None
        try:
            import_module(module)
        except Exception as error:  # noqa: BLE001 whatever a broken package raises is what is wrong with it
            problem = f"{type(error).__name__}: {error}".partition("\n")[0]
            version = f"{version}, cannot be imported ({problem})"
            remedy = f"install the package anew: pip install --force-reinstall {package}"
        yield _needed(package, version, remedy)


def _memory() -> Check:
    free, most = free_memory_bytes(), most_in_memory_bytes()
    limits = f"{size(free)} free, {os.cpu_count()} cores; this process judges up to {size(most)} of files"
    return _needed("memory", limits)


def _disks(settings: Settings) -> Iterator[Check]:
    yield _warehouse(settings.warehouse)
    folder = tempfile.gettempdir()
    yield _needed("temporary files", f"{size(shutil.disk_usage(folder).free)} free in {folder}")


def _warehouse(given: str) -> Check:
    """A folder is looked at; a store is not asked."""
    try:
        if place_of(given) is not None:
            return _needed("warehouse", f"{shown(given)}, which is not asked here")
        folder = Path(local_path(given)).absolute()
        check_writable(folder)
    except (PlaceError, WarehouseError) as error:
        return Check(name="warehouse", is_ok=False, is_needed=True, found=str(error))
    nearest = next(place for place in (folder, *folder.parents) if place.exists())
    return _needed("warehouse", f"{size(shutil.disk_usage(nearest).free)} free for {folder}, which can be written")


def _java(env: Mapping[str, str]) -> Check:
    try:
        version = check_jdk(env)
    except MissingToolError as error:
        what, _, remedy = str(error).partition(": ")
        return _of_spark("Java", what, remedy)
    return _of_spark("Java", f"{version}, {java_program(env)}")


def _spark() -> Check:
    """PySpark brings Spark along; with Spark Connect alone there would be no Java to start."""
    version = _version("pyspark")
    is_ok = version is not None and int(version.partition(".")[0]) >= _OLDEST_SPARK
    remedy = None if is_ok else f"pip install --upgrade {NAME}, which brings it along"
    return _of_spark("Spark", version or "PySpark is not installed", remedy)


def _delta(env: Mapping[str, str]) -> Check:
    """Without it audits run alike; with it a session that is started here reads and registers tables by Delta."""
    jars = delta_jars(env)
    available = f"{len(jars)} jars in {jars[0].parent}" if jars else "no jars, which only --register needs"
    remedy = None if jars else "start Spark once with spark.jars.packages=io.delta:delta-spark_…: docs/lakehouse.md"
    return _of_spark("Delta", available, remedy)


def _missing_for_a_cluster(settings: Settings, env: Mapping[str, str]) -> Iterator[str]:
    with suppress(PlaceError):  # which the check of the warehouse says
        if place_of(settings.warehouse) is None:
            yield f"a --warehouse that every node sees: {settings.warehouse} is a folder of this machine"
    if settings.master is None:
        yield "--master: spark://HOST:7077, yarn, k8s://https://HOST:443, or sc://HOST:15002 of a Spark Connect server"
    if "PYSPARK_PYTHON" not in env:
        yield f"PYSPARK_PYTHON: the Python {'.'.join(platform.python_version_tuple()[:2])} of the nodes, with {NAME}"


def _version(package: str) -> str | None:
    try:
        return version_of(package)
    except PackageNotFoundError:
        return None


def machine_text(host: Machine) -> str:
    """The same for people: first whether audits run here, then a line for each thing."""
    lines = [_answer(host), ""]
    for check in host.checks:
        lines.append(f"{'ok' if check.is_ok else 'MISSING' if check.is_needed else '-':8}{check.name:16}{check.found}")
        if check.remedy is not None:
            lines.append(f"{'':24}to do: {check.remedy}")
    needs = "A cluster of Spark would need as well:" if host.cluster else "For a cluster nothing is missing here."
    lines += ["", needs]
    lines += [f"        {missing}" for missing in host.cluster]
    return "".join(f"{line}\n" for line in lines)


def _answer(host: Machine) -> str:
    missing = [check.name for check in host.checks if check.is_needed and not check.is_ok]
    if missing:
        return f"No audit runs here: {listed(missing, len(missing))} is missing."
    most = size(host.most_local_bytes)
    if host.is_spark_ready:
        return f"Audits run here: up to {most} of files in the command's own process, more by Spark's tasks."
    return f"Audits run here, of up to {most} of files. More needs Spark, and Spark needs Java."
