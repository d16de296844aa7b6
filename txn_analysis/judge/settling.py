"""What settles an open question: what the findings of one rule in one run lack together, and what would tell."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from txn_analysis.coordinator.coverage import NOT_DECODED, OF_AN_EXPORT
from txn_analysis.coordinator.fit import NOT_SHOWN
from txn_analysis.judge.lacks import TRUE_IF, Lack, Settling
from txn_analysis.kafka.names import STATE_TOPIC_DESCRIPTION
from txn_analysis.settings import flag_name
from txn_analysis.tables.finding_rows import FindingRows
from txn_analysis.text import iso_utc, listed, ranges

_MOST_PLACES = 3


class Doubtful(NamedTuple):
    """What the findings of one rule in one run lack together.

    Attributes:
        findings: those of the rule.
        state: what was seen of `__transaction_state`, as the run recorded it.
        as_of_ms: when the files were copied; None where no broker's clock speaks.
        is_state_vouched: the operator gave their word that the state is complete.
        of_log: what their logs lack.
        strange: where the first of them has lines of others, in words; empty where none has.
    """

    findings: FindingRows
    state: Mapping[str, Any]
    as_of_ms: int | None
    is_state_vouched: bool
    of_log: Lack = Lack.LOG_NOT_WHOLE
    strange: str = ""

    @property
    def places(self) -> str:
        """Their partitions, as far as there is room."""
        return listed(sorted(self.findings.topic_partitions), _MOST_PLACES)

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
    def not_understood(self) -> Settling | None:
        """What was given of the state and not understood; None where there is no such thing."""
        return not_understood(self.state)

    @property
    def needs_all_of_the_state(self) -> bool:
        """Partitions of the state are missing, and the id of some producer is not known: any of them may hold it."""
        return bool(self.state.get("missing")) and self.findings.column("transactional_id").null_count > 0

    @property
    def is_state_not_shown(self) -> bool:
        """Nothing shows that the state is of the cluster of the logs, of any of them."""
        return all(any(NOT_SHOWN in missing for missing in f.missing_evidence) for f in self.findings)

    def asks_for(self, assurance: str) -> bool:
        """Whether the operator's word would settle all of them, as far as the files do not disprove it."""
        flag = flag_name(assurance)
        return all(any(flag in missing for missing in f.missing_evidence) for f in self.findings)


# What would settle the findings of one rule in one run: what is missing, and the option or the file that would tell.
# What stands between backticks is to be typed. Evidence comes first, a word behind it, with when it is true.

SHALLOW_DUMP = (
    "a dump of the same segments without --deep-iteration and --print-data-log (and without 2>&1), or the segments "
    "themselves"
)


def not_understood(state: Mapping[str, Any]) -> Settling | None:
    """What was given of the state and not understood, as the report adds it to what a run recorded."""
    given = state.get("not_understood")
    return None if given is None else Settling(Lack.STATE_NOT_UNDERSTOOD, *given)


def missing_partitions(state: Mapping[str, Any]) -> Iterator[tuple[str, list[int]]]:
    """Which partitions of the state were not given, and which were given and not decoded, each in a word or two."""
    parts = state.get("partitions") or []
    given = [part["partition"] for part in parts if NOT_DECODED in part.get("problems", ())]
    lacking = [number for number in state.get("missing") or [] if number not in given]
    yield from ((what, of) for what, of in (("missing", lacking), (NOT_DECODED, given)) if of)


