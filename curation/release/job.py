"""The export job: it writes a run's groups, their card and their manifest to a folder.

Everything is written to a temporary folder, which is renamed at the end: readers see a complete
release or none. The parts that a killed or cancelled export has finished there are reused by the
next one (`curation.release.parts`). A folder with files is left alone, unless it is exactly this
release already (same content), which is then returned again.

The content hash is over the rows in their order (split, part, group), as JSONL whatever the format:
the same groups give the same hash in every export.
"""

import json
import os
import shutil
from pathlib import Path
from typing import Any

from sqlalchemy.orm import Session

from analysis.files.opening import file_sha256
from analysis.files.rows import MTEB_TASK
from analysis.text.licences import conflicts
from curation.release.card.card import write_card
from curation.release.card.croissant import CROISSANT, croissant
from curation.release.card.facts import CardFacts
from curation.release.card.front_matter import languages_of
from curation.release.card.gathering import facts_of
from curation.release.choice import groups_of
from curation.release.findings import coverage_picture, model_of_map
from curation.release.parts import has_parts
from curation.release.plan import (
    MANIFEST,
    PICTURE,
    Plan,
    is_held_out,
    licences_of,
    plan_release,
    read_manifest,
    require_same_verdicts,
)
from curation.release.request import ReleasePlan
from curation.release.writing import Written, write_groups
from curation.run.leakage import release_leakage
from db.errors import BadInput, Refused
from db.events import record_event
from db.jobs.runner import Cancelled, JobHandle
from db.machine import process_exists
from db.release.releases import find_release_at, record_release
from db.release.rows import use_snapshot
from db.rows import Row
from db.tables import Release


class ReleaseMade(Row):
    """A release that was written: how many groups, of which `rescued` had been dropped."""

    release_id: int
    content_sha256: str
    path: str
    format: str
    groups: int
    kept: int
    rescued: int
    splits: dict[str, int]
    offline: bool
    reviews: str


def export_release(handle: JobHandle) -> ReleaseMade:
    """The handler of `export` jobs."""
    with handle.store.read() as session:
        plan = plan_release(session, ReleasePlan.read(handle.config))
        _require_mixable(session, plan)
    unfinished = plan.out.work_folder.with_name(f"{plan.out.work_folder.name}-{os.getpid()}")
    leave = False
    try:
        unfinished.parent.mkdir(parents=True, exist_ok=True)
        _adopt_leftovers(unfinished)
        with handle.store.read() as session:
            use_snapshot(session)
            require_same_verdicts(session, plan)
            chosen = groups_of(session, plan)
            written = write_groups(handle, session, plan, unfinished, chosen)
            groups = len(chosen.ids)

            def report(stage: str) -> None:
                handle.check()
                handle.report(groups, groups, stage)

            report("measuring leakage")
            leakage = release_leakage(session, plan.by_run, chosen.ids, plan.shape)
            facts = facts_of(session, plan, written, leakage, report)
            report("writing the card")
            picture = coverage_picture(session, plan)
            maps = {each.run.id: model_of_map(session, each) for each in plan.runs}
            measured = {"maps": maps, "leakage": leakage}
        same = _same_release(handle, plan, written)
        if same is not None:
            return _result(same, written)
        with handle.store.write() as session:
            release = _record(session, handle, plan, written)
            _finish_folder(release, plan, written, facts, unfinished, picture, measured)
            session.commit()
        return _result(release, written)
    except Cancelled:
        leave = has_parts(unfinished)
        raise
    except OSError as error:
        raise BadInput(
            f"the release cannot be written to {plan.out}: {error}",
            "Give a folder that exists, where there is space and the right to write",
            code="release_unwritable",
        ) from error
    finally:
        if not leave:
            shutil.rmtree(unfinished, ignore_errors=True)


def _require_mixable(session: Session, plan: Plan) -> None:
    reasons = conflicts(licences_of(session, plan))
    if reasons and not plan.wanted.accept_licences:
        raise Refused(
            f"the licences of these groups are not compatible: {'; '.join(reasons)}",
            "Export one source with `source=`, or confirm with `accept_licences=` that you may mix "
            "them",
            code="licences_incompatible",
        )


def _same_release(handle: JobHandle, plan: Plan, written: Written) -> Release | None:
    """The release that the folder holds already, None if it is to be written there.

    A folder whose release is not in the store (the export died between the two, or the store was
    restored from an earlier backup) is written again with the same content. Raises Refused if the
    folder holds another release.
    """
    manifest = read_manifest(plan.out)
    if manifest is None:
        return None
    same = manifest.get("content_sha256") == written.content_sha256
    same = same and manifest.get("format") == plan.wanted.format
    if same and manifest.get("filter") == plan.filter:
        with handle.store.read() as session:
            release = find_release_at(session, str(plan.out), written.content_sha256)
        if release is None or release.id == manifest.get("release_id"):
            return release
    raise Refused(
        f"{plan.out} holds another release (content {str(manifest.get('content_sha256'))[:12]}, "
        f"this one {written.content_sha256[:12]}): a release is never overwritten",
        "give a new one",
        code="folder_holds_another_release",
    )


