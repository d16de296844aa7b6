"""The documents say what the program does: every command in them exists, every link leads somewhere."""

import re
import subprocess
import tomllib
from pathlib import Path

import pytest

from tests.tools.docs.commands import (
    blocks_of,
    commands_in_blocks,
    commands_of,
    inline_code,
    without_blocks,
    wrong_with,
)
from tests.tools.docs.examples import DOCUMENTS
from tests.tools.docs.pages import site_pages, with_tables
from tests.tools.repository import ROOT
from txn_analysis.judge.causes import CAUSES
from txn_analysis.judge.rules import RULES
from txn_analysis.settings import Settings
from txn_analysis.verdict import Verdict

DECISIONS = ROOT / "docs/decisions.md"
OF_THE_SITE = {ROOT / "docs" / name: text for name, text in site_pages().items()}


def test_every_command_has_the_verb_and_the_options_that_are_shown() -> None:
    for path in DOCUMENTS:
        text = path.read_text(encoding="utf-8")
        to_type = {command.text for command in commands_in_blocks(text)}
        wrong = (wrong_with(command, is_whole=command.text in to_type) for command in commands_of(text))
        assert list(filter(None, wrong)) == [], path


def links_of(path: Path) -> list[tuple[Path, str]]:
    """The files that a page links, each with the heading in it, if one is named; not what is on other machines."""
    prose = without_blocks(text_of(path))
    found = re.findall(r"\]\(([^)#:]*)(?:#([^)]*))?\)", prose)
    return [((path.parent / file).resolve() if file else path, heading) for file, heading in found]


def headings_of(path: Path) -> set[str]:
    """The names under which GitHub links the headings of a page, and what else has a name there."""
    headings = re.findall(r"^#+ (.*)$", text_of(path), re.MULTILINE)
    named = re.findall(r'<a id="([^"]+)"></a>', text_of(path))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings} | {*named}


def text_of(path: Path) -> str:
    """A page as the site has it."""
    return OF_THE_SITE[path] if path in OF_THE_SITE else path.read_text(encoding="utf-8")


def test_every_link_leads_to_a_file_and_a_heading_in_it() -> None:
    others = {ROOT / "CHANGELOG.md", ROOT / "tests/unit/warehouses/README.md"}
    for path in {*DOCUMENTS, *OF_THE_SITE, *others}:
        links = links_of(path)
        assert [file for file, _ in links if not (file.exists() or file in OF_THE_SITE)] == [], path
        assert [(file.name, name) for file, name in links if name and name not in headings_of(file)] == [], path


def test_every_page_is_listed_in_the_readme_of_the_docs() -> None:
    docs = ROOT / "docs"
    listed = {file for file, _ in links_of(docs / "README.md")}
    assert {page for page in {*DOCUMENTS, *OF_THE_SITE} if docs in page.parents} - listed == {docs / "README.md"}


def test_the_readme_can_be_read_in_one_go() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 80
    assert len(text.split()) <= 600