def broken_log(doubtful: Doubtful) -> Settling:
    """The logs are not whole."""
    if doubtful.of_log is Lack.TEXT_OF_CLIENTS:
        printed = (
            f"the dumps of {doubtful.places} print what clients wrote, which may look like lines of the tool, or have "
            "a line that says that the tool stopped"
        )
        return Settling(doubtful.of_log, printed, f"give {SHALLOW_DUMP}")
    if doubtful.of_log is Lack.LINES_OF_OTHERS:
        has_others = f"the dump of {doubtful.places} has lines that kafka-dump-log does not print: {doubtful.strange}"
        return Settling(doubtful.of_log, has_others, f"dump {doubtful.places} again, without `2>&1`")
    if doubtful.of_log is Lack.LOG_NOT_COPIED:
        only_earlier = f"{doubtful.places} are only in an earlier capture"
        again = f"copy the logs of {doubtful.places} into the next capture, and audit that"
        return Settling(doubtful.of_log, only_earlier, again)
    return Settling(
        Lack.LOG_NOT_WHOLE,
        f"the log of {doubtful.places} is not whole",
        f"copy all files of {doubtful.places} again from the leaders, with the newest producer snapshots",
    )


def unknown_time(doubtful: Doubtful) -> Settling:
    """No clock says how old the data is."""
    as_of_ms = doubtful.as_of_ms
    if as_of_ms is None:
        when = "say with `--as-of TIME` when they were copied"
        return Settling(Lack.NO_CLOCK, "no broker's clock speaks in the files", when)
    if all((ms or 0) > as_of_ms for ms in doubtful.findings.column("last_timestamp_ms").to_pylist()):
        later = f"`--as-of TIME`, if the files were copied later than {iso_utc(as_of_ms)}"
        return Settling(
            Lack.WRITTEN_AFTER_COPY, "they were written after the moment that counts as that of the copy", later
        )
    return Settling(
        Lack.NO_TIME,
        "no clock says how old they are",
        f"copy {doubtful.places} again when other transactions have ended there",
    )


def foreign_state(doubtful: Doubtful) -> Settling:
    """The state does not fit the logs."""
    if doubtful.has_misplaced_ids and doubtful.fitting is not None:
        used = f"ids in `__transaction_state` do not lie where they would among {doubtful.state['expected']} partitions"
        return Settling(Lack.STATE_COUNT_WRONG, used, doubtful.right_count)
    sooner = "; or `--transactional-id-expiration-ms N`, if the brokers' is below 7 days"
    return Settling(
        Lack.STATE_OF_ANOTHER,
        "`__transaction_state` does not fit the logs",
        "copy `__transaction_state` of the cluster that the logs are from, all its partitions"
        f"{sooner if doubtful.asks_for('transactional_id_expiration_ms') else ''}",
    )


def older_state(doubtful: Doubtful) -> Settling:
    """The state may end before the data."""
    order = "the logs first and `__transaction_state` last, from the leaders"
    if doubtful.needs_all_of_the_state and (given := doubtful.not_understood) is not None:
        return given
    if doubtful.needs_all_of_the_state:
        all_of_it = "copy all partitions of `__transaction_state` after the logs, from their leaders, and say so with"
        return Settling(
            Lack.STATE_OLDER_AND_PARTIAL,
            "`__transaction_state` is not whole, and not proven to reach up to the data",
            f"{all_of_it} `--state-copied-last`, which is true {TRUE_IF['state_copied_last']}",
        )
    word = f"; or `--state-copied-last`, {TRUE_IF['state_copied_last']}"
    return Settling(
        Lack.STATE_OLDER,
        "`__transaction_state` is not proven to reach up to the data",
        f"copy the files again: {order}{word if doubtful.asks_for('state_copied_last') else ''}",
    )


def early_log(doubtful: Doubtful) -> Settling:
    """A log may end before the state."""
    return Settling(
        Lack.LOG_ENDS_EARLY,
        f"the log of {doubtful.places} is not proven to reach up to `__transaction_state`",
        f"copy {doubtful.places} again, and audit it with the state that you have",
    )


