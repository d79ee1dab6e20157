"""People whom a platform sends: what a link gives, to whom, and what it never gives."""

from concurrent.futures import ThreadPoolExecutor
from urllib.parse import parse_qs, urlsplit

import pytest
from httpx import Response
from sqlalchemy import func, select
from starlette.testclient import TestClient
from study_world import make_world, sampled_study

from app.access.identity import COOKIE, DEVICE_COOKIE, SessionUser, user_of_cookies
from app.operations import people
from app.operations.acting import queued
from app.operations.doors import tokens
from app.operations.doors.tokens import TokenCreate
from app.operations.judging import answers, card, studies
from app.operations.judging.answers import OwnDesk
from app.server.web import app as server
from curation.judging.request import (
    JudgeChange,
    JudgeStart,
    StudyChange,
    StudyRecruiting,
    WorkReport,
)
from db.assignment.members import readmit_judge
from db.assignment.qualification import answer_example, next_example
from db.errors import BadInput, NotFound, Refused
from db.people.accounts import add_account, set_disabled, set_role
from db.people.attempts import MAX_BY_ADDRESS, MAX_BY_NAME_AND_ADDRESS
from db.store.store import Store
from db.study.gold_items import add_gold_item
from db.study.studies import judged_groups
from db.tables import Account, Event, Job, Study, StudyItem, StudyJudge

PASSWORD = "correct horse battery"
ANN, BOB = ("5f0000000000000000000001", "s111"), ("5f0000000000000000000002", "s222")
ITEMS = 4


@pytest.fixture
def world(store: Store) -> Store:
    """Two studies of four items, and an admin."""
    run_id = make_world(store, 12)
    with store.write() as session:
        add_account(session, "root", PASSWORD, role="admin", actor="test")
        for _ in range(2):
            sampled_study(session, run_id=run_id, items=ITEMS, overlap=2)
        session.commit()
    return store


def root(store: Store) -> SessionUser:
    client = browser()
    client.post("/sign-in", data={"name": "root", "password": PASSWORD})
    return user(store, client)


def browser() -> TestClient:
    return TestClient(server, follow_redirects=False)


def user(store: Store, client: TestClient) -> SessionUser:
    found = user_of_cookies(store, dict(client.cookies))
    assert found is not None
    return found


def recruit(store: Store, study_id: int = 1, **changes: object) -> str:
    """The path of a new link, without the query."""
    given = {"platform": "prolific", "complete": "DONE1", "screened_out": "OUT1", "people": 3}
    wanted = StudyRecruiting.read({"study_id": study_id, **given, **changes})
    return urlsplit(studies.recruit(root(store), wanted).path).path


def begin(path: str, who: tuple[str, str], client: TestClient | None = None) -> Response:
    data = dict(zip(("person", "submission"), who, strict=True))
    return (client or browser()).post(path, data=data)


def come(store: Store, path: str, who: tuple[str, str] = ANN) -> tuple[TestClient, SessionUser]:
    client = browser()
    assert begin(path, who, client).status_code == 303
    return client, user(store, client)


def accounts(store: Store) -> int:
    with store.read() as session:
        return session.scalar(select(func.count(Account.id))) or 0


def judge_all(actor: SessionUser, study_id: int = 1, *, most: int = 99, kind: str = "pick") -> int:
    """Confirm the guidelines, and answer (or skip) what the card gives, as a browser does."""
    card.acknowledge(actor, study_id, 1)
    shown, done = card.answer_and_lease(actor, study_id, []), 0
    while shown.items and done < most:
        event = {"kind": kind, "token": shown.items[0].token, "position": 0}
        shown = card.answer_and_lease(
            actor, study_id, [{**event, "event": event["token"], "study": study_id}]
        )
        assert set(shown.acknowledged.values()) == {""}
        done += 1
    return done


def leave(client: TestClient, study_id: int = 1) -> Response:
    return client.get(f"/recruited/{study_id}/end")


