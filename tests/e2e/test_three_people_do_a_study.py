"""Three people do a study: from the invitation links to the adjudicated result, in three browsers.

A curator draws the study on its page, gives it examples, hidden gold and rules, and makes the
links; three people take them at once, make accounts, pass the training and judge on the card; the
curator decides what they disagree on and reads the agreement. Everything is then compared with the
store, which is PostgreSQL where its programs are installed: there three people write at once. The
study is as large as the paper's: 100 items, each judged by three.
"""

from collections import Counter
from pathlib import Path

import pytest
from browser import PATIENCE, chromium_browser, wait_past_dwell
from live_server import serving
from page_hands import choose, fill, open_view, place, press, sign_in, unfold
from playwright.sync_api import Browser, Page, expect
from postgres_cluster import missing_programs
from sqlalchemy import select
from study_world import make_world

from db.people.accounts import add_account
from db.review.reviews import approve_group
from db.shape import INF_IR
from db.store.store import Store
from db.tables import Assignment, Group, Invitation, Item, Judge, Judgment, StudyItem, StudyJudge

ITEMS = 100
EXAMPLES = 2
GOLD = 5
PEOPLE = ("ada", "ben", "cleo")
# On these subjects, cleo takes another view of the positive scenario. Two of them: the sample is a
# random one, and of every 200 samples one has no positive item of a single subject.
DISPUTED = ("tea", "rain")
PASSWORD = "correct horse battery"

pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.long,
    pytest.mark.timeout(1800),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # playwright's own pipes
]


def make_store(store: Store) -> None:
    """A run, half of whose groups were approved in a review, and a curator."""
    make_world(store, ITEMS + 20)
    with store.write() as session:
        for group_id in session.scalars(select(Group.id)).all():
            approve_group(session, group_id, reviewed_by="rita")
        add_account(session, "cora", PASSWORD, role="curator", actor="test")
        session.commit()


def new_page(browser: Browser) -> Page:
    page = browser.new_context(viewport={"width": 1280, "height": 900}).new_page()
    page.set_default_timeout(PATIENCE)
    return page


def draw_the_study(page: Page) -> int:
    """By the form of the Studies page; its number."""
    open_view(page, "Studies")
    fill(page, "studies.items", str(ITEMS))
    fill(page, "studies.overlap", str(len(PEOPLE)))
    press(page, "studies.create_button")
    expect(page.get_by_text(f"{ITEMS} items. Judges find it")).to_be_visible()
    page.wait_for_url("**study=*")
    return int(page.url.split("study=")[1].split("&")[0])


def add_known_items(page: Page, part: str, count: int) -> None:
    """Sample qualification or gold items by the form; it folds when its title changes."""
    unfold(page, "Qualification and gold items")
    choose(page, "studies.known_part", part)
    unfold(page, "Qualification and gold items")
    count_key = f"studies.known_count_{'training' if part == 'qualification' else part}"
    expect(place(page, count_key).locator("input")).to_have_count(1)
    fill(page, count_key, str(count))
    unfold(page, "Qualification and gold items")
    press(page, "studies.sample_known")
    expect(page.get_by_text(f"{count} items added")).to_be_visible()


def prepare(page: Page, study_id: int) -> None:
    """Examples, gold and rules."""
    add_known_items(page, "qualification", 2 * EXAMPLES)  # others in the second round
    add_known_items(page, "gold", GOLD)
    unfold(page, "Rules: pass mark")
    fill(page, f"studies.rules_{study_id}.pass_mark", "100")
    fill(page, f"studies.rules_{study_id}.training_items", str(EXAMPLES))
    press(page, f"studies.save_rules_{study_id}")
    expect(page.get_by_text("Rules saved")).to_be_visible()


def make_links(page: Page) -> list[str]:
    """One link per person."""
    unfold(page, "Invite people")
    fill(page, "studies.invite.count", str(len(PEOPLE)))
    press(page, "studies.invite")
    shown = page.get_by_test_id("stCode").filter(has_text="/invitation/")
    expect(shown).to_be_visible()
    links = shown.locator("code").inner_text().split()
    assert len(links) == len(PEOPLE)
    return links