def incomplete_state(doubtful: Doubtful) -> Settling:
    """A part of the state is missing, broken or not understood."""
    if (given := doubtful.not_understood) is not None:
        return given
    missing = doubtful.state.get("missing") or []
    if missing and doubtful.is_count_open:
        return Settling(
            Lack.STATE_COUNT_OPEN,
            f"it is not known how many partitions `__transaction_state` has ({doubtful.fitting} fit)",
            doubtful.right_count,
        )
    if missing:
        named = f"`__transaction_state` is without {'partition' if len(missing) == 1 else 'partitions'}"
        copy = "copy all partitions of `__transaction_state` from their leaders"
        return Settling(Lack.STATE_PARTITIONS, f"{named} {ranges(missing)}", copy)
    parts = doubtful.state.get("partitions") or []
    undecoded = [part["partition"] for part in parts if part.get("undecodable")]
    if undecoded:
        whose = "partition" if len(undecoded) == 1 else "partitions"
        return Settling(
            Lack.STATE_UNDECODABLE,
            f"records of `__transaction_state` could not be decoded, of {whose} {ranges(undecoded)}",
            (
                "give the brokers' own files of them in place of their text; if these were given, no step is known but "
                "to audit with a later txn-analysis"
            ),
        )
    if doubtful.state.get("newer") and all(part["is_complete"] for part in parts if part["is_seen"]):
        return Settling(
            Lack.STATE_OF_TOMORROW,
            "records of `__transaction_state` have fields of a newer Kafka",
            (
                "give the brokers' own files of `__transaction_state` in place of its text, since their lists are "
                "known to be whole, or audit with a txn-analysis that knows the fields"
            ),
        )
    lack, text = _whole_state(doubtful, parts)
    is_not_shown = doubtful.is_state_not_shown and all(part["is_complete"] for part in parts if part["is_seen"])
    return _NOT_SHOWN if is_not_shown else Settling(lack, "`__transaction_state` is not proven complete", text)


_NOT_SHOWN = Settling(
    Lack.STATE_NOT_SHOWN,
    "nothing shows that `__transaction_state` is that of the cluster of these logs",
    "copy the broker's `meta.properties` beside the dumps of the logs and beside those of the state, or give the "
    "brokers' log directories, or a partition with a later end marker",
)


def _whole_state(doubtful: Doubtful, parts: Sequence[Mapping[str, Any]]) -> tuple[Lack, str]:
    """What would prove that no file or record of the state is missing."""
    again = "copy all files of all its partitions from their leaders"
    lacking = [part for part in parts if part["is_seen"] and not part["is_complete"]]
    if doubtful.is_state_vouched or any(part.get("problems") for part in lacking):
        return Lack.STATE_NOT_WHOLE, again
    if lacking and all(part.get("is_folder_whole") for part in lacking):
        return Lack.STATE_CLEANED, (
            "give another copy of these partitions beside this one, of another replica or of an earlier night, that "
            "has the offsets which compaction took; or `--no-records-lost`, if no record of the state was ever lost or "
            "deleted: no file of it is missing, and compaction leaves such holes"
        )
    if lacking and all(OF_AN_EXPORT in part.get("holes", ()) for part in lacking):
        word = "; or `--transaction-state-complete`, if the export has every record of the state"
        return Lack.EXPORT_NOT_WHOLE, again + word
    return Lack.STATE_NOT_WHOLE, (
        f"{again}, by the script of `txn-analysis copy-kit`, and give `--no-records-lost` if no record was ever lost "
        "or deleted; or `--transaction-state-complete`: compaction leaves such holes, so it is true if every file of "
        "these folders was copied, and no record was deleted"
    )


def lost_records(doubtful: Doubtful) -> Settling:
    """Older records of the state are gone."""
    word = f"; or `--no-records-lost`, {TRUE_IF['no_records_lost']}"
    earlier = "an earlier copy of `__transaction_state`, audited before this one into the same warehouse"
    return Settling(
        Lack.HISTORY_GONE,
        "older records of `__transaction_state` are gone",
        earlier + (word if doubtful.asks_for("no_records_lost") else ""),
    )
