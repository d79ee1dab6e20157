"""The detail of an audit entry in words. Pure."""

import json
from collections.abc import Mapping
from typing import Any

HASH = 12  # hexadecimal digits of a sha256, as pages show it


def in_words(detail: Mapping[str, Any] | None) -> str:
    """`kind: train, release: 3`; the first digits of a hash, and a nested value as JSON."""
    return ", ".join(
        f"{name.replace('_', ' ')}: {_value(name, value)}" for name, value in (detail or {}).items()
    )


def _value(name: str, value: Any) -> str:
    if value in (None, "", []):
        return "–"
    if isinstance(value, str):
        return value[:HASH] if name.endswith("sha256") else value
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list) and all(isinstance(part, str | int) for part in value):
        return " ".join(map(str, value))
    return json.dumps(value, ensure_ascii=False)
