"""JSON objects in statements, on both engines."""

from typing import Any

from sqlalchemy import JSON, SQLColumnExpression, TableValuedAlias, column
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement


class _Entries(FunctionElement[Any]):
    """The entries of a JSON object: json_each, of PostgreSQL's binary kind jsonb_each."""

    name, inherit_cache = "json_each", True


@compiles(_Entries, "sqlite")
def _on_sqlite(found: _Entries, compiler: SQLCompiler, **given: Any) -> str:
    return f"json_each({compiler.process(found.clauses, **given)})"


@compiles(_Entries, "postgresql")
def _on_postgresql(found: _Entries, compiler: SQLCompiler, **given: Any) -> str:
    return f"jsonb_each({compiler.process(found.clauses, **given)})"


def values_of(held: SQLColumnExpression[Any]) -> TableValuedAlias:
    """The values of the object in a column as rows, for a subquery: its column is `value`."""
    return _Entries(held).table_valued(column("value", JSON))
