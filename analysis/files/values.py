"""What one value of a row must be, and why it is not."""

from typing import Any

from analysis.files.rows import BadValue, shown


def text_in(row: dict[str, Any], name: str) -> str:
    """A text that is there and not empty. Raises BadValue."""
    if name not in row:
        present = ", ".join(f"`{each}`" for each in row) or "nothing"
        raise BadValue(f"no `{name}`: the row has {present}")
    value = row[name]
    if not isinstance(value, str):
        raise BadValue(f"`{name}` is {shown(value)}, not a text: write it in quotes")
    return require_text(value, name)


def require_text(value: str, name: str) -> str:
    """The text. Raises BadValue for an empty one."""
    if not value.strip():
        raise BadValue(f"empty `{name}`: {shown(value)}")
    return value
