"""Preview of a release: counts, first rows, card. Writes nothing."""

from collections import Counter
from dataclasses import dataclass
from typing import Any

from sqlalchemy.orm import Session

from analysis.text.licences import conflicts
from curation.release.card.card import write_card
from curation.release.card.gathering import facts_of
from curation.release.card.text_counts import TextCounts
from curation.release.choice import group_ids_of
from curation.release.plan import Plan, plan_release
from curation.release.rows import language_of_row, release_row
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
            language = language_of_row(row)
            counted.languages[language] = counted.languages.get(language, 0) + 1
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
    held = Counter(plan.split(source, True) for source in sources)
    out = {name: round(plan.held_out * count) for name, count in held.items()}
    left = {name: found[name] - out[other] for name, other in zip(found, held, strict=True)}
    return dict(sorted(left.items())) | dict(sorted(out.items()))