def test_make_lists_every_target() -> None:
    (targets,) = re.findall(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    listed = subprocess.run(["make", "--no-print-directory"], cwd=ROOT, capture_output=True, text=True, check=True)
    assert [line.split()[1] for line in listed.stdout.splitlines()] == targets.split()


def test_every_target_of_make_that_is_named_exists() -> None:
    targets = set(re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    typed = re.compile(r"(?:`|^ *)make ([a-z0-9-]+)(?=[` ]|$)", re.MULTILINE)
    texts = [path.read_text(encoding="utf-8") for path in DOCUMENTS]
    code = [
        *(f"`{one}" for text in texts for one in inline_code(text)),
        *(b for text in texts for b in blocks_of(text)),
    ]
    named = {name for one in code for name in typed.findall(one)}
    assert named - targets == set()


def test_every_verdict_rule_and_cause_can_be_linked_on_the_page_of_rules() -> None:
    causes = {f"cause-{cause.name}" for cause in CAUSES}
    wanted = {verdict.value for verdict in Verdict} | {rule.name for rule in RULES} | causes
    assert wanted - headings_of(ROOT / "docs/rules.md") == set()


def test_what_is_made_of_the_code_on_a_page_is_what_the_code_says() -> None:
    for path in DOCUMENTS:
        text = path.read_text(encoding="utf-8")
        assert with_tables(text) == text, path


def test_the_site_has_every_table_that_a_page_leaves_to_it() -> None:
    left = [
        name
        for path in DOCUMENTS
        for name in re.findall(r"<!-- made (.+) by make site -->", path.read_text(encoding="utf-8"))
    ]
    assert [name for name in left if not name.startswith("format-")] == []
    formats = OF_THE_SITE[ROOT / "docs/data-formats.md"]
    assert "by make site" not in formats
    assert formats.count("| object | its fields | it says |\n") == len(left) - 1  # that of the plan has a type too


def test_a_page_that_the_site_alone_has_is_not_in_the_repository_and_its_reader_is_told() -> None:
    (alone,) = {path for path in OF_THE_SITE if not path.exists()}
    pages = [path for path in DOCUMENTS if alone in {file for file, _ in links_of(path)}]
    assert [path for path in pages if "`make site`" not in path.read_text(encoding="utf-8")] == []


def test_glossary_is_sorted_and_says_each_word_once() -> None:
    rows = [re.sub(r"[`_]", "", row).lower() for row in _rows_of_the_glossary()]
    assert rows == sorted(rows)
    words = _words_of_the_glossary()
    assert len(set(words)) == len(words)


def test_every_word_of_the_glossary_is_used_somewhere_else() -> None:
    program = (path for end in ("*.py", "*.sh", "*.j2") for path in (ROOT / "txn_analysis").rglob(end))
    texts = [path for path in DOCUMENTS if path.name != "glossary.md"] + list(program)
    used = _plain(" ".join(path.read_text(encoding="utf-8") for path in texts))
    assert [word for word in _words_of_the_glossary() if not re.search(rf"\b{re.escape(word)}", used)] == []


def test_a_word_to_which_the_glossary_sends_its_reader_is_in_it() -> None:
    sent_to = re.findall(r"\bsee \*([^*]+)\*", (ROOT / "docs/glossary.md").read_text(encoding="utf-8"))
    assert set(sent_to) - set(_words_of_the_glossary()) == set()


def _rows_of_the_glossary() -> list[str]:
    """The cells in which a word, or several, are explained."""
    text = (ROOT / "docs/glossary.md").read_text(encoding="utf-8").partition("\n## ")[0]
    return [row for row in re.findall(r"^\| ([^|]+) \| ", text, re.MULTILINE)[1:] if not row.startswith("-")]


def _words_of_the_glossary() -> list[str]:
    return [_plain(word) for row in _rows_of_the_glossary() for word in re.split(r", | \(|\)", row) if word]


def _plain(text: str) -> str:
    """Words as they are compared: `last_stable_offset`, in a name or over the end of a line, is last stable offset."""
    return re.sub(r"[\s_`*#]+", " ", text).strip().lower()


def test_every_decision_has_its_question_choice_why_and_cost() -> None:
    _, *decisions = DECISIONS.read_text(encoding="utf-8").split("\n## ")
    lines = (rf"- \*\*{name}\.\*\* [A-Z0-9`[].*\." for name in ("Choice", "Why", "Cost"))
    entry = re.compile("\n".join((r"\d{4} \S.*\n", r"- \*\*Question\.\*\* [A-Z`].*\?", *lines)))
    assert [text for text in decisions if not entry.fullmatch(text.rstrip())] == []
    assert len(decisions) <= 30


def test_numbers_of_decisions_grow_down_the_page() -> None:
    numbers = numbers_of_decisions()
    assert numbers == sorted(set(numbers))


def test_every_number_of_a_decision_that_is_named_is_on_the_page() -> None:
    folders = ("txn_analysis", "jobs", "tests", "benchmarks", "data", "docs", "conf", "deploy")
    files = [file for folder in folders for file in (ROOT / folder).rglob("*")] + list(ROOT.glob("*.*"))
    texts = {file: file.read_text(encoding="utf-8") for file in files if file.suffix in {".py", ".md", ".toml", ".sh"}}
    # Over the end of a line of prose, or of a comment, and as the words of a link.
    named = re.compile(r"\bdecisions?(?:[\s#(]+|\.md#|/)(0\d{3})\b|\[(0\d{3})\]\(", re.IGNORECASE)
    numbers = numbers_of_decisions()
    wrong = [
        (str(file.relative_to(ROOT)), found[0])
        for file, text in texts.items()
        for found in named.finditer(text)
        if next(filter(None, found.groups())) not in numbers
    ]
    assert wrong == []


def numbers_of_decisions() -> list[str]:
    """The number of each entry of the page, in the page's order."""
    return re.findall(r"^## (\d{4}) ", DECISIONS.read_text(encoding="utf-8"), re.MULTILINE)


@pytest.mark.parametrize("file", ["conf/nightly.toml", "conf/audit.toml"])
def test_configuration_that_is_recommended_is_read(file: str) -> None:
    Settings.model_validate(tomllib.loads((ROOT / file).read_text(encoding="utf-8")))
