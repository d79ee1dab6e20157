"""Writing a release's groups into a folder: every configuration and split in one pass."""

import hashlib
import json
import shutil
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from sqlalchemy.orm import Session

from curation.release_files import SplitWriter, content_sha256, file_sha256
from curation.release_plan import HELD_OUT, Plan, refuse_empty
from curation.release_rows import (
    CONFIGS,
    canonical_line,
    judgment_row,
    provenance_row,
    release_row,
    triplet_rows,
)
from curation.text_counts import TextCounts
from db.errors import Refused
from db.job_runner import JobHandle
from db.releases import (
    GroupJudgment,
    ReleaseRow,
    count_chosen,
    group_judgments,
    recipe_of_run,
    release_rows,
)

BATCH = 2000
ROW_HASH_BYTES = 16


@dataclass
class Groups:
    """The groups of a release in a compact form: id, split and the identity of the row."""

    splits: list[str] = field(default_factory=list)
    ids: "array[int]" = field(default_factory=lambda: array("q"))
    places: "array[int]" = field(default_factory=lambda: array("i"))
    hashes: bytearray = field(default_factory=bytearray)

    def add(self, group_id: int, split: str, line: bytes) -> None:
        if split not in self.splits:
            self.splits.append(split)
        self.ids.append(group_id)
        self.places.append(self.splits.index(split))
        self.hashes += hashlib.sha256(line).digest()[:ROW_HASH_BYTES]

    def __iter__(self) -> Iterator[tuple[int, str, str]]:
        for number, (group_id, place) in enumerate(zip(self.ids, self.places, strict=True)):
            start = number * ROW_HASH_BYTES
            told = self.hashes[start : start + ROW_HASH_BYTES].hex()
            yield group_id, self.splits[place], told


@dataclass
class Written:
    """What stands in the unfinished folder."""

    content_sha256: str
    files: list[dict[str, Any]]
    splits: dict[str, int]
    verdicts: dict[str, int]
    licences: list[str]
    sources: dict[str, int]
    texts: dict[str, dict[str, Any]]
    groups: Groups


def write_groups(
    handle: JobHandle, session: Session, plan: Plan, folder: Path, left_out: frozenset[int]
) -> Written:
    """Write all files of the release, without the groups `left_out`.

    Raises Refused where there would be no group in it.
    """
    shutil.rmtree(folder, ignore_errors=True)
    total = count_chosen(session, plan.choice)
    if not total:
        refuse_empty(session, plan)
    held = _held_out(handle, session, plan, total, left_out)
    writers = _Writers(folder, plan)
    constants = _run_constants(session, plan)
    counts, groups = TextCounts(), Groups()
    verdicts: dict[str, int] = {}
    sources: dict[str, int] = {}
    licences: dict[str, None] = {}
    rows = _chosen_rows(session, plan, left_out)
    source, licence, offline = plan.dataset.source, plan.dataset.licence, plan.run.offline
    while batch := list(islice(rows, BATCH)):
        handle.check()
        judged = _judgments(session, plan, batch)
        for found in batch:
            row = release_row(found, source=source, licence=licence, offline=offline)
            line = canonical_line(row)
            split = plan.split(row["source"], found.group_id in held)
            writers.add(split, row, line, constants, judged.get(found.group_id, []))
            groups.add(found.group_id, split, line)
            counts.add(row)
            verdicts[found.verdict] = verdicts.get(found.verdict, 0) + 1
            sources[row["source"]] = sources.get(row["source"], 0) + 1
            licences.setdefault(row["licence"])
        handle.report(len(groups.ids), total, "writing groups")
    if not groups.ids:
        raise Refused("the release would be empty: all its groups overlap with evaluation sets")
    handle.report(total, total, "writing the card")
    writers.close()
    return Written(
        content_sha256=writers.content_sha256(),
        files=writers.files(),
        splits=writers.splits(),
        verdicts=verdicts,
        licences=sorted(licences),
        sources=dict(sorted(sources.items(), key=lambda pair: (-pair[1], pair[0]))),
        texts=counts.summary(),
        groups=groups,
    )


def _judgments(
    session: Session, plan: Plan, batch: Sequence[ReleaseRow]
) -> dict[int, list[GroupJudgment]]:
    if not {"judgments", "provenance"} & set(plan.configs):
        return {}
    return group_judgments(session, [found.group_id for found in batch])


