"""The files of OpenAI's Batch API: one request a line to the server, one answer a line from it."""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

MAX_CALLS = 50_000  # in one batch, as the vendor allows
MAX_BYTES = 100 << 20


@dataclass(frozen=True)
class AnswerLine:
    """What came back for one call: a status with a body, or an error without one; `unread`: the
    bytes of a body that cannot be read."""

    key: str
    status: int
    body: dict[str, Any]
    error: dict[str, Any]
    unread: bytes | None = None


@dataclass(frozen=True)
class RemoteBatch:
    """A batch as the server reports it; `errors`: (code, message) of one refused as a whole."""

    id: str
    status: str
    seconds: float
    file_ids: tuple[str, ...]
    errors: tuple[tuple[str, str], ...]


def request_line(key: str, body: dict[str, Any], url: str) -> bytes:
    """One call as a line of the file that is sent; `key` comes back as `custom_id`."""
    line = {"custom_id": key, "method": "POST", "url": url, "body": body}
    return json.dumps(line, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def split_into_files(lines: Sequence[tuple[str, bytes]]) -> Iterator[list[tuple[str, bytes]]]:
    """Lines with their keys, in files of a size that the server takes."""
    file: list[tuple[str, bytes]] = []
    size = 0
    for key, line in lines:
        if file and (len(file) == MAX_CALLS or size + len(line) > MAX_BYTES):
            yield file
            file, size = [], 0
        file.append((key, line))
        size += len(line)
    if file:
        yield file


def read_answer_line(line: bytes) -> AnswerLine | None:
    """A line of an output or error file; None for one that cannot be read."""
    try:
        row = json.loads(line)
        response = row.get("response") or {}
        body = response.get("body")
        error = row.get("error") or (body or {}).get("error")
        return AnswerLine(
            key=str(row["custom_id"]),
            status=int(response.get("status_code") or 0),
            body=body if isinstance(body, dict) else {},
            error=error if isinstance(error, dict) else {},
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def body_in(line: bytes) -> bytes:
    """The response's body in a line that lacks something else, or the line."""
    try:
        body = json.loads(line)["response"]["body"]
    except (ValueError, LookupError, TypeError, RecursionError):
        return line
    return json.dumps(body).encode()


def key_in(line: bytes) -> str | None:
    """The key in a line that cannot be read as a whole."""
    found = re.search(rb'"custom_id"\s*:\s*"([!-~]+?)"', line)
    return found and found[1].decode()
