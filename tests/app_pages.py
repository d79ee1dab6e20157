"""Opening the app's pages in AppTest as somebody: the cookie is put on the wire, nothing else."""

import json
import os
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from streamlit.runtime import context
from streamlit.runtime.scriptrunner.script_runner import ScriptRunner
from streamlit.runtime.scriptrunner_utils.script_requests import RerunData, ScriptRequests
from streamlit.testing.v1 import AppTest
from streamlit.testing.v1.local_script_runner import LocalScriptRunner
from streamlit.util import calc_hash

from app.access.identity import COOKIE
from app.kit.menu import APP, FILES, MENU
from app.studies.actions import ROUND
from db.people.accounts import add_account
from db.people.sign_ins import start_session
from db.store.store import Store

MAIN = APP / "server" / "main.py"
PASSWORD = "correct horse battery"


def open_tab(at: AppTest, name: str, *, key: str) -> AppTest:
    """Open a tab of which only the open one is drawn."""
    at.session_state[key] = name
    return at.run()


def open_drawers(at: AppTest, *keys: str) -> AppTest:
    """Open folded parts of the page, which are drawn once they are opened."""
    for key in keys:
        at.session_state[key] = True
    return at.run()


def people_of(at: AppTest) -> list[dict[str, Any]]:
    """The rows of the table of a study's people."""
    drawn = next(each for each in at.dataframe if "median_seconds" in each.value)
    found: list[dict[str, Any]] = json.loads(drawn.value.to_json(orient="records"))
    return found


def select_people(at: AppTest, study_id: int, *names: str) -> AppTest:
    """Select rows of the table of a study's people, as clicks on their boxes do."""
    drawn = people_of(at)
    ids = [row["id"] for row in drawn]
    has_acted = ROUND in at.session_state
    number = at.session_state[ROUND] if has_acted else 0
    key = f"studies.people_{study_id}_{hash((number, *ids))}"
    rows = [place for place, row in enumerate(drawn) if row["name"] in names]
    at.session_state[key] = {"selection": {"rows": rows, "columns": [], "cells": []}}
    at.run()
    assert not at.exception, [e.message for e in at.exception]
    return at


def page_path(name: str) -> str:
    """A page's file as `AppTest.switch_page` takes it: relative to the entry script."""
    return os.path.relpath(FILES[name], MAIN.parent)


def sign_in(store: Store, monkeypatch: pytest.MonkeyPatch, role: str) -> None:
    """Make an account of that role and send its cookie with every page from now on."""
    send_cookies(monkeypatch, cookies_of(store, role))


def cookies_of(store: Store, role: str) -> dict[str, str]:
    """The cookies of a new account of that role."""
    with store.write() as session:
        account = add_account(session, f"a {role}", PASSWORD, role=role, actor="test")
        cookies = {COOKIE: start_session(session, account)}
        session.commit()
        return cookies


def send_cookies(monkeypatch: pytest.MonkeyPatch, cookies: dict[str, str]) -> None:
    """What the browser sends."""
    client = SimpleNamespace(cookies=cookies)
    monkeypatch.setattr(context, "_get_client_context", lambda: client)


def open_page(name: str, **parameters: str) -> AppTest:
    """The page after its first drawing, by its address; its exceptions are the test's.

    Raises ValueError where the menu of whoever is there does not have it.
    """
    at = AppTest.from_file(str(MAIN), default_timeout=180)
    for parameter, value in parameters.items():
        at.query_params[parameter] = value
    if name != "home":  # as the browser asks for it: `switch_page` needs home to be drawn before
        at._page_hash = calc_hash(name)
    at.run()
    if name != "home":
        at.switch_page(page_path(name))  # refuses what the navigation did not register
    assert not at.exception, [e.message + "\n" + "\n".join(e.stack_trace) for e in at.exception]
    return at


def redraw_fragments(at: AppTest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw the fragments of the page again without its script, as `run_every` does."""
    ids = list(at._fragment_storage._fragments)
    assert ids, "the page has no fragments"

    def request(runner: LocalScriptRunner, data: RerunData) -> bool:
        runner._requests = ScriptRequests()  # it holds a request of the whole page already
        return ScriptRunner.request_rerun(
            runner, replace(data, fragment_id_queue=ids, is_auto_rerun=True)
        )

    with monkeypatch.context() as patched:
        patched.setattr(LocalScriptRunner, "request_rerun", request)
        at.run()
    assert not at.exception, [e.message for e in at.exception]


def words(at: AppTest) -> str:
    """Everything on the page that is text."""
    parts = [
        element.value
        for kind in ("title", "markdown", "caption", "error", "success", "code", "metric")
        for element in at.get(kind)
    ]
    parts += [element.proto.body for element in at.get("html")]
    parts += [element.proto.body for element in at.get("text")]
    return "\n".join(map(str, parts))


def card_data(at: AppTest) -> dict[str, Any]:
    """The data that the page sent to its card, the component with most of it."""
    sent = [str(each.proto.json) for each in at.main if hasattr(each.proto, "json")]
    found: dict[str, Any] = json.loads(max(sent, key=len))
    return found


def page_names() -> list[str]:
    """All pages of the menu."""
    return [view.name for view in MENU]
