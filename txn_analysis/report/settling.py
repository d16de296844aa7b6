"""What would settle the open transactions of which it could not be told whether they hang.

One remedy for each kind of thing that is missing, with its option or file named in full. A word of the operator is only
asked for where the finding's own missing evidence asks for it: never where the files disprove it, or where there is
nothing that it could be true of. And what is said where the files look like those of two clusters.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple

from txn_analysis.judge.rules import rule_named
from txn_analysis.judge.rules.asked_first import CLOCK_NOT_CREDIBLE, EVIDENCE_BROKEN, STATE_DOES_NOT_FIT
from txn_analysis.judge.rules.not_listed import (
    COMMIT_MAY_BE_MISSING,
    LOG_MAY_END_EARLY,
    STATE_INCOMPLETE,
    STATE_OLDER_THAN_LOG,
)
from txn_analysis.kafka.topics import STATE_TOPIC_DESCRIPTION
from txn_analysis.report.model import FindingItem, Remedy, RunItem
from txn_analysis.settings import flag_name
from txn_analysis.text.escape import shell_option, shell_word
from txn_analysis.text.words import iso_utc, listed, ranges

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from txn_analysis.judge.outcome import Sight

_MOST_PLACES = 3

_LOGS = "the logs of the partitions, audited together with `__transaction_state`"
_SHALLOW_DUMP = "a dump of the same segments without --deep-iteration and --print-data-log, or the segments themselves"


def what_shows(sight: Sight) -> tuple[Remedy, ...]:
    """What would let a run see all that could hang; nothing where it did."""
    if sight.missing is None:
        return ()
    text = _SHALLOW_DUMP if sight.contested else _LOGS
    return (Remedy(missing=sight.missing, text=text, transaction_count=0, partitions=sight.contested),)


class Asked(NamedTuple):
    """What a remedy is found from: the findings of one rule, and of which run they are."""

    findings: tuple[FindingItem, ...]
    run: RunItem
    state: Mapping[str, Any]

    @property
    def places(self) -> str:
        """Their partitions, as far as there is room."""
        names = sorted({finding.topic_partition for finding in self.findings})
        more = len(names) - _MOST_PLACES
        return ", ".join(names[:_MOST_PLACES]) + (f" and {more} more" if more > 0 else "")

    @property
    def has_misplaced_ids(self) -> bool:
        """Ids lie in partitions of the state that their hash does not give."""
        return any(partition.get("misplaced_ids") for partition in self.state.get("partitions") or ())

    @property
    def fitting(self) -> str | None:
        """Which counts of partitions of the state fit every id, in words; None where none does."""
        fitting: str | None = (self.state.get("count") or {}).get("fitting")
        return fitting

    @property
    def is_count_open(self) -> bool:
        """Nobody said how many partitions the state has, and several counts fit."""
        return self.fitting is not None and self.state["count"]["basis"] == "default"

    @property
    def right_count(self) -> str:
        """The option that says how many there are, in full where that is known."""
        if self.state["count"]["fitting_count"] == 1:
            return f"`--transaction-state-partitions {self.fitting}`, the only count that fits the ids in it"
        return (
            f"`--transaction-state-partitions N` with the true count, of which {self.fitting} fit "
            f"(`{STATE_TOPIC_DESCRIPTION}` prints it), and the partitions that are missing"
        )

    @property
    def needs_all_of_the_state(self) -> bool:
        """Partitions of the state are missing, and the id of some producer is not known: any of them may hold it."""
        return bool(self.state.get("missing")) and any(f.transactional_id is None for f in self.findings)

    def asks_for(self, assurance: str) -> bool:
        """Whether the operator's word would settle all of them, as far as the files do not disprove it."""
        flag = flag_name(assurance)
        return all(any(flag in missing for missing in f.missing_evidence) for f in self.findings)


