"""From when until when an abort may be sent, how the plan is sent, and what the partition's consumers get by it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from txn_analysis.plan.abort_plan import window
from txn_analysis.report.figures import by_damage
from txn_analysis.text.escape import clip, escape, shell_option, shell_word
from txn_analysis.text.words import count, duration, iso_utc, listed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from txn_analysis.plan.abort_plan import Window
    from txn_analysis.report.model import AuditReport, FindingItem, PartitionItem

_SCRIPT = "plan.sh"
_MOST_ENDED = 20
_ID_WIDTH = 60


class Step(NamedTuple):
    """One thing to do, in words; the command is to be typed as it stands."""

    text: str
    command: str | None = None


def window_of(report: AuditReport, finding: FindingItem) -> Window | None:
    """When the abort of a hanging transaction may be sent, as its plan says; None where no clock dates it."""
    run = report.run
    return window(
        finding.appended_before_ms, run.as_of_ms, late_after_ms=run.late_after_ms, plan_valid_ms=run.plan_valid_ms
    )


def has_expired(report: AuditReport, finding: FindingItem, now_ms: int | None) -> bool:
    """Whether it is too late to send the abort; never where nobody says what the time is."""
    found = window_of(report, finding)
    return now_ms is not None and found is not None and now_ms > found.not_after_ms


def send_sentence(report: AuditReport, finding: FindingItem) -> str:
    """From when until when the abort may be sent."""
    found = window_of(report, finding)
    if found is None:
        return "unknown: no broker's clock dates it"
    refuses = ", and only once the id is fenced" if finding.must_end_producer else "; at other times the script refuses"
    return f"from {iso_utc(found.not_before_ms)} to {iso_utc(found.not_after_ms)}{refuses}"


def then_sentence(report: AuditReport, finding: FindingItem, partition: PartitionItem | None) -> str | None:
    """How far `read_committed` consumers can read once it is aborted; None where that is not known."""
    if partition is None:
        return None
    others = [
        other
        for other in report.findings
        if (other.topic, other.partition) == (finding.topic, finding.partition) and other is not finding
    ]
    following = min(others, key=lambda other: other.txn_start_offset, default=None)
    if following is None:
        end = partition.end_offset if finding.blocks_partition else None  # else something unknown holds it
        return None if end is None else f"read_committed consumers read on to the end of the log, offset {end}"
    verb = "read on to" if finding.blocks_partition else "still wait at"
    return (
        f"read_committed consumers {verb} offset {following.txn_start_offset}, where the open transaction of "
        f"{name_of(following)} ({following.verdict.value}) holds the last stable offset"
    )


def name_of(finding: FindingItem) -> str:
    """Whose transaction it is; escaped."""
    if finding.transactional_id is None:
        return f"producer id {finding.producer_id}"
    return clip(finding.transactional_id, _ID_WIDTH)


def explain_command(report: AuditReport, finding: FindingItem, options: str) -> str:
    """The command that explains one finding."""
    where = f"{shell_option('--topic', finding.topic)} --partition {finding.partition}"
    found = f"{where} --start-offset {finding.txn_start_offset}"
    return f"txn-analysis explain {found}{run_option(report)}{options}"


def run_option(report: AuditReport) -> str:
    """The option that names the run of a report."""
    return f" --run {shell_word(report.run.run_id)}"


def topic_options(report: AuditReport) -> str:
    """The options that narrow another command to the topics of a report; nothing where it is about all of its run."""
    return "".join(f" {shell_option('--topic', topic)}" for topic in report.topics)


def repair_steps(report: AuditReport, options: str, now_ms: int | None = None) -> Iterator[Step]:
    """How what hangs is repaired: plan, producers, script, verification; or that the files are too old for it.

    Args:
        report: what was found.
        options: complete the commands, such as ` --warehouse /data/audit`.
        now_ms: the time at which this is read; None where nobody says.
    """
    hanging = by_damage(report, report.hanging)
    if not hanging:
        return
    if (too_old := expired_sentence(report, now_ms)) is not None:
        yield Step(
            f"{too_old} Copy the files again, the logs first and `__transaction_state` last, and "
            "audit them. What led to the first finding says:",
            explain_command(report, hanging[0], options),
        )
        return
    current = [finding for finding in hanging if not has_expired(report, finding, now_ms)]
    yield Step(
        "Write the abort plan: a script that checks the time and the brokers, and asks, before each abort.",
        f"txn-analysis abort-plan{run_option(report)}{topic_options(report)}{options} --format commands -o {_SCRIPT}",
    )
    returning = [finding for finding in current if finding.must_end_producer]
    if returning:
        places = listed([f"{escape(f.topic_partition)} ({name_of(f)})" for f in returning], 3)
        whose = "the producer of" if len(returning) == 1 else "the producers of"
        it = "it" if len(returning) == 1 else "they"
        yield Step(
            f"First end {whose} {places}: {it} may write there again, and an abort would destroy that as well. Stop "
            "the application, then type what stands beside `fence`, and beside `check`. Both ask the brokers at:",
            "export BROKERS=host:9092",
        )
    yield _sending(report, current)
    yield Step(
        "When the markers are written, copy the files again and audit once more. This says what became of each abort:",
        f"txn-analysis verify{options}",
    )


def age(report: AuditReport, now_ms: int | None) -> str | None:
    """How long ago the files were copied, such as `2 d 4 h ago`; None where that is not known, or lies ahead."""
    as_of_ms = report.run.as_of_ms
    if now_ms is None or as_of_ms is None or now_ms < as_of_ms:
        return None
    return f"{duration(now_ms - as_of_ms)} ago"


def expired_sentence(report: AuditReport, now_ms: int | None) -> str | None:
    """That the files are too old for an abort of what hangs; None where they are not, or nothing hangs."""
    hanging = report.hanging
    if not hanging or not all(has_expired(report, finding, now_ms) for finding in hanging):
        return None
    return f"Copied at {iso_utc(report.run.as_of_ms)}, {age(report, now_ms)}: a plan from these files has expired."


def _sending(report: AuditReport, findings: list[FindingItem]) -> Step:
    ended = [f.transactional_id for f in findings if f.must_end_producer and f.transactional_id is not None]
    ids = list(dict.fromkeys(ended))
    windows = [found for finding in findings if (found := window_of(report, finding)) is not None]
    when = ""
    if windows and (start := max(w.not_before_ms for w in windows)) < (end := min(w.not_after_ms for w in windows)):
        when = f" All of it may be sent from {iso_utc(start)} to {iso_utc(end)}."
    with_ids = ", with `--ended ID` for each producer that you have ended" if ids else ""
    more = f"; the script names the other {count(len(ids) - _MOST_ENDED, 'id')}" if len(ids) > _MOST_ENDED else ""
    words = "".join(f" --ended {shell_word(name)}" for name in ids[:_MOST_ENDED])
    text = f"Read the plan, then run it against a broker of the cluster{with_ids}{more}.{when}"
    return Step(text, f"BROKERS=host:9092 sh {_SCRIPT}{words}")
