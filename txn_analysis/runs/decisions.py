"""What people decided about findings: kept in one TOML file, on a disk or in a store."""

from __future__ import annotations

import datetime as dt
import re
import tomllib
from collections.abc import Iterable, Sequence, Set
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, Field, ValidationError
from pydantic_core import ErrorDetails

from txn_analysis.errors import ConfigError, WarehouseError
from txn_analysis.files.disk import alone_in
from txn_analysis.files.places import Place, local_path, place_of, shown
from txn_analysis.plan.standing import EVIDENCE, TOLD, AcceptedFinding, Decided, accepted_findings, decision_about
from txn_analysis.runs.run_tables import RunTables
from txn_analysis.settings import Name, Settings, TimeMs, what_is_wrong
from txn_analysis.tables import ACCEPTED, Finding
from txn_analysis.tables.finding_rows import FindingRows
from txn_analysis.tables.inputs import RunRecord
from txn_analysis.tables.keeping import Decision
from txn_analysis.text import clip, iso_utc, shell_option
from txn_analysis.verdict import Verdict
from txn_analysis.warehouse.delta_tables import Warehouse

FILE = "accepted.toml"
WAREHOUSE = "warehouse"


def _moment(value: object) -> object:
    """A date of TOML as text; without a time it is the beginning of the day, UTC."""
    return value.isoformat() if isinstance(value, dt.date) else value


class Entry(BaseModel, frozen=True, extra="forbid"):
    """One `[[accepted]]` of the file: which finding, until when, why, and the evidence that it was decided by."""

    cluster: Name = "default"
    topic: Name
    partition: int = Field(ge=0)
    producer_id: int = Field(ge=0)
    txn_start_offset: int = Field(ge=0)
    until: Annotated[TimeMs, BeforeValidator(_moment)]
    reason: Name
    by: Name | None = None
    verdict: Verdict
    rule: Name
    producer_epoch: int | None = None
    last_offset: int | None = None
    transactional_id: str | None = None
    must_end_producer: bool

    def decision(self) -> Decision:
        """The same as a row of `accepted` has it."""
        place = self.cluster, self.topic, self.partition, self.producer_id, self.txn_start_offset
        evidence = {name: getattr(self, name) for name in EVIDENCE}
        return Decision("", 0, *place, self.until, self.reason, self.by, "", **evidence)


class _File(BaseModel, frozen=True, extra="forbid"):
    accepted: tuple[Entry, ...] = ()


def file_of(settings: Settings) -> str:
    """The file of decisions: the one that the settings name, else `accepted.toml` beside the tables."""
    return settings.accepted or f"{settings.warehouse.rstrip('/')}/{FILE}"


def read_decisions(settings: Settings) -> list[Decision]:
    """The decisions of the file; none where there is no file, and the settings name none.

    Raises:
        ConfigError: it cannot be read, is not TOML, or an entry lacks something or has what is not known.
    """
    file = file_of(settings)
    text = _text(file)
    if text is None and settings.accepted is not None:
        raise ConfigError(f"--accepted {file}: cannot be read: No such file or directory; check the path")
    return _decisions(file, text or "")


def _decisions(file: str, text: str) -> list[Decision]:
    try:
        document = tomllib.loads(text)
    except ValueError as problem:
        raise ConfigError(f"{file}: is not TOML, entries of [[accepted]]: {problem}") from problem
    try:
        return [entry.decision() for entry in _File.model_validate(document).accepted]
    except ValidationError as refused:
        lines = [f"{file}: {_problem(error)}" for error in refused.errors(include_url=False)]
        raise ConfigError("\n".join(lines)) from refused


def _text(file: str) -> str | None:
    """What a file of this machine or of a store holds; None where there is none."""
    try:
        if (place := place_of(file)) is None:
            return Path(local_path(file)).read_text(encoding="utf-8")
        from txn_analysis.files.remote_file import RemoteFile  # noqa: PLC0415 a disk needs no client of stores

        remote = RemoteFile(place)
        return remote.read(0, remote.size_bytes).decode()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as problem:
        why = getattr(problem, "strerror", None) or problem
        raise ConfigError(f"--accepted {shown(file)}: cannot be read: {why}; check the path") from problem


