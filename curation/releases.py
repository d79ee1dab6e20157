"""Making a release: the job that writes a run's groups, their card and their manifest to a folder.

Everything is written to a folder beside the one asked for, which is renamed at the end: whoever
looks sees a whole release or none. A folder that holds something is left alone, unless it is this
very release already (same content), which is then told again.

The content hash is over the rows in their order (split, then group), as JSONL whatever the format:
the same groups give the same hash however often, and wherever, they are exported.
"""

import json
import os
import shutil
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy.orm import Session

from curation.release_card import CardFacts, Stage, write_card
from curation.release_files import (
    FORMATS,
    SplitWriter,
    TextCounts,
    content_sha256,
    count_texts,
    file_sha256,
)
from curation.release_rows import KINDS, release_row, split_name
from db.accounts import record_audit
from db.datasets import get_dataset
from db.errors import BadInput, Refused
from db.job_runner import JobHandle
from db.releases import (
    Choice,
    count_chosen,
    find_release_at,
    one_moment,
    recipe_of_run,
    record_release,
    release_rows,
)
from db.reviews import count_reviews
from db.runs import choose_run, funnel
from db.tables import Dataset, Release, Run

CHECK_EVERY = 500
MANIFEST = "release.json"


@dataclass(frozen=True)
class Plan:
    """What to export and where to."""

    dataset: Dataset
    run: Run
    choice: Choice
    out: Path
    format: str
    name: str


@dataclass
class Written:
    """What stands in the unfinished folder."""

    content_sha256: str
    files: list[dict[str, Any]]
    splits: dict[str, int]
    verdicts: dict[str, int]
    licences: list[str]
    texts: dict[str, dict[str, Any]]
    groups: dict[str, "array[int]"]


def export_release(handle: JobHandle) -> dict[str, Any]:
    """The handler of `export` jobs."""
    with handle.store.read() as session:
        plan = plan_release(session, handle.config)
    unfinished = plan.out.parent / f".{plan.out.name}.unfinished-{os.getpid()}"
    try:
        plan.out.parent.mkdir(parents=True, exist_ok=True)
        _remove_leftovers(plan.out)
        with handle.store.read() as session:
            one_moment(session)
            total = _require_groups(session, plan)
            written = _write_files(handle, session, plan, unfinished, total)
            facts = _facts(session, plan, written)
        same = _same_release(handle, plan, written)
        if same is not None:
            return _result(same, written)
        with handle.store.write() as session:
            release = _record(session, handle, plan, written)
            _finish_folder(release, plan, written, facts, unfinished)
            session.commit()
        return _result(release, written)
    except OSError as error:
        raise BadInput(f"the release cannot be written to {plan.out}: {error}") from error
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def plan_release(session: Session, config: dict[str, Any]) -> Plan:
    """What a job's config asks for. Raises BadInput, NotFound or Refused before any work."""
    dataset = get_dataset(session, config["dataset"])
    run = choose_run(session, dataset.id, config.get("run_id"))
    format = config.get("format", "parquet")
    if format not in FORMATS:
        raise BadInput(f"no format {format!r}: one of {', '.join(FORMATS)}")
    choice = Choice(
        run_id=run.id,
        reviews=config.get("reviews", "not-rejected"),
        include_dropped=bool(config.get("include_dropped", False)),
    )
    out = Path(config["out"]).expanduser().absolute()
    if out.exists() and not out.is_dir():
        raise Refused(f"{out} is a file: give a folder for the release")
    if out.is_dir() and any(out.iterdir()) and _manifest(out) is None:
        raise Refused(f"{out} is not empty and holds no release: give a new folder")
    return Plan(dataset, run, choice, out, format, config.get("name") or f"{dataset.name}")


