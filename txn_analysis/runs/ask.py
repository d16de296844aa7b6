"""Questions in SQL to one finished run: its tables, and the views of `views.sql`, by their names; nothing is written.

This process asks DataFusion, as deltalake brings it; a session of Spark asks its own SQL. Both see the same names.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import cache
from math import isfinite
from pathlib import Path
from string import Template
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder
from deltalake.exceptions import DeltaError

from txn_analysis.errors import AuditError, ConfigError
from txn_analysis.runs.past_run import PastRun
from txn_analysis.tables import ALL_TABLES, ENDED_TRANSACTIONS, PARTITION_HEALTH, Table
from txn_analysis.text import utc

_MEMORY = "200M"
_SETTINGS = (
    f"runtime.memory_limit = '{_MEMORY}'",
    # Else a filtered UNION of columns that the tables comment differently is refused.
    "execution.skip_physical_aggregate_schema_check = true",
    # Else a file is filtered by what the other side of a join has, if that is read first, as text of another type.
    "optimizer.enable_join_dynamic_filter_pushdown = false",
    # Columns of a condition that are kept for the answer: up to 100 MB beside the limit, and no faster.
    "execution.parquet.max_predicate_cache_size = 0",
)
_STORED = "stored_"
_VIEW = re.compile(r"CREATE VIEW (\w+) AS\n(.*?);", re.DOTALL)
# Literals and comments; and as the group what holds a name, and may hold an apostrophe.
_NO_NAMES = re.compile(r"""'[^']*'|--[^\n]*|/\*.*?\*/|("[^"]*"|`[^`]*`)""", re.DOTALL)
_OF_THE_QUESTION = re.compile("Resources exhausted|^External error: (?:Arrow|Execution) error")
_DESCRIBE = re.compile(r"DESC(?:RIBE)?\s+`?(\w+)`?", re.IGNORECASE)
_TABLES = {table.name: table for table in ALL_TABLES}
ASKED = "asked"


def ask(run: PastRun, sql: str, more: Mapping[str, str] | None = None) -> pa.Table:
    """The rows that a question has, in its order.

    Args:
        run: whose rows are asked for.
        sql: one SELECT (or WITH, VALUES), over names of tables and of `views.sql`; or DESCRIBE and such a name.
        more: views of the question's own, as SELECTs by name; see `views_in`.

    Raises:
        ConfigError: it is no such question, or names what there is not.
        AuditError: it needs more memory than it may have.
    """
    if asks_columns := _DESCRIBE.fullmatch(question(sql)):
        return _columns(run, asks_columns[1])
    with _in_words():
        answer = _reader(run, sql, more).read_all()
    if not answer.num_columns:
        raise ConfigError(f"no question: it has no columns. Give one SELECT over {_known()}")
    return answer


def _columns(run: PastRun, name: str) -> pa.Table:
    """One row per column of a table or view, under the words of Spark's DESCRIBE."""
    schema = ask(run, f"SELECT * FROM {name} LIMIT 0").schema  # noqa: S608 a word
    comments = {c.name: c.comment for table in needed(name) if table in _TABLES for c in _TABLES[table].columns}
    names, types = schema.names, [str(field.type) for field in schema]
    return pa.table({"col_name": names, "comment": [comments.get(name) for name in names], "data_type": types})


def asked_batches(run: PastRun, sql: str, more: Mapping[str, str] | None = None) -> Iterator[pa.RecordBatch]:
    """The same rows, however many, one batch after another."""
    with _in_words():
        yield from _reader(run, sql, more)


@contextmanager
def _in_words() -> Iterator[None]:
    try:
        yield
    except Exception as error:  # what fails while rows are read has no class of the library's own
        if isinstance(error, DeltaError) or _OF_THE_QUESTION.search(str(error)):
            raise _refused(str(error)) from None
        raise