def remedies(doubtful: Iterable[FindingItem], run: RunItem, state: Mapping[str, Any]) -> tuple[Remedy, ...]:
    """What would settle them, the remedy of most transactions first.

    Args:
        doubtful: findings of which it could not be told whether they hang.
        run: what was asked.
        state: what was seen of `__transaction_state`, as the run recorded it.
    """
    if clusters := state.get("clusters"):
        found_in = tuple(doubtful)
        places = tuple(sorted({finding.topic_partition for finding in found_in}))
        text = what_to_do(clusters, run)
        return (Remedy(missing=looks_like(clusters), text=text, transaction_count=len(found_in), partitions=places),)
    of_rule: defaultdict[str, list[FindingItem]] = defaultdict(list)
    for finding in doubtful:
        of_rule[_kind(finding, state)].append(finding)
    found = [_remedy(kind, Asked(tuple(findings), run, state)) for kind, findings in sorted(of_rule.items())]
    return tuple(sorted(found, key=lambda remedy: -remedy.transaction_count))


def _kind(finding: FindingItem, state: Mapping[str, Any]) -> str:
    """The rule of a finding; without any state that is what is missing, unless its own log is not even whole."""
    if state.get("seen") or finding.rule == EVIDENCE_BROKEN.name:
        return finding.rule
    return _NO_STATE


def _remedy(kind: str, asked: Asked) -> Remedy:
    missing, text = _WORDS.get(kind, _by_the_rule)(asked)
    places = tuple(sorted({finding.topic_partition for finding in asked.findings}))
    return Remedy(missing=missing, text=text, transaction_count=len(asked.findings), partitions=places)


def _no_state(_: Asked) -> tuple[str, str]:
    return (
        "no partition of `__transaction_state` was given",
        "audit them again with `__transaction_state`: all its partitions, copied after the logs, from their leaders",
    )


def _broken(asked: Asked) -> tuple[str, str]:
    return (
        f"the log of {asked.places} is not whole",
        f"copy all files of {asked.places} again from the leaders, with the newest producer snapshots",
    )


def _clock(asked: Asked) -> tuple[str, str]:
    as_of_ms = asked.run.as_of_ms
    if as_of_ms is None:
        return "no broker's clock speaks in the files", "say with `--as-of TIME` when they were copied"
    if all((finding.last_timestamp_ms or 0) > as_of_ms for finding in asked.findings):
        later = f"`--as-of TIME`, if the files were copied later than {iso_utc(as_of_ms)}"
        return "they were written after the moment that counts as that of the copy", later
    return (
        "no clock says how old they are",
        f"copy {asked.places} again when other transactions have ended there",
    )


def _does_not_fit(asked: Asked) -> tuple[str, str]:
    if asked.has_misplaced_ids and asked.fitting is not None:
        used = f"ids in `__transaction_state` do not lie where they would among {asked.state['expected']} partitions"
        return used, asked.right_count
    return (
        "`__transaction_state` does not fit the logs",
        "copy `__transaction_state` of the cluster that the logs are from, all its partitions",
    )


def _older(asked: Asked) -> tuple[str, str]:
    order = "the logs first and `__transaction_state` last, from the leaders"
    if asked.needs_all_of_the_state:
        all_of_it = "copy all partitions of `__transaction_state` after the logs, from their leaders, and say so with"
        return (
            "`__transaction_state` is not whole, and not proven to reach up to the data",
            f"{all_of_it} `--state-copied-last`",
        )
    word = f"`--state-copied-last`, if the files were copied so: {order}; else copy them again in that order"
    return (
        "`__transaction_state` is not proven to reach up to the data",
        word if asked.asks_for("state_copied_last") else f"copy the files again: {order}",
    )


def _early(asked: Asked) -> tuple[str, str]:
    return (
        f"the log of {asked.places} is not proven to reach up to `__transaction_state`",
        f"copy {asked.places} again, and audit it with the state that you have",
    )