def _record(session: Session, handle: JobHandle, plan: Plan, written: Written) -> Release:
    release = record_release(
        session,
        dataset_id=plan.first.dataset.id,
        run_ids=list(plan.by_run),
        name=plan.name,
        content_sha256=written.content_sha256,
        path=str(plan.out),
        format=plan.wanted.format,
        filter=plan.filter,
        counts=_counts(written),
        offline=plan.offline,
        created_by=handle.started_by,
        groups=written.groups(),
    )
    record_event(
        session,
        handle.started_by,
        "release.created",
        release.id,
        dataset=", ".join(plan.dataset_names),
        path=str(plan.out),
        content_sha256=written.content_sha256,
    )
    return release


def _finish_folder(
    release: Release,
    plan: Plan,
    written: Written,
    facts: CardFacts,
    unfinished: Path,
    picture: bytes | None,
    measured: dict[str, Any],
) -> None:
    release.card = write_card(facts, release.id)
    written.ledger.clear()
    if picture is not None:
        (unfinished / PICTURE).write_bytes(picture)
    (unfinished / "README.md").write_text(release.card, encoding="utf-8")
    manifest = {
        "release_id": release.id,
        "name": plan.name,
        "content_sha256": written.content_sha256,
        **_origins(plan, facts, measured["maps"]),
        "leakage": measured["leakage"].as_json(),
        **({"agreement": list(facts.agreement)} if facts.agreement else {}),
        "offline": plan.offline,
        "licences": written.licences,
        "languages": languages_of(written.languages),
        "format": plan.wanted.format,
        "filter": plan.filter,
        **plan.shape.entry,
        "counts": _counts(written),
        "splits": written.splits,
        "sources": written.sources,
        "formula_guard": plan.wanted.format == "csv",
        "files": written.files,
        "created_at": release.created_at.isoformat(),
    }
    if plan.wanted.format != "csv" and any(is_held_out(split) for split in written.splits):
        shutil.copy(MTEB_TASK, unfinished)
        manifest["mteb_task_sha256"] = file_sha256(MTEB_TASK)
    (unfinished / CROISSANT).write_text(croissant(manifest), encoding="utf-8")
    (unfinished / MANIFEST).write_text(
        json.dumps(manifest, ensure_ascii=False, indent=1) + "\n", encoding="utf-8"
    )
    # A manifest there is of the same content, which the store does not know.
    is_there = read_manifest(plan.out) is not None
    plan.out.publish(unfinished, manifest=MANIFEST, replace=is_there)


def _origins(
    plan: Plan, facts: CardFacts, maps: dict[int, dict[str, Any] | None]
) -> dict[str, Any]:
    """The manifest's keys on the origin of the groups: of one run flat, of several in `runs`."""
    found = [
        {
            "dataset": each.dataset.name,
            "run_id": each.run.id,
            "recipe": made.recipe,
            "recipe_sha256": made.recipe_sha256,
            "provider": each.run.provider,
            "models": each.run.models,
            "map": maps[each.run.id],
        }
        for each, made in zip(plan.runs, facts.runs, strict=True)
    ]
    if len(found) == 1:
        return found[0]
    for origin, made in zip(found, facts.runs, strict=True):
        origin |= {
            "source": made.source,
            "offline": made.offline,
            "by_licence": made.by_licence,
            "duplicates": made.duplicates,
        }
    return {"dataset": ", ".join(plan.dataset_names), "runs": found}


def _counts(written: Written) -> dict[str, Any]:
    """Without the number of rescued groups where there are none: as releases always were."""
    counts = {
        "groups": sum(written.splits.values()),
        "verdicts": written.verdicts,
        "texts": written.texts,
    }
    return counts | ({"rescued": written.rescued} if written.rescued else {})


def _result(release: Release, written: Written) -> ReleaseMade:
    return ReleaseMade.of(
        release,
        release_id=release.id,
        groups=sum(written.splits.values()),
        kept=written.verdicts.get("kept", 0),
        rescued=written.rescued,
        splits=written.splits,
        reviews=release.filter["reviews"],
    )


def _adopt_leftovers(unfinished: Path) -> None:
    """Reuse what a dead export to this place left, and remove the rest of it."""
    name = unfinished.name.rpartition("-")[0]
    for folder in sorted(unfinished.parent.glob(f"{name}-*")):
        number = folder.name.rpartition("-")[2]
        if number.isdigit() and not process_exists(int(number)):
            if has_parts(folder) and not unfinished.exists():
                folder.rename(unfinished)
            else:
                shutil.rmtree(folder, ignore_errors=True)
