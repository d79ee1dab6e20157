"""The Studies page's form: drawing by strata, by disagreement, from a list."""

import pytest
from app_pages import open_page, sign_in, words
from conftest import count_rows
from sqlalchemy import select
from streamlit.testing.v1 import AppTest
from study_world import LABELS, make_world, sampled_study

from app.access.session_user import signed_in_user
from app.operations.judging import studies as operations
from app.studies.sampled import sampled_sentence
from curation.judging.request import WorkReport
from db.assignment.hidden import open_groups
from db.assignment.members import add_member
from db.review.reviews import approve_group
from db.store.store import Store
from db.study import gold_items, rules, studies
from db.study.judgments import get_or_create_judge, record_judgment
from db.tables import Account, Group, Item, Study, StudyItem, utc_now


def choose_sample(page: AppTest, sample: str) -> None:
    page.selectbox(key="studies.sample").select(sample).run()
    assert not page.exception


def plainly(page: AppTest) -> str:
    """Its text without Markdown's backslashes."""
    return words(page).replace("\\", "")


def draw(page: AppTest) -> None:
    page.button(key="studies.create_button").click().run()
    assert not page.exception


def the_study(store: Store) -> tuple[Study, list[int]]:
    with store.read() as session:
        study = session.scalars(select(Study)).one()
        items = select(StudyItem.item_id).where(StudyItem.study_id == study.id)
        return study, list(session.scalars(items.order_by(StudyItem.position)))


def test_strata_are_chosen_and_kept_with_the_study(sqlite_store: Store) -> None:
    make_world(sqlite_store, 6)
    page = open_page("studies")
    page.multiselect(key="studies.strata").set_value(["scenario", "verdict"])
    page.number_input(key="studies.items").set_value(4)
    page.number_input(key="studies.seed").set_value(9)
    draw(page)
    study, items = the_study(sqlite_store)
    assert (study.seed, study.settings["strata"], len(items)) == (9, ["scenario", "verdict"], 4)
    over = "the kinds of triplet and kept and dropped groups"
    assert f"Items were chosen at random, as evenly as possible over {over}: " in plainly(page)
    assert "Seed 9 repeats the choice." in plainly(page)


def test_how_items_were_chosen_is_one_sentence_without_words_of_the_code() -> None:
    scenarios = {"positive": 4, "instruction_negative": 3, "query_negative": 3}
    evenly = {"sampling": "stratified", "strata": ["scenario"], "apart_from": [1]}
    assert sampled_sentence(evenly, 1, scenarios, {"kept": 10}) == (
        "Items were chosen at random, as evenly as possible over the kinds of triplet, from "
        "no group of study 1: 4 with the real pair, 3 with another instruction, 3 with another "
        "query; 10 from kept groups. Seed 1 repeats the choice."
    )
    german = sampled_sentence({"sampling": "random", "language": "de"}, 7, {"positive": 3}, {})
    assert german.startswith("Items were chosen at random, from pairs in German only: 3 with")
    at_random = {"sampling": "random", "only": "kept", "sources": {"nq": 2, "": 1}}
    assert sampled_sentence(at_random, 7, {"positive": 3}, {"kept": 3}) == (
        "Items were chosen at random, from kept groups only: 3 with the real pair; 3 from kept "
        "groups; 2 from nq, 1 from no source. Seed 7 repeats the choice."
    )
    disputed = {"sampling": "disagreement", "of_study": 3}
    found = sampled_sentence(disputed, 0, {"query_negative": 1}, {"dropped": 1})
    assert "chosen where the judges of study 3 disagree most: 1 with another query" in found
    of_another_shape = {"searcher": 2, "other_searcher": 1}
    found = sampled_sentence({"sampling": "random"}, 0, of_another_shape, {})
    assert "at random: 2 of “searcher”, 1 of “other searcher”." in found
    listed = sampled_sentence({"sampling": "list", "file": "the list"}, 0, {"positive": 1}, {})
    assert listed == "Items were taken from the list: 1 with the real pair."
    of_file = {"sampling": "file", "file": "tea.jsonl", "questions": ["query_ok", "role"]}
    assert sampled_sentence(of_file, 0, {"role:positive": 3}, {"undecided": 3}) == (
        "Items are all rows of tea.jsonl, with its questions (query_ok, role)."
    )


