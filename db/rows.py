"""Rows that queries and operations return: the same for a page's table, `--json` and a route.

They lie here so that what a query of `db` finds *is* the row, with nothing to copy field by field.
"""

import json
import math
from collections.abc import Sequence
from typing import Any, Generic, Self, TypeVar

from pydantic import (
    BaseModel,
    ConfigDict,
    JsonValue,
    SerializerFunctionWrapHandler,
    model_serializer,
)

# JSON whose keys are data, or that others write: settings by name, a server's answer.
Json = dict[str, JsonValue]
Number = int | float


class Row(BaseModel):
    """One row; its fields are the keys of JSON, and never labels."""

    model_config = ConfigDict(frozen=True, from_attributes=True)

    @classmethod
    def of(cls, found: object, **more: Any) -> Self:
        """The row of what a query found: its values by the names of the fields, but for `more`."""
        own = {name: getattr(found, name) for name in cls.model_fields if name not in more}
        return cls.model_validate(own | more)

    def as_json(self) -> dict[str, Any]:
        """The row as JSON values."""
        return self.model_dump(mode="json", by_alias=True)


class SparseRow(Row):
    """A row whose JSON has no key that nothing was given for; unknown keys are refused."""

    model_config = ConfigDict(extra="forbid")

    @model_serializer(mode="wrap")
    def _as_given(self, handler: SerializerFunctionWrapHandler):  # type: ignore[no-untyped-def]
        """No return type: else it would be the whole schema of the row."""
        found, fields = handler(self), type(self).model_fields
        unset = {fields[name].alias or name for name in fields.keys() - self.model_fields_set}
        return {key: value for key, value in found.items() if key not in unset}


def without_nan(value: Any) -> Any:
    """The value with NaN and infinities replaced by None, which JSON lacks."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: without_nan(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [without_nan(inner) for inner in value]
    return value


def as_text(value: Any) -> str:
    """A row or a list as the one text of JSON that commands print and routes answer."""
    return json.dumps(without_nan(value), ensure_ascii=False)


R = TypeVar("R", bound=Row)


class Listed(BaseModel, Generic[R]):
    """Some rows of a list: `total` of them in all, those after these from `next` on."""

    model_config = ConfigDict(frozen=True)
    data: tuple[R, ...]
    next: int | None = None
    total: int

    @classmethod
    def all(cls, rows: Sequence[R], **more: Any) -> Self:
        """A list that is given as a whole; `more`: the fields that a list of its kind has, too."""
        return cls.page(rows, offset=0, total=len(rows), **more)

    @classmethod
    def page(cls, rows: Sequence[R], *, offset: int, total: int, **more: Any) -> Self:
        """The rows from `offset` on, of `total`."""
        after = offset + len(rows)
        return cls(data=tuple(rows), next=after if after < total else None, total=total, **more)

    def part(self, limit: int | None, offset: int) -> Self:
        """At most `limit` rows of a whole list, from `offset` on."""
        more = {name: value for name, value in self if name not in ("data", "next", "total")}
        return self.page(self.data[offset:][:limit], offset=offset, total=self.total, **more)

    def as_json(self) -> dict[str, Any]:
        """`{"data": […], "next": …, "total": …}`."""
        return self.model_dump(mode="json")