def _require_groups(session: Session, plan: Plan) -> int:
    total = count_chosen(session, plan.choice)
    if total:
        return total
    told = funnel(session, plan.run.id)
    dropped = ", ".join(f"{reason} {number}" for reason, number in told.dropped.items())
    if not told.kept and not plan.choice.include_dropped:
        raise Refused(
            f"the release would be empty: run {plan.run.id} kept none of its {told.pairs} groups "
            f"(dropped: {dropped or 'none yet'}). Look at them on the Groups page, then curate "
            "with another recipe or export another run with --run"
        )
    reviews = count_reviews(session, plan.run.id)
    if plan.choice.reviews == "approved":
        raise Refused(
            f"the release would be empty: of {told.kept} kept groups none is approved. Approve "
            "groups with `inf review --group ID --approve`, or use --reviews not-rejected"
        )
    raise Refused(
        f"the release would be empty: {reviews.get('reject', 0)} of {told.kept} kept groups are "
        f"rejected and the rest has no triplets (dropped: {dropped or 'none'})"
    )


def _write_files(
    handle: JobHandle, session: Session, plan: Plan, folder: Path, total: int
) -> Written:
    shutil.rmtree(folder, ignore_errors=True)
    split = split_name(plan.dataset.name)
    writer = SplitWriter(folder, split, plan.format)
    counts = {kind: TextCounts() for kind in KINDS}
    verdicts: dict[str, int] = {}
    licences: dict[str, None] = {}
    ids = array("q")
    for number, found in enumerate(release_rows(session, plan.choice), start=1):
        row = release_row(
            found,
            source=plan.dataset.source,
            licence=plan.dataset.licence,
            offline=plan.run.offline,
        )
        writer.add(row)
        count_texts(counts, row)
        ids.append(found.group_id)
        verdicts[found.verdict] = verdicts.get(found.verdict, 0) + 1
        licences.setdefault(row["licence"])
        if number % CHECK_EVERY == 0:
            handle.check()
            handle.report(number, total, "writing groups")
    writer.close()
    handle.report(total, total, "writing the card")
    return Written(
        content_sha256=content_sha256({split: writer.content_sha256}),
        files=[_told_file(folder, writer)],
        splits={split: writer.rows},
        verdicts=verdicts,
        licences=sorted(licences),
        texts={kind: counted.summary() for kind, counted in counts.items()},
        groups={split: ids},
    )


def _told_file(folder: Path, writer: SplitWriter) -> dict[str, Any]:
    return {
        "path": writer.path.relative_to(folder).as_posix(),
        "split": writer.split,
        "rows": writer.rows,
        "bytes": writer.path.stat().st_size,
        "sha256": file_sha256(writer.path),
    }


def _facts(session: Session, plan: Plan, written: Written) -> CardFacts:
    recipe, prompts = recipe_of_run(session, plan.run.id)
    told = funnel(session, plan.run.id)
    stages = [
        Stage(task, stage["model"], stage["prompt"], stage["prompt_sha256"])
        for task, stage in recipe.body.get("stages", {}).items()
    ]
    return CardFacts(
        title=plan.name,
        dataset=plan.dataset.name,
        source=plan.dataset.source,
        licences=written.licences,
        run_id=plan.run.id,
        run_status=plan.run.status,
        provider=plan.run.provider,
        offline=plan.run.offline,
        recipe=recipe.name,
        recipe_sha256=recipe.sha256,
        stages=stages,
        validation=recipe.body.get("validation", {}),
        filters=recipe.body.get("filters", {}),
        reviews=plan.choice.reviews,
        review_counts=count_reviews(session, plan.run.id),
        include_dropped=plan.choice.include_dropped,
        verdicts=written.verdicts,
        splits=written.splits,
        format=plan.format,
        texts=written.texts,
        pairs=told.pairs,
        reached=told.reached,
        kept=told.kept,
        dropped=told.dropped,
        content_sha256=written.content_sha256,
        prompts={prompt.name: prompt.text for prompt in prompts.values()},
    )