_TRIES = 10  # of one decision, where others write at the same time
_ENTRY = re.compile(r"^(?=\[\[accepted\]\])", re.MULTILINE)


def keep(settings: Settings, decisions: Sequence[Decision]) -> None:
    """Add decisions to the file, which is made where there is none, in place of those about the same transactions.

    Raises:
        ConfigError: the file cannot be read or written, or was not understood.
    """
    file = file_of(settings)
    try:
        if (place := place_of(file)) is not None:
            _keep_in_store(file, place, decisions)
            return
        target = Path(local_path(file)).resolve()
        with alone_in(target.parent):
            draft = target.with_name(f".{target.name}.part")
            draft.write_text(_with(file, _text(file) or "", decisions), encoding="utf-8")
            draft.replace(target)
    except OSError as problem:
        raise ConfigError(f"--accepted {shown(file)}: cannot be written: {problem.strerror or problem}") from problem


def _keep_in_store(file: str, place: Place, decisions: Sequence[Decision]) -> None:
    """The same in a store, which refuses who has read it before another one wrote: he reads it again."""
    from txn_analysis.files.store import ChangedError, store_of  # noqa: PLC0415 a disk needs no client of stores

    store = store_of(place)
    for tries_left in reversed(range(_TRIES)):
        try:
            stored = store.head(place.key)
            written = _with(file, _text(file) or "", decisions)
            store.replace(place.key, written.encode(), stored.version if stored else None)
        except ChangedError:
            if not tries_left:
                raise
        else:
            return


def _with(file: str, text: str, decisions: Sequence[Decision]) -> str:
    """The text of the file with some decisions, in place of those about the same transactions."""
    others = _others(file, text, {(one.cluster, one.place) for one in decisions})
    return others + ("\n" if others and not others.endswith("\n") else "") + toml_of(decisions)


def _others(file: str, text: str, places: Set[tuple[str, Any]]) -> str:
    """The text without the entries about some transactions; comments stay.

    Raises:
        ConfigError: it was not understood: to that nothing is added.
    """
    head, *entries = _ENTRY.split(text)
    if len(_decisions(file, text)) != len(entries):  # written in another way, in which the last one counts as well
        return text
    kept = [head]
    for entry in entries:
        is_replaced = any((one.cluster, one.place) in places for one in _decisions(file, entry))
        kept += [line for line in entry.splitlines(keepends=True) if not is_replaced or line.startswith("#")]
    return "".join(kept)


def _problem(error: ErrorDetails) -> str:
    where = [f"entry {part + 1}" if isinstance(part, int) else str(part) for part in error["loc"]]
    problem = f"{', '.join(where[1:] or where)}: {what_is_wrong(error)}"
    return f"{problem}; `txn-analysis accept --format toml` prints entries"


def toml_of(decisions: Iterable[Decision]) -> str:
    """Decisions as entries of the file."""
    return "".join(f"[[accepted]]\n{_entry(one)}\n" for one in decisions)


def _entry(decision: Decision) -> str:
    assert decision.until_ms is not None
    moment = dt.datetime.fromtimestamp(decision.until_ms / 1000, dt.UTC)
    fields = {name: getattr(decision, name) for name in Entry.model_fields if hasattr(decision, name)}
    fields |= {"until": moment, "by": decision.accepted_by}
    return "".join(f"{name} = {_toml(fields[name])}\n" for name in Entry.model_fields if fields[name] is not None)


def _toml(value: object) -> str:
    if isinstance(value, dt.datetime):
        return value.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int) else _quoted(str(value))


_NOT_PLAIN = re.compile(r'(["\\])|([\ud800-\udfff])|[^ -~]')


def _quoted(text: str) -> str:
    """A basic string of TOML, ASCII alone: ids may hold anything.

    A lone surrogate is no character of TOML, and no name of a topic; in an id it becomes what UTF-8 makes of it.
    """
    return f'"{_NOT_PLAIN.sub(_spelled, text)}"'


