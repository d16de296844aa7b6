"""What every case of the proof table is told, word by word: a sentence that changes is seen, and reviewed as a diff."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.tools.judged_cases import Case
from tests.unit.judge.test_proof_table import CASES
from txn_analysis.judge.finding import finding_of
from txn_analysis.judge.rules import RULES
from txn_analysis.judge.words import WORDS
from txn_analysis.verdict import Verdict

EXPECTED = Path(__file__).parent / "golden" / "words.txt"


def lines_of(case: Case, known: set[tuple[str, str]]) -> Iterator[str]:
    """Its answer; of the rules that did not hold what no case before it was told of them."""
    found = finding_of(case.judged(), "RUN", "FINDING", None)
    yield f"{case.name}: {found.verdict}, {found.rule}"
    for name in ("evidence", "missing_evidence", "would_change"):
        yield from (f"  {name}: {sentence}" for sentence in getattr(found, name))
    for asked in found.rules_asked[:-1]:
        if (asked.rule, asked.reason) not in known:
            known.add((asked.rule, asked.reason))
            yield f"  not {asked.rule}: {asked.reason}"
    yield ""


@pytest.mark.golden
def test_what_every_case_is_told(golden: Callable[[Path, str], None]) -> None:
    known: set[tuple[str, str]] = set()
    golden(EXPECTED, "\n".join(line for case in CASES for line in lines_of(case, known)))


def test_every_rule_without_an_answer_says_what_would_settle_it() -> None:
    unsettled = {rule.name for rule in RULES if rule.verdict is Verdict.INCONCLUSIVE} - {
        name for name, words in WORDS.items() if words.settled_by is not None
    }
    assert unsettled == {"no_rule"}
