"""The adversarial annotator: everything that reaches a judge, against the roles in the store.

Texts are exchangeable between roles, so a classifier over all bytes must do no better than chance;
with an old leak put back, the same classifier must find it.
"""

import asyncio
import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from exchangeable_world import make_exchangeable_cards, make_exchangeable_study
from leak_finder import Truth, find_leak, find_leaks
from reading_annotator import ReadingAnnotator, Sighting
from restartable import Restartable, restartable
from sqlalchemy import select

from db.people.accounts import add_account
from db.question import about_of, about_shown
from db.store.store import Store, open_store
from db.tables import Assignment, Item, Judge, Passage, StudyItem

pytestmark = [pytest.mark.long, pytest.mark.slow]

ITEMS, GOLD, PEOPLE = 600, 60, ("ann", "bob", "cem")
CARDS, GOLD_CARDS = 150, 30  # of Promptriever's shape, 3 to 5 items each
PLANTED_ITEMS, PLANTED_GOLD = 240, 24
PASSWORD = "correct horse battery"
TESTS = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The servers' home."""
    return tmp_path_factory.mktemp("blind")


@pytest.fixture(scope="module")
def store(sqlite_template: Path, folder: Path) -> Iterator[Store]:
    """One store with three annotators, and a study for each test."""
    shutil.copy(sqlite_template, folder / "inf.db")
    found = open_store(f"sqlite:///{folder / 'inf.db'}")
    with found.write() as session:
        for name in PEOPLE:
            add_account(session, name, PASSWORD, role="annotator", actor="test")
        session.commit()
    yield found
    found.close()


def read_everything(
    server: Restartable, study_id: int, items: int, *, pages: bool = False
) -> list[ReadingAnnotator]:
    """Three annotators judge the study one after the other, each a third of it."""
    people: list[ReadingAnnotator] = []
    for number, name in enumerate(PEOPLE):
        first = sum(len(each.sightings) for each in people)
        person = ReadingAnnotator(
            server.url, study_id, name, "", seed=number, items=items, first=first
        )
        person.sign_in(PASSWORD)
        asyncio.run(person.judge(most=items // 3 if name != PEOPLE[-1] else 10 * items))
        people.append(person)
    for person in people if pages else ():
        groups = [f"run=1&group={number}" for number in range(1, items, items // 3)]
        asyncio.run(person.read_pages(f"study={study_id}", "run=1", *groups))
    return people


def truths(store: Store, study_id: int, people: list[ReadingAnnotator]) -> list[Truth]:
    """What the store knows of each sighting, found by its texts."""
    with store.read() as session:
        texts = dict(session.execute(select(Passage.id, Passage.text)).all())
        rows = session.execute(
            select(Item, StudyItem.part, Assignment.order_shown, Judge.name)
            .join(StudyItem, StudyItem.item_id == Item.id)
            .join(Assignment, Assignment.item_id == Item.id)
            .join(Judge, Judge.id == Assignment.judge_id)
            .where(StudyItem.study_id == study_id)
        ).all()
    known = {}
    for item, part, order, judge in rows:
        text_of = {each["label"]: texts[each["passage_id"]] for each in item.candidates}
        about = about_shown(item.scenario, order)
        shown = (judge, item.instruction, about, *(text_of[label] for label in order))
        kind, card = item.scenario, None
        if about is not None:
            kind, card = about_of(item.scenario).rstrip("_123"), item.group_id
        known[shown] = Truth(part == "gold", kind, tuple(order), card)
    return [
        known[
            person.name, each.item["instruction"], each.item.get("about"), *each.item["candidates"]
        ]
        for person in people
        for each in person.sightings
    ]


def sightings(people: list[ReadingAnnotator]) -> list[Sighting]:
    return [each for person in people for each in person.sightings]


def assert_blind(store: Store, study_id: int, people: list[ReadingAnnotator]) -> None:
    """No feature tells a role or gold, and no text of an item came by another way."""
    seen = sightings(people)
    found = find_leaks(seen, truths(store, study_id, people))
    assert not [each for each in found if each.is_leak], found
    elsewhere = b"\n".join(each for person in people for each in person.elsewhere).decode(
        errors="replace"
    )
    shown = {text for each in seen for text in (each.item["instruction"], *each.item["candidates"])}
    assert not [text for text in shown if text in elsewhere]


def test_nothing_that_reaches_an_annotator_tells_roles_apart(store: Store, folder: Path) -> None:
    study_id = make_exchangeable_study(store, name="clean", items=ITEMS, gold=GOLD)
    with restartable(folder, store.url) as server:
        people = read_everything(server, study_id, ITEMS, pages=True)
    assert len(sightings(people)) >= ITEMS
    assert_blind(store, study_id, people)


def test_nothing_tells_the_negatives_of_a_card_from_its_positive(
    store: Store, folder: Path
) -> None:
    study_id = make_exchangeable_cards(store, folder, name="cards", records=CARDS, gold=GOLD_CARDS)
    with restartable(folder, store.url) as server:
        people = read_everything(server, study_id, 4 * CARDS)
    known = truths(store, study_id, people)
    assert len({each.card for each in known}) >= CARDS
    assert {each.scenario for each in known} == {
        "positive",
        "instruction_negative",
        "hard_negative",
    }
    assert_blind(store, study_id, people)


LEAKS = {
    "seeded order": ("passage is positive", {"gold": 0}),
    "ids in turn": ("item is positive", {"gold": 0, "ids_in_turn": True}),
    "size": ("item is query_negative", {"gold": 0}),
    "gold jump": ("item is gold", {"gold": PLANTED_GOLD}),
    "order of the sample": ("item is positive", {"gold": 0, "in_order_of_sample": True}),
    "size of a card's item": ("item is hard_negative", {}),
    "order of the file": ("item is positive", {}),
}
OF_CARDS = ("size of a card's item", "order of the file")


@pytest.fixture(scope="module")
def planted(store: Store, folder: Path) -> Iterator[tuple[Restartable, dict[str, int]]]:
    """A server with every old leak put back, each in its own study."""
    studies = {
        leak: make_exchangeable_study(store, name=leak, items=PLANTED_ITEMS, **world)  # type: ignore[arg-type]
        for leak, (_, world) in LEAKS.items()
        if leak not in OF_CARDS
    }
    for leak in OF_CARDS:
        studies[leak] = make_exchangeable_cards(
            store, folder, name=leak, records=PLANTED_ITEMS // 4, gold=0
        )
    leaks = json.dumps({study: leak for leak, study in studies.items()})
    command = (str(TESTS / "planted_server.py"),)
    with restartable(folder, store.url, command=command, INF_TEST_LEAKS=leaks) as server:
        yield server, studies


@pytest.mark.parametrize("leak", LEAKS)
def test_an_old_leak_put_back_is_found(
    store: Store, planted: tuple[Restartable, dict[str, int]], leak: str
) -> None:
    server, studies = planted
    people = read_everything(server, studies[leak], PLANTED_ITEMS)
    found = find_leak(sightings(people), truths(store, studies[leak], people), LEAKS[leak][0])
    assert found.is_leak
    assert found.auc >= 0.9, found
