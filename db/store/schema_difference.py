"""The differences between the store's real schema and the one the models describe.

The revision in `alembic_version` tells which migrations ran, not what they wrote: migration 0001
was edited in place while InF Studio was being developed, so two stores at revision 0001 may differ.

Compared: tables, columns (type, NULL), primary keys, unique and foreign keys, checks, indexes.
Not reported, because they do no harm: additional tables and additional plain indexes.

Note: PostgreSQL rewrites the SQL of checks and partial indexes (`IN (…)` becomes
`= ANY (ARRAY[…])`), so of a condition the literals, numbers, columns and inequalities are compared.
"""

import re
from collections.abc import Iterator
from typing import Any

from sqlalchemy import (
    CheckConstraint,
    Connection,
    Dialect,
    ForeignKeyConstraint,
    Table,
    UniqueConstraint,
    inspect,
)
from sqlalchemy.schema import CreateIndex
from sqlalchemy.types import TypeEngine

from db.store.store import Store
from db.tables import Base

Fact = tuple[str, str, str]  # table, kind of object, its name
Facts = dict[Fact, str]
# of earlier revisions: in a store that is not upgraded yet, and in the copy made before it is
FORMER_TABLES = ("triplet",)
UNIQUE = "unique "
CAST = re.compile(r"::[a-z]+( varying| precision)?(\[\])?", re.IGNORECASE)
TOKEN = re.compile(r"'((?:[^']|'')*)'|<>|!=|<=|>=|<|>|\b\d+\b|\b[a-z_]\w*\b", re.IGNORECASE)


def schema_differences(store: Store) -> list[str]:
    """One sentence per difference, sorted; empty if the store has the schema of the models."""
    if not store.is_sqlite:
        with store.engine.connect() as connection:
            return differences_in(connection)
    # Reflection takes about 0.1 s: once per process and schema, not once per command in a test.
    with store.engine.connect() as connection:
        written = connection.exec_driver_sql("SELECT type, name, sql FROM sqlite_master")
        statements = tuple(sorted(tuple(map(str, row)) for row in written))
        found = _RESULTS.get(statements)
        if found is None:
            found = _RESULTS[statements] = differences_in(connection)
    return list(found)


_RESULTS: dict[tuple[tuple[str, ...], ...], list[str]] = {}


def differences_in(connection: Connection, *, model: Connection | None = None) -> list[str]:
    """The sentences for the schema that a connection's transaction sees.

    It is compared with the models, or with the schema of `model`, another store of the same engine.
    """
    dialect = connection.dialect
    wanted = _facts_of_models(dialect) if model is None else _facts_of_store(model)
    real = _facts_of_store(connection)
    there = {table for table, _, _ in real}
    sentences = [
        f"table {table} is missing" for table in {fact[0] for fact in wanted} if table not in there
    ]
    for fact in wanted.keys() | real.keys():
        table, kind, name = fact
        if table not in there:
            continue
        label = f"table {table}: {kind}" + (f" {name}" if name else "")
        if fact not in real:
            statement = f" (to add it: {made})" if (made := _create_index(name, dialect)) else ""
            sentences.append(f"{label} is missing{statement}")
        elif fact not in wanted:
            # an extra plain index only costs time; an extra unique one refuses rows that we write
            if kind != "index" or real[fact].startswith(UNIQUE):
                sentences.append(f"{label} is not known to this version ({real[fact]})")
        elif wanted[fact] != real[fact]:
            sentences.append(f"{label} is {real[fact]}, not {wanted[fact]}")
    return sorted(sentences)


def _facts_of_models(dialect: Dialect) -> Facts:
    facts: Facts = {}
    for table in Base.metadata.sorted_tables:
        facts |= {(table.name, kind, name): value for kind, name, value in _model(table, dialect)}
    return facts


def _model(table: Table, dialect: Dialect) -> Iterator[tuple[str, str, str]]:
    columns = [column.name for column in table.columns]
    for column in table.columns:
        yield "column", column.name, _column(column.type, bool(column.nullable), dialect)
    yield "primary key", "", _listed(column.name for column in table.primary_key.columns)
    for constraint in table.constraints:
        name = str(constraint.name)
        if isinstance(constraint, UniqueConstraint):
            yield "unique key", name, _listed(column.name for column in constraint.columns)
        elif isinstance(constraint, ForeignKeyConstraint):
            target = constraint.elements[0].column.table.name
            referred = [element.column.name for element in constraint.elements]
            yield (
                "foreign key",
                name,
                _foreign(constraint.column_keys, target, referred, constraint.ondelete),
            )
        elif isinstance(constraint, CheckConstraint):
            # under a naming convention the model holds the short name until the DDL is compiled
            full = name if name.startswith("ck_") else f"ck_{table.name}_{name}"
            yield "check", full, _condition(str(constraint.sqltext), columns)
    for index in table.indexes:
        where = index.dialect_options[dialect.name].get("where")
        names = [column.name for column in index.columns]
        yield "index", str(index.name), _index(names, bool(index.unique), where, columns)


