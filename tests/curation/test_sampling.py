"""Sampling of study items: strata, disagreement of judges, lists; and the command."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Ran, count_rows
from made_study import make_study
from sqlalchemy import select
from study_world import make_world

from analysis.study.design import design_of
from curation.judging.sampling import (
    Sampling,
    describe_sampling,
    disagreement_of,
    listed_items,
    sample_study_items,
)
from curation.judging.scope import describe_scope
from db.errors import BadInput, BadRows
from db.store.store import Store
from db.study import studies
from db.study.judgments import get_or_create_judge, record_judgment
from db.tables import Dataset, Group, Item, Pair, Passage, Study, StudyItem


def make_rare(store: Store, run_id: int) -> None:
    """Every fifth pair of the run is from the source "rare"."""
    with store.write() as session:
        session.get_one(Dataset, 1).source = "common"
        query = select(Pair).join(Group, Group.pair_id == Pair.id).where(Group.run_id == run_id)
        for number, pair in enumerate(session.scalars(query.order_by(Pair.id))):
            if number % 5 == 0:
                pair.meta = {"source": "rare"}
        session.commit()


def notify(store: Store, said: dict[int, dict[str, str]], *, kind: str = "model") -> None:
    """Judges answer items: {item: {judge: choice}}."""
    with store.write() as session:
        for item_id, by_judge in said.items():
            order = [entry["label"] for entry in session.get_one(Item, item_id).candidates]
            for judge, choice in by_judge.items():
                record_judgment(
                    session,
                    judge_id=get_or_create_judge(session, judge, kind=kind).id,
                    item_id=item_id,
                    choice=choice,
                    order_shown=order,
                    event_id=f"{judge}/{item_id}",
                )
        session.commit()


def groups_of(store: Store, run_id: int) -> dict[int, dict[str, int]]:
    with store.read() as session:
        return studies.judged_groups(session, run_id)


def test_a_rare_source_gets_as_many_items_as_a_common_one(store: Store) -> None:
    run_id = make_world(store, 20)
    make_rare(store, run_id)
    with store.read() as session:
        even = sample_study_items(
            session, run_id, Sampling(strata=("scenario", "source", "verdict")), 8, 3
        )
        again = sample_study_items(
            session, run_id, Sampling(strata=("scenario", "source", "verdict")), 8, 3
        )
        scenarios = Counter(session.get_one(Item, each).scenario for each in even.item_ids)
        plain = sample_study_items(session, run_id, Sampling(), 20, 3)
    # 20 groups: sources rare (0, 5, 10, 15; of them 10 is dropped) and common; 2 of each stratum,
    # but of the dropped rare ones there is one: the third is another stratum's.
    assert even.settings["sources"] == {"rare": 3, "common": 5}
    assert even.item_ids == again.item_ids
    assert max(scenarios.values()) - min(scenarios.values()) <= 1
    assert plain.settings["sources"] == {"rare": 4, "common": 16}
    assert even.settings["strata"] == ["scenario", "source", "verdict"]


def test_a_study_in_one_language_has_pairs_of_no_other_and_is_no_sample_of_the_run(
    store: Store,
) -> None:
    run_id = make_world(store, 6)
    german = "Wenn es im Winter kalt ist und der Wind weht, dann ist das Haus nicht warm."
    with store.write() as session:
        for pair in session.scalars(select(Pair).order_by(Pair.id).limit(2)):
            passage = session.get_one(Passage, pair.passage_id)
            passage.text = f"{german} ({pair.id})"
        session.commit()
    with store.read() as session:
        in_german = Sampling(sample="random", language="de")
        sampled = sample_study_items(session, run_id, in_german, 2, seed=0)
        chosen = {session.get_one(Item, item_id).group_id for item_id in sampled.item_ids}
        pairs = select(Group.id).join(Pair).join(Passage, Passage.id == Pair.passage_id)
        found = session.scalars(
            pairs.where(Group.run_id == run_id, Passage.text.startswith(german))
        )
        assert chosen == set(found) and len(chosen) == 2
        assert sampled.settings["language"] == "de"
        with pytest.raises(BadInput, match="2 groups of pairs in German that reached"):
            sample_study_items(session, run_id, in_german, 3, seed=0)
    assert design_of(sampled.settings).known == ()
    scope = describe_scope(sampled.settings, {"kept": 2}, {"kept": 6})
    assert not scope.of_run and "of pairs in German alone" in scope.sentence
    assert describe_sampling(sampled.settings) == "at random of pairs in German"


def test_items_come_where_models_disagree_most(store: Store) -> None:
    run_id = make_world(store, 6)
    groups = groups_of(store, run_id)
    first, second, third, fourth, *_ = groups
    split = groups[second]["query_negative"]
    half = groups[first]["positive"]
    agreed = groups[third]["positive"]
    notify(store, {
        split: {"m1": "positive", "m2": "none", "m3": "query_negative"},
        groups[second]["positive"]: {"m1": "positive", "m2": "positive"},
        half: {"m1": "positive", "m2": "none", "m3": "none"},
        agreed: {"m1": "positive", "m2": "positive"},
        groups[fourth]["positive"]: {"m1": "none"},
    })  # fmt: skip
    notify(store, {groups[fourth]["positive"]: {"ann": "positive"}}, kind="person")
    by_models = Sampling("disagreement")
    with store.read() as session:
        # Of three judgments with labels a b c no pair agrees; with a b b one of three pairs does.
        value = disagreement_of(session, run_id, by_models)
        assert value == {
            split: 1.0, half: pytest.approx(2 / 3), agreed: 0.0, groups[second]["positive"]: 0.0
        }  # fmt: skip
        drawn = sample_study_items(session, run_id, by_models, 3, 0)
        assert drawn.item_ids == [split, half, agreed]
        assert drawn.settings["disagreed"] == 2
        two = sample_study_items(
            session, run_id, Sampling("disagreement", judges=("m2", "m3")), 2, 0
        )
        assert two.item_ids == [split, half]
        with pytest.raises(BadInput, match="3 groups of run 1 have an item"):
            sample_study_items(session, run_id, by_models, 4, 0)
        with pytest.raises(BadInput, match="m9 judged nothing in run 1: there are m1, m2, m3"):
            sample_study_items(session, run_id, Sampling("disagreement", judges=("m1", "m9")), 1, 0)


def test_an_earlier_studys_judges_are_asked_where_it_is_named(store: Store) -> None:
    run_id, other = make_world(store, 6), make_world(store, 3, name="other")
    made = make_study(store, dataset="world", run_id=run_id, items=3, overlap=2)
    with store.write() as session:
        found = select(StudyItem.item_id).where(StudyItem.study_id == made["study_id"])
        items = list(session.scalars(found))
        for judge, choice in (("ann", "positive"), ("bob", "none")):
            for item_id in items:
                order = [e["label"] for e in session.get_one(Item, item_id).candidates]
                record_judgment(
                    session,
                    judge_id=get_or_create_judge(session, judge, kind="person").id,
                    item_id=item_id,
                    choice=choice if item_id == items[0] else "none",
                    order_shown=order,
                    event_id=f"{judge}/{item_id}",
                    study_id=made["study_id"],
                )
        session.commit()
        earlier = Sampling("disagreement", of_study=made["study_id"])
        assert sample_study_items(session, run_id, earlier, 1, 0).item_ids == [items[0]]
        with pytest.raises(BadInput, match=f"is of run {run_id}, not of run {other}"):
            sample_study_items(session, other, earlier, 1, 0)


def test_a_list_names_groups_scenarios_and_items(sqlite_store: Store) -> None:
    groups = groups_of(sqlite_store, make_world(sqlite_store, 4))
    one, two, three, _ = groups
    item = groups[three]["query_negative"]
    lines = [f"{one}  # the first", "", f"{two} instruction_negative", f"item {item}"]
    assert listed_items(lines, "ids.txt", 1, groups) == {
        one: groups[one],
        two: {"instruction_negative": groups[two]["instruction_negative"]},
        three: {"query_negative": item},
    }
    with sqlite_store.read() as session:
        drawn = sample_study_items(session, 1, Sampling("list", lines=tuple(lines)), None, 0)
    assert sorted(drawn.item_ids)[1:] == sorted([groups[two]["instruction_negative"], item])
    assert len(drawn.item_ids) == 3


def test_every_bad_line_of_a_list_is_told(sqlite_store: Store) -> None:
    groups = groups_of(sqlite_store, make_world(sqlite_store, 2))
    item = groups[1]["positive"]
    lines = ["1", "99", "x", "2 sideways", "item 999", f"item {item}", "1 2 3", "²", "9" * 30]
    with pytest.raises(BadRows) as refused:
        listed_items(lines, "ids.txt", 1, groups)
    assert [(row.line, row.reason.split(":")[0]) for row in refused.value.rows] == [
        (2, "group 99 did not reach validation in run 1"),
        (3, "'x' is not the number of a group or an item"),
        (4, "'sideways' is not a scenario of group 2"),
        (5, "item 999 is not a current item of run 1"),
        (6, "group 1 is in line 1 already"),
        (7, "'1 2 3' is neither GROUP, GROUP SCENARIO nor item ITEM"),
        (8, "'²' is not the number of a group or an item"),
        (9, f"'{'9' * 30}' is not the number of a group or an item"),
    ]
    with pytest.raises(BadInput, match="lists no group"):
        listed_items(["# nothing"], "ids.txt", 1, groups)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ({"sample": "best"}, "no sampling 'best'"),
        ({"strata": ("length",)}, "no stratum 'length'"),
        ({"judges": ("m1", "m2")}, "sampling by disagreement"),
        ({"lines": ("1",)}, "sampling by a list"),
        ({"sample": "disagreement", "judges": ("m1",)}, "cannot disagree with itself"),
    ],
)
def test_what_does_not_go_together_is_refused(words: dict[str, str], told: str) -> None:
    with pytest.raises(BadInput, match=told):
        Sampling(**words)  # type: ignore[arg-type]


def test_two_items_of_a_group_are_never_in_a_study(sqlite_store: Store) -> None:
    run_id = make_world(sqlite_store, 2)
    groups = groups_of(sqlite_store, run_id)
    two = list(groups[1].values())[:2]
    with sqlite_store.write() as session:
        with pytest.raises(BadInput, match="at most one item of each group"):
            studies.add_study(session, run_id=run_id, item_ids=two, overlap=1)
        with pytest.raises(BadInput, match="item 999 is not an item of run"):
            studies.add_study(session, run_id=run_id, item_ids=[999], overlap=1)
        with pytest.raises(BadInput, match="at least one item"):
            studies.add_study(session, run_id=run_id, item_ids=[], overlap=1)


def test_the_command_samples_and_records_how(
    sqlite_store: Store, inf: Callable[..., Ran], tmp_path: Path
) -> None:
    run_id = make_world(sqlite_store, 10)
    make_rare(sqlite_store, run_id)
    create = ("study", "create", "--dataset", "world", "--overlap", 1, "--json")
    even = inf(*create, "--items", 4, "--strata", "source", "--seed", 7).json
    assert (even["sampling"]["sources"], even["seed"]) == ({"rare": 2, "common": 2}, 7)
    wanted = tmp_path / "ids.txt"
    wanted.write_text("2\n3 query_negative\n")
    listed = inf(*create, "--sample", "list", "--list", wanted).json
    assert (listed["items"], listed["sampling"]["file"]) == (2, "ids.txt")
    wanted.write_text("2\n77\n")
    bad = inf(*create, "--sample", "list", "--list", wanted)
    assert bad.code == 1 and "ids.txt, line 2: group 77" in bad.json["error"]
    assert "--list FILE" in inf(*create, "--sample", "list").json["error"]
    none = inf(*create, "--items", 1, "--sample", "disagreement")
    assert none.code == 1 and "let a second model judge" in none.json["error"]
    assert count_rows(sqlite_store, "study") == 2
    with sqlite_store.read() as session:
        assert session.get_one(Study, 1).settings["strata"] == ["source"]
        assert session.get_one(Study, 1).seed == 7
