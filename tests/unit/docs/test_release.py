"""What is released: one version, links that hold anywhere, and all that the wheel reads."""

import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from email import message_from_string
from email.message import Message
from pathlib import Path

import pytest

from tests.tools.docs.pages import site_pages
from tests.tools.repository import ROOT
from txn_analysis import __version__

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
HOME = PROJECT["project"]["urls"]["Homepage"]
READ = ("log4j2.properties", "copy-kit.sh", "runbook.md", "before/segments/n1.orders-0.txt", "py.typed", "views.sql")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    return folder


@pytest.fixture(scope="module")
def wheel(built: Path) -> zipfile.ZipFile:
    (path,) = built.glob("*.whl")
    return zipfile.ZipFile(path)


@pytest.fixture(scope="module")
def about(wheel: zipfile.ZipFile) -> Message:
    return message_from_string(wheel.read(f"txn_analysis-{__version__}.dist-info/METADATA").decode())


def test_the_version_is_said_in_one_place(about: Message) -> None:
    assert about["Version"] == __version__
    assert "version" in PROJECT["project"]["dynamic"]
    assert f"\n## {__version__}\n" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_every_link_of_the_wheels_readme_is_absolute(about: Message) -> None:
    links = re.findall(r"\]\(([^)]*)\)", str(about.get_payload()))
    assert links
    assert [link for link in links if not link.startswith(HOME)] == []
    assert [link for link in links if ".md" in link] == []


def test_the_wheels_readme_begins_with_what_a_wheel_can_do(about: Message) -> None:
    text = str(about.get_payload())
    assert "\n\n```\npip install txn-analysis\ntxn-analysis demo " in text
    assert "\nmake " not in text


def test_what_the_program_reads_is_in_wheel_and_sdist(wheel: zipfile.ZipFile, built: Path) -> None:
    (path,) = built.glob("*.tar.gz")
    with tarfile.open(path) as sdist:
        packed = sdist.getnames()
    for names in (wheel.namelist(), packed):
        assert [file for file in READ if not any(name.endswith(f"/{file}") for name in names)] == []


def test_the_site_has_the_pages_that_the_links_name() -> None:
    text = (ROOT / "docs/mkdocs.yml").read_text(encoding="utf-8")
    listed = re.findall(r"[\w./-]+\.md\b", text)
    made = {f"docs/{name}" for name in site_pages()}
    assert [page for page in listed if page not in made and not (ROOT / page).exists()] == []
    assert f"site_url: {HOME}\n" in text
