"""Asks the questions of a case in this process, as a shell would, and gives what the golden files hold."""

import contextlib
import functools
import json
import re
import shlex
from pathlib import Path
from unittest import mock

from benchmarks.captures import write_capture
from benchmarks.wide_history import History
from tests.golden.cases import NOW, Case, Wide, Words, questions
from tests.tools.program import Done, program
from tests.tools.repository import CASES, ROOT
from tests.tools.sessions import no_session
from txn_analysis.cli import plan_verbs
from txn_analysis.warehouse import opening

_PLANS_PRINTED_MS = 1798675200000  # 2026-12-31: each plan has expired, whenever the test runs
_OF_EVERY_SCRIPT = (ROOT / "txn_analysis/plan/plan_script.sh").read_text(encoding="ascii")
CODES, METRICS = "codes.txt", "metrics.prom"
_SUCCESS = re.compile(r"^(txn_analysis_last_success_timestamp_seconds\S*) \S+$", re.MULTILINE)
_OF_EVERY_PAGE = re.compile(r"(?<=<style>).*?(?=</style>)|(?<=<script>).*?(?=</script>)|sha256-[^']*", re.DOTALL)
_FINGERPRINT = re.compile(r'"plan_fingerprint": "([0-9a-f]{32})"')


def files_of(case: Case) -> list[str]:
    """The names of the golden files of a case."""
    metrics = [METRICS] if case.is_text_too else []
    return [CODES, *metrics, *(question.file for question in questions(case))]


def answers_to(case: Case, folder: Path) -> dict[str, str]:
    """Audit a case and ask everything of it.

    Args:
        folder: an empty one, for the warehouse.

    Returns:
        The text of each golden file by its name. `codes.txt` has each command, its exit code and what it wrote to
        stderr. Replaced are folders, which differ from machine to machine; the moment of the metrics' last success; and
        two hashes, which differ whenever a setting is added: runs' ids, by the number of the night, and a plan's
        fingerprint. Of pages the style and the script are left out, and of plans `plan_script.sh`: they are files of
        the program.
    """
    with contextlib.chdir(folder):  # the warehouse is the one that the program takes by default
        Path("data").symlink_to(ROOT / "data")  # a path that a report wraps is as long in every checkout
        with mock.patch.object(plan_verbs, "now_ms", return_value=_PLANS_PRINTED_MS):
            return _asked(case, folder)


def _asked(case: Case, folder: Path) -> dict[str, str]:
    answers: dict[str, str] = {}
    codes, runs = [], []
    for night, given in enumerate(case.nights, 1):
        ended, words = _audited(case, night, given)
        assert ended.out, ended.err
        runs.append(json.loads(ended.out)["run"]["run_id"])
        codes.append(_as_typed(words, ended))
    if case.is_text_too:
        answers[METRICS] = _SUCCESS.sub(r"\1 0", Path(METRICS).read_text(encoding="utf-8"))
    # Who asks changes nothing, so that one look at the tables' logs does for all questions.
    opened = functools.cache(functools.partial(opening.open_warehouse, no_session))
    for file, words in questions(case):
        with mock.patch.object(opening, "open_warehouse", lambda _, place: opened(place)):
            ended = program(*words, "--quiet")
        answers[file] = _OF_EVERY_PAGE.sub("", ended.out) if file.endswith(".html") else own_lines_of(ended.out)
        codes.append(_as_typed(words, ended))
    answers[CODES] = "".join(codes)
    differing = {str(CASES): "data/cases", str(folder): "/here"}
    differing |= {run: f"run-{night:016}" for night, run in enumerate(runs, 1)}
    differing |= dict.fromkeys(_FINGERPRINT.findall(answers["abort-plan.ndjson"]), "0" * 32)
    return {file: _replaced(text, differing) for file, text in answers.items()}


def own_lines_of(script: str) -> str:
    """A plan's script without what every plan's has; any other text as it is."""
    return script.replace(_OF_EVERY_SCRIPT, "# … plan_script.sh …\n")


def _audited(case: Case, night: int, given: Words | Wide) -> tuple[Done, Words]:
    if isinstance(given, Wide):
        write_capture(History(given.width), Path("wide"), given.form)
        paths: tuple[str, ...] = ("wide",)
    else:
        paths = tuple(str(CASES / part) for part in given)
    flags = [f"data/cases/{flag}" if (CASES / flag).is_file() else flag for flag in case.flags]
    words = ("audit", *paths, *flags, "--capture", f"night-{night}", *NOW)
    return program(*words, "--format", "json", "-o", "-", "-o", METRICS, "--quiet"), words


def _as_typed(words: Words, ended: Done) -> str:
    notes = "".join(f"  {line}\n" for line in ended.err.splitlines())
    return f"{ended.code}  {shlex.join(words)}\n{notes}"


def _replaced(text: str, differing: dict[str, str]) -> str:
    for word, other in differing.items():
        text = text.replace(word, other)
    return text