def test_a_recruit_comes_judges_and_ends_at_the_platform_with_the_code(world: Store) -> None:
    made = studies.recruit(
        root(world),
        StudyRecruiting(
            study_id=1, platform="prolific", complete="DONE1", screened_out="OUT1", people=3
        ),
    )
    assert [*parse_qs(urlsplit(made.path).query)] == ["PROLIFIC_PID", "STUDY_ID", "SESSION_ID"]
    path = urlsplit(made.path).path
    client = browser()
    page = client.get(path, params={"PROLIFIC_PID": ANN[0], "SESSION_ID": ANN[1]})
    assert page.status_code == 200 and f'value="{ANN[0]}"' in page.text
    assert accounts(world) == 1  # looking makes nothing: previews look, too
    answer = begin(path, ANN, client)
    assert answer.headers["location"] == "/judge?study=1"
    ann = user(world, client)
    assert ann.role == "annotator" and ANN[0] not in ann.name
    assert answers.recruited_into(ann) == 1
    assert leave(client).status_code == 200 and "DONE1" not in leave(client).text
    assert judge_all(ann, most=ITEMS - 1) == ITEMS - 1
    assert "DONE1" not in leave(client).text
    assert judge_all(ann) == 1
    for _ in range(2):  # a second click is the same code
        end = leave(client)
        assert end.headers["location"] == "https://app.prolific.com/submissions/complete?cc=DONE1"
    (row,) = studies.work(root(world), WorkReport(study_id=1)).data
    assert (row.worker, row.submission, row.code, row.items) == (*ANN, "DONE1", ITEMS)


def test_a_recruit_reads_and_confirms_the_guidelines_before_the_first_item(world: Store) -> None:
    _, ann = come(world, recruit(world))
    for _ in range(2):  # looking is not reading
        shown = card.answer_and_lease(ann, 1, [])
        assert (shown.unread, shown.items, shown.guidelines) == (True, (), None)
        assert "guidelines come first" in shown.message
        assert answers.guidelines_read(ann, 1) is None
    card.acknowledge(ann, 1, 1)
    assert card.answer_and_lease(ann, 1, []).items
    read = answers.guidelines_read(ann, 1)
    assert read is not None and read.version == 1


def test_who_comes_back_goes_on_in_any_browser_and_is_one_person(world: Store) -> None:
    path = recruit(world)
    _, first = come(world, path)
    judge_all(first, most=2)
    _, again = come(world, path)
    assert again.account_id == first.account_id and accounts(world) == 2
    assert judge_all(again) == ITEMS - 2


def test_a_recruit_starts_no_model_judge_and_makes_no_token(world: Store) -> None:
    client, ann = come(world, recruit(world))
    for judge in ("openai:small", "simulated:1"):
        wanted = JudgeStart(study_id=1, judge=judge, budget_usd=None)
        with pytest.raises(Refused) as refused:
            studies.judge(ann, wanted, queued)
        assert refused.value.code == "no_right"
    for rights in (("judge",), ("curate",)):
        with pytest.raises(Refused) as refused:
            tokens.create(ann, TokenCreate(name="mine", rights=rights, budget_usd=5))
        assert refused.value.code == "no_right"
    body = {"judge": "openai:small", "budget_usd": 1}
    assert client.post("/api/v1/studies/1:judge", json=body).status_code in (401, 403)
    with world.read() as session:
        assert session.scalar(select(func.count(Job.id))) == 0


def test_another_submission_of_a_person_gives_nothing(world: Store) -> None:
    path = recruit(world)
    come(world, path)
    for submission in ("s999", BOB[1], "", "S111"):
        client = browser()
        assert begin(path, (ANN[0], submission), client).status_code == 403
        assert COOKIE not in client.cookies and DEVICE_COOKIE not in client.cookies
    assert accounts(world) == 2


@pytest.mark.parametrize(
    "bad",
    [
        *(("", "s1"), ("5f01", ""), ("{{%PROLIFIC_PID%}}", "s111"), ("a" * 65, "s111")),
        *(
            ("root", "s111\n"),
            ("<b>x</b>", "s111"),
            ("ünlü1", "s111"),
            ("5f01", "\x00\x00\x00\x00"),
        ),
    ],
)
def test_what_is_no_id_makes_nobody(world: Store, bad: tuple[str, str]) -> None:
    path = recruit(world)
    assert begin(path, bad).status_code == 403
    page = browser().get(path, params={"PROLIFIC_PID": bad[0], "SESSION_ID": bad[1]})
    assert page.status_code == 200 and "<b>x" not in page.text
    assert accounts(world) == 1


