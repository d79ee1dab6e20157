"""Added passages speak the language of their pair; runs made before that ask what they asked."""

import hashlib
import json
from dataclasses import replace

import pytest
from curation_runs import run_curation
from sqlalchemy import select, update
from sqlalchemy.orm import Session

from curation.importing.importing import import_dataset
from curation.judging import candidates
from curation.judging.candidates import HardPassages, choose_for, load_pool
from curation.recipe.recipe import load_recipe, recipe_from_store
from curation.recipe.settings import Validation
from curation.recorded.recording import SHIPPED
from curation.rules.language import language_of
from db.run.group_queue import ClaimedGroup
from db.store.store import Store
from db.tables import Group, Item, Pair, Passage

DEMO = SHIPPED.parent
# Of the passages that the version before added to the demo's groups (seed 0), by their names.
BEFORE = {
    "recorded": "b6b0b3e2025146e0ce625b358ac993a435390324919fe1f006e404a5e04af477",
    "offline": "0e72c6c972b9c2c339034bbce59c4350ca92f87861a119bba7e0b51395d05f91",
}
RECORDED_RECIPE = "12e2e93b340efa47bc0dcb49d53b03937751c039c981a85a7bea95e165219aee"


@pytest.fixture
def demo(sqlite_store: Store) -> Store:
    import_dataset(
        sqlite_store, name="demo", pairs=DEMO / "pairs.jsonl", passages=DEMO / "passages.jsonl"
    )
    return sqlite_store


def pairs_as_groups(session: Session) -> list[ClaimedGroup]:
    """The pairs of the store as a worker claims them."""
    query = select(Pair.id, Pair.external_id, Pair.query, Pair.passage_id, Passage.text)
    rows = session.execute(query.join(Passage, Passage.id == Pair.passage_id).order_by(Pair.id))
    return [ClaimedGroup(0, 0, *row) for row in rows]


def added(
    session: Session, groups: list[ClaimedGroup], rules: Validation, seed: int = 0
) -> list[list[tuple[int, str]]]:
    """What is added to each group."""
    pool = load_pool(session, 1, distractors=sum(rules.counts))
    hard = HardPassages(session, pool) if rules.hard_distractors else None
    return choose_for(session, pool, hard, groups, seed=seed, rules=rules)


def foreign(group: ClaimedGroup, passages: list[tuple[int, str]]) -> int:
    """How many of the passages are in another language than the group's."""
    language = language_of(group.passage)
    spoken = [language_of(text) for _, text in passages]
    return 0 if language is None else sum(one not in (None, language) for one in spoken)


@pytest.mark.long
@pytest.mark.parametrize("hard", (0, 2))
def test_no_group_of_a_new_run_gets_a_passage_in_another_language(demo: Store, hard: int) -> None:
    rules = Validation(hard_distractors=hard)
    with demo.read() as session:
        groups = pairs_as_groups(session)
        result = added(session, groups, rules)
        before = added(session, groups, replace(rules, distractors_in_language=False))
        assert added(session, groups, rules) == result  # in every worker, after every resume
        assert added(session, groups[::-1], rules) == result[::-1]
    assert sum(map(bool, map(foreign, groups, before))) > 0.4 * len(groups)
    assert sum(map(foreign, groups, result)) == 0
    assert {len(each) for each in result} == {3 + hard}
    same = [
        old == new
        for group, old, new in zip(groups, before, result, strict=True)
        if not foreign(group, old)
    ]  # stored answers about these items are found again
    assert all(same) and len(same) > 0.5 * len(groups)


@pytest.mark.long
def test_a_text_of_unclear_language_comes_after_those_in_the_language(demo: Store) -> None:
    """An English list of words, whose language no rule reads, is none of a German item's."""
    noted = {
        row["passage_id"]: row.get("language") or language_of(row["text"])
        for row in map(json.loads, (DEMO / "passages.jsonl").read_text().splitlines())
    }
    with demo.read() as session:
        names = dict(session.execute(select(Passage.id, Passage.external_id)).all())
        texts = dict(session.execute(select(Passage.id, Passage.text)).all())
        groups = pairs_as_groups(session)
        found = {seed: added(session, groups, Validation(), seed) for seed in (0, 1, 2)}
    unclear = [one for one, name in names.items() if language_of(texts[one]) is None]
    assert unclear and {noted[names[one]] for one in unclear} == {"en"}
    wrong = [
        (group.query_id, names[one], seed)
        for seed, chosen in found.items()
        for group, passages in zip(groups, chosen, strict=True)
        for one, _ in passages
        if group.passage_id not in unclear and noted[names[one]] != noted[names[group.passage_id]]
    ]
    assert not wrong


