"""Preview of a release: counts, first rows, card. Writes nothing."""

from collections import Counter
from dataclasses import dataclass
from typing import Any

from sqlalchemy.orm import Session

from curation.release.card.card import write_card
from curation.release.card.gathering import facts_of
from curation.release.card.text_counts import TextCounts
from curation.release.choice import group_ids_of
from curation.release.licences import conflicts
from curation.release.plan import HELD_OUT, Plan, plan_release
from curation.release.rows import release_row
from curation.release.writing import Counted
from curation.run.leakage import known_leakage
from db.release.choice import chosen_licences
from db.release.rows import release_rows, sources_of_groups

COUNTED = 5000  # with more groups than this, texts are only counted when the release is made
ROWS = 5


@dataclass(frozen=True)
class ReleasePreview:
    """Groups by split, licence conflicts, the first rows, the card."""

    groups: int
    splits: dict[str, int]
    conflicts: list[str]
    rows: list[dict[str, Any]]
    card: str


def preview_release(session: Session, config: dict[str, Any]) -> ReleasePreview:
    """The preview of an export job's config. Raises what the export would raise before writing.

    Held-out splits are given by their share: which groups are in them is computed by the export.
    """
    plan = plan_release(session, config)
    ids = group_ids_of(session, plan)
    sources = sources_of_groups(session, ids)
    licences = chosen_licences(session, plan.choice, plan.dataset.licence)
    counted = Counted(
        files=[],
        splits=_splits(plan, sources),
        verdicts={},
        licences=licences,
        sources=dict(Counter(sources).most_common()),
        texts={},
    )
    texts = TextCounts()
    rows: list[dict[str, Any]] = []
    for batch in release_rows(session, ids if len(ids) <= COUNTED else ids[:ROWS]):
        for found in batch:
            row = release_row(
                found,
                source=plan.dataset.source,
                licence=plan.dataset.licence,
                offline=plan.run.offline,
            )
            texts.add(row)
            counted.verdicts[found.verdict] = counted.verdicts.get(found.verdict, 0) + 1
            if len(rows) < ROWS:
                rows.append(row)
    if len(ids) <= COUNTED:
        counted.texts = texts.summary()
    card = write_card(
        facts_of(session, plan, counted, known_leakage(session, plan.run.id, ids)), None
    )
    return ReleasePreview(len(ids), counted.splits, conflicts(licences), rows, card)


def _splits(plan: Plan, sources: list[str]) -> dict[str, int]:
    found = Counter(plan.split(source, False) for source in sources)
    if not plan.held_out:
        return dict(sorted(found.items()))
    out = {f"{name}{HELD_OUT}": round(plan.held_out * count) for name, count in found.items()}
    return {name: count - out[f"{name}{HELD_OUT}"] for name, count in sorted(found.items())} | out
