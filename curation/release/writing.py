"""Writing a release's groups into a folder: every configuration and split in one pass, in parts."""

import hashlib
import json
from array import array
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sqlalchemy.orm import Session

from analysis.figures.numbers import counted
from analysis.files.opening import file_sha256
from analysis.text.splits import held_out_hashed, key_hash
from curation.release.card.text_counts import TextCounts
from curation.release.choice import ChosenGroups
from curation.release.files import Pen, SplitWriter, content_sha256
from curation.release.parts import Ledger, Part, PartFacts
from curation.release.plan import ChosenRun, Plan, is_held_out
from curation.release.rows import (
    STANDARD,
    VIEWS,
    canonical_line,
    configs_of,
    default_rows,
    is_rescued,
    judgment_row,
    language_of_row,
    provenance_row,
    release_row,
    trainer_rows,
    triplet_rows,
)
from db.errors import BadInput
from db.jobs.runner import JobHandle
from db.release.choice import choice_state
from db.release.releases import recipe_of_run
from db.release.rows import (
    GroupJudgment,
    ReleaseRow,
    group_judgments,
    release_rows,
    sources_of_groups,
    split_texts,
)
from db.shape import Shape

IDENTITY = ("default", "judgments")  # the other configurations repeat the same facts


@dataclass(kw_only=True)
class Counted:
    """The contents of a release; `texts` is empty and the identity "" if it is not yet written.

    `rescued`: groups that the filter dropped and a person approved.
    """

    content_sha256: str = ""
    files: list[dict[str, Any]]
    splits: dict[str, int]
    verdicts: dict[str, int]
    licences: list[str]
    sources: dict[str, int]
    languages: dict[str, int] = field(default_factory=dict)
    by_run: dict[int, dict[str, int]] | None = None
    """Groups by run and licence; None if they were not counted."""
    duplicates: dict[int, int] = field(default_factory=dict)
    texts: dict[str, dict[str, Any]]
    rescued: int = 0


@dataclass(kw_only=True)
class Written(Counted):
    """The contents of the unfinished folder."""

    ledger: Ledger

    def groups(self) -> Iterator[tuple[int, str, str]]:
        """(group, split, identity of its row)."""
        return self.ledger.groups()


def write_groups(
    handle: JobHandle, session: Session, plan: Plan, folder: Path, chosen: ChosenGroups
) -> Written:
    """Write all files of the release; complete parts of an earlier attempt are kept."""
    group_ids = chosen.ids
    made_of = {
        "filter": plan.filter,
        "format": plan.wanted.format,
        "runs": [
            [each.dataset.name, each.dataset.source, each.dataset.licence, state]
            for each in plan.runs
            for state in [choice_state(session, each.choice)]
        ],
        "groups": len(group_ids),
        # a killed export may be continued by a version that writes other columns
        "columns": {
            config: list(configs_of(plan.shape)[config].items()) for config in plan.configs
        },
    }
    ledger = Ledger(folder, made_of, plan.shape)
    if len(ledger.parts) * plan.wanted.groups_per_part < len(group_ids):
        held = _held_out(handle, session, plan, group_ids)
        constants = {each.run.id: _run_constants(session, each) for each in plan.runs}
        with Pen() as pen:
            for start in range(0, len(group_ids), plan.wanted.groups_per_part):
                number = start // plan.wanted.groups_per_part
                if number < len(ledger.parts):
                    continue
                ids = group_ids[start : start + plan.wanted.groups_per_part]
                writing = _PartWriting(folder, plan, number, constants, held)
                for batch in release_rows(session, ids, plan.shape):
                    handle.check()
                    writing.add(batch, _judgments(session, plan, batch), pen)
                    done = start + len(writing.facts.ids)
                    handle.report(done, len(group_ids), "writing groups")
                ledger.finish(writing.finish(pen), writing.facts, writing.counts)
    handle.report(len(group_ids), len(group_ids), "writing groups")
    return _written(folder, ledger, chosen.duplicates)


