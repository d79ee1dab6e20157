"""Examples in guidelines: real items with answers, of none that people judge."""

from collections.abc import Callable
from pathlib import Path

import pytest
from app_pages import open_page
from asked_study import BEST, QUERY_OK, ROLE, make_asked_study, record
from conftest import Ran
from sqlalchemy import select
from study_world import make_world, sampled_study

from app.access.identity import SessionUser, owner
from app.api.routes import by_name
from app.operations.judging import studies as operations
from curation.judging.request import StudyExample, StudyPlan
from db.errors import BadInput, BadRows, NotFound, Refused
from db.people.rights import Rights
from db.store.store import Store
from db.study import studies
from db.study.examples import PICK_TEXT, add_example
from db.study.gold_items import add_gold_item
from db.tables import Event, Group, Item, OpenedGroup, StudyItem

FORGED = f"## Examples: {ROLE['text']}\n\n# Bold **text** <b>here</b>\n$x$"


def two_studies(store: Store, folder: Path) -> tuple[int, int]:
    """A pilot that is closed, and a study of other texts with the same questions."""
    found = []
    for number, name in enumerate(("pilot", "main"), 1):
        (folder / name).mkdir()
        row = record(number)
        row["passages"][0]["text"] = FORGED
        found.append(make_asked_study(store, folder / name, [row], [QUERY_OK, ROLE, BEST]))
    with store.write() as session:
        studies.set_status(session, found[0], "closed")
        session.commit()
    return found[0], found[1]


def items(store: Store, study_id: int) -> dict[str, int]:
    """The items of a study by place."""
    with store.read() as session:
        query = select(Item.scenario, Item.id).join(StudyItem, StudyItem.item_id == Item.id)
        return dict(session.execute(query.where(StudyItem.study_id == study_id)).all())


def body(store: Store, study_id: int) -> str:
    with store.read() as session:
        return studies.current_guideline(session, study_id).body


def example(store: Store, study_id: int, item_id: int, **given: object) -> int:
    with store.write() as session:
        version = add_example(session, study_id, item_id, **given).version  # type: ignore[arg-type]
        session.commit()
        return version


def test_an_example_has_its_texts_verbatim_under_its_question(store: Store, tmp_path: Path) -> None:
    pilot, main = two_studies(store, tmp_path)
    first, of = body(store, main), items(store, pilot)
    graded = next(one for place, one in of.items() if place.startswith("role:positive"))
    assert example(store, main, graded, why="It **does** answer.") == 2
    text = body(store, main)
    assert text.startswith(first.rstrip("\n"))
    head = f"## Examples: {ROLE['text']}\n\n**Right: 2 (satisfies it).** It **does** answer."
    assert head in text
    assert "Passage:\n\n" + "\n".join(f"    {line}" for line in FORGED.splitlines()) in text
    assert "Text 1 on tea 1" not in text  # the other passages are not what it is about
    assert example(store, main, graded, answer="0", is_right=False, why="Too harsh.") == 3
    assert example(store, main, of["query_ok:query"], answer="no", is_right=False) == 4
    text = body(store, main)
    assert text.count(f"\n## Examples: {ROLE['text']}") == 1  # the newest of a question comes first
    assert text.index("Wrong: 0") < text.index("Right: 2") < text.index("Wrong: no")
    assert example(store, main, of["best"]) == 5
    picked = body(store, main).partition(f"## Examples: {BEST['text']}")[2]
    number = picked.partition("Right: passage ")[2][0]
    shown = picked.partition(f"Passage {number}:")[2].partition("Passage ")[0]
    assert shown.strip().startswith("## Examples")  # the right one, by its number
    assert "positive" not in picked


def test_no_example_is_of_an_item_that_people_judge(store: Store, tmp_path: Path) -> None:
    pilot, main = two_studies(store, tmp_path)
    for item_id in items(store, main).values():
        with pytest.raises(Refused, match="would show them the answer"):
            example(store, main, item_id)
        with pytest.raises(Refused, match=f"in study {main}"):
            example(store, pilot, item_id)
    (tmp_path / "again").mkdir()
    again = make_asked_study(store, tmp_path / "again", [record(1)], [QUERY_OK])
    with pytest.raises(Refused):  # of a closed study, but with texts of this one
        example(store, again, items(store, pilot)["best"])
    with store.write() as session:
        studies.set_status(session, again, "closed")
        session.commit()
    known = items(store, pilot)["query_ok:query"]
    for wrong in ({}, {"answer": "2"}, {"is_right": False}):
        with pytest.raises(BadInput):
            example(store, main, known, **wrong)
    with pytest.raises(NotFound):
        example(store, main, 10_000)
    assert "Examples" not in body(store, main)