def test_a_new_study_leads_to_its_items_until_it_is_closed(sqlite_store: Store) -> None:
    make_world(sqlite_store, 6)
    page = open_page("studies", run="1")
    page.number_input(key="studies.items").set_value(4)
    draw(page)
    linked = [each.proto for each in page.main if str(each.type) == "page_link"]
    (way,) = [each for each in linked if each.label == "Judge its items"]
    assert (way.page, way.query_string) == ("judge", "study=1")
    assert "run" not in page.query_params  # its form is folded, the study in sight
    assert "Link to send" not in words(page)
    page.button(key="studies.closed").click().run()
    linked = [each.proto for each in page.main if str(each.type) == "page_link"]
    assert "Judge its items" not in [each.label for each in linked]


def test_a_list_is_drawn_and_its_bad_lines_are_told(sqlite_store: Store) -> None:
    run_id = make_world(sqlite_store, 4)
    with sqlite_store.read() as session:
        groups = studies.judged_groups(session, run_id)
    page = open_page("studies")
    choose_sample(page, "list")
    page.text_area(key="studies.lines").set_value("2\n77\nitem x")
    draw(page)
    assert "line 2\\: group 77 did not reach validation" in page.error[0].value
    assert "the list, line 3" in page.error[0].value
    assert count_rows(sqlite_store, "study") == 0
    page.text_area(key="studies.lines").set_value("2 query_negative\n4 positive")
    draw(page)
    _, items = the_study(sqlite_store)
    assert sorted(items) == sorted([groups[2]["query_negative"], groups[4]["positive"]])


def test_items_on_which_models_disagree_are_drawn(sqlite_store: Store) -> None:
    run_id = make_world(sqlite_store, 4)
    with sqlite_store.write() as session:
        groups = studies.judged_groups(session, run_id)
        split = groups[3]["positive"]
        for judge in ("m1", "m2"):
            judge_id = get_or_create_judge(session, judge, kind="model").id
            for item_id in (split, groups[1]["positive"]):
                record_judgment(
                    session,
                    judge_id=judge_id,
                    item_id=item_id,
                    choice="none" if (judge, item_id) == ("m2", split) else "positive",
                    order_shown=[e["label"] for e in session.get_one(Item, item_id).candidates],
                    event_id=f"{judge}/{item_id}",
                )
        session.commit()
    page = open_page("studies")
    choose_sample(page, "disagreement")
    assert page.multiselect(key="studies.judges").options == ["m1", "m2"]
    page.number_input(key="studies.items").set_value(1)
    draw(page)
    study, items = the_study(sqlite_store)
    assert items == [split]
    assert study.settings["disagreed"] == 1
    assert "chosen where model judges disagree most" in plainly(page)


def test_answers_of_gold_items_are_hidden_from_who_may_be_given_them(sqlite_store: Store) -> None:
    run_id = make_world(sqlite_store, 8)
    with sqlite_store.write() as session:
        study_id = sampled_study(session, run_id=run_id, items=4, overlap=1).id
        used = select(Item.group_id).join(StudyItem, StudyItem.item_id == Item.id)
        for group_id in session.scalars(select(Group.id).where(Group.id.not_in(used))).all():
            approve_group(session, group_id, reviewed_by="rita")
        known = gold_items.sample_gold_items(session, study_id, "gold", 2)
        session.commit()
    answers = [frame.value for frame in open_page("studies").dataframe]
    shown = next(frame for frame in answers if "Correct answer" in frame)
    assert list(shown["Correct answer"]) == ["", ""] and "hidden" in shown["Instruction"][0]
    with sqlite_store.write() as session:
        opened = [session.get_one(Item, known[0]).group_id]
        open_groups(session, opened, person="local admin")
        session.commit()
    answers = [frame.value for frame in open_page("studies").dataframe]
    shown = next(frame for frame in answers if "Correct answer" in frame)
    assert sorted(map(bool, shown["Correct answer"])) == [False, True]