def test_a_pair_of_unclear_language_is_read_with_its_query(demo: Store) -> None:
    """A German list of foods got passages of any language; of no language at all it still does."""
    foods = "Linsen 9 g, Kichererbsen 9 g, Tofu 14 g, Bohnen 8 g, Quark 12 g"
    with demo.read() as session:
        group = next(one for one in pairs_as_groups(session) if language_of(one.passage) == "de")
        listed = replace(group, passage=foods, query="wie viel Eiweiß ist in einer Portion von dem")
        assert language_of(foods) is None and language_of(listed.query) == "de"
        found = [added(session, [listed], Validation(), seed)[0] for seed in range(10)]
        spoken = [language_of(text) for passages in found for _, text in passages]
        assert spoken == ["de"] * 30
        neither = replace(listed, query="Eiweiß Linsen")
        (one,), (other,) = (
            added(session, [neither], replace(Validation(), distractors_in_language=asked))
            for asked in (True, False)
        )
        assert one == other


def test_where_a_language_has_too_few_passages_others_fill_up(demo: Store) -> None:
    with demo.write() as session:
        german = [one for one in pairs_as_groups(session) if language_of(one.passage) == "de"]
        other = next(one for one in german if one.query != german[0].query)
        keep = {german[0].passage_id, other.passage_id}
        for passage_id, text in session.execute(select(Passage.id, Passage.text)).all():
            if language_of(text) == "de" and passage_id not in keep:
                session.execute(
                    update(Passage).where(Passage.id == passage_id).values(origin="generated")
                )
        (result,) = added(session, german[:1], Validation())
    assert len(result) == 3 and other.passage_id in [one for one, _ in result]
    assert foreign(german[0], result) > 0


def test_a_large_pool_is_not_read_through_for_a_rare_language(
    demo: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(candidates, "MAX_TRIED", 60)
    monkeypatch.setattr(candidates, "TRIED_AT_ONCE", 20)
    with demo.read() as session:
        groups = [one for one in pairs_as_groups(session) if language_of(one.passage) == "es"][:1]
        pool = load_pool(session, 1, distractors=3)
        (result,) = choose_for(session, pool, None, groups, seed=0, rules=Validation())
    assert len(result) == 3 and len(pool.languages) < 80


@pytest.mark.parametrize("name", BEFORE)
def test_a_run_made_before_gets_the_passages_that_it_got(demo: Store, name: str) -> None:
    rules = replace(load_recipe(name).validation, distractors_in_language=False)
    with demo.read() as session:
        names = dict(session.execute(select(Passage.id, Passage.external_id)).all())
        found = added(session, pairs_as_groups(session), rules)
    listed = json.dumps([[names[one] for one, _ in each] for each in found])
    assert hashlib.sha256(listed.encode()).hexdigest() == BEFORE[name]


def test_a_recipe_stored_before_reads_as_without_the_language_and_keeps_its_hash() -> None:
    recipe = load_recipe("recorded", ["validation.distractors_in_language=false"])
    body = recipe.body()
    prompts = {sha256: text for sha256, (_, text) in recipe.prompts().items()}
    assert recipe.sha256 == RECORDED_RECIPE and "distractors_in_language" not in body["validation"]
    assert recipe_from_store(body, prompts) == recipe
    for name in ("recorded", "offline"):
        new = load_recipe(name)
        prompts = {sha256: text for sha256, (_, text) in new.prompts().items()}
        assert new.validation.distractors_in_language and new.sha256 != RECORDED_RECIPE
        assert recipe_from_store(new.body(), prompts).validation == new.validation
    off = load_recipe("offline", ["validation.distractors_in_language=false"])
    assert off.body()["validation"] == {"distractors": 3, "hard_distractors": 0, "votes": 1}


@pytest.mark.long
def test_a_run_holds_what_its_recipe_asks_for(demo: Store) -> None:
    for settings, limit in (((), 0), (("validation.distractors_in_language=false",), 1)):
        result = run_curation(
            demo, dataset="demo", provider="offline", settings=settings, sample=24, guard=False
        )
        with demo.read() as session:
            texts = dict(session.execute(select(Passage.id, Passage.text)).all())
            groups = pairs_as_groups(session)
            items = session.execute(
                select(Item.candidates, Group.pair_id)
                .join(Group, Group.id == Item.group_id)
                .where(Group.run_id == result["run_id"])
            ).all()
        by_id = {each.pair_id: each for each in groups}
        counts = [
            foreign(
                by_id[pair_id],
                [
                    (each["passage_id"], texts[each["passage_id"]])
                    for each in listed
                    if each["label"].startswith("distractor")
                ],
            )
            for listed, pair_id in items
        ]
        assert len(counts) > 20
        assert sum(counts) >= limit if limit else sum(counts) == 0