def _written(folder: Path, ledger: Ledger, duplicates: dict[int, int]) -> Written:
    files = ledger.name_files()
    order = [*STANDARD, *VIEWS]
    files.sort(
        key=lambda file: (
            order.index(file["config"]),
            is_held_out(file["split"]),
            file["split"],
            file["path"],
        )
    )
    splits: Counter[str] = Counter()
    verdicts: Counter[str] = Counter()
    sources: Counter[str] = Counter()
    languages: Counter[str] = Counter()
    by_run: dict[int, Counter[str]] = {}
    for part in ledger.parts:
        for run_id, licences in part.by_run.items():
            by_run.setdefault(int(run_id), Counter()).update(licences)
        languages.update(part.languages)
        verdicts.update(part.verdicts)
        sources.update(part.sources)
        for file in part.files:
            if file["config"] == "default" and not ledger.shape.lists:
                splits[file["split"]] += file["rows"]
    if ledger.shape.lists:  # a group has several rows there
        splits.update(split for _, split, _ in ledger.groups())
    identities = [
        (file["config"], file["split"], part.number, file["content_sha256"])
        for part in ledger.parts
        for file in part.files
        if file["config"] in IDENTITY
    ]
    return Written(
        content_sha256=content_sha256(identities),
        files=[
            {
                "path": file["path"],
                "config": file["config"],
                "split": file["split"],
                "rows": file["rows"],
                "bytes": (folder / file["path"]).stat().st_size,
                "sha256": file_sha256(folder / file["path"]),
            }
            for file in files
        ],
        splits=dict(sorted(splits.items(), key=lambda pair: (is_held_out(pair[0]), pair[0]))),
        verdicts=dict(verdicts),
        licences=sorted({licence for part in ledger.parts for licence in part.licences}),
        sources=dict(sorted(sources.items(), key=lambda pair: (-pair[1], pair[0]))),
        languages=dict(languages),
        by_run={run_id: dict(licences) for run_id, licences in by_run.items()},
        duplicates=duplicates,
        texts=ledger.texts(),
        rescued=sum(part.rescued for part in ledger.parts),
        ledger=ledger,
    )


class _PartWriting:
    """One unfinished part: a writer per configuration and split, created with its first row."""

    def __init__(
        self,
        folder: Path,
        plan: Plan,
        number: int,
        constants: dict[int, dict[str, Any]],
        held: frozenset[int],
    ) -> None:
        self.facts, self.counts = PartFacts(), TextCounts(plan.shape)
        self._folder, self._plan, self._number = folder, plan, number
        self._constants, self._held = constants, held
        self._open: dict[tuple[str, str], SplitWriter] = {}
        self._verdicts: Counter[str] = Counter()
        self._sources: Counter[str] = Counter()
        self._languages: Counter[str] = Counter()
        self._by_run: dict[str, Counter[str]] = {}
        self._rescued = 0

    def add(
        self, batch: list[ReleaseRow], judged: dict[int, list[GroupJudgment]], pen: Pen
    ) -> None:
        """Add a batch of groups and hand it to the pen."""
        for found in batch:
            run = self._plan.by_run[found.run_id]
            row = row_of_run(found, run, self._plan.shape)
            line = canonical_line(row)
            out = found.group_id in self._held
            split = self._plan.split(run.dataset.name, row["source"], out)
            self._add(split, row, line, found.run_id, judged.get(found.group_id, []))
            self.facts.add(found.group_id, split, hashlib.sha256(line).digest())
            self.counts.add(row)
            self._verdicts[found.verdict] += 1
            self._rescued += is_rescued(found)
            self._sources[row["source"]] += 1
            self._languages[language_of_row(row, self._plan.shape)] += 1
            licences = self._by_run.setdefault(str(found.run_id), Counter())
            licences[row["licence"]] += 1
        for writer in self._open.values():
            writer.flush(pen)

    def finish(self, pen: Pen) -> Part:
        """Close the files and return their facts."""
        for writer in self._open.values():
            writer.close(pen)
        pen.finish()
        return Part(
            number=self._number,
            groups=len(self.facts.ids),
            files=[
                {
                    "config": config,
                    "split": split,
                    "path": writer.path,
                    "rows": writer.rows,
                    "content_sha256": writer.content_sha256,
                }
                for (config, split), writer in self._open.items()
            ],
            splits=self.facts.splits,
            verdicts=dict(self._verdicts),
            sources=dict(self._sources),
            licences=sorted(set().union(*self._by_run.values())),
            by_run={run_id: dict(found) for run_id, found in self._by_run.items()},
            languages=dict(self._languages),
            words=self.counts.words,
            rescued=self._rescued,
        )

    def _add(
        self,
        split: str,
        row: dict[str, Any],
        line: bytes,
        run_id: int,
        judged: list[GroupJudgment],
    ) -> None:
        for config in self._plan.configs:
            if config == "default":
                for each in default_rows(row, self._plan.shape):
                    own = canonical_line(each) if self._plan.shape.lists else line
                    self._writer(config, split).add(each, own)
            elif config == "provenance":
                made = provenance_row(row, self._constants[run_id], judged)
                self._writer(config, split).add(made)
            elif config == "triplets":
                self._writer(config, split).add_all(triplet_rows(row, self._plan.shape))
            elif config in VIEWS:
                self._writer(config, split).add_all(trainer_rows(config, row, self._plan.shape))
            else:
                for one in judged:
                    made = judgment_row(one)
                    self._writer(config, split).add(made, canonical_line(made))

    def _writer(self, config: str, split: str) -> SplitWriter:
        found = self._open.get((config, split))
        if found is None:
            columns = configs_of(self._plan.shape)[config]
            plan = self._plan.wanted
            found = SplitWriter(self._folder, config, columns, split, plan.format, self._number)
            self._open[config, split] = found
        return found


