"""Pages of lists stay three screens high with full data: what is further comes on demand."""

import pytest
from browser import PATIENCE, settled
from curation_runs import add_dataset
from desk_world import make_team
from page_hands import sign_in
from playwright.sync_api import Browser, Page, expect
from restartable import Restartable

from db.people.accounts import add_account
from db.store.store import Store

pytestmark = [
    pytest.mark.long,
    pytest.mark.browser,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # playwright's own pipes
]
PASSWORD = "correct horse battery"
SCREEN, SCREENS = 900, 3
DATASETS, MEMBERS = 40, 60


@pytest.fixture(scope="module")
def page(store: Store, served: Restartable, browser: Browser) -> Page:
    """The page of an administrator; of a study of 20 people many items are disputed."""
    for number in range(DATASETS):
        add_dataset(store, name=f"dataset {number}", pairs=1, pool=2)
    make_team(store, items=200)  # of the newest dataset, which the pages show
    with store.write() as session:
        add_account(session, "cora", PASSWORD, role="admin", actor="test")
        for number in range(MEMBERS):
            add_account(session, f"member-{number}", None, role="annotator", actor="test")
        session.commit()
    found = browser.new_page(viewport={"width": 1280, "height": SCREEN})
    found.set_default_timeout(PATIENCE)
    sign_in(found, served.url, "cora", PASSWORD)
    return found


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("datasets", "text=/Browse world/"),
        ("members", "text=/Rights of/"),
        ("adjudicate", "text=/to decide/"),
    ],
)
def test_a_page_with_full_data_is_three_screens_high_at_most(
    page: Page, served: Restartable, path: str, shown: str
) -> None:
    page.goto(f"{served.url}/{path}")
    expect(page.locator(shown).first).to_be_visible()
    settled(page)
    expect(page.get_by_test_id("stSkeleton")).to_have_count(0)
    height = page.get_by_test_id("stMain").evaluate("main => main.scrollHeight")
    assert SCREEN / 2 < height <= SCREENS * SCREEN, (path, height)
