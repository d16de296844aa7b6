"""What users read of each case is what the files beside this one say.

Who changes an answer on purpose writes them anew (`make golden`) and reads `git diff`.
"""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.golden.answers import answers_to, files_of
from tests.golden.cases import CASES, Case

HERE = Path(__file__).parent
ALL = [
    pytest.param(case, file, marks=pytest.mark.xdist_group(f"golden {case.name}"), id=f"{case.name}-{file}")
    for case in CASES
    for file in files_of(case)
]


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Case], dict[str, str]]:
    known: dict[str, dict[str, str]] = {}

    def of_case(case: Case) -> dict[str, str]:
        if case.name not in known:
            known[case.name] = answers_to(case, tmp_path_factory.mktemp("golden"))
        return known[case.name]

    return of_case


@pytest.mark.golden
@pytest.mark.parametrize(("case", "file"), ALL)
def test_answer_is_golden(
    case: Case, file: str, answers: Callable[[Case], dict[str, str]], golden: Callable[[Path, str], None]
) -> None:
    golden(HERE / case.name / file, answers(case)[file])


def test_no_golden_file_is_left_over() -> None:
    asked = {HERE / case.name / file for case in CASES for file in files_of(case)}
    assert {file for file in HERE.glob("*/*") if file.parent.name != "__pycache__"} == asked
