"""What a page offers after an action: the next page, with the choice made; never a dead end."""

import pytest
from app_pages import MAIN, open_page, send_cookies, sign_in, words
from full_store import fill
from streamlit.proto.PageLink_pb2 import PageLink
from streamlit.testing.v1 import AppTest
from study_world import make_world

from db.people.accounts import add_account
from db.store.store import Store
from db.tables import Release


def links(at: AppTest) -> dict[str, PageLink]:
    """The links of a page by their label, without Markdown's backslashes."""
    return {
        each.proto.label.replace("\\", ""): each.proto for each in at.main if is_link(each.type)
    }


def is_link(kind: str) -> bool:
    return kind == "page_link"


def test_every_result_leads_to_the_next_page_with_its_choice_made(sqlite_store: Store) -> None:
    fill(sqlite_store)
    make_world(sqlite_store, 5, name="another")
    for dataset, page, label, wanted in (
        ("another", "datasets", "Curate the pairs of another", "dataset=another&new=1"),
        ("another", "curate", "Let people judge a sample", "run=2"),
        ("another", "curate", "Release what was kept", "run=2"),
        ("world", "releases", "Train on it", "release=1"),
        ("world", "train", "Compare with its base", "checkpoint=1"),
    ):
        found = links(open_page(page, dataset=dataset))
        assert label in found, (page, list(found))
        assert wanted in found[label].query_string, (label, found[label].query_string)
    dropped = [label for label in links(open_page("curate")) if label.startswith("Review what")]
    assert len(dropped) == 1 and dropped[0].endswith("(2)")


def test_no_page_links_to_itself_as_the_next_step(sqlite_store: Store) -> None:
    fill(sqlite_store)
    for page in ("releases", "train", "curate", "datasets", "evaluations"):
        ahead = [link for link in links(open_page(page)).values() if "forward" in link.icon]
        assert ahead and page not in {link.page for link in ahead}, page
    (push,) = (each for each in open_page("releases").expander if each.label.startswith("Push it"))
    assert not push.proto.expanded


def test_the_page_a_link_leads_to_takes_its_choice_and_no_other(sqlite_store: Store) -> None:
    fill(sqlite_store)
    make_world(sqlite_store, 5, name="another")
    for new in ({"new": "1"}, {}):
        (form,) = (each for each in open_page("curate", **new).expander if each.label == "New run")
        assert form.proto.expanded == bool(new)
    assert open_page("studies", run="1").selectbox("studies.run").value == 1
    assert open_page("studies", run="77").selectbox("studies.run").value == 2
    with sqlite_store.write() as session:  # a later release, whose held-out groups it trained on
        found = session.get_one(Release, 1)
        facts = {"path": "/nowhere/later", "content_sha256": "later", "name": "later"}
        same = {
            column.name: getattr(found, column.name)
            for column in Release.__table__.columns
            if column.name not in ("id", "created_at", *facts)
        }
        session.add(Release(**same, **facts))
        session.commit()
    page = open_page("evaluations", checkpoint="1")
    assert page.multiselect("evaluations.models").value == ["/nowhere/checkpoint-1"]
    assert page.selectbox("evaluations.release").value == 1
    unlinked = open_page("evaluations")
    unlinked.session_state["evaluations.new"] = True  # its drawer is opened
    assert unlinked.run().selectbox("evaluations.release").value == 2


def test_inviting_without_accounts_leads_to_the_admin_account_and_makes_no_link(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(sqlite_store)
    before = open_page("studies")
    assert "study=1" in links(before)["Create the admin account"].query_string
    assert not any(label.startswith("Go on: ") for label in links(open_page("accounts", study="1")))
    assert "studies.invite" not in {button.key for button in before.button}
    sign_in(sqlite_store, monkeypatch, "curator")
    after = open_page("studies")
    assert "studies.invite" in {button.key for button in after.button}
    assert "/judge?study=1" in words(after)
    assert "Link to send" in words(after) and "Link to send" not in words(before)
    sign_in(sqlite_store, monkeypatch, "admin")
    back = links(open_page("accounts", study="1"))["Go on: invite people to study 1"]
    assert (back.page, back.query_string) == ("studies", "study=1")
    for hostile in ("<script>", "1" * 40, ""):
        found = links(open_page("accounts", study=hostile))
        assert not any(label.startswith("Go on: ") for label in found)


def test_who_is_signed_out_is_sent_nowhere(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(sqlite_store)
    with sqlite_store.write() as session:
        add_account(session, "root", "correct horse battery", role="admin", actor="test")
        session.commit()
    send_cookies(monkeypatch, {})
    assert links(AppTest.from_file(str(MAIN)).run()) == {}