def _reader(run: PastRun, sql: str, more: Mapping[str, str] | None) -> pa.RecordBatchReader:
    text, selects = question(sql), {**views(), **(more or {})}
    builder = QueryBuilder()
    for setting in _SETTINGS:
        builder.execute(f"SET datafusion.{setting}").read_all()
    for name in needed(text, more):
        stored = name.removeprefix(_STORED)
        if name.startswith(_STORED):
            _register(builder, _TABLES[stored], _opened(run, _TABLES[stored]))
        else:
            view = selects[name] if name in selects else _rows_of(run, _TABLES[name])
            builder.execute(f"CREATE VIEW {name} AS {view}").read_all()
    # Whatever writes, or reads a file, is no body of a view.
    builder.execute(f"CREATE VIEW {ASKED} AS {text}").read_all()
    # Arrow reads the stream: by the library's own `read_all` no other thread of the process would run meanwhile.
    reader = pa.RecordBatchReader.from_stream(builder.execute(text))
    return reader.cast(pa.schema([field.with_type(_plain(field.type)) for field in reader.schema]))


def _plain(kind: pa.DataType) -> pa.DataType:
    """Text as Arrow computes with it, in place of views of text."""
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_plain(kind.value_type)))
    return pa.string() if pa.types.is_string_view(kind) else kind


def cells(rows: pa.Table) -> tuple[tuple[Any, ...], ...]:
    """The rows as every form can print them: times in ISO 8601, nested values as JSON, what JSON has not as text."""
    return tuple(zip(*([_cell(value) for value in _values(column)] for column in rows.columns), strict=True))


def _values(column: pa.ChunkedArray) -> list[Any]:
    """Times as `utc` prints them: Python has none beyond the year 9999."""
    if not pa.types.is_timestamp(column.type):
        return list(column.to_pylist())
    return [utc(ms) for ms in column.cast(pa.timestamp("ms"), safe=False).cast(pa.int64()).to_pylist()]


def _cell(value: Any) -> Any:
    if isinstance(value, (list, tuple, dict)):
        return json.dumps(value, default=_cell)
    if isinstance(value, datetime):
        return value.isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"
    is_plain = value is None or isinstance(value, (bool, int, str)) or (isinstance(value, float) and isfinite(value))
    return value if is_plain else value.hex() if isinstance(value, bytes) else str(value)


def _opened(run: PastRun, table: Table) -> DeltaTable:
    if not run.warehouse.has(table):
        raise ConfigError(f"table {table.name}: this warehouse has none yet: the next audit makes it")
    return run.warehouse.delta_table(table)


def _register(builder: QueryBuilder, table: Table, stored: DeltaTable) -> None:
    """Columns that came since the table was written are NULL."""
    name, stored_names = f"{_STORED}{table.name}", {field.name for field in stored.schema().fields}
    later = [column for column in table.names if column not in stored_names]
    builder.register(f"files_of_{table.name}" if later else name, stored)
    if later:
        columns = ", ".join(f"NULL AS `{column}`" for column in later)
        builder.execute(f"CREATE VIEW {name} AS SELECT *, {columns} FROM files_of_{table.name}").read_all()  # noqa: S608 names and literals of ours


def question(sql: str) -> str:
    """The text that is asked, without its last semicolon."""
    text = sql.strip().removesuffix(";").strip()
    if not text:
        raise ConfigError(f"no question: give one SELECT over {_known()}")
    return text


def needed(text: str, more: Mapping[str, str] | None = None, *, has_tables: bool = False) -> list[str]:
    """The names of tables and views that a text needs, each behind those that it rests on itself.

    Args:
        text: a question.
        more: views beside those of `views.sql`.
        has_tables: whether the tables of the run are there already, so that they rest on nothing.
    """
    needed_names: dict[str, None] = {}
    selects = {**views(), **(more or {})}
    known = {*selects, *_names()}

    def add(words: Iterable[str]) -> None:
        for name in words:
            if name in needed_names or name not in known:
                continue
            if name in selects:
                add(_words(selects[name]))
            elif name in _TABLES and not has_tables:
                add([f"{_STORED}{name}"])
                if name == ENDED_TRANSACTIONS.name:
                    add([f"{_STORED}{PARTITION_HEALTH.name}"])
            needed_names[name] = None

    add(_words(text))
    return [*needed_names]


