"""Questions in SQL to one finished run: its tables, and the views of `views.sql`, by their names; nothing is written.

This process asks DataFusion, as deltalake brings it; a session of Spark asks its own SQL. Both see the same names.
"""

from __future__ import annotations

import json
import re
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder
from deltalake.exceptions import DeltaError

from txn_analysis.errors import AuditError, ConfigError
from txn_analysis.storage.roots import root_at
from txn_analysis.tables import ALL_TABLES, ENDED_TRANSACTIONS, PARTITION_HEALTH

if TYPE_CHECKING:
    from collections.abc import Iterable

    from txn_analysis.runs.run_tables import RunTables
    from txn_analysis.tables import Table

_MEMORY = "200M"
_STORED = "stored_"
_VIEW = re.compile(r"CREATE VIEW (\w+) AS\n(.*?);", re.DOTALL)
_TABLES = {table.name: table for table in ALL_TABLES}
ASKED = "asked"


def ask(tables: RunTables, sql: str) -> pa.Table:
    """The rows that a question has, in its order.

    Args:
        tables: the run.
        sql: one SELECT (or WITH, VALUES), over names of tables and of `views.sql`.

    Raises:
        ConfigError: it is no such question, or names what there is not.
        AuditError: it needs more memory than it may have.
    """
    text = question(sql)
    builder = QueryBuilder()
    builder.execute(f"SET datafusion.runtime.memory_limit = '{_MEMORY}'").read_all()
    try:
        for name in needed(text):
            stored = name.removeprefix(_STORED)
            if name.startswith(_STORED):
                _register(builder, _TABLES[stored], _opened(tables, _TABLES[stored]))
            else:
                view = views()[name] if name in views() else _rows_of(tables, _TABLES[name])
                builder.execute(f"CREATE VIEW {name} AS {view}").read_all()
        # Whatever writes, or reads a file, is no body of a view.
        builder.execute(f"CREATE VIEW {ASKED} AS {text}").read_all()
        found = pa.table(builder.execute(text).read_all())
    except Exception as error:  # what fails while rows are read has no class of the library's own
        if isinstance(error, DeltaError) or "Resources exhausted" in str(error):
            raise _refused(str(error)) from None
        raise
    if not found.num_columns:
        raise ConfigError(f"no question: it has no columns. Give one SELECT over {_known()}")
    return found


def cells(found: pa.Table) -> tuple[tuple[Any, ...], ...]:
    """The rows as every form can print them: times in ISO 8601, nested values as JSON."""
    return tuple(zip(*([_cell(value) for value in column.to_pylist()] for column in found.columns), strict=True))


def _cell(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return json.dumps(value, default=_cell)


def _opened(tables: RunTables, table: Table) -> DeltaTable:
    if not tables.warehouse.has(table):
        raise ConfigError(f"table {table.name}: this warehouse has none yet: the next audit makes it")
    tables.warehouse.versions([table])  # refuses what others did to it
    place, options = root_at(tables.warehouse.root).for_delta(table.name)
    return DeltaTable(place, storage_options=options)


def _register(builder: QueryBuilder, table: Table, stored: DeltaTable) -> None:
    """Columns that came since the table was written are NULL."""
    name, held = f"{_STORED}{table.name}", {field.name for field in stored.schema().fields}
    later = [column for column in table.names if column not in held]
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


def needed(text: str, *, has_tables: bool = False) -> list[str]:
    """The names of tables and views that a text needs, each behind those that it rests on itself.

    Args:
        text: a question.
        has_tables: whether the tables of the run are there already, so that they rest on nothing.
    """
    found: dict[str, None] = {}

    def add(words: Iterable[str]) -> None:
        for name in words:
            if name in found or name not in _names():
                continue
            if name in views():
                add(_words(views()[name]))
            elif name in _TABLES and not has_tables:
                add(
                    [
                        f"{_STORED}{name}",
                        *([f"{_STORED}{PARTITION_HEALTH.name}"] if name == "ended_transactions" else []),
                    ]
                )
            found[name] = None

    add(_words(text))
    return [*found]


def _words(text: str) -> list[str]:
    return [*dict.fromkeys(word.lower() for word in re.findall(r"\w+", text))]


@cache
def views() -> dict[str, str]:
    """The views of `views.sql` by name, each as a SELECT."""
    text = Path(__file__).with_name("views.sql").read_text(encoding="utf-8")
    return dict(_VIEW.findall(text))


@cache
def _names() -> frozenset[str]:
    return frozenset({*_TABLES, *(f"{_STORED}{name}" for name in _TABLES), *views()})


def _known() -> str:
    return ", ".join([*views(), *_TABLES])


def _rows_of(tables: RunTables, table: Table) -> str:
    """The rows of a table that are the run's. Ingests stand there as literals, so that no file of others is opened."""
    stored = f"{_STORED}{table.name}"
    if (own := tables.own(table)) is not None:
        where = " AND ".join(f"{name} IN ({_listed(values)})" for name, values in own.items())
        return f"SELECT * FROM {stored} WHERE {where}"  # noqa: S608 literals of ours
    if table is ENDED_TRANSACTIONS:
        run = _listed([tables.run.run_id])
        ingests = _listed({piece.ingest_id for piece in tables.finished.linked_pieces})
        key = ("ingest_id", "input_id", "section_index", "first_position")
        pieces = (
            f"SELECT {', '.join(f'p[{name!r}] AS {name}' for name in key)} FROM "  # noqa: S608 names and literals of ours
            f"(SELECT unnest(linked_pieces) AS p FROM {_STORED}{PARTITION_HEALTH.name} WHERE run_id = {run})"
        )
        same = " AND ".join(f"e.{name} = k.{name}" for name in key)
        return (
            f"SELECT e.* FROM ({pieces}) k RIGHT SEMI JOIN {stored} e ON {same} WHERE e.ingest_id IN ({ingests}) "  # noqa: S608 names and literals of ours
            f"UNION ALL SELECT * FROM {stored} WHERE ingest_id = {run}"
        )
    evidence = tables.finished.evidence
    keys = _listed(f"{ingest_id} {input_id}" for ingest_id, input_id in evidence.read_inputs)
    ingests = _listed(evidence.ingests)
    return (
        f"SELECT * FROM {stored} WHERE ingest_id IN ({ingests}) "  # noqa: S608 names and literals of ours
        f"AND concat(ingest_id, ' ', input_id) IN ({keys})"
    )


def _listed(values: Iterable[object]) -> str:
    return ", ".join("'" + str(value).replace("'", "''") + "'" for value in values) or "NULL"


def _refused(said: str) -> AuditError:
    words = " ".join(said.split())
    if "Resources exhausted" in words or "memory" in words.lower():
        return AuditError(f"the question needs more than {_MEMORY} of memory: ask for fewer rows, by WHERE or LIMIT")
    return ConfigError(f"no question that can be answered: {words}. Give one SELECT over {_known()}")