def _facts_of_store(connection: Connection) -> Facts:
    inspector = inspect(connection)
    known = [*(table.name for table in Base.metadata.sorted_tables), *FORMER_TABLES]
    dialect = connection.dialect
    names = {
        table: [str(column["name"]) for column in columns]
        for (_, table), columns in inspector.get_multi_columns(filter_names=known).items()
    }
    facts: Facts = {}
    for (_, table), columns in inspector.get_multi_columns(filter_names=known).items():
        for column in columns:
            value = _column(column["type"], bool(column["nullable"]), dialect)
            facts[table, "column", column["name"]] = value
    for (_, table), key in inspector.get_multi_pk_constraint(filter_names=known).items():
        facts[table, "primary key", ""] = _listed(key["constrained_columns"] if key else ())
    for (_, table), uniques in inspector.get_multi_unique_constraints(filter_names=known).items():
        for unique in uniques:
            facts[table, "unique key", str(unique["name"])] = _listed(unique["column_names"])
    for (_, table), foreigns in inspector.get_multi_foreign_keys(filter_names=known).items():
        for foreign in foreigns:
            facts[table, "foreign key", str(foreign["name"])] = _foreign(
                foreign["constrained_columns"],
                foreign["referred_table"],
                foreign["referred_columns"],
                foreign["options"].get("ondelete"),
            )
    for (_, table), checks in inspector.get_multi_check_constraints(filter_names=known).items():
        for check in checks:
            facts[table, "check", str(check["name"])] = _condition(check["sqltext"], names[table])
    for (_, table), indexes in inspector.get_multi_indexes(filter_names=known).items():
        for index in indexes:
            if index.get("duplicates_constraint"):  # PostgreSQL: the index of a unique key
                continue
            options: dict[str, Any] = index.get("dialect_options", {})
            where = options.get(f"{dialect.name}_where")
            columns_of = [str(column) for column in index["column_names"]]
            value = _index(columns_of, bool(index["unique"]), where, names[table])
            facts[table, "index", str(index["name"])] = value
    return facts


def _column(kind: TypeEngine[Any], nullable: bool, dialect: Dialect) -> str:
    name = kind.compile(dialect=dialect)
    return f"{name} NULL" if nullable else f"{name} NOT NULL"


def _foreign(columns: Any, table: str, referred: Any, on_delete: str | None) -> str:
    rule = f" ON DELETE {on_delete}" if on_delete else ""
    return f"{_listed(columns)} of {table} {_listed(referred)}{rule}"


def _index(names: list[str], unique: bool, where: Any, columns: list[str]) -> str:
    condition = "" if where is None else f" where {_condition(str(where), columns)}"
    return f"{UNIQUE if unique else ''}{_listed(names)}{condition}"


def _listed(names: Any) -> str:
    return f"({', '.join(str(name) for name in names)})"


def _condition(sql: str, columns: list[str]) -> str:
    """The comparable parts of a condition: literals, numbers, columns and inequalities, sorted."""
    found = set()
    for match in TOKEN.finditer(CAST.sub("", sql)):
        token = match.group()
        if token.startswith("'"):
            found.add(repr(match.group(1)))
        elif token in columns or not (token[0].isalpha() or token[0] == "_"):
            found.add("<>" if token == "!=" else token)
    return "[" + ", ".join(sorted(found)) + "]"


def missing_index(sentence: str) -> str:
    """The statement that removes a difference, if it is a missing index; else ""."""
    found = re.search(r": index \S+ is missing \(to add it: (.*)\)$", sentence)
    return found.group(1) if found else ""


def _create_index(name: str, dialect: Dialect) -> str:
    """The statement that creates an index of the models, on one line; "" for another name."""
    found = next(
        (
            index
            for table in Base.metadata.sorted_tables
            for index in table.indexes
            if index.name == name
        ),
        None,
    )
    if found is None:
        return ""
    return " ".join(str(CreateIndex(found).compile(dialect=dialect)).split())