def _chosen_rows(session: Session, plan: Plan, left_out: frozenset[int]) -> Iterator[ReleaseRow]:
    rows = release_rows(session, plan.choice)
    return (found for found in rows if found.group_id not in left_out) if left_out else rows


def _held_out(
    handle: JobHandle, session: Session, plan: Plan, total: int, left_out: frozenset[int]
) -> frozenset[int]:
    """The groups that are held out: none of their texts is on the other side."""
    if not plan.held_out:
        return frozenset()
    from analysis.splits import held_out

    ids: list[int] = []
    keys: list[tuple[str, ...]] = []
    for found in _chosen_rows(session, plan, left_out):
        ids.append(found.group_id)
        keys.append(tuple(dict.fromkeys(map(_text_key, _split_texts(found)))))
        if len(ids) % BATCH == 0:
            handle.check()
            handle.report(len(ids), total, "choosing what is held out")
    chosen = held_out(keys, fraction=plan.held_out, seed=plan.seed)
    return frozenset(group_id for group_id, out in zip(ids, chosen, strict=True) if out)


def _split_texts(found: ReleaseRow) -> Iterator[str]:
    for query in (found.query_positive, found.query_negative):
        yield "query " + " ".join(query.lower().split())
    for passage in (
        found.document_positive,
        found.hard_negative_document_1,
        found.hard_negative_document_2,
    ):
        yield "passage " + " ".join(passage.lower().split())


def _text_key(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=12).hexdigest()


def _run_constants(session: Session, plan: Plan) -> dict[str, Any]:
    recipe, _ = recipe_of_run(session, plan.run.id)
    stages = recipe.body.get("stages", {})
    models = {task: stage["model"] for task, stage in stages.items()}
    return {
        "dataset": plan.dataset.name,
        "run_id": plan.run.id,
        "recipe": recipe.name,
        "recipe_sha256": recipe.sha256,
        "provider": plan.run.provider,
        "models": json.dumps(models, ensure_ascii=False),
    }


class _Writers:
    """One writer per configuration and split, made when its first row comes."""

    def __init__(self, folder: Path, plan: Plan) -> None:
        self._folder, self._plan = folder, plan
        self._open: dict[tuple[str, str], SplitWriter] = {}

    def add(
        self,
        split: str,
        row: dict[str, Any],
        line: bytes,
        constants: dict[str, Any],
        judged: list[GroupJudgment],
    ) -> None:
        configs = self._plan.configs
        self._writer("default", split).add(row, line)
        if "provenance" in configs:
            self._writer("provenance", split).add(provenance_row(row, constants, judged))
        if "triplets" in configs:
            self._writer("triplets", split).add_all(triplet_rows(row))
        if "judgments" in configs and judged:
            writer = self._writer("judgments", split)
            for one in judged:
                told = judgment_row(one)
                writer.add(told, canonical_line(told))

    def close(self) -> None:
        for writer in self._open.values():
            writer.close()

    def content_sha256(self) -> str:
        """Over the groups and the judgments: the other configurations say the same again."""
        return content_sha256(
            {
                key: writer.content_sha256
                for key, writer in self._open.items()
                if key[0] in ("default", "judgments")
            }
        )

    def splits(self) -> dict[str, int]:
        """Groups by split, held-out ones last."""
        found = {key[1]: writer.rows for key, writer in self._open.items() if key[0] == "default"}
        return dict(sorted(found.items(), key=lambda pair: (pair[0].endswith(HELD_OUT), pair[0])))

    def files(self) -> list[dict[str, Any]]:
        """What the manifest says of every file."""
        order = list(CONFIGS)
        return [
            {
                "path": writer.path.relative_to(self._folder).as_posix(),
                "config": config,
                "split": split,
                "rows": writer.rows,
                "bytes": writer.path.stat().st_size,
                "sha256": file_sha256(writer.path),
            }
            for (config, split), writer in sorted(
                self._open.items(), key=lambda pair: (order.index(pair[0][0]), pair[0][1])
            )
        ]

    def _writer(self, config: str, split: str) -> SplitWriter:
        found = self._open.get((config, split))
        if found is None:
            found = SplitWriter(self._folder, config, split, self._plan.format)
            self._open[config, split] = found
        return found
