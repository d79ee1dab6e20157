"""The parts of an unfinished release: a killed export continues after the last complete one.

A part is a fixed number of groups in a file per configuration and split. Once its files are
written, its facts (ids, identities of rows, hashes of texts) go into an `.npz` next to them and a
line into `parts.jsonl`. The first line there identifies the release's inputs; if those changed (a
later review, another filter), the parts are of another release and are deleted.
"""

import json
import shutil
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from curation.release.card.text_counts import TextCounts
from curation.release.files import temporary_path
from db.shape import Shape

LEDGER = "parts.jsonl"
ROW_HASH_BYTES = 16


@dataclass(frozen=True)
class Part:
    """A finished part: its files with their rows and, if they count, their rows' hash."""

    number: int
    groups: int
    files: list[dict[str, Any]]
    splits: list[str]
    verdicts: dict[str, int]
    sources: dict[str, int]
    licences: list[str]
    words: dict[str, int]
    languages: dict[str, int] = field(default_factory=dict)
    by_run: dict[str, dict[str, int]] = field(default_factory=dict)
    rescued: int = 0


class Ledger:
    """The contents of an unfinished folder."""

    def __init__(self, folder: Path, made_of: dict[str, Any], shape: Shape) -> None:
        self.folder, self.shape = folder, shape
        self.parts: list[Part] = []
        self._file = folder / LEDGER
        lines = self._file.read_text(encoding="utf-8").split("\n") if self._file.is_file() else []
        head = json.dumps(made_of, sort_keys=True)
        if lines and lines[0] == head:
            whole = lines[1:-1]  # the last one has no line break yet where writing it was cut short
            self.parts = [Part(**json.loads(line)) for line in whole]
            self._file.write_text("\n".join([head, *whole, ""]), encoding="utf-8")
            return
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        self._file.write_text(head + "\n", encoding="utf-8")

    def finish(self, part: Part, facts: "PartFacts", counts: TextCounts) -> None:
        """Record that the files of `part` are complete."""
        facts.save(self._facts(part.number), counts)
        with self._file.open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(part), ensure_ascii=False) + "\n")
        self.parts.append(part)

    def texts(self) -> dict[str, dict[str, Any]]:
        """Table 1's counts over all parts."""
        import numpy as np

        total = TextCounts(self.shape)
        for part in self.parts:
            with np.load(self._facts(part.number)) as saved:
                total.take(part.words, {kind: saved[f"texts_{kind}"] for kind in part.words})
        return total.summary()

    def groups(self) -> Iterator[tuple[int, str, str]]:
        """(group, split, identity of its row) of all parts, in their order."""
        import numpy as np

        for part in self.parts:
            with np.load(self._facts(part.number)) as saved:
                ids, places, rows = saved["ids"], saved["places"], saved["rows"].tobytes()
            for number, (group_id, place) in enumerate(
                zip(ids.tolist(), places.tolist(), strict=True)
            ):
                start = number * ROW_HASH_BYTES
                yield group_id, part.splits[place], rows[start : start + ROW_HASH_BYTES].hex()

    def name_files(self) -> list[dict[str, Any]]:
        """Give the files their final names, `NAME-00000-of-00002`; returned with `path`."""
        numbered: dict[tuple[str, str], list[tuple[Part, dict[str, Any]]]] = {}
        for part in self.parts:
            for file in part.files:
                numbered.setdefault((file["config"], file["split"]), []).append((part, file))
        named = []
        for files in numbered.values():
            for place, (part, file) in enumerate(files):
                before = self.folder / temporary_path(file["path"], part.number)
                path = file["path"].format(place=place, of=len(files))
                if before.exists():  # not where a kill came between the renames and the end
                    before.rename(self.folder / path)
                named.append({**file, "path": path})
        return named

    def clear(self) -> None:
        """Remove what only the export itself needs; the release stays."""
        for part in self.parts:
            self._facts(part.number).unlink(missing_ok=True)
        self._file.unlink()

    def _facts(self, number: int) -> Path:
        return self.folder / f"part-{number:05d}.npz"


def has_parts(folder: Path) -> bool:
    """Whether an unfinished folder holds a finished part."""
    file = folder / LEDGER
    return file.is_file() and file.read_bytes().count(b"\n") > 1


class PartFacts:
    """The groups of a part in a compact form: id, split and the identity of the row."""

    def __init__(self) -> None:
        self.ids: list[int] = []
        self.places: list[int] = []
        self.rows = bytearray()
        self.splits: list[str] = []

    def add(self, group_id: int, split: str, identity: bytes) -> None:
        """Add a group; `identity` is the sha256 of its row, of which 16 bytes are kept."""
        if split not in self.splits:
            self.splits.append(split)
        self.ids.append(group_id)
        self.places.append(self.splits.index(split))
        self.rows += identity[:ROW_HASH_BYTES]

    def save(self, path: Path, counts: TextCounts) -> None:
        """As arrays: ids (n,) int64, places (n,) int32, rows (16 n,) uint8, texts_KIND uint64."""
        import numpy as np

        texts = {f"texts_{kind}": hashes for kind, hashes in counts.hashes().items()}
        with path.open("wb") as file:
            np.savez(
                file,
                ids=np.asarray(self.ids, dtype=np.int64),
                places=np.asarray(self.places, dtype=np.int32),
                rows=np.frombuffer(bytes(self.rows), dtype=np.uint8),
                **texts,
            )