def _words(text: str) -> list[str]:
    """What can be names in a text: nothing in literals, where a topic may be called as a view is, or in comments."""
    return [*dict.fromkeys(word.lower() for word in re.findall(r"\w+", _NO_NAMES.sub(r" \1 ", text)))]


@cache
def views() -> dict[str, str]:
    """The views of `views.sql` by name, each as a SELECT."""
    return views_in(Path(__file__).with_name("views.sql"))


def views_in(file: Path, **values: object) -> dict[str, str]:
    """The views of a file by name, each as a SELECT, with values (conditions, numbers) for `$name` in it."""
    definitions = _VIEW.findall(file.read_text(encoding="utf-8"))
    return {name: Template(text).safe_substitute(values) for name, text in definitions}


def is_one_of(wanted: Mapping[str, Iterable[object]]) -> str:
    """The condition that each of some columns has one of its values; of no value it is never so."""
    return " AND ".join(["TRUE", *(_is_in(name, [*values]) for name, values in wanted.items())])


def _is_in(name: str, values: Sequence[object]) -> str:
    # What is NULL for every row is lost where the optimizer moves it through an outer join.
    return f"{_quoted(name)} IN ({_listed(values)})" if values else "FALSE"


def row_values(names: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """Some rows at hand, as a SELECT."""
    listed = ", ".join(f"({_listed(row)})" for row in rows)
    return f"SELECT * FROM (VALUES {listed}) AS given ({', '.join(map(_quoted, names))})"  # noqa: S608 literals of ours


@cache
def _names() -> frozenset[str]:
    return frozenset({*_TABLES, *(f"{_STORED}{name}" for name in _TABLES), *views()})


def _known() -> str:
    return ", ".join([*views(), *_TABLES])


def _rows_of(run: PastRun, table: Table) -> str:
    """The rows of a table that are the run's. Ingests stand there as literals, so that no file of others is opened."""
    stored = f"{_STORED}{table.name}"
    if (row_filter := run.row_filter(table)) is not None:
        return f"SELECT * FROM {stored} WHERE {is_one_of(row_filter)}"  # noqa: S608 literals of ours
    if table is ENDED_TRANSACTIONS:
        run_id = _listed([run.run_id])
        ingests = _listed(run.linked_pieces["ingest_id"].unique().to_pylist())
        key = ("ingest_id", "input_id", "section_index", "first_position")
        pieces = (
            f"SELECT {', '.join(f'p[{name!r}] AS {name}' for name in key)} FROM "  # noqa: S608 names and literals of ours
            f"(SELECT unnest(linked_pieces) AS p FROM {_STORED}{PARTITION_HEALTH.name} WHERE run_id = {run_id})"
        )
        same = " AND ".join(f"e.{name} = k.{name}" for name in key)
        return (
            f"SELECT e.* FROM ({pieces}) k RIGHT SEMI JOIN {stored} e ON {same} WHERE e.ingest_id IN ({ingests}) "  # noqa: S608 names and literals of ours
            f"UNION ALL SELECT * FROM {stored} WHERE ingest_id = {run_id}"
        )
    evidence = run.evidence
    keys = _listed(f"{ingest_id} {input_id}" for ingest_id, input_id in evidence.read_inputs)
    ingests = _listed(evidence.ingests)
    return (
        f"SELECT * FROM {stored} WHERE ingest_id IN ({ingests}) "  # noqa: S608 names and literals of ours
        f"AND concat(ingest_id, ' ', input_id) IN ({keys})"
    )


def _quoted(name: str) -> str:
    return ".".join(f"`{part}`" for part in name.split("."))


def _listed(values: Iterable[object]) -> str:
    quoted = (str(v) if isinstance(v, (int, float)) else "'" + str(v).replace("'", "''") + "'" for v in values)
    return ", ".join(quoted) or "NULL"


def _refused(message: str) -> AuditError:
    words = " ".join(message.split())
    if "Resources exhausted" in words or "memory" in words.lower():
        return AuditError(f"the question needs more than {_MEMORY} of memory: ask for fewer rows, by WHERE or LIMIT")
    return ConfigError(f"no question that can be answered: {words}. Give one SELECT over {_known()}")
