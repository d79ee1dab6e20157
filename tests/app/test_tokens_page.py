"""The Tokens page: every field of its forms reaches the token or the webhook, and what is wrong is
refused in words. Addresses are code, which Markdown makes no link of."""

from datetime import timedelta

import pytest
from app_pages import open_page, sign_in, words
from sqlalchemy import select
from streamlit.testing.v1 import AppTest
from study_world import make_world

from app.access.identity import owner
from app.operations import connections
from app.operations.connections import ConnectionAdd
from app.operations.doors import tokens, webhooks
from app.operations.doors.webhooks import WebhookAdd
from db.people.tokens import MAX_DAYS
from db.store.store import Store
from db.tables import ApiToken, utc_now
from db.values import RIGHTS, TOKEN_RIGHTS

COMMAND = owner("cli:ada")
HOOK = "http://127.0.0.1:9/hook_of_*ours*"


def fill(at: AppTest, name: str, rights: list[str], **more: object) -> AppTest:
    """The form that creates a token, filled and sent."""
    at.text_input(key="tokens.name").set_value(name)
    at.button_group(key="tokens.rights").set_value(rights)
    for key, value in more.items():
        kind = "multiselect" if key == "datasets" else "number_input"
        getattr(at, kind)(key=f"tokens.{key}").set_value(value)
    return at.button(key="FormSubmitter:tokens.add-Create token").click().run()


def test_an_admin_is_offered_what_reads_administration(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    sign_in(sqlite_store, monkeypatch, "admin")
    offered = open_page("tokens").button_group(key="tokens.rights").options
    assert set(offered) == {*RIGHTS, *TOKEN_RIGHTS}


def test_every_field_of_a_token_is_kept(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_world(sqlite_store, 2, name="mine")
    make_world(sqlite_store, 2, name="other")
    sign_in(sqlite_store, monkeypatch, "curator")
    at = open_page("tokens")
    offered = at.button_group(key="tokens.rights").options
    assert offered and "admin" not in offered and set(offered) <= set(RIGHTS)
    assert at.number_input(key="tokens.days").max == MAX_DAYS
    at = fill(at, "nightly", ["curate", "release"], days=7, budget_usd=2.5, datasets=["other"])
    assert not at.exception and not at.error, [each.value for each in at.error]
    (row,) = tokens.list_all(COMMAND, everybody=True).data
    assert (row.name, row.person, row.datasets) == ("nightly", "a curator", ("other",))
    assert set(row.rights) == {"curate", "release"} and row.budget_usd == row.left_usd == 2.5
    assert abs(row.expires_at - utc_now() - timedelta(days=7)) < timedelta(minutes=5)
    (text,) = (each.value for each in at.code if each.value.startswith("inf_"))
    assert tokens.presented(text).token_id == row.id
    shown = words(at).replace("\\", "")
    assert f"until {row.expires_at:%Y-%m-%d}" in shown and "$2.50 of $2.50 left" in shown
    at = at.run()
    assert text not in words(at), "shown once"
    at.button(key=f"tokens.revoke-{row.id}").click().run()
    (row,) = tokens.list_all(COMMAND, everybody=True).data
    assert row.status == "revoked"


def test_what_is_left_empty_is_the_default(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_world(sqlite_store, 2, name="mine")
    sign_in(sqlite_store, monkeypatch, "curator")
    fill(open_page("tokens"), "script", ["judge"])
    (row,) = tokens.list_all(COMMAND, everybody=True).data
    assert (row.datasets, row.budget_usd, row.rights) == (None, None, ("judge",))
    assert abs(row.expires_at - utc_now() - timedelta(days=90)) < timedelta(minutes=5)


@pytest.mark.parametrize(("name", "rights"), [("script", []), ("", ["judge"]), (" ", ["judge"])])
def test_a_token_without_a_right_or_a_name_is_refused(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch, name: str, rights: list[str]
) -> None:
    sign_in(sqlite_store, monkeypatch, "curator")
    at = fill(open_page("tokens"), name, rights)
    assert not at.exception and at.error
    with sqlite_store.read() as session:
        assert session.scalars(select(ApiToken)).all() == []


def add_webhook(url: str, *, private: bool) -> AppTest:
    """The form that adds a webhook, filled and sent."""
    at = open_page("tokens")
    at.text_input(key="webhooks.url").set_value(url)
    at.checkbox(key="webhooks.private").set_value(private)
    at.multiselect(key="webhooks.events").set_value(["run.failed", "job.lost"])
    return at.button(key="FormSubmitter:webhooks.add-Add webhook").click().run()


def test_every_field_of_a_webhook_is_kept(sqlite_store: Store) -> None:
    at = add_webhook(HOOK, private=True)
    assert not at.exception and not at.error, [each.value for each in at.error]
    (row,) = webhooks.list_all(COMMAND).data
    assert (row.url, row.private) == (HOOK, True)
    assert set(row.events) == {"run.failed", "job.lost"}


@pytest.mark.parametrize(
    ("url", "private", "reason"),
    [
        (HOOK, False, "private network"),
        (HOOK, True, "command line"),  # with accounts the store's owner alone decides that
        ("ftp://example.org/", False, "https"),
        ("https://a b/", False, "https"),
        ("", False, ""),
    ],
)
def test_a_wrong_address_is_refused_with_its_reason(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch, url: str, private: bool, reason: str
) -> None:
    sign_in(sqlite_store, monkeypatch, "admin")
    at = add_webhook(url, private=private)
    assert not at.exception and reason in " ".join(each.value for each in at.error)
    assert at.error and webhooks.list_all(COMMAND).data == ()


def test_addresses_are_code_and_no_links(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Markdown links an address in text, also one whose characters are escaped."""
    webhooks.add(COMMAND, WebhookAdd(url=HOOK, private=True))
    url = "http://127.0.0.1:9/v1"
    connections.add(COMMAND, ConnectionAdd(name="lab", url=url))
    sign_in(sqlite_store, monkeypatch, "admin")
    for page, address in (("tokens", HOOK), ("connections", url)):
        at = open_page(page)
        texts = [each.value for kind in ("markdown", "caption", "success") for each in at.get(kind)]
        found = [text for text in texts if address in text.replace("\\", "")]
        assert found and all(f"`{address}`" in text for text in found), found