def _spelled(one: re.Match[str]) -> str:
    return f"\\{one[1]}" if one[1] else "\\uFFFD" if one[2] else f"\\U{ord(one[0]):08X}"


def accepted_of(
    warehouse: Warehouse, settings: Settings, run: RunRecord, findings: Sequence[Finding]
) -> tuple[AcceptedFinding, ...]:
    """What people decided about the findings of a run; see `decisions_of`."""
    decided = decisions_of(warehouse, settings, run.cluster)
    if not decided:
        return ()
    about = FindingRows.of(findings).where_one_of("producer_id", {one.decision.producer_id for one in decided})
    return accepted_findings(about, decided, run.as_of_ms)


def decisions_of(warehouse: Warehouse, settings: Settings, cluster: str) -> list[Decided]:
    """What people decided about a cluster: in the file, and in the table of a warehouse of 1.0.0.

    Raises:
        ConfigError: the file was not understood.
    """
    file = file_of(settings)
    decided = {one.place: Decided(one, WAREHOUSE) for one in kept_in_table(warehouse, cluster)}
    decided |= {one.place: Decided(one, file) for one in read_decisions(settings) if one.cluster == cluster}
    return [*decided.values()]


def kept_in_table(warehouse: Warehouse, cluster: str) -> list[Decision]:
    """The decisions that 1.0.0 kept in a table, about one cluster: of each finding the last that was not withdrawn.

    They hold until their date; an entry of the file about the same finding counts in their place.
    """
    if not warehouse.has(ACCEPTED):
        return []
    every = sorted(warehouse.records(Decision, ACCEPTED, cluster=[cluster]), key=lambda one: one.decision_number)
    return [one for one in {one.finding_id: one for one in every}.values() if one.until_ms is not None]


def decide(
    tables: RunTables, names: Sequence[str] | None, until_ms: int, reason: str, accepted_by: str | None = None
) -> list[Decision]:
    """Decisions about findings of a run, not written yet.

    Args:
        tables: of the run.
        names: which ones, by id or as `TOPIC-PARTITION@START`; None for all of which a report tells.
        until_ms: they hold for files that were copied before.
        reason: why.
        accepted_by: who says so.

    Raises:
        ConfigError: the moment is not after that of the run's own files.
        WarehouseError: the run has no such finding.
    """
    run, findings = tables.run, tables.findings()
    if run.as_of_ms is not None and until_ms <= run.as_of_ms:
        copied = iso_utc(run.as_of_ms)
        raise ConfigError(f"--until {iso_utc(until_ms)}: is not after the files of run {run.run_id} ({copied})")
    reported = [finding for finding in findings if finding.verdict in TOLD]
    wanted = reported if names is None else _wanted(findings, names, tables)
    decided = (decision_about(finding, run.cluster, until_ms, reason, accepted_by) for finding in wanted)
    return sorted(decided, key=lambda one: one.place)


def _wanted(findings: Sequence[Finding], names: Iterable[str], tables: RunTables) -> list[Finding]:
    """Findings by what a person types: their id, or `TOPIC-PARTITION@START`.

    Raises:
        WarehouseError: the run has no such finding.
    """
    by_name = {finding.finding_id: finding for finding in findings}
    by_name |= {f"{finding.topic_partition}@{finding.txn_start_offset}": finding for finding in findings}
    wanted = [*dict.fromkeys(names)]
    missing = [name for name in wanted if name not in by_name]
    if missing:
        run_id, root = tables.run.run_id, str(tables.warehouse.root)
        shown = f"`txn-analysis report --run {run_id} {shell_option('--warehouse', root)}`"
        raise WarehouseError(
            f"{clip(missing[0], 80)}: no such open transaction in run {run_id}: give TOPIC-PARTITION@OFFSET "
            f"of one that {shown} shows, such as orders-0@161, or its finding_id"
        )
    return [*{by_name[name].finding_id: by_name[name] for name in wanted}.values()]
