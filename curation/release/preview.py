"""Preview of a release: counts, first rows, card. Writes nothing."""

from collections import Counter
from dataclasses import dataclass
from typing import Any

from sqlalchemy.orm import Session

from analysis.text.licences import conflicts
from curation.release.card.card import write_card
from curation.release.card.gathering import facts_of
from curation.release.card.text_counts import TextCounts
from curation.release.choice import groups_of
from curation.release.plan import Plan, licences_of, plan_release
from curation.release.request import ReleasePlan
from curation.release.rows import default_rows, is_rescued, language_of_row
from curation.release.writing import Counted, row_of_run
from curation.run.leakage import known_leakage
from db.release.choice import count_rescued
from db.release.rows import datasets_of_groups, release_rows, sources_of_groups

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


def preview_release(session: Session, wanted: ReleasePlan) -> ReleasePreview:
    """The preview of a release. Raises what the export would raise before writing.

    Held-out splits are given by their share: which groups are in them is computed by the export.
    """
    plan = plan_release(session, wanted)
    chosen = groups_of(session, plan)
    ids = chosen.ids
    licences = licences_of(session, plan)
    sources = sources_of_groups(session, ids)
    datasets = datasets_of_groups(session, ids) if plan.wanted.split_by == "dataset" else sources
    counted = Counted(
        files=[],
        splits=_splits(plan, datasets, sources),
        verdicts={},
        licences=licences,
        sources=dict(Counter(sources).most_common()),
        texts={},
        by_run={} if len(ids) <= COUNTED else None,
        duplicates=chosen.duplicates,
    )
    texts = TextCounts(plan.shape)
    rows: list[dict[str, Any]] = []
    for batch in release_rows(session, ids if len(ids) <= COUNTED else ids[:ROWS], plan.shape):
        for found in batch:
            row = row_of_run(found, plan.by_run[found.run_id], plan.shape)
            texts.add(row)
            language = language_of_row(row, plan.shape)
            counted.languages[language] = counted.languages.get(language, 0) + 1
            counted.verdicts[found.verdict] = counted.verdicts.get(found.verdict, 0) + 1
            if counted.by_run is not None:
                by_licence = counted.by_run.setdefault(found.run_id, {})
                by_licence[row["licence"]] = by_licence.get(row["licence"], 0) + 1
            counted.rescued += is_rescued(found)
            if len(rows) < ROWS:
                rows += default_rows(row, plan.shape)
    if len(ids) <= COUNTED:
        counted.texts = texts.summary()
    else:
        counted.rescued = sum(count_rescued(session, each.choice) for each in plan.runs)
    card = write_card(
        facts_of(session, plan, counted, known_leakage(session, plan.by_run, ids, plan.shape)), None
    )
    return ReleasePreview(len(ids), counted.splits, conflicts(licences), rows[:ROWS], card)


def _splits(plan: Plan, datasets: list[str], sources: list[str]) -> dict[str, int]:
    of = list(zip(datasets, sources, strict=True))
    found = Counter(plan.split(dataset, source, False) for dataset, source in of)
    if not plan.wanted.held_out:
        return dict(sorted(found.items()))
    held = Counter(plan.split(dataset, source, True) for dataset, source in of)
    out = {name: round(plan.wanted.held_out * count) for name, count in held.items()}
    left = {name: found[name] - out[other] for name, other in zip(found, held, strict=True)}
    return dict(sorted(left.items())) | dict(sorted(out.items()))