def test_a_forged_id_that_is_the_name_of_an_account_does_not_sign_it_in(world: Store) -> None:
    client, made = come(world, recruit(world), ("root", "s111"))
    assert made.name != "root" and not made.is_admin and made.rights.everywhere == frozenset()
    assert made.rights.on_studies == {1: frozenset({"judge"})}
    assert client.get("/_stcore/metrics").status_code == 403


def test_a_guessed_stolen_or_replaced_link_gives_nothing(world: Store) -> None:
    old = recruit(world)
    come(world, old)
    path, other = recruit(world), recruit(world, 2)
    token = other.rsplit("/", 1)[1]
    for number, wrong in enumerate((old, f"/recruited/1/{token}", "/recruited/1/x")):
        client = browser()
        assert client.get(wrong).status_code == begin(wrong, BOB, client).status_code
        assert client.get(wrong).status_code == (403 if number == 0 else 429)
        assert COOKIE not in client.cookies
    for wrong in ("/recruited/99/x", f"/recruited/{2**80}/x", "/recruited/2/x"):
        assert begin(wrong, BOB).status_code in (403, 429)
    with world.read() as session:
        refused = select(func.count(Event.id)).where(
            Event.name == "sign-in.refused", Event.actor == "link of study 1"
        )
        assert session.scalar(refused) == MAX_BY_NAME_AND_ADDRESS
    come(world, path, BOB)  # whoever guesses locks out nobody who has the link
    assert come(world, path)[1].name.startswith("prolific-")  # who came by the old one goes on


def test_a_recruit_of_one_study_gets_nothing_in_another(world: Store) -> None:
    recruit(world, 2)
    client, ann = come(world, recruit(world))
    with pytest.raises((NotFound, Refused)):
        card.answer_and_lease(ann, 2, [])
    assert answers.desk(ann, 2) == OwnDesk()
    judge_all(ann)
    assert leave(client, 2).status_code == 403 and "DONE1" not in leave(client, 2).text
    for operation in (
        lambda: studies.show(ann, 1),
        lambda: studies.work(ann, WorkReport(study_id=1)),
        lambda: people.list_all(ann),
    ):
        with pytest.raises(Refused):
            operation()


def test_the_way_out_gives_no_code_to_who_was_not_recruited(world: Store) -> None:
    recruit(world)
    client = browser()
    assert leave(client).status_code == 403
    client.post("/sign-in", data={"name": "root", "password": PASSWORD})
    assert leave(client).status_code == 403


def test_a_study_that_is_closed_or_paused_takes_nobody_new_and_pays_who_worked(
    world: Store,
) -> None:
    path = recruit(world)
    client, ann = come(world, path)
    judge_all(ann, most=1)
    idle, _ = come(world, path, BOB)
    studies.change(root(world), StudyChange(study_id=1, status="paused"))
    assert begin(path, ("5f03", "s333")).status_code == 403
    assert "DONE1" not in leave(client).text
    studies.change(root(world), StudyChange(study_id=1, status="closed"))
    assert begin(path, ("5f03", "s333")).status_code == 403
    assert begin(path, ANN).status_code == 303
    assert leave(client).headers["location"].endswith("DONE1")
    assert "location" not in leave(idle).headers
    with pytest.raises(Refused):
        recruit(world)


def test_no_more_people_than_wanted_and_from_one_address_not_all_at_once(world: Store) -> None:
    path = recruit(world, people=MAX_BY_ADDRESS + 5)
    answered = [begin(path, (f"5f{n:022}", "s111")).status_code for n in range(MAX_BY_ADDRESS + 1)]
    assert answered == [303] * MAX_BY_ADDRESS + [403 + 26]
    assert begin(recruit(world, people=2), ("5fxx", "s111")).status_code == 403


def test_two_tabs_that_begin_at_the_same_moment_are_one_person(world: Store) -> None:
    path = recruit(world)
    with ThreadPoolExecutor(4) as pool:
        done = [each.status_code for each in pool.map(lambda _: begin(path, ANN), range(4))]
    assert done == [303] * 4 and accounts(world) == 2


def test_skipping_everything_earns_nothing(world: Store) -> None:
    client, ann = come(world, recruit(world))
    judge_all(ann, most=1)
    assert judge_all(ann, kind="skip") == ITEMS - 1
    assert "location" not in leave(client).headers


