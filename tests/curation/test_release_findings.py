"""The card tells what was measured of a release's groups, and what nobody measured."""

import json
import re
import time
from datetime import timedelta
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import yaml
from exporting import export
from records_world import group_ids, make_run
from sqlalchemy import select
from study_world import sampled_study

from curation.release.card.croissant import CROISSANT
from db.errors import Refused
from db.jobs.runner import JobHandle
from db.outcome.analyses import store_analysis
from db.review.reviews import approve_group
from db.shape import INF_IR
from db.store.store import Store
from db.study.judgments import get_or_create_judge, record_judgment
from db.study.quality import flagged_people
from db.tables import Dataset, Judgment, StudyItem, utc_now


def test_what_nobody_measured_is_said_with_the_command(store: Store, tmp_path: Path) -> None:
    make_run(store)
    export(store, tmp_path / "out")
    card = (tmp_path / "out" / "README.md").read_text()
    for words in ("inf studies create", "inf analyze diversity --dataset books", "contamination"):
        assert words in card
    with pytest.raises(Refused, match="was not compared with evaluation sets"):
        export(store, tmp_path / "clean", leave_out_contaminated=True)


def test_agreement_diversity_and_contamination_stand_on_the_card(
    store: Store, tmp_path: Path
) -> None:
    run_id = make_run(store, kept=12, dropped=4)
    first = group_ids(store, run_id)[0]
    numbers = {"texts": 12, "aps": 0.25, "ingf_2": 1.5, "ingf_3": None}
    with store.write() as session:
        dataset_id = session.scalars(select(Dataset.id)).one()
        fields = {"passage": numbers}
        corpora = [{"corpus": "books", "run_id": run_id, "groups": 12, "fields": fields}]
        for kind, result in (
            ("diversity", {"model": "mini", "corpora": corpora}),
            ("coverage", {"model": "mini", "corpora": corpora, "points": 9}),
            (
                "contamination",
                {
                    "corpora": corpora,
                    "against": [{"corpus": "FollowIR"}],
                    "texts": 1,
                    "groups": [first],
                },
            ),
        ):
            store_analysis(
                session,
                kind=kind,
                inputs_sha256=kind,
                config={},
                result=result,
                dataset_id=dataset_id,
            )
        study = sampled_study(session, run_id=run_id, items=12, overlap=2)
        items = session.scalars(select(StudyItem.item_id)).all()
        for number, name in enumerate(("ada lovelace", "charles babbage")):
            judge = get_or_create_judge(session, name, kind="person")
            for place, item_id in enumerate(items):
                record_judgment(
                    session,
                    judge_id=judge.id,
                    item_id=item_id,
                    choice=INF_IR.roles[(place + number * (place == 0)) % 3],
                    order_shown=list(INF_IR.roles),
                    event_id=f"{name} {item_id}",
                    study_id=study.id,
                )
        session.commit()
    export(store, tmp_path / "out")
    card = (tmp_path / "out" / "README.md").read_text()
    figure = r"0\.\d{3} \(-?\d\.\d{3} to \d\.\d{3}\)"
    assert re.search(rf"people with each other \| Cohen's kappa \| {figure}", card)
    assert "| people with `offline:embedding` |" in card
    assert "Diversity of the run's 12 kept groups, with the vectors of mini" in card
    assert (
        "UMAP of the 9 texts of the run's 12 kept groups" in card and "whole run, with" not in card
    )
    assert "| passage | 12 | 0.2500 | 1.5000 | undefined |" in card
    assert "1 in 1 groups overlap with FollowIR" in card
    assert "lovelace" not in card and "babbage" not in card
    clean = export(store, tmp_path / "clean", leave_out_contaminated=True)
    assert clean["groups"] == 11
    assert "left out of this release" in (tmp_path / "clean" / "README.md").read_text()