def accept(page: Page, link: str, name: str) -> None:
    """Make an account by the link; it leads to the study."""
    page.goto(link)
    page.get_by_label("Name").fill(name)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Create account").click()
    expect(page.locator(".card .pick").first).to_be_visible()


def asked(page: Page) -> tuple[str, list[str]]:
    """What the card shows: the instruction, and the passages in this person's order."""
    return (
        page.locator(".question .text").first.inner_text(),
        page.locator(".passage .text").all_inner_texts(),
    )


def right_key(page: Page) -> str:
    """The key of the passage that follows the instruction, read like a person reads it."""
    instruction, passages = asked(page)
    wanted = instruction.removeprefix("Find the ").removesuffix(".")
    (position,) = (n for n, text in enumerate(passages) if text.startswith(f"The {wanted} about"))
    return str(position + 1)


def train(page: Page) -> None:
    """A wrong answer first, so that the round is repeated; then every example right."""
    for is_right in (False, *([True] * (2 * EXAMPLES - 1))):
        wait_past_dwell(page)
        expect(page.locator(".progress")).to_contain_text("Qualification, round")
        page.keyboard.press(right_key(page) if is_right else "0")
        told = page.locator(".banner")
        expect(told).to_contain_text(
            "Correct: passage" if is_right else "The correct answer is passage"
        )
        expect(told.locator(".why")).to_contain_text("reviewer approved the group")
        page.keyboard.press("Enter")
        expect(told).to_have_count(0)
    expect(page.locator(".progress")).to_contain_text("left for you")


def is_through(page: Page) -> bool:
    return page.locator(".card .nothing").filter(has_text="Thank you").count() == 1


def judge_one(page: Page, differs: bool) -> None:
    """Answer the item on the card once it is there; wait for the next one to come."""
    card = page.locator(".card")
    expect(page.locator(".card .pick, .card .nothing:has-text('Thank you')").first).to_be_visible()
    if is_through(page):
        return
    wait_past_dwell(page)
    before = card.get_attribute("data-item")
    instruction, passages = asked(page)
    is_about_it = any(f" about {subject} " in passages[0] for subject in DISPUTED)
    takes_another_view = differs and instruction == "Find the positive text." and is_about_it
    page.keyboard.press("0" if takes_another_view else right_key(page))
    expect(card).not_to_have_attribute("data-item", before or "")


def decide(page: Page) -> int:
    """Decide every disputed item as the instruction says, by key, until none is left; how many."""
    open_view(page, "Adjudicate")
    progress, card = page.locator(".progress"), page.locator(".card")
    expect(progress).to_contain_text("0 decided")
    disputed = int(progress.inner_text().split("·")[1].split()[0])
    for _ in range(disputed):
        wait_past_dwell(page)
        before = card.get_attribute("data-item")
        texts = page.locator(".passage .text").all_inner_texts()
        place = next(number for number, text in enumerate(texts) if "positive" in text)
        page.keyboard.press(str(place + 1))
        expect(card).not_to_have_attribute("data-item", before or "")
    expect(page.locator(".nothing")).to_have_text("No items to decide.")
    expect(page.locator(".badge")).to_have_text("saved")
    page.keyboard.press("z")
    expect(page.locator(".banner")).to_contain_text("You answered: passage")
    page.keyboard.press("w")
    expect(page.get_by_text("Decision by cora: positive").first).to_be_visible()
    return disputed


