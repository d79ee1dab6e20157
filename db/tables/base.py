"""Shared by all tables: constraint names, aware UTC times, JSON."""

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import JSON, DateTime, Dialect, MetaData, String
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import DeclarativeBase, Mapped, MappedAsDataclass, mapped_column
from sqlalchemy.sql.operators import OperatorType
from sqlalchemy.types import TypeDecorator, TypeEngine

from db.home import as_stored, from_stored

NAMES = {
    "ix": "ix_%(column_0_N_label)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
    "pk": "pk_%(table_name)s",
}


class UtcDateTime(TypeDecorator[datetime]):
    """A point in time, always aware and in UTC; SQLite has no time zones and stores it naive."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError(f"a time without a time zone: {value!r}")
        return value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


class HomePath(TypeDecorator[str]):
    """A text that may be a path in INF_HOME, kept from there on: the folder can be moved, and two
    servers may have it at different places."""

    impl = String
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> Any:
        return as_stored(value)

    def process_result_value(self, value: str | None, dialect: Dialect) -> Any:
        return from_stored(value)


class HomePaths(TypeDecorator[Any]):
    """JSON whose texts may be paths in INF_HOME, kept as by `HomePath`."""

    impl = JSON
    cache_ok = True
    should_evaluate_none = True  # as JSON does: None is written as its null

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        return dialect.type_descriptor(JSONB() if dialect.name == "postgresql" else JSON())

    def coerce_compared_value(self, op: OperatorType | None, value: Any) -> TypeEngine[Any]:
        return self.impl_instance.coerce_compared_value(op, value)

    def process_bind_param(self, value: Any, dialect: Dialect) -> Any:
        return as_stored(value)

    def process_result_value(self, value: Any, dialect: Dialect) -> Any:
        return from_stored(value)


# of a column that no backup holds: a secret, though encrypted
SEALED = {"sealed": True}
Json = JSON().with_variant(JSONB(), "postgresql")


def utc_now() -> datetime:
    """Now, aware, in UTC."""
    return datetime.now(UTC)


class Base(MappedAsDataclass, DeclarativeBase, kw_only=True):
    """Base of all tables; rows are keyword-only dataclasses."""

    metadata = MetaData(naming_convention=NAMES)
    type_annotation_map = {  # noqa: RUF012 - SQLAlchemy reads it as a class attribute
        datetime: UtcDateTime(),
        dict[str, Any]: Json,
        list[Any]: Json,
    }


def key() -> Mapped[int]:
    """A surrogate key assigned by the database."""
    return mapped_column(primary_key=True, init=False)


def created() -> Mapped[datetime]:
    """When the row was written."""
    return mapped_column(default_factory=utc_now)