def test_a_quota_ends_the_work(world: Store) -> None:
    client, ann = come(world, recruit(world, quota=2))
    assert judge_all(ann) == 2
    assert leave(client).headers["location"].endswith("DONE1")


def test_who_fails_the_qualification_is_screened_out_and_a_curators_pause_is_not(
    world: Store,
) -> None:
    with world.write() as session:
        study = session.get_one(Study, 1)
        study.settings = {**study.settings, "training_items": 1, "training_rounds": 1}
        used = set(session.scalars(select(StudyItem.item_id).where(StudyItem.study_id == 1)))
        free = next(
            items["positive"]
            for items in judged_groups(session, study.run_id or 0).values()
            if not used & set(items.values())
        )
        add_gold_item(session, 1, free, "training", "none", "")
        session.commit()
    path = recruit(world)
    (client, ann), (other, bob) = come(world, path), come(world, path, BOB)
    with world.write() as session:
        judge_id = card.judge_of(session, ann).id
        example = next_example(session, 1, judge_id)
        assert example is not None
        answer_example(session, 1, judge_id, example.token or "", 0)
        session.commit()
    assert leave(client).headers["location"].endswith("OUT1")
    change = JudgeChange(study_id=1, action="pause", judges=(bob.name,), reason="3 of 4 odd")
    studies.change_judges(root(world), change)
    assert "location" not in leave(other).headers
    with world.write() as session:  # what was earned stays
        readmit_judge(session, 1, judge_id)
        session.commit()
    assert leave(client).headers["location"].endswith("OUT1")


def test_mturk_shows_a_code_of_each_ones_own_and_lets_nobody_begin_in_a_preview(
    world: Store,
) -> None:
    path = recruit(world, platform="mturk")
    blank = {"workerId": "", "assignmentId": "ASSIGNMENT_ID_NOT_AVAILABLE"}
    assert "<button" not in browser().get(path, params=blank).text
    codes = []
    for who in (ANN, BOB):
        client, person = come(world, path, who)
        judge_all(person)
        page = leave(client)
        assert page.status_code == 200
        codes.append(next(w for w in page.text.split("<b>") if w.startswith("DONE1-"))[:14])
    assert len(set(codes)) == 2
    rows = studies.work(root(world), WorkReport(study_id=1)).data
    assert {row.code for row in rows} == set(codes)
    with pytest.raises(Refused):  # codes of two platforms in one study
        recruit(world)


@pytest.mark.parametrize("change", ["disabled", "curator"])
def test_a_link_does_not_sign_in_an_account_that_is_disabled_or_more_than_a_judge(
    world: Store, change: str
) -> None:
    path = recruit(world)
    _, ann = come(world, path)
    with world.write() as session:
        if change == "disabled":
            set_disabled(session, ann.name, True, actor="root")
        else:
            set_role(session, ann.name, "curator", actor="root")
        session.commit()
    assert begin(path, ANN).status_code == 403


def test_who_is_deleted_leaves_no_id_of_the_platform(world: Store) -> None:
    _, ann = come(world, recruit(world))
    people.delete(root(world), ann.name)
    with world.read() as session:
        rows = session.execute(select(StudyJudge.worker, StudyJudge.submission)).all()
        assert rows == [(None, None)]


def test_a_link_needs_accounts_and_codes(sqlite_store: Store) -> None:
    run_id = make_world(sqlite_store, 6)
    with sqlite_store.write() as session:
        sampled_study(session, run_id=run_id, items=2, overlap=1)
        session.commit()
    local = user_of_cookies(sqlite_store, {})
    wanted = {"study_id": 1, "platform": "prolific", "complete": "C", "people": 1}
    with pytest.raises(Refused):
        studies.recruit(local, StudyRecruiting.read({**wanted, "screened_out": "S"}))
    for bad in ("", "a b", "x&y=1", "C" * 65):
        with pytest.raises(BadInput):
            StudyRecruiting.read({**wanted, "screened_out": bad})


def test_a_page_of_another_site_cannot_begin_for_somebody(world: Store) -> None:
    path = recruit(world)
    data = {"person": ANN[0], "submission": ANN[1]}
    answer = browser().post(path, data=data, headers={"origin": "https://evil.example"})
    assert answer.status_code == 403 and accounts(world) == 1
