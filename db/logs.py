"""Lines of logs: text, or with `INF_LOG_FORMAT=json` a JSON object each.

An object names the run, the worker and the group that were at work where the line was written
(`about`), and what the event itself adds (`note_event`).
"""

import json
import logging
import os
import sys
import time
from collections.abc import Mapping
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any

from db.errors import BadInput

VARIABLE = "INF_LOG_FORMAT"
_about: ContextVar[Mapping[str, Any]] = ContextVar("about", default={})  # noqa: B039 never changed


def about(**fields: Any) -> None:
    """Name what is at work from here on, in this thread or task and those it starts."""
    _about.set({**_about.get(), **fields})


def wants_json() -> bool:
    """Whether lines are JSON. Raises BadInput for a format that is neither."""
    wanted = os.environ.get("INF_LOG_FORMAT", "").strip() or "text"
    if wanted not in ("text", "json"):
        raise BadInput(f"{VARIABLE}={wanted!r}", "set it to text or json", code="log_format")
    return wanted == "json"


def note_event(log: logging.Logger, message: str, **fields: Any) -> None:
    """Log an event of which text logs have too many: a line where lines are JSON."""
    if wants_json():
        log.info(message, extra={"event": fields})


def formatter(text: logging.Formatter) -> logging.Formatter:
    """The formatter of this process: the given one, or that of JSON."""
    return JsonLines() if wants_json() else text


def log_with_time(level: int = logging.WARNING) -> None:
    """Write what our modules log from a level on to standard error, each line with its time."""
    handler = logging.StreamHandler(sys.stderr)
    line = logging.Formatter("%(asctime)sZ %(levelname)s %(message)s", "%Y-%m-%dT%H:%M:%S")
    line.converter = time.gmtime
    handler.setFormatter(formatter(line))
    ours = logging.getLogger("inf")
    ours.setLevel(level)
    ours.addHandler(handler)
    ours.propagate = False


class JsonLines(logging.Formatter):
    """A record as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        """The line, without its end."""
        at = datetime.fromtimestamp(record.created, UTC)
        fields: dict[str, Any] = {
            "at": at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            **_about.get(),
            **getattr(record, "event", {}),
        }
        if record.exc_info:
            fields["traceback"] = self.formatException(record.exc_info)
        return json.dumps(fields, ensure_ascii=False, default=str)