def _judgments(
    session: Session, plan: Plan, batch: list[ReleaseRow]
) -> dict[int, list[GroupJudgment]]:
    if not {"judgments", "provenance"} & set(plan.configs):
        return {}
    return group_judgments(session, [found.group_id for found in batch], plan.shape)


def _held_out(
    handle: JobHandle, session: Session, plan: Plan, group_ids: "array[int]"
) -> frozenset[int]:
    """The groups that are held out: none of their texts is on the other side.

    Nor one of their sources, where these are held out. Raises BadInput if all groups hang together.
    """
    if not plan.wanted.held_out:
        return frozenset()
    import numpy as np

    by_source = plan.wanted.held_out_by == "source"
    sources = sources_of_groups(session, group_ids) if by_source else []
    keys, sizes = array("Q"), array("q")
    for batch in split_texts(session, group_ids):
        handle.check()
        found: dict[int, set[int]] = {}
        for group_id, slot, text in batch:
            of = plan.shape.slots[slot].field
            if of != "instruction":
                found.setdefault(group_id, set()).add(_text_key(of, text))
        for texts in found.values():
            if by_source:
                texts.add(_text_key("source", sources[len(sizes)]))
            keys.extend(texts)
            sizes.append(len(texts))
        handle.report(len(sizes), len(group_ids), "choosing the held-out groups")
    chosen = held_out_hashed(
        np.asarray(keys, dtype=np.uint64),
        np.asarray(sizes, dtype=np.int64),
        fraction=plan.wanted.held_out,
        seed=plan.wanted.seed,
    )
    if by_source and not chosen.any():
        raise BadInput(
            f"no source can be held out: the groups are of {counted(len(set(sources)), 'source')}, "
            "or their sources share texts",
            "hold out by text (held_out_by=text), or give pairs a column `source`",
            code="no_source_to_hold_out",
        )
    return frozenset(group_id for group_id, out in zip(group_ids, chosen, strict=True) if out)


def _text_key(kind: str, text: str) -> int:
    """One number for texts that differ in case and spacing only."""
    return key_hash(f"{kind} {' '.join(text.lower().split())}")


def row_of_run(found: ReleaseRow, chosen: ChosenRun, shape: Shape) -> dict[str, Any]:
    """A group as a row, with the source, licence and origin of its own dataset and run."""
    return release_row(
        found,
        shape,
        source=chosen.dataset.source,
        licence=chosen.dataset.licence,
        offline=chosen.run.offline,
    )


def _run_constants(session: Session, chosen: ChosenRun) -> dict[str, Any]:
    recipe, _ = recipe_of_run(session, chosen.run.id)
    stages = recipe.body.get("stages", {})
    models = {task: stage["model"] for task, stage in stages.items()}
    return {
        "dataset": chosen.dataset.name,
        "run_id": chosen.run.id,
        "recipe": recipe.name,
        "recipe_sha256": recipe.sha256,
        "provider": chosen.run.provider,
        "models": json.dumps(models, ensure_ascii=False),
    }