def test_a_study_of_a_file_asks_nobody_about_the_texts_of_an_example(
    store: Store, tmp_path: Path
) -> None:
    """Another file, another dataset, the same texts: who reads the example knows the answer."""
    pilot, main = two_studies(store, tmp_path)
    example(store, main, items(store, pilot)["query_ok:query"], answer="yes")
    (tmp_path / "again").mkdir()
    with pytest.raises(BadRows) as refused:
        make_asked_study(store, tmp_path / "again", [record(5), record(1)])
    (bad,) = refused.value.rows
    assert (bad.line, "an example in guidelines" in bad.reason) == (2, True)
    others = record(1, passages=[{"text": "Something else on tea.", "kind": "positive"}])
    taken = [record(5), record(1, part="training"), others | {"id": "other"}]
    asked = [QUERY_OK | {"expected": "yes"}, ROLE]
    again = make_asked_study(store, tmp_path / "again", taken, asked)
    with store.write() as session:  # and the other way round: what this one asks is no example
        studies.set_status(session, main, "closed")
        session.commit()
    free = make_asked_study(store, tmp_path / "again", [record(9)], asked)
    with pytest.raises(Refused, match=f"in study {free}"):
        copy = make_asked_study(store, tmp_path / "again", [record(9, part="training")], asked)
        example(store, again, items(store, copy)["query_ok:query"])


def test_an_item_of_the_qualification_is_an_example_and_its_curator_has_read_it(
    sqlite_store: Store, inf: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = make_world(sqlite_store, 6)
    with sqlite_store.write() as session:
        study = sampled_study(session, run_id=run_id, items=3, overlap=1)
        used = select(Item.group_id).join(StudyItem, StudyItem.item_id == Item.id)
        free = session.scalars(select(Group.id).where(Group.id.not_in(used))).first()
        item = session.scalars(select(Item).where(Item.group_id == free)).first()
        assert item is not None and item.expected
        add_gold_item(session, study.id, item.id, "training", item.expected, "It names it.")
        session.commit()
        study_id, item_id, group_id = study.id, item.id, item.group_id
    cora = SessionUser("cora", rights=Rights(everywhere=frozenset({"curate", "judge"})))
    with pytest.raises(Refused, match="lacks a right"):
        operations.add_example(
            SessionUser("ann", rights=Rights(everywhere=frozenset({"judge"}))),
            StudyExample(study_id=study_id, item_id=item_id),
        )
    done = operations.add_example(cora, StudyExample(study_id=study_id, item_id=item_id))
    assert done.guideline_version == 2 and PICK_TEXT in body(sqlite_store, study_id)
    with sqlite_store.read() as session:
        opened = session.execute(select(OpenedGroup.group_id, OpenedGroup.opened_by)).all()
        assert opened in ([], [(group_id, "cora")])
        assert "study.guideline" in session.scalars(select(Event.name)).all()
    made = inf("studies", "example", study_id, "--item", item_id, "--wrong", "--answer", "none")
    assert made.code == 0, made.err
    route = by_name()["studies example"]
    given = {"study_id": study_id, "item_id": item_id, "why": "by route"}
    assert route.call(owner("cora"), route.request.read(given)).guideline_version == 4
    monkeypatch.setenv("INF_DATABASE_URL", sqlite_store.url)
    page = open_page("studies", study=str(study_id))
    page.text_input("studies.example.why").set_value("on the page").run()
    page.button("studies.add_example").click().run()
    assert not page.exception and "on the page" in body(sqlite_store, study_id)


def test_later_studies_leave_out_the_groups_of_examples(sqlite_store: Store) -> None:
    run_id = make_world(sqlite_store, 4)
    plan = StudyPlan(dataset="world", run_id=run_id, items=4, overlap=1)
    with sqlite_store.write() as session:
        pilot = sampled_study(session, run_id=run_id, items=1, overlap=1)
        item_id = session.scalars(
            select(StudyItem.item_id).where(StudyItem.study_id == pilot.id)
        ).one()
        group_id, pilot_id = session.get_one(Item, item_id).group_id, pilot.id
        studies.set_status(session, pilot_id, "closed")
        session.commit()
    example(sqlite_store, pilot_id, item_id, answer="none", is_right=False)
    with pytest.raises(BadInput):
        operations.create(owner("cora"), plan)
    made = operations.create(owner("cora"), plan.model_copy(update={"items": 3}))
    with sqlite_store.read() as session:
        assert group_id not in studies.used_groups(session, made.id)
    listed = plan.model_copy(update={"items": None, "sample": "list", "lines": (str(group_id),)})
    with pytest.raises(BadInput, match="example in guidelines"):
        operations.create(owner("cora"), listed)


def test_a_judge_has_the_examples_below_the_card(sqlite_store: Store, tmp_path: Path) -> None:
    pilot, main = two_studies(sqlite_store, tmp_path)
    graded = next(i for p, i in items(sqlite_store, pilot).items() if p.startswith("role:positive"))
    page = open_page("judge", study=str(main))
    assert not page.exception and not page.expander
    example(sqlite_store, main, graded)
    guidelines = body(sqlite_store, main) + "\n## More\n\nLater advice.\n"
    with sqlite_store.write() as session:
        studies.write_guideline(session, main, guidelines)
        session.commit()
    page = open_page("judge", study=str(main))
    (shown,) = page.expander
    text = "".join(one.value for one in shown.markdown)
    assert not page.exception and "Right: 2" in text and FORGED.splitlines()[-1] in text
    assert "Later advice" not in text and text.startswith("## Examples: ")
