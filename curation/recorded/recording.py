"""A recording: the texts that a language model wrote for pairs, and what its judges chose.

Two files of a folder, one JSON object a line:

- `groups.jsonl`: `query_id`, `query`, `document_sha256` and a text for each writing task;
- `judgments.jsonl`: `judge`, `item` (see `item_key`), `choice` (the sha256 of the chosen passage's
  text, or "none"), and `reason` where the judge gave one.

Everything is found by content, so a recording fits a store whatever ids it gave out, whatever order
candidates are shown in, and never answers for another text than the one that was judged.
"""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from curation.recipe.tasks import Task, tasks_of
from db.corpus.datasets import text_sha256
from db.errors import BadInput
from db.shape import INF_IR
from db.values import NONE

SHIPPED = Path(__file__).parent.parent / "demo" / "recording"
GROUPS, JUDGMENTS = "groups.jsonl", "judgments.jsonl"
WRITTEN: tuple[Task, ...] = tuple(task for task, spec in tasks_of(INF_IR).items() if spec.texts)


def pair_key(query: str, document_sha256: str) -> str:
    """What finds the texts of a pair."""
    return text_sha256(json.dumps([query, document_sha256], ensure_ascii=False))


def item_key(instruction: str, query: str, candidates: Sequence[str]) -> str:
    """What finds the choice of an item, in whatever order its candidates are shown."""
    return item_key_of(instruction, query, [text_sha256(text) for text in candidates])


def item_key_of(instruction: str, query: str, sha256s: Sequence[str]) -> str:
    """`item_key` where the candidates are known by the sha256 of their texts."""
    return text_sha256(json.dumps([instruction, query, sorted(sha256s)], ensure_ascii=False))


@dataclass(frozen=True)
class Chosen:
    """A recorded choice: the sha256 of a candidate's text or "none", and the judge's reason."""

    choice: str
    reason: str = ""

    def place(self, candidates: Sequence[str]) -> int | None:
        """The position of the chosen text among the candidates as shown, None for "none".

        Raises ValueError where the chosen text is none of the candidates.
        """
        if self.choice == NONE:
            return None
        return [text_sha256(text) for text in candidates].index(self.choice)


@dataclass(frozen=True)
class Recording:
    """The texts by pair and the choices by judge and item."""

    texts: Mapping[str, Mapping[str, str]]
    choices: Mapping[str, Mapping[str, Chosen]]
    sha256: str

    @cached_property
    def judges(self) -> list[str]:
        """The names of the judges that were recorded, in order."""
        return sorted(self.choices)

    def text(self, task: Task, query: str, document: str) -> str | None:
        """What was written for a pair, None where nothing is recorded."""
        return self.texts.get(pair_key(query, text_sha256(document)), {}).get(task)

    def chosen(
        self, judge: str, instruction: str, query: str, candidates: Sequence[str]
    ) -> Chosen | None:
        """What a judge chose, None where it did not see this item."""
        return self.choices.get(judge, {}).get(item_key(instruction, query, candidates))


def folder() -> Path:
    """The folder of the recording: `INF_RECORDING`, or the one that ships with the demo set."""
    named = os.environ.get("INF_RECORDING")
    return Path(named) if named else SHIPPED


def load_recording(place: Path | None = None) -> Recording:
    """The recording in a folder, read once. Raises BadInput, which names the file and line."""
    return _load((place or folder()).resolve())


@lru_cache(maxsize=2)
def _load(place: Path) -> Recording:
    contents = {name: _read(place / name) for name in (GROUPS, JUDGMENTS)}
    texts: dict[str, dict[str, str]] = {}
    for where, row in _rows(GROUPS, contents[GROUPS]):
        key = pair_key(_text(row, "query", where), _text(row, "document_sha256", where))
        if key in texts:
            raise BadInput(
                f"{where}: a second group for the same pair",
                "keep one of them",
                code="recorded_group_duplicate",
            )
        texts[key] = {task: _text(row, task, where) for task in WRITTEN}
    choices: dict[str, dict[str, Chosen]] = {}
    for where, row in _rows(JUDGMENTS, contents[JUDGMENTS]):
        of_judge = choices.setdefault(_text(row, "judge", where), {})
        item = _text(row, "item", where)
        if item in of_judge:
            raise BadInput(
                f"{where}: a second choice of judge {row['judge']!r} for the same item",
                "keep one of them",
                code="recorded_choice_duplicate",
            )
        of_judge[item] = Chosen(_text(row, "choice", where), str(row.get("reason", "")))
    hashes = "".join(text_sha256(text) for text in contents.values())
    return Recording(texts, choices, text_sha256(hashes))


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except OSError as error:
        raise BadInput(
            f"no recording in {file.parent}: {file.name} cannot be read ({error.strerror})",
            "Set INF_RECORDING to a folder that holds one, or leave it unset for the demo's",
            code="recording_unreadable",
        ) from error


def _rows(name: str, contents: str) -> Iterator[tuple[str, dict[str, Any]]]:
    for number, line in enumerate(contents.splitlines(), 1):
        where = f"{name}, line {number}"
        try:
            row = json.loads(line)
        except json.JSONDecodeError as error:
            raise BadInput(
                f"{where} is no JSON object: {error}", "correct that line", code="json_invalid"
            ) from error
        if not isinstance(row, dict):
            raise BadInput(
                f"{where} is no JSON object", "correct that line", code="json_not_object"
            )
        yield where, row


def _text(row: Mapping[str, Any], name: str, where: str) -> str:
    value = row.get(name)
    if not isinstance(value, str) or not value:
        raise BadInput(f"{where}: {name!r} is missing or empty", "add it", code="field_missing")
    return value
