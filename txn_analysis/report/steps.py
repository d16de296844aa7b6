"""What to do: the steps that stand before the findings, what would tell more, and notes for who does it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import pyarrow.compute as pc

from txn_analysis.judge.outcome import Outcome
from txn_analysis.judge.words import words_named
from txn_analysis.kafka.address import Address
from txn_analysis.logic import plus
from txn_analysis.report.figures import ANYBODY, Reader, by_damage
from txn_analysis.report.finding_text import (
    SCRIPT,
    explain_command,
    has_expired,
    run_option,
    topic_options,
    window_of,
)
from txn_analysis.report.headline import expired_sentence, moments_of
from txn_analysis.report.model import AuditReport
from txn_analysis.report.terminal import Paragraph
from txn_analysis.tables.finding_rows import FindingRows
from txn_analysis.text import count, escape, iso_utc, shell_word
from txn_analysis.verdict import Verdict

_MOST_ENDED = 20


class Steps(NamedTuple):
    """What to do: `now`, which stands before the findings, then what would tell more; `notes` are for who does it."""

    now: tuple[Paragraph, ...] = ()
    later: tuple[Paragraph, ...] = ()
    notes: tuple[Paragraph, ...] = ()


def _step(text: str, command: str | None = None) -> Paragraph:
    return Paragraph("", text, command=command)


def steps_of(report: AuditReport, reader: Reader = ANYBODY) -> Steps:
    """What to do, in order; nothing for whoever reads an anonymized report."""
    if report.anonymized is not None:
        return Steps()
    repair, others = (*_repair(report, reader),), (*_look(report), *_complete(report))
    if not others and report.outcome.answer is not Outcome.COULD_NOT_TELL and not repair:
        others = (_step(_in_order(report)),)
    # How one sees that a repair is done, where no plan of this run comes first.
    has_no_plan = not report.hanging or expired_sentence(report, reader.now_ms) is not None
    if has_no_plan and report.run.earlier_captures:
        verify = f"txn-analysis verify{reader.options}"
        asked = _step("This tells whether the aborts that earlier runs recommended worked:", verify)
        return Steps(repair, (*others, asked)) if repair else Steps(others, (asked,))
    if repair:
        return Steps(repair, others, () if has_no_plan else tuple(_notes(report)))
    return Steps(others)


def _notes(report: AuditReport) -> Iterator[Paragraph]:
    if _of_producers_to_end(report.hanging):
        yield Paragraph("stop first", "an abort destroys what a producer that still runs writes there afterwards")
        yield Paragraph("fence, check", f"with Kafka's tools of 4.1, of 3.0, or newer; for older ones see {SCRIPT}")
        yield Paragraph("start again", "once `verify` says `repaired`")
    yield Paragraph("refused", "if a broker refuses, copy and audit again; never raise an epoch")


def _look(report: AuditReport) -> Iterator[Paragraph]:
    suspects = report.unaccepted.of_verdict(Verdict.SUSPECT).column("rule").unique()
    for rule in sorted(suspects.to_pylist()):
        if (words := words_named(rule)) is not None:
            yield _step(f"Suspect, {rule}: {words.remedy}")


def _complete(report: AuditReport) -> Iterator[Paragraph]:
    # The first statements have the one step that settles most.
    for remedy in report.outcome.settled_by[1:]:
        if not remedy.transaction_count:
            yield _step(escape(f"Since {remedy.missing}, give {remedy.text}."))
            continue
        number = count(remedy.transaction_count, "transaction")
        yield _step(escape(f"For {number} without an answer, since {remedy.missing}: {remedy.text}."))


def _in_order(report: AuditReport) -> str:
    if not report.findings:
        return "Nothing. No transaction is open in what was read."
    if not report.unaccepted:
        return f"Nothing. {count(len(report.findings), 'open transaction')}, all accepted."
    number = len(report.unaccepted)
    waiting = report.unaccepted.verdict_counts[Verdict.INCONCLUSIVE]
    if written := len(report.being_written):
        waiting -= written
    if waiting:
        return f"Nothing yet. {count(waiting, 'transaction')} without an answer, and not late. Audit again later."
    if written:
        late_ms = plus(report.run.as_of_ms, report.run.late_after_ms)
        later = "" if late_ms is None else f" after {iso_utc(late_ms)}"
        one = "1 open transaction is" if written == 1 else f"{written} open transactions are"
        return f"Nothing yet. {one} too young to be judged. If consumers still wait, copy and audit again{later}."
    return f"Nothing. {count(number, 'transaction')} {'is' if number == 1 else 'are'} open, and in order."


def _repair(report: AuditReport, reader: Reader) -> Iterator[Paragraph]:
    """How what hangs is repaired: plan, producers, script, verification; or that the files are too old for it."""
    options, now_ms = reader.options, reader.now_ms
    hanging = by_damage(report, report.hanging)
    if not len(hanging):
        return
    if expired_sentence(report, now_ms) is not None:
        yield _step(
            "Copy the files again, the logs first and `__transaction_state` last. Audit them. This explains the first "
            "finding:",
            explain_command(Address.of_transaction(hanging[0]), report.run.run_id, options),
        )
        return
    moments = [ms for ms in moments_of(hanging) if not has_expired(report.run, ms, now_ms)]
    current = hanging.where_one_of("appended_before_ms", moments)
    yield _step(
        "Write the plan:",
        f"txn-analysis abort-plan{run_option(report)}{topic_options(report)}{options} --format commands -o {SCRIPT}",
    )
    returning = _of_producers_to_end(current)
    if returning:
        number = len(returning.column("transactional_id").unique())
        ended = f"Stop and fence {count(number, 'producer')} (see `do`), after:"
        yield _step(ended, "export BROKERS=host:9092")
    yield _sending(report, returning, moments)
    yield _step("Copy and audit again. Verify:", f"txn-analysis verify{options}")


def _of_producers_to_end(findings: FindingRows) -> FindingRows:
    """Those with `must_end_producer`, asked of whole columns."""
    return findings.where(pc.or_(findings.column("is_producer_live"), findings.column("producer_may_return")))


def _sending(report: AuditReport, returning: FindingRows, moments: Iterable[int | None]) -> Paragraph:
    """How the script is run, with the producers to end first, and the moments by which the aborts are dated."""
    ids = [name for name in returning.column("transactional_id").unique().to_pylist() if name is not None]
    windows = [window for ms in moments if (window := window_of(report.run, ms)) is not None]
    when = ""
    if windows and (start := max(w.not_before_ms for w in windows)) < (end := min(w.not_after_ms for w in windows)):
        when = f" from {iso_utc(start)} to {iso_utc(end)}"
    more = f" The script names the other {count(len(ids) - _MOST_ENDED, 'id')}." if len(ids) > _MOST_ENDED else ""
    words = "".join(f" --ended {shell_word(name)}" for name in ids[:_MOST_ENDED])
    return _step(f"Read it, run it{when}:{more}", f"BROKERS=host:9092 sh {SCRIPT}{words}")