@pytest.mark.long
def test_three_people_do_a_study_from_the_links_to_the_adjudicated_result(
    chromium: Path, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    engine = "postgres" if missing_programs() is None else "sqlite"
    store: Store = request.getfixturevalue(f"{engine}_store")
    make_store(store)
    with serving(tmp_path / "served") as server, chromium_browser() as browser:
        curator = new_page(browser)
        sign_in(curator, server.url, "cora", PASSWORD)
        study_id = draw_the_study(curator)
        prepare(curator, study_id)
        links = make_links(curator)

        pages = [new_page(browser) for _ in PEOPLE]
        for page, link, name in zip(pages, links, PEOPLE, strict=True):
            accept(page, link, name)
        for page in pages:
            train(page)
        while not all(is_through(page) for page in pages):
            for page, name in zip(pages, PEOPLE, strict=True):
                judge_one(page, differs=name == "cleo")
        for page in pages:
            expect(page.locator(".badge")).to_have_text("saved")

        decided = decide(curator)
        open_view(curator, "Agreement")
        made = ITEMS * len(PEOPLE)
        judged = curator.get_by_text(f"{made} judgments of {ITEMS} items")
        expect(judged.first).to_be_visible()
        curator.get_by_role("tab", name="Measures").click()
        expect(curator.get_by_text("Fleiss").first).to_be_attached()
        open_view(curator, "Studies")
        expect(curator.get_by_text(f"{made} of {made} judgments by people").first).to_be_visible()
    check_the_store(store, study_id, decided)


def is_disputed(item: Item) -> bool:
    is_about_it = any(f"what is {subject} " in item.query for subject in DISPUTED)
    return item.scenario == "positive" and is_about_it


def check_the_store(store: Store, study_id: int, decided: int) -> None:
    """What was done on the pages is what is stored, exactly."""
    with store.read() as session:
        parts = {
            row.item_id: row
            for row in session.scalars(select(StudyItem).where(StudyItem.study_id == study_id))
        }
        rows = session.execute(
            select(Judgment, Judge)
            .join(Judge, Judge.id == Judgment.judge_id)
            .where(Judgment.study_id == study_id)
        ).all()
        by_people = [(one, judge) for one, judge in rows if judge.kind == "person"]
        judged = [(one, judge) for one, judge in by_people if parts[one.item_id].part == "main"]
        assert Counter(one.item_id for one, _ in judged) == {
            item_id: len(PEOPLE) for item_id, row in parts.items() if row.part == "main"
        }
        assert len({(one.item_id, one.judge_id) for one, _ in judged}) == ITEMS * len(PEOPLE)
        assert all(row.taken == row.places == len(PEOPLE) for row in parts.values() if row.places)

        for one, judge in by_people:
            item = session.get_one(Item, one.item_id)
            labels = [candidate["label"] for candidate in item.candidates]
            assert sorted(one.order_shown) == sorted(labels)
            assert one.guideline_id is not None and judge.account_id is not None
            is_wrong = one.choice == "none"
            disputed = judge.name == "cleo" and is_disputed(item)
            if parts[one.item_id].part != "training":
                assert is_wrong == disputed
                assert is_wrong or one.choice == item.scenario
                assert one.shown_at is not None and one.shown_at < one.decided_at

        gold = [(one, judge) for one, judge in by_people if parts[one.item_id].part == "gold"]
        assert {judge.name for _, judge in gold} == set(PEOPLE)
        assert all(parts[one.item_id].gold_choice in INF_IR.roles for one, _ in gold)
        examples = [one for one, _ in by_people if parts[one.item_id].part == "training"]
        assert len(examples) == len(PEOPLE) * 2 * EXAMPLES

        states = Counter(
            session.scalars(select(Assignment.state).where(Assignment.study_id == study_id))
        )
        assert states == {"done": ITEMS * len(PEOPLE) + len(gold)}
        members = session.scalars(select(StudyJudge).where(StudyJudge.study_id == study_id)).all()
        assert len(members) == len(PEOPLE)
        assert all(one.passed_at is not None and one.training_rounds == 1 for one in members)
        assert {one.study_id for one in session.scalars(select(Invitation))} == {study_id}

        disputes = sum(
            is_disputed(session.get_one(Item, item_id))
            for item_id, row in parts.items()
            if row.part == "main"
        )
        decisions = [(one, judge) for one, judge in rows if judge.kind == "adjudicator"]
        assert len(decisions) == decided == disputes > 0
        assert {judge.name for _, judge in decisions} == {"adjudicator:cora"}
        assert {one.choice for one, _ in decisions} == {"positive"}
