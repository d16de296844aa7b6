"""Where a report goes: stdout, or a file that appears whole or not at all; the page and the metrics as well."""

from __future__ import annotations

import os
import secrets
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from txn_analysis.cli.options import SUFFIXES, Forms, Target
from txn_analysis.errors import AuditError

if TYPE_CHECKING:
    from txn_analysis.report.figures import Reader
    from txn_analysis.report.formats import Answer
    from txn_analysis.report.model import AuditReport
    from txn_analysis.report.pictures import Pictures

_STDOUT = "-"


def targets_of(files: Sequence[str], form: str | None, forms: Forms | None) -> tuple[Target, ...]:
    """Where something is printed, and in which form.

    Args:
        files: those that are given with `-o`, of which `-` is stdout; that alone without any.
        form: what `--format` says of a single one, and of those among several whose suffix says none; else each file's
            suffix says it.
        forms: those that the verb knows, the usual one first; None where it has but one.

    Raises:
        AuditError: a file cannot be written, is given twice, or neither says its form.
    """
    if len({*files}) < len(files):
        raise AuditError("-o: one file is given twice")
    wanted = [None if file == _STDOUT else file for file in files or (_STDOUT,)]
    for file in filter(None, wanted):
        if Path(file).is_dir():
            raise AuditError(f"-o {file}: this is a folder; give a file in it")
        if not Path(file).absolute().parent.is_dir():
            raise AuditError(f"-o {file}: the folder does not exist; create it first")
    if form and len(wanted) == 1:
        return (Target(wanted[0], form),)
    return tuple(Target(file, _form_of(file, forms, form)) for file in wanted)


def _form_of(file: str | None, forms: Forms | None, usual: str | None) -> str | None:
    if file is None or not forms:
        return usual or (forms.names[0] if forms else None)
    path, names = Path(file), forms.names
    form = SUFFIXES.get(path.suffix.lower())
    if form in (*names, *forms.older):
        return form
    if usual or (path.exists() and not path.is_file()):  # a pipe or a device
        return usual or names[0]
    known = [suffix for suffix, form in SUFFIXES.items() if form in names]
    raise AuditError(
        f"-o {file}: its suffix says no form of this verb ({', '.join(known)}): give such a FILE, or --format "
        f"{', '.join(names[:-1])} or {names[-1]}"
    )


def rows(answer: Answer, words: str = "") -> dict[str, Callable[[], str]]:
    """Rows in each form that they may be asked for; `words` stand below them in text."""
    return {"text": lambda: answer.text() + words, "json": answer.json, "ndjson": answer.ndjson, "csv": answer.csv}


def one(answer: Any, text: Callable[[], str]) -> dict[str, Callable[[], str]]:
    """An answer that is JSON, or a text."""
    # Not needed for --help.
    from txn_analysis.questions.answers import json_text

    return {"json": lambda: json_text(answer), "text": text}


def deliver(targets: Iterable[Target], forms: Mapping[str, Callable[[], str | Iterable[str]]]) -> None:
    """Writes what is printed to where it is wanted, each in its form.

    Raises:
        AuditError: a file cannot be written.
    """
    for file, form in targets:
        assert form is not None
        emit(forms[form](), file)


def deliver_text(targets: Iterable[Target], text: str) -> int:
    """Writes one text, whatever form is asked for; see `deliver`. Returns the exit code of what succeeded."""
    for file, _ in targets:
        emit(text, file)
    return 0


def deliver_schema(targets: Iterable[Target], kind: Any) -> int:
    """Writes the JSON schema of an answer of some kind, in place of the answer; returns the exit code."""
    # Not needed for --help.
    from txn_analysis.questions.answers import schema_text

    return deliver_text(targets, schema_text(kind))


def note(words: str) -> None:
    """Says on stderr what stands beside an answer."""
    print(f"note: {words}", file=sys.stderr)


def emit(text: str | Iterable[str], output: str | None) -> None:
    """Writes the text to stdout, or to the file `output`, which appears whole or not at all.

    Args:
        text: what is written; or its parts, none of which is held.
        output: the file; None for stdout.

    Raises:
        AuditError: the file cannot be written.
    """
    if output is None:
        with quiet_pipe(sys.stdout) as stream:
            stream.writelines([text] if isinstance(text, str) else text)
        return
    try:
        _write_whole(Path(output), [text] if isinstance(text, str) else text)
    except OSError as error:
        why = error.strerror or error
        raise AuditError(f"-o {output}: cannot be written: {why}; fix that, or give another FILE") from error


def is_terminal(output: str | None) -> bool:
    """Whether the output is a terminal that can show colours."""
    return output is None and sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


@contextmanager
def quiet_pipe(stream: TextIO) -> Iterator[TextIO]:
    """A stream whose reader may leave early, as `head` does; what cannot be encoded is escaped.

    Raises:
        AuditError: it cannot be written.
    """
    if hasattr(stream, "reconfigure"):
        stream.reconfigure(errors="backslashreplace")
    try:
        yield stream
        stream.flush()
    except OSError as error:
        # Python flushes stdout once more at exit, and would complain there.
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        if not isinstance(error, BrokenPipeError):
            raise AuditError(f"stdout cannot be written: {error.strerror or error}") from error


def _write_whole(path: Path, parts: Iterable[str]) -> None:
    data = (part.encode("utf-8", "backslashreplace") for part in parts)
    if path.exists() and not path.is_file():  # a pipe or a device can only be written to, not replaced
        with path.open("wb") as stream:
            stream.writelines(data)
        return
    target = path.resolve()
    draft = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
    try:
        with draft.open("xb") as file:
            file.writelines(data)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(target)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def now_ms() -> int:
    """Epoch milliseconds by this machine's own clock, which no verdict looks at."""
    return time.time_ns() // 1_000_000


def emit_page(report: AuditReport, pictures: Pictures | None, reader: Reader, output: str | None) -> None:
    """Writes the page to stdout or a file; a page that cannot hold all findings links a table file beside it."""
    # Not needed for --help.
    from txn_analysis.report.figures import MOST_FINDINGS
    from txn_analysis.report.formats import findings_csv
    from txn_analysis.report.html.page import html_report

    table = None
    if output is not None and len(report.findings) > MOST_FINDINGS:
        table = Path(output).with_suffix(".findings.csv")
        emit(findings_csv(report), str(table))
    emit(html_report(report, pictures, reader, table.name if table else None), output)