def _incomplete(asked: Asked) -> tuple[str, str]:
    missing = asked.state.get("missing") or []
    if missing and asked.is_count_open:
        return f"it is not known how many partitions `__transaction_state` has ({asked.fitting} fit)", asked.right_count
    if missing:
        named = f"`__transaction_state` is without {'partition' if len(missing) == 1 else 'partitions'}"
        return f"{named} {ranges(missing)}", "copy all partitions of `__transaction_state` from their leaders"
    parts = asked.state.get("partitions") or []
    undecoded = [part["partition"] for part in parts if part.get("undecodable")]
    if undecoded:
        whose = "partition" if len(undecoded) == 1 else "partitions"
        return (
            f"records of `__transaction_state` could not be decoded, of {whose} {ranges(undecoded)}",
            (
                "give the brokers' own files of them in place of what was given, or dump them with the newest "
                "`kafka-dump-log.sh` and audit with the newest txn-analysis"
            ),
        )
    if asked.state.get("newer") and all(part["is_complete"] for part in parts if part["is_seen"]):
        return (
            "records of `__transaction_state` have fields of a newer Kafka",
            (
                "give the brokers' own files of `__transaction_state` in place of its text, since their lists are "
                "known to be whole, or audit with a txn-analysis that knows the fields"
            ),
        )
    complete = "`--transaction-state-complete`, if no record of `__transaction_state` is missing; else "
    is_vouched = bool(asked.run.parameters.get("transaction_state_complete"))
    return (
        "`__transaction_state` is not proven complete",
        ("" if is_vouched else complete) + "copy all files of all its partitions from their leaders",
    )


def _lost(asked: Asked) -> tuple[str, str]:
    word = "`--no-records-lost`, if no acknowledged record of these topics or of the state was ever lost; else "
    return (
        "older records of `__transaction_state` are gone",
        (word if asked.asks_for("no_records_lost") else "") + "an earlier copy of `__transaction_state`",
    )


def _by_the_rule(asked: Asked) -> tuple[str, str]:
    rule = rule_named(asked.findings[0].rule)
    remedy = "see the missing evidence below" if rule is None else rule.remedy.rstrip(".")
    return "evidence is missing", remedy


_NO_STATE = "no state"
_WORDS: dict[str, Callable[[Asked], tuple[str, str]]] = {
    _NO_STATE: _no_state,
    EVIDENCE_BROKEN.name: _broken,
    CLOCK_NOT_CREDIBLE.name: _clock,
    STATE_DOES_NOT_FIT.name: _does_not_fit,
    STATE_OLDER_THAN_LOG.name: _older,
    LOG_MAY_END_EARLY.name: _early,
    STATE_INCOMPLETE.name: _incomplete,
    COMMIT_MAY_BE_MISSING.name: _lost,
}


_MOST_FOLDERS = 4


def looks_like(clusters: Mapping[str, Any]) -> str:
    """What was seen, from a run's record of it; without a full stop, not escaped."""
    if clusters["other_capture"] is not None:
        own, other = [f" ({_named(side)})" for side in clusters["sides"]] or ("", "")
        both = f"this capture{own} and capture {clusters['other_capture']}{other} in this warehouse"
        what = f"{both} look like those of two clusters"
    else:
        what = f"these files look like those of two clusters: {' beside '.join(map(_named, clusters['sides']))}"
    return f"{what} ({_why(clusters)})"


def what_to_do(clusters: Mapping[str, Any], run: RunItem) -> str:
    """What would settle it; not escaped."""
    if clusters["other_capture"] is None:
        are_few = all(len(side) <= _MOST_FOLDERS for side in clusters["sides"])
        apart = "" if are_few else "put the files of each cluster into a folder of its own, and "
        return f"{apart}audit these folders apart, each with its own `--cluster` or `--warehouse`"
    forget = f"`txn-analysis forget {shell_option('--cluster', run.cluster)} --capture"
    return (
        f"take out the one that is another cluster's, {forget} {shell_word(run.capture)}` or {forget} "
        f"{shell_word(clusters['other_capture'])}` (with the `--warehouse` of this audit), and audit its files with a "
        "`--cluster` of their own"
    )


def _named(folders: list[str]) -> str:
    return listed(folders, _MOST_FOLDERS)


def _why(clusters: Mapping[str, Any]) -> str:
    reasons = []
    if clusters["partition_count"]:
        counted = f"{clusters['partition_count']} of the {clusters['shared_count']} partitions that both have"
        reasons.append(f"they share no batch in {counted}")
    if clusters["cluster_ids"]:
        reasons.append(f"cluster.id {' and '.join(clusters['cluster_ids'])}")
    return "; ".join(reasons)