def test_a_curator_who_judges_reads_neither_own_gold_nor_choices_of_hidden_items(
    sqlite_store: Store,
) -> None:
    run_id = make_world(sqlite_store, 8)
    with sqlite_store.write() as session:
        study_id = sampled_study(session, run_id=run_id, items=4, overlap=2).id
        used = select(Item.group_id).join(StudyItem, StudyItem.item_id == Item.id)
        for group_id in session.scalars(select(Group.id).where(Group.id.not_in(used))).all():
            approve_group(session, group_id, reviewed_by="rita")
        (gold,) = gold_items.sample_gold_items(session, study_id, "gold", 1)
        now = utc_now()
        for name in ("local admin", "ann"):
            judge_id = get_or_create_judge(session, name, kind="person").id
            record_judgment(
                session,
                judge_id=judge_id,
                item_id=gold,
                choice="positive",
                order_shown=[e["label"] for e in session.get_one(Item, gold).candidates],
                event_id=name,
                study_id=study_id,
                shown_at=now,
                decided_at=now,
            )
        session.commit()

    def shown() -> tuple[dict[str, int], set[str]]:
        frames = [frame.value for frame in open_page("studies").dataframe]
        judges = next(frame for frame in frames if "too_fast" in frame)
        fast = next(frame for frame in frames if "choice" in frame)
        return dict(zip(judges["name"], judges["gold_seen"], strict=True)), set(fast["choice"])

    own, answers = shown()
    assert own["local admin"] == 0 and own["ann"] and answers == {""}
    with sqlite_store.write() as session:
        studies.set_status(session, study_id, "closed")
        session.commit()
    own, answers = shown()
    assert own["local admin"] and answers == {"positive"}


@pytest.mark.parametrize("name", ["a curator", "a curator (person)"])
def test_own_gold_is_found_by_the_account_and_not_by_the_name(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """The judge of a person with a machine's name (stores of before 0019) has another name."""
    run_id = make_world(sqlite_store, 8)
    sign_in(sqlite_store, monkeypatch, "curator")
    with sqlite_store.write() as session:
        study_id = sampled_study(session, run_id=run_id, items=4, overlap=2).id
        used = select(Item.group_id).join(StudyItem, StudyItem.item_id == Item.id)
        item = session.scalars(select(Item).where(Item.group_id.not_in(used))).first()
        assert item is not None
        gold_items.add_gold_item(session, study_id, item.id, "gold", item.scenario, "")
        account = session.scalars(select(Account)).one()
        own = get_or_create_judge(session, account.name, kind="person", account_id=account.id)
        own.name = name
        other = get_or_create_judge(session, "ann", kind="person")
        for judge in (own, other):
            add_member(session, study_id, judge.id)
            record_judgment(
                session,
                judge_id=judge.id,
                item_id=item.id,
                choice=item.scenario,
                order_shown=[each["label"] for each in item.candidates],
                event_id=judge.name,
                study_id=study_id,
            )
        session.commit()
    user = signed_in_user()
    judges = operations.judges(user, study_id).data
    wanted = WorkReport(study_id=study_id)
    assert {each.name: each.gold_seen for each in judges} == {name: 0, "ann": 1}
    assert {one.person: one.gold_seen for one in operations.work(user, wanted).data} == {
        name: 0,
        "ann": 1,
    }
    with sqlite_store.write() as session:
        studies.set_status(session, study_id, "closed")
        session.commit()
    assert {each.gold_seen for each in operations.judges(user, study_id).data} == {1}
    assert {one.gold_seen for one in operations.work(user, wanted).data} == {1}


def test_the_sampled_examples_are_as_many_as_all_rounds_ask(sqlite_store: Store) -> None:
    run_id = make_world(sqlite_store, 4)
    with sqlite_store.write() as session:
        study_id = sampled_study(session, run_id=run_id, items=2, overlap=1).id
        rules.set_rules(session, study_id, training_items=4, training_rounds=2)
        session.commit()
    page = open_page("studies")
    assert page.number_input(key="studies.known_count_training").value == 8


def test_a_judge_without_times_has_a_dash_for_them_and_no_none(sqlite_store: Store) -> None:
    run_id = make_world(sqlite_store, 4)
    with sqlite_store.write() as session:
        study_id = sampled_study(session, run_id=run_id, items=2, overlap=1).id
        judge = get_or_create_judge(session, "GPT", kind="model")
        for item_id in session.scalars(select(StudyItem.item_id)).all():
            record_judgment(
                session,
                judge_id=judge.id,
                item_id=item_id,
                choice="none",
                order_shown=list(LABELS),
                event_id=str(item_id),
                study_id=study_id,
            )
        session.commit()
    found = [frame for frame in open_page("studies").dataframe if "too_fast" in frame.value]
    assert found[0].value[["median_seconds", "too_fast"]].isna().all().all()
    assert found[0].proto.placeholder == "–"
    assert list(found[0].proto.column_order)[:4] == ["name", "state", "done", "quota"]  # in sight
