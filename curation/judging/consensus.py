"""The consensus of a study's people by Dawid and Skene, and how judges compare with it."""

from collections import defaultdict
from collections.abc import Collection, Hashable
from typing import Any

from sqlalchemy.orm import Session

from analysis.agreement.judgment_filter import decisions_of
from analysis.figures.means import share_of
from analysis.study.dawid_skene import consensus_rows, dawid_skene, judge_quality
from curation.judging.about_run import rows_of_people
from db.study.items import study_item_places
from db.study.judgments import judgment_frame
from db.study.studies import get_study

SURE = 0.9


def study_consensus(
    session: Session, study_id: int, *, without: Collection[int] = ()
) -> dict[str, Any]:
    """Judges' quality and a consensus label with its probability for every judged item.

    The consensus is of people alone, so that no model is compared with itself; a model's `accuracy`
    is the mean probability of its labels. `without`: items to leave out. Raises NotFound.
    """
    get_study(session, study_id)
    left_out = set(without)
    every = [row for row in judgment_frame(session, study_id) if row.item_id not in left_out]
    scenario: dict[Hashable, str] = {
        item_id: place.scenario for item_id, place in study_item_places(session, study_id).items()
    }
    rows, simulated = rows_of_people(every)
    if not rows:
        return {"study_id": study_id, "simulated": False, "judges": [], "models": [], "items": []}
    consensus = dawid_skene(decisions_of(rows), strata=scenario)
    labels = {label: place for place, label in enumerate(consensus.answers.labels)}
    place_of = {item: place for place, item in enumerate(consensus.answers.items)}
    of_models: dict[str, list[float]] = defaultdict(list)
    for row in every:
        if row.kind == "model" and row.item_id in place_of:
            known = row.label in labels
            chance = consensus.probability[place_of[row.item_id], labels[row.label]] if known else 0
            of_models[row.judge].append(float(chance))
    items = [
        {
            **row,
            "scenario": scenario[row["item"]],
            "is_right": row["label"] == scenario[row["item"]],
        }
        for row in consensus_rows(consensus)
    ]
    return {
        "study_id": study_id,
        "simulated": simulated,
        "sure": sum(row["probability"] >= SURE for row in items),
        "judges": judge_quality(consensus, scenario),
        "models": [
            {"judge": name, "items": len(found), "accuracy": sum(found) / len(found)}
            for name, found in sorted(of_models.items())
        ],
        "items": items,
    }


def outlier_sentences(report: dict[str, Any]) -> list[str]:
    """A sentence per judge who is clearly below the others, with what they do."""
    found = []
    for row in report["judges"]:
        if not row["outlier"]:
            continue
        text = (
            f"{row['judge']} is right on {share_of(row['accuracy'], row['compared'])} of "
            f"{row['compared']:,} items where the others are on "
            f"{share_of(row['others'], row['compared'])}; p {row['p']:.2g}"
        )
        if "worst" in row:
            text += (
                f"; most of all on {row['worst'].replace('_', ' ')} items "
                f"({share_of(row['worst_accuracy'], row['worst_items'])} against "
                f"{share_of(row['worst_others'], row['worst_items'])})"
            )
        if "instead" in row:
            text += f", where they choose {row['instead'].replace('_', ' ')} instead"
        found.append(text + ".")
    return found
