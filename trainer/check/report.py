"""The report of a check: one JSON and one Markdown file, whole after every part."""

import json
import os
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

FORMAT = 1
OK, FAILED, SKIPPED = "ok", "failed", "skipped"
Row = dict[str, Any]


class Skip(Exception):
    """This machine lacks what a part, or a row of it, needs; the message names it."""


@dataclass
class Clock:
    """The time of a check; `monotonic` counts on while a test replaces it."""

    seconds: float
    now: Callable[[], float] = time.monotonic
    began: float = 0.0

    def __post_init__(self) -> None:
        self.began = self.now()

    def left(self) -> float:
        """Seconds left of the whole time, counted from the start."""
        return self.began + self.seconds - self.now()


@dataclass
class Part:
    """A part's outcome. `rows` are its measurements, `notes` what was left out and why."""

    name: str
    status: str = OK
    reason: str = ""
    seconds: float = 0.0
    rows: list[Row] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def add(self, **row: Any) -> None:
        """Add a measurement."""
        self.rows.append(row)

    def skip(self, what: str, reason: object) -> None:
        """Note a row that was not measured."""
        self.notes.append(f"skipped: {what}: {reason}")

    def require(self, holds: bool, claim: str) -> None:
        """Mark the part as failed where a claim does not hold."""
        if not holds:
            self.status = FAILED
            self.reason = "; ".join(filter(None, (self.reason, claim)))


class Report:
    """Runs parts and writes what they found. `file`: the JSON; the Markdown has its name."""

    def __init__(self, file: Path, facts: Mapping[str, Any]) -> None:
        self.file, self.facts = file, dict(facts)
        self.parts: list[Part] = []
        self.finished = False
        self.file.parent.mkdir(parents=True, exist_ok=True)
        self.write()

    @property
    def failed(self) -> bool:
        return any(part.status == FAILED for part in self.parts)

    def run(self, name: str, work: Callable[[Part], None]) -> Part:
        """Run a part and write; what it raises is its outcome, but for an interruption."""
        part = Part(name)
        began = time.monotonic()
        self.parts.append(part)
        try:
            work(part)
        except Skip as reason:
            part.status, part.reason = SKIPPED, str(reason)
        except Exception as error:  # a check goes on: the report holds the error
            part.status, part.reason = FAILED, f"{type(error).__name__}: {error}"
            part.notes.append(traceback.format_exc(limit=-4))
        except BaseException as error:
            part.status, part.reason = FAILED, f"interrupted ({type(error).__name__})"
            raise
        finally:
            part.seconds = time.monotonic() - began
            self.write()
        return part

    def skip(self, name: str, reason: str) -> None:
        """Add a part that is not run."""
        self.parts.append(Part(name, SKIPPED, reason))
        self.write()

    def finish(self) -> None:
        """Write that every part was reached."""
        self.finished = True
        self.write()

    def as_dict(self) -> dict[str, Any]:
        """The report as JSON."""
        parts = [asdict(part) for part in self.parts]
        return {"format": FORMAT, "finished": self.finished, **self.facts, "parts": parts}

    def write(self) -> None:
        """Write both files; readers see the old or the new one, never a part of one."""
        text = json.dumps(self.as_dict(), indent=1, default=str, allow_nan=True)
        for path, content in (
            (self.file, text + "\n"),
            (self.file.with_suffix(".md"), as_markdown(self.as_dict())),
        ):
            partial = path.with_name(path.name + ".partial")
            with partial.open("w", encoding="utf-8") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            partial.replace(path)


def as_markdown(report: Mapping[str, Any]) -> str:
    """The report as one Markdown page: a section for each part, a table of its rows."""
    state = "every part was reached" if report["finished"] else "interrupted, or still running"
    facts = {k: v for k, v in report.items() if k not in ("parts", "format", "finished")}
    lines = ["# GPU check", "", f"{state}.", "", "| | |", "|---|---|"]
    lines += [f"| {name} | {_cell(value)} |" for name, value in facts.items()]
    for part in report["parts"]:
        lines += ["", f"## {part['name']}: {part['status']}, {part['seconds']:.1f} s"]
        lines += ["", part["reason"]] if part["reason"] else []
        lines += ["", *_table(part["rows"])] if part["rows"] else []
        for note in part["notes"]:
            lines += ["", f"```\n{note.rstrip()}\n```" if "\n" in note else note]
    return "\n".join(lines) + "\n"


def _table(rows: list[Row]) -> list[str]:
    columns = list(dict.fromkeys(name for row in rows for name in row))
    head = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    return head + [
        "| " + " | ".join(_cell(row.get(name)) for name in columns) + " |" for row in rows
    ]


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, list):
        value = "; ".join(map(str, value))
    return str(value).replace("|", "\\|").replace("\n", "⏎")
