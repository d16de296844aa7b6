"""docs/licences.md: what an installation brings along, and under which licences, by the metadata of the packages."""

import re
from importlib.metadata import Distribution, distribution

from packaging.requirements import Requirement

PACKAGE = "txn-analysis"
_CLASSIFIER = "License :: OSI Approved :: "
_LONGEST = 60  # where the whole text of a licence is given as its name
# What the metadata do not say in a word; looked up in the licence file of each package.
_BY_FILE = {"jinja2": "BSD-3-Clause", "numba": "BSD-2-Clause", "pandas": "BSD-3-Clause", "py4j": "BSD-3-Clause"}

_HEAD = """<!-- Made by `make docs` from the metadata of the installed packages. -->

# Licences

`txn-analysis` is Apache-2.0 ([LICENSE](../LICENSE)). `pip install txn-analysis` installs these packages. `make release`
lists their versions in an SBOM. Each package has its own licence text.

| package | licence |
|---|---|
"""
_TAIL = """
PySpark has Apache Spark and Java libraries in it; their texts are in `pyspark/licenses`. `txn-analysis[capture]` adds
kafka-python (Apache-2.0). The report's page has only this project's scripts and styles. The site of the documents has
those of Material for MkDocs and iframe-worker (both MIT). `make proof` needs cosmic-ray (MIT).
"""


def needed() -> set[str]:
    """The packages that an installation without extras brings along."""
    names: set[str] = set()
    open_ = [(PACKAGE, frozenset[str]())]
    seen = {*open_}
    while open_:
        name, extras = open_.pop()
        for line in distribution(name).requires or ():
            wanted = Requirement(line)
            if wanted.marker and not any(wanted.marker.evaluate({"extra": extra}) for extra in (*extras, "")):
                continue
            other = _canonical(wanted.name)
            names.add(other)
            step = (other, frozenset(wanted.extras))
            if step not in seen:
                seen.add(step)
                open_.append(step)
    return names


def licence_of(package: str) -> str:
    """Its name, as SPDX where the package says it so; empty where nothing says it."""
    return _BY_FILE.get(package) or _said(distribution(package))


def _said(package: Distribution) -> str:
    about = package.metadata
    named = [name for field in ("License-Expression", "License") for name in about.get_all(field) or ()]
    by_class = [c.removeprefix(_CLASSIFIER) for c in about.get_all("Classifier") or () if c.startswith(_CLASSIFIER)]
    short = [name for name in named if name and len(name) <= _LONGEST and "\n" not in name]
    return next(iter(short), " AND ".join(by_class))


def licences_page() -> str:
    """The page as it is for what is installed."""
    rows = (f"| {package} | {licence_of(package)} |\n" for package in sorted(needed()))
    return f"{_HEAD}{''.join(rows)}{_TAIL}"


def _canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
