"""The nightly script, with programs of the test in the place of the audit and of mail."""

import os
import shutil
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.tools.repository import ROOT

DEPLOY = ROOT / "deploy"
AUDIT = """#!/bin/sh
echo "$@" >> "$OUT/words"
[ "$1" = audit ] || exit 0
echo '{headline}: 1 transaction on 1 partition: orders-0; $(touch hacked)' > "$OUT/report.txt"
echo "a page" > "$OUT/report.html"
echo "error: no such file" >&2
exit {code}
"""
HEADLINES = {1: "HANGING", 3: "COULD NOT TELL"}
MAIL = """#!/bin/sh
{ echo "subject: $2"; echo "to: $3"; cat; } > "$OUT/sent"
"""


def program(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


@pytest.fixture
def night(tmp_path: Path) -> Callable[[int], subprocess.CompletedProcess[str]]:
    """Runs the script with an audit that ends with a code."""

    def run(code: int) -> subprocess.CompletedProcess[str]:
        program(tmp_path / "txn-analysis", AUDIT.format(code=code, headline=HEADLINES.get(code, "Nothing hangs")))
        program(tmp_path / "mail", MAIL)
        own = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "OUT": str(tmp_path)}
        own |= {"CONFIG": "nightly.toml", "MAILTO": "ops@example.org"}
        words = [str(DEPLOY / "nightly.sh"), "/captures/last night"]
        return subprocess.run(words, env=own, cwd=tmp_path, capture_output=True, text=True, check=False)

    return run


def test_quiet_night_sends_no_mail(night: Callable[[int], subprocess.CompletedProcess[str]], tmp_path: Path) -> None:
    done = night(0)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert not (tmp_path / "sent").exists()
    words = (tmp_path / "words").read_text()
    assert words.startswith("audit /captures/last night --config nightly.toml --width 76 -o ")


def test_a_judged_night_keeps_its_page_by_its_day_and_renews_the_list_of_nights(
    night: Callable[[int], subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    night(1)
    (page,) = tmp_path.glob("20??-??-??.html")
    assert page.read_text() == "a page\n"
    assert (tmp_path / "words").read_text().splitlines()[1:] == [
        f"captures --config nightly.toml -o {tmp_path}/nights.txt"
    ]


def test_an_audit_that_failed_keeps_no_page(
    night: Callable[[int], subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    night(2)
    assert list(tmp_path.glob("20??-??-??.html")) == []
    assert len((tmp_path / "words").read_text().splitlines()) == 1


def test_what_hangs_is_the_subject_of_one_mail(
    night: Callable[[int], subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    assert night(1).returncode == 1
    mail = (tmp_path / "sent").read_text().splitlines()
    assert mail[:2] == [
        "subject: HANGING: 1 transaction on 1 partition: orders-0; $(touch hacked)",
        "to: ops@example.org",
    ]
    assert not (tmp_path / "hacked").exists()


def test_what_could_not_be_told_is_mailed_as_well(
    night: Callable[[int], subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    assert night(3).returncode == 3
    assert (tmp_path / "sent").read_text().startswith("subject: COULD NOT TELL: 1 transaction on 1 partition: orders-0")


def test_audit_that_failed_mails_its_error(
    night: Callable[[int], subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    assert night(2).returncode == 2
    assert (tmp_path / "sent").read_text().splitlines()[::2] == [
        "subject: Kafka audit failed with exit code 2: nothing was judged",
        "error: no such file",
    ]


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze")
def test_systemd_understands_the_units() -> None:
    units = [str(DEPLOY / f"txn-analysis.{kind}") for kind in ("service", "timer")]
    done = subprocess.run(["systemd-analyze", "verify", *units], capture_output=True, text=True, check=False)
    # The script is not installed where the unit looks for it.
    assert [line for line in done.stderr.splitlines() if "nightly.sh is not executable" not in line] == []
