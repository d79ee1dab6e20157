"""The consensus of a study's people by Dawid and Skene, and how judges compare with it."""

from collections import defaultdict
from collections.abc import Collection, Hashable, Mapping
from typing import Any

from sqlalchemy.orm import Session

from analysis.agreement.flagged import WITHOUT, flag_note
from analysis.agreement.judgment_filter import decisions_of
from analysis.figures.means import share_of
from analysis.figures.numbers import Cells
from analysis.study.dawid_skene import consensus_rows, dawid_skene, judge_quality
from curation.judging.about_run import rows_of_people
from db.question import is_right
from db.study.items import ItemPlace, study_item_places
from db.study.judgments import JudgmentRow, judgment_frame
from db.study.quality import flagged_people
from db.study.studies import get_study

SURE = 0.9


def study_consensus(
    session: Session, study_id: int, *, without: Collection[int] = (), with_flags: bool = True
) -> dict[str, Any]:
    """Judges' quality and a consensus label with its probability for every judged item.

    The consensus is of people alone, so that no model is compared with itself; a model's `accuracy`
    is the mean probability of its labels. `without`: items to leave out. Where people are flagged
    (`flagged`, why by name), each judge's row and `sure` have themselves by the consensus of the
    others in `without_flagged`. with_flags: False for who must not see which people fail gold.
    Raises NotFound.
    """
    get_study(session, study_id)
    left_out = set(without)
    every = [row for row in judgment_frame(session, study_id) if row.item_id not in left_out]
    places = study_item_places(session, study_id)
    found = {"study_id": study_id, **_consensus(every, places)}
    judges = {row["judge"] for row in found["judges"]}
    flags = flagged_people(session, study_id) if with_flags else {}
    flagged = {name: why for name, why in flags.items() if name in judges}
    if not flagged:
        return {**found, "flagged": {}}
    others = _consensus([row for row in every if row.judge not in flagged], places)
    for part in ("judges", "models"):
        by_judge = {row["judge"]: row for row in others[part]}
        found[part] = [
            {**row, "without_flagged": by_judge.get(row["judge"])} for row in found[part]
        ]
    return {**found, "flagged": flagged, "without_flagged": {"sure": others.get("sure", 0)}}


def flagged_note(report: Mapping[str, Any]) -> str:
    """Who behind the consensus is flagged, and how sure it is without them; "" for nobody."""
    if not report.get("flagged"):
        return ""
    sure = report["without_flagged"]["sure"]
    return f"{flag_note([report])} Without them {sure:,} labels are that sure."


def _consensus(every: list[JudgmentRow], places: Mapping[int, ItemPlace]) -> dict[str, Any]:
    rows, simulated = rows_of_people(every)
    if not rows:
        return {"simulated": False, "sure": 0, "judges": [], "models": [], "items": []}
    scenario: dict[Hashable, str] = {item: place.scenario for item, place in places.items()}
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
            "is_right": is_right(row["label"], places[row["item"]].expected),
        }
        for row in consensus_rows(consensus)
    ]
    return {
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


def judge_rows(report: Mapping[str, Any]) -> list[Cells]:
    """A row per person, then per model, which is compared with the people's consensus; with a
    column by the consensus without flagged people, if there are any."""
    return [
        *(_consensus_row(row, "compared") for row in report["judges"]),
        *(_consensus_row(row, "items") for row in report["models"]),
    ]


def _consensus_row(row: Mapping[str, Any], number: str) -> Cells:
    """A judge; `number` names the count of items that the shares are of. A model has no others."""
    return {
        "Judge": row["judge"],
        "Items": row["items"],
        "Right": _share(row, "accuracy", number),
        "Others on the same items": _share(row, "others", number),
        "p": row.get("p"),
        "Outlier": "yes" if row.get("outlier") else "",
        "Reason if undefined": row.get("reason", ""),
        **(
            {WITHOUT: _share(row["without_flagged"] or {}, "accuracy", number)}
            if "without_flagged" in row
            else {}
        ),
    }


def _share(row: Mapping[str, Any], name: str, number: str) -> str | None:
    """A share of the judge's items with its interval, as everywhere; None where undefined."""
    return None if row.get(name) is None else share_of(row[name], row[number])