@pytest.mark.long
def test_a_large_team_is_on_the_card_in_seconds_and_flagged_people_are_named_by_pseudonyms(
    sqlite_store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """100 people, three for each item: the posterior of pairs took 585 s and 14.9 GB for 1,300."""
    run_id = make_run(sqlite_store, kept=240, dropped=60)
    rng = np.random.default_rng(0)
    with sqlite_store.write() as session:
        study = sampled_study(session, run_id=run_id, items=300, overlap=3)
        items = session.scalars(select(StudyItem.item_id)).all()
        names = [f"person {number:03d}" for number in range(100)]
        judges = [get_or_create_judge(session, name, kind="person").id for name in names]
        for item_id in items:
            truth = INF_IR.roles[item_id % 3]
            for judge_id in rng.choice(judges, 3, replace=False).tolist():
                is_fast = judge_id in judges[:14]
                at = utc_now()
                right = not is_fast and rng.random() < 0.8
                session.add(
                    Judgment(
                        event_id=f"{judge_id} {item_id}",
                        judge_id=judge_id,
                        item_id=item_id,
                        study_id=study.id,
                        choice=truth if right else INF_IR.roles[rng.integers(3)],
                        order_shown=list(INF_IR.roles),
                        shown_at=at - timedelta(seconds=0.3 if is_fast else 8),
                        decided_at=at,
                    )
                )
        session.commit()
        flagged = flagged_people(session, study.id)
    assert 0 < len(flagged) <= 14 and set(flagged) <= set(names[:14])
    stages: list[str] = []

    def reported(handle: JobHandle, done: int, total: int | None, message: str) -> None:
        stages.append(message)

    monkeypatch.setattr(JobHandle, "report", reported)
    spent = time.process_time()
    export(sqlite_store, tmp_path / "out")
    assert time.process_time() - spent < 30, "seconds of CPU for the whole release"
    assert list(dict.fromkeys(stages)) == [
        "writing groups",
        "measuring leakage",
        "computing the agreement of study 1",
        "writing the card",
    ]
    card = (tmp_path / "out" / "README.md").read_text()
    assert re.search(r"people with each other \| Krippendorff's alpha \| 0\.\d{3} \(", card)
    named = {f"person-{judges[names.index(name)]}": why for name, why in flagged.items()}
    assert len(named) > 5, "more than a sentence of the page would name"
    everyone = ", ".join(f"{name} ({named[name]})" for name in sorted(named))
    assert f"Flagged: {everyone}." in card
    of_run = re.search(r"Validator over the run, by study 1: [^\n]*", card)
    assert of_run and f"Flagged: {everyone}. Precision without flagged people: " in of_run[0]
    (of_study,) = yaml.safe_load(card.split("---\n")[1])["annotator_agreement"]
    assert of_study["flagged"] == sorted(named)
    assert of_study["without_flagged"]["value"] > of_study["value"], "they answered by chance"
    described = json.loads((tmp_path / "out" / CROISSANT).read_text())
    (sentence,) = described["rai:dataAnnotationAnalysis"]
    assert f"Flagged: {', '.join(sorted(named))}; without them 0." in sentence
    assert "| between | coefficient | value | without flagged people |" in card
    value = r"0\.\d{3} \(0\.\d{3} to 0\.\d{3}\)"
    for label in ("Krippendorff's alpha", "Fleiss' kappa", "Raw agreement"):
        both = re.search(rf"\| {label} \| {value} \| {value} \|", card)
        assert both, f"{label} with and without the people flagged"
    assert re.search(r"\(precision\) \| [^|]+% to [^|]+\| \d+\.\d% \(", card)
    published = [path for path in (tmp_path / "out").rglob("*") if path.is_file()]
    assert len(published) > 3
    for path in published:
        assert b"person 0" not in path.read_bytes(), f"a name in {path.name}"
    answers = pq.read_table(tmp_path / "out" / "judgments").to_pylist()
    assert set(named) <= {row["judge"] for row in answers}, "who is flagged is found there"


def test_a_comparison_of_a_part_leaves_nothing_out(store: Store, tmp_path: Path) -> None:
    run_id = make_run(store)
    result = {
        "corpora": [{"corpus": "books", "run_id": run_id}],
        "against": [{"corpus": "FollowIR"}],
        "texts": 1,
        "groups": [group_ids(store, run_id)[0]],
    }

    def compared(name: str, **config: object) -> None:
        with store.write() as session:
            store_analysis(
                session,
                kind="contamination",
                inputs_sha256=name,
                config=config,
                result=result,
                dataset_id=session.scalars(select(Dataset.id)).one(),
            )
            session.commit()

    compared("of one source", sources=["nq"])
    with pytest.raises(Refused, match="was not compared with evaluation sets"):
        export(store, tmp_path / "a", leave_out_contaminated=True)
    compared("of kept groups")
    with pytest.raises(Refused, match="groups=all against="):
        export(store, tmp_path / "b", leave_out_contaminated=True, include_dropped=True)
    export(store, tmp_path / "c", leave_out_contaminated=True)
    with store.write() as session:
        rescued = group_ids(store, run_id, "dropped")[0]
        approve_group(session, rescued, reviewed_by="ada")
        session.commit()
    with pytest.raises(Refused, match="groups=all against="):  # it was not among those compared
        export(store, tmp_path / "e", leave_out_contaminated=True)
    compared("of all groups", groups="all")
    export(store, tmp_path / "d", leave_out_contaminated=True, include_dropped=True)