def _same_release(handle: JobHandle, plan: Plan, written: Written) -> Release | None:
    """The release that the folder already holds, None for an empty folder.

    Raises Refused where the folder holds another one.
    """
    there = _manifest(plan.out)
    if there is None:
        return None
    same = there.get("content_sha256") == written.content_sha256
    if same and there.get("format") == plan.format and there.get("filter") == _filter(plan):
        with handle.store.read() as session:
            release = find_release_at(session, str(plan.out), written.content_sha256)
        if release is not None and release.id == there.get("release_id"):
            return release
    raise Refused(
        f"{plan.out} holds another release (content {str(there.get('content_sha256'))[:12]}, this "
        f"one {written.content_sha256[:12]}): a release is never overwritten, give a new folder"
    )


def _record(session: Session, handle: JobHandle, plan: Plan, written: Written) -> Release:
    release = record_release(
        session,
        dataset_id=plan.dataset.id,
        name=plan.name,
        content_sha256=written.content_sha256,
        path=str(plan.out),
        format=plan.format,
        filter=_filter(plan),
        counts=_counts(written),
        offline=plan.run.offline,
        created_by=handle.started_by,
        groups=_split_groups(written),
    )
    record_audit(
        session,
        handle.started_by,
        "export",
        f"release {release.id}",
        dataset=plan.dataset.name,
        path=str(plan.out),
        content_sha256=written.content_sha256,
    )
    return release


def _split_groups(written: Written) -> Iterator[tuple[int, str]]:
    for split, ids in written.groups.items():
        for group_id in ids:
            yield group_id, split


def _finish_folder(
    release: Release, plan: Plan, written: Written, facts: CardFacts, unfinished: Path
) -> None:
    release.card = write_card(facts, release.id)
    (unfinished / "README.md").write_text(release.card, encoding="utf-8")
    manifest = {
        "release_id": release.id,
        "name": plan.name,
        "content_sha256": written.content_sha256,
        "dataset": plan.dataset.name,
        "run_id": plan.run.id,
        "recipe": facts.recipe,
        "recipe_sha256": facts.recipe_sha256,
        "provider": plan.run.provider,
        "offline": plan.run.offline,
        "licences": written.licences,
        "format": plan.format,
        "filter": _filter(plan),
        "counts": _counts(written),
        "splits": written.splits,
        "files": written.files,
        "created_at": release.created_at.isoformat(),
    }
    (unfinished / MANIFEST).write_text(
        json.dumps(manifest, ensure_ascii=False, indent=1) + "\n", encoding="utf-8"
    )
    if plan.out.is_dir():
        plan.out.rmdir()  # only an empty folder goes: what came in meanwhile stays, and we fail
    unfinished.rename(plan.out)


def _filter(plan: Plan) -> dict[str, Any]:
    return {
        "run_id": plan.choice.run_id,
        "reviews": plan.choice.reviews,
        "include_dropped": plan.choice.include_dropped,
    }


def _counts(written: Written) -> dict[str, Any]:
    return {
        "groups": sum(written.splits.values()),
        "verdicts": written.verdicts,
        "texts": written.texts,
    }


def _result(release: Release, written: Written) -> dict[str, Any]:
    return {
        "release_id": release.id,
        "content_sha256": release.content_sha256,
        "path": release.path,
        "format": release.format,
        "groups": sum(written.splits.values()),
        "kept": written.verdicts.get("kept", 0),
        "splits": written.splits,
        "offline": release.offline,
        "reviews": release.filter["reviews"],
    }


def _manifest(folder: Path) -> dict[str, Any] | None:
    """What a release's folder says of itself, None where it is no release."""
    file = folder / MANIFEST
    if not file.is_file():
        return None
    try:
        told = json.loads(file.read_text(encoding="utf-8"))
    except ValueError:
        return None
    return told if isinstance(told, dict) else None


def _remove_leftovers(out: Path) -> None:
    """Unfinished folders of exports to this place whose process is gone."""
    for folder in out.parent.glob(f".{out.name}.unfinished-*"):
        number = folder.name.rpartition("-")[2]
        if number.isdigit() and not Path(f"/proc/{number}").exists():
            shutil.rmtree(folder, ignore_errors=True)
