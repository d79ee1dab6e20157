"""Every message that an annotator can see is in the catalogue: none is English under German."""

import ast
import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from string import Formatter
from typing import Any

import pytest
from app_pages import open_page, send_cookies
from google.protobuf.empty_pb2 import Empty
from google.protobuf.message import Message as Proto
from starlette.testclient import TestClient
from streamlit.testing.v1 import AppTest
from study_world import make_world, sampled_study

import app
from app.access.identity import COOKIE, user_of_cookies
from app.judge.actions import card_data
from app.server.web import app as server
from app.text import languages
from app.text.languages import LANGUAGES, error_text
from curation.rules.language import lang_of
from db.assignment import members
from db.assignment.members import pause_judge, require_active
from db.assignment.threads import write_as_curator, write_as_judge
from db.errors import InfError, Refused
from db.people.accounts import add_account
from db.people.invitations import invite
from db.people.passwords import create_password_link
from db.people.sign_ins import start_session
from db.store.store import Store
from db.study.judgments import get_or_create_judge
from db.study.studies import set_status
from db.tables import Assignment, StudyJudge

ROOT = Path(app.__file__).parents[1]
GERMAN, ENGLISH = LANGUAGES["de"].texts, LANGUAGES["en"].texts
PASSWORD = "correct horse battery"
ERRORS = ("Refused", "BadInput", "NotFound", "InfError")
# What runs when an annotator signs in, is invited, judges, qualifies or reads their answers.
ON_THE_WAY = (
    "app/access/openid.py",
    "app/access/permissions.py",
    "app/access/session_user.py",
    "app/judge",
    *(
        f"app/operations/judging/{name}.py"
        for name in ("answers", "card", "outbox", "qualification")
    ),
    "app/server/own_account.py",
    "app/server/routes.py",
    "db/assignment",
    "db/people/accounts.py",
    "db/people/attempts.py",
    "db/people/fields.py",
    "db/people/invitations.py",
    "db/people/passwords.py",
    "db/people/sign_ins.py",
    "db/study/judgments.py",
)
# Functions there that no annotator's page calls, or whose message says that the code is wrong.
OF_OTHERS = {
    "require_visible": "Groups and Review; never for who only judges",
    "pause_judge": "a curator's form",
    "reassign": "a curator's form",
    "write_as_curator": "a curator's thread",
    "get_account": "the command line and the Accounts page",
    "check_role": "the command line and the Accounts page",
    "require_another_admin": "the Accounts page",
    "checked_email": "the Accounts page",
    "account_field": "the Accounts page",
    "checked_line": "the Accounts page",
    "set_field": "the Accounts page",
    "invite": "a curator's form",
    "check_choice": "labels that the store gave out",
    "_existing_item": "items that the store gave out",
}


def files() -> Iterator[Path]:
    for place in ON_THE_WAY:
        path = ROOT / place
        yield from sorted(path.rglob("*.py")) if path.is_dir() else [path]


def errors_made(path: Path) -> Iterator[tuple[str, int, ast.Call]]:
    """The calls that make an error, each with the function around it and its line."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    around: dict[int, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            around |= {id(inner): node.name for inner in ast.walk(node)}
    for node in ast.walk(tree):
        is_named = isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        if is_named and node.func.id in ERRORS:
            yield around.get(id(node), ""), node.lineno, node


def codes_of(call: ast.Call) -> list[str]:
    """The codes that an error can have; [] without one."""
    (value,) = [one.value for one in call.keywords if one.arg == "code"] or [None]
    if isinstance(value, ast.Constant):
        return [str(value.value)]
    if isinstance(value, ast.JoinedStr):  # code=f"study_is_{study.status}"
        start = value.values[0]
        assert isinstance(start, ast.Constant)
        return [key.removeprefix("refused.") for key in ENGLISH if f".{start.value}" in key]
    return list(members.AUTOMATIC_REASONS) if isinstance(value, ast.Name) else []


def placeholders(text: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(text) if name}


def test_every_error_on_an_annotators_way_has_its_text_with_its_values() -> None:
    missing, checked = [], 0
    for path in files():
        for function, line, call in errors_made(path):
            if function in OF_OTHERS:
                continue
            checked += 1
            where = f"{path.relative_to(ROOT)}:{line} in {function}"
            codes = codes_of(call)
            given = {one.arg for one in call.keywords if one.arg}
            is_open = any(one.arg is None for one in call.keywords)  # **values
            for code in codes:
                text = ENGLISH.get(f"refused.{code}")
                if text is None or not (is_open or placeholders(text) <= given):
                    missing.append(f"{where}: {code}")
            if not codes:
                missing.append(where)
    assert checked > 45
    assert missing == []


def test_exceptions_to_that_are_still_there() -> None:
    functions = {function for path in files() for function, _, _ in errors_made(path)}
    assert OF_OTHERS.keys() - functions == set()


def test_no_german_text_is_english() -> None:
    same = {key for key, text in GERMAN.items() if text == ENGLISH[key]}
    assert same == {"form.name"}
    found = {key: lang_of(text) for key, text in GERMAN.items()}
    assert {key for key, lang in found.items() if lang not in ("de", "")} == set()
    assert sum(lang == "de" for lang in found.values()) > 30


@pytest.mark.parametrize(
    ("reason", "code"),
    [
        ("2 of 5 gold items correct", "paused_by_gold"),
        ("qualification not passed in 1 round (3 of 5 right in the last)", ""),
        (
            "qualification not passed in 2 rounds (0 of 5 right in the last), and there are no new "
            "examples for another: ask the curator",
            "",
        ),
        ("bitte langsamer", "paused"),
        ("2 of 5 gold items correct, said Cora", "paused"),
    ],
)
def test_a_pause_that_no_curator_wrote_is_translated(reason: str, code: str) -> None:
    with pytest.raises(Refused) as caught:
        require_active(StudyJudge(study_id=1, judge_id=1, state="paused", reason=reason))
    assert caught.value.code == (code or "paused_by_qualification")
    message = error_text("de", caught.value)
    assert message.startswith("Sie sind in dieser Studie angehalten: ")
    assert (reason in message) == (code == "paused")


# ---- the pages themselves, text by text


def as_pattern(text: str) -> str:
    """A regular expression for a text of the catalogue, any value in its placeholders."""
    parts = [
        re.escape(literal) + (".*?" if name is not None else "")
        for literal, name, _, _ in Formatter().parse(text)
    ]
    return "".join(parts)


TEXT = "|".join(f"(?:{as_pattern(one)})" for one in sorted(GERMAN.values(), key=len, reverse=True))
# A line of several texts, a label before a colon, and a sentence that the page ended or began.
GERMAN_LINE = re.compile(rf"[\s(]*(?:(?:{TEXT})[\s:·().]*)+", re.IGNORECASE)
DATA = re.compile(
    r"InF Studio|English|Deutsch|ann|bob|cora|world|"
    r"Find the [\w ]+ text\.|The [\w ]+ text about \w+ \d+, in full\.|what is \w+ \d+|"
    r"\d+|[\d-]+ [\d:]+ UTC|bitte langsamer|"
    r"\d{4}-\d\d-\d\d \d\d:\d\d UTC|testclient|a note|Gilt das\?|Ja\.|[·()\s.]*"
)


def foreign(lines: list[str]) -> list[str]:
    """The lines that are neither German texts of the catalogue nor data of the test."""
    plain = [re.sub(r"\\(?=[^\w\s])|\*\*|:material/\w+:", "", line).strip() for line in lines]
    known = re.compile(f"{DATA.pattern}|{GERMAN_LINE.pattern}", re.IGNORECASE)
    parts = [
        part.strip()
        for line in plain
        for part in ([line] if known.fullmatch(line) else re.split(r" · |: (?=\d)|\n", line))
    ]
    return [one for one in parts if not known.fullmatch(one)]


def visible(html: str) -> list[str]:
    """The text nodes of a page, and what its attributes say to a person."""
    body = re.sub(r"(?s)<style.*?</style>", "", html)
    titles = re.findall(r'(?:aria-label|placeholder|title)="([^"]+)"', body)
    nodes = re.split(r"<[^>]*>", body)
    return [unescape(one).strip() for one in (*titles, *nodes) if one.strip()]


def say_nothing_english(html: str, *parts: str) -> None:
    lines = [one.replace(" · InF Studio", "") for one in visible(html)]
    lines = [re.sub(r"\s+", " ", one) for one in lines]
    assert foreign(lines) == []
    for part in parts:
        assert part in unescape(html)


@pytest.fixture
def browser() -> TestClient:
    return TestClient(server, headers={"accept-language": "de-DE,de;q=0.9"}, follow_redirects=False)


@pytest.fixture
def team(sqlite_store: Store) -> Store:
    with sqlite_store.write() as session:
        add_account(session, "cora", PASSWORD, role="admin", actor="test")
        add_account(session, "ann", PASSWORD, role="annotator", actor="test")
        session.commit()
    return sqlite_store


def test_the_forms_and_all_their_refusals_are_german(team: Store, browser: TestClient) -> None:
    run_id = make_world(team, 4)
    with team.write() as session:
        study = sampled_study(session, run_id=run_id, items=3, overlap=1, name="world")
        links = [
            invite(session, role="annotator", days=1, actor="cora", study_id=one)
            for one in (None, study.id)
        ]
        session.commit()
    say_nothing_english(browser.get("/sign-in").text, "Anmelden")
    form = {"name": "ann", "password": "wrong"}
    for _ in range(5):
        answer = browser.post("/sign-in", data=form)
        say_nothing_english(answer.text, "Name oder Passwort ist falsch")
    say_nothing_english(browser.post("/sign-in", data=form).text, "Viertelstunde")
    say_nothing_english(browser.get("/sign-in/openid?with=bob").text, "Unbekannter Anbieter „bob“")
    foreign_page = browser.post("/sign-in", data=form, headers={"origin": "http://evil.example"})
    say_nothing_english(foreign_page.text, "unter einer anderen Adresse")

    say_nothing_english(browser.get("/invitation/bob").text, "wurde schon benutzt")
    for link in links:
        path = f"/invitation/{link}"
        say_nothing_english(browser.get(path).text, "Annotator/in")
        for name, password, part in (
            ("bob", "short", "12 bis 1024 Zeichen"),
            ("bob", "password1234", "zuerst geraten"),
            ("", PASSWORD, "1 bis 80 Zeichen"),
            ("bob\u2800", PASSWORD, "nur sichtbare Zeichen"),
            ("openai:bob", PASSWORD, "Doppelpunkt haben Modelle"),
            ("аnn", PASSWORD, "Buchstaben mehrerer Schriften"),
            ("ANN", PASSWORD, "zu verwechseln"),
            ("ann", PASSWORD, "„ann“ gibt es schon"),
        ):
            answer = browser.post(path, data={"name": name, "password": password})
            say_nothing_english(answer.text, part)
    answer = browser.post(f"/invitation/{links[1]}", data={"as": "me"})
    say_nothing_english(answer.text, "Sie sind abgemeldet")


def test_the_pages_of_ones_own_account_are_german(team: Store, browser: TestClient) -> None:
    with team.write() as session:
        account = add_account(session, "bob", PASSWORD, role="annotator", actor="test")
        link = create_password_link(session, account, actor="cora")
        browser.cookies.set(COOKIE, start_session(session, account, address="10.0.0.1"))
        invitation = invite(session, role="annotator", days=1, actor="cora")
        session.commit()
    for path in ("/account", "/sign-out", f"/password/{link}"):
        say_nothing_english(browser.get(path).text)
    say_nothing_english(browser.get("/password/bob").text, "funktioniert nicht")
    answer = browser.post(f"/password/{link}", data={"password": "short"})
    say_nothing_english(answer.text, "12 bis 1024 Zeichen")
    wrong = {"current": "wrong", "password": "another good horse"}
    answer = browser.post("/account/password", data=wrong)
    say_nothing_english(answer.text, "bisherige Passwort ist falsch")
    answer = browser.post("/account/session", data={"session": "77"})
    say_nothing_english(answer.text, "vielleicht schon beendet")
    answer = browser.post(f"/invitation/{invitation}", data={"as": "me"})
    say_nothing_english(answer.text, "legt ein neues Konto an")


LABELS = ("label", "body", "help", "placeholder", "options", "section_header", "page_name")


def strings_of(proto: Proto) -> Iterator[str]:
    """Everything in a message of the server that a person reads."""
    for field, value in proto.ListFields():
        values: Any = value if field.is_repeated else [value]
        for one in values:
            if isinstance(one, Proto):
                yield from strings_of(one)
            elif isinstance(one, str) and field.name in LABELS:
                yield from visible(one) if field.name == "body" else [one]


def page_is_german(page: AppTest, *parts: str) -> None:
    lines = [
        line
        for element in page.main
        if element.type != "bidi_component"
        for line in strings_of(element.proto or Empty())
    ]
    lines += [str(block.label) for block in page.get("expander")]
    user = "".join(str(one.proto.body) for one in page.sidebar.get("html"))
    assert "abmelden" in user and "sign out" not in user
    assert foreign(lines) == []
    for part in parts:
        assert any(part in line for line in lines), (part, lines)


def card_is_german(study_id: int, *parts: str) -> None:
    data = card_data(study_id, [], language="de")
    assert foreign([data["message"]]) == []
    assert all(part in data["message"] for part in parts)


def test_judge_and_my_answers_are_german_in_every_state(
    team: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    with team.write() as session:
        account = add_account(session, "bob", PASSWORD, role="annotator", actor="test")
        cookies = {COOKIE: start_session(session, account), languages.COOKIE: "de"}
        session.commit()
    assert user_of_cookies(team, cookies) is not None
    send_cookies(monkeypatch, cookies)
    home, judge, answers = open_page("home"), open_page("judge"), open_page("answers")
    page_is_german(home, "Willkommen, bob", "Zu Ihren Aufgaben")
    for page in (judge, answers):
        page_is_german(page, "Keine Studie")
    run_id = make_world(team, 8)
    with team.write() as session:
        about = {"name": "world", "guidelines": "Gilt das?"}
        study_id = sampled_study(session, run_id=run_id, items=3, overlap=1, **about).id
        session.commit()
    page_is_german(answers.run(), "Hier gibt es keine Antworten")
    # AppTest draws no card; its data is what the page sends
    page_is_german(judge.run(), "Richtlinien (Fassung 1)")
    page_is_german(home.run(), "Wartet auf Sie", "Zu beurteilen in world")
    first, second = card_data(study_id, [], language="de")["items"][:2]
    base = {"study": study_id, "token": first["token"], "position": 0}
    forged: list[dict[str, Any]] = [
        {**base, "event": "1", "kind": "pick", "note": "a note", "flagged": True},
        {**base, "event": "2", "kind": "pick"},
        {**base, "event": "3", "kind": "skip", "change": True},
        {**base, "event": "4", "kind": "evil"},
        {**base, "event": "5" * 99, "kind": "pick"},
        {**base, "event": "6", "kind": "pick", "token": "../"},
        {**base, "event": "7", "kind": "pick", "token": "f" * 32},
        {**base, "event": "8", "kind": "pick", "study": 2**40},
        {**base, "event": "9", "kind": "pick", "study": 99},
        {**base, "event": "a", "kind": "pick", "note": "\ud800"},
        {**base, "event": "b", "kind": "message", "body": " "},
        {**base, "event": "c", "kind": "message", "body": "\ud800"},
        {**base, "event": "d", "kind": "pick", "shown": "yesterday"},
        {**base, "event": "e", "kind": "pick", "decided": "0001-01-01T00:00:00"},
        {**base, "event": "1", "kind": "pick", "token": second["token"]},
        {**base, "event": "f", "kind": "example"},
        {**base, "event": "g", "kind": "pick", "token": second["token"], "position": 9},
        {**base, "event": "h", "kind": "skip", "token": second["token"], "reason": "evil"},
    ]
    replies = [card_data(study_id, [one], language="de")["acknowledged"] for one in forged]
    assert replies[0] == {"1": ""}
    refused = [next(iter(one.values())) for one in replies[1:]]
    assert foreign(refused) == [] and "" not in refused

    with team.write() as session:
        judge_id = get_or_create_judge(session, "bob", kind="person", account_id=account.id).id
        item_id = session.query(Assignment.item_id).filter_by(token=first["token"]).scalar()
        thread = (session, study_id, judge_id, item_id)
        write_as_judge(*thread, "Gilt das?", event_id="1")
        write_as_curator(*thread, "Ja.", by="cora", event_id="2")
        session.commit()
    page_is_german(answers.run(), "Neue Nachrichten", "Antwort ändern")
    for status in ("paused", "open"):
        with team.write() as session:
            set_status(session, study_id, status)
            session.commit()
        if status == "paused":
            card_is_german(study_id, "ist angehalten")
            page_is_german(answers.run(), "nicht mehr ändern")
    with team.write() as session:
        pause_judge(session, study_id, judge_id, "bitte langsamer")
        session.commit()
    card_is_german(study_id, "Sie sind in dieser Studie angehalten: bitte langsamer")
    with team.write() as session:
        set_status(session, study_id, "closed")
        session.commit()
    card_is_german(study_id, "ist geschlossen")


def test_an_error_without_a_code_would_be_found() -> None:
    assert foreign([error_text("de", InfError("the store is locked", code="locked"))]) == [
        "the store is locked"
    ]
    assert foreign(["Nothing matches here.", "Studie", "Keine Studie ist geöffnet."]) == [
        "Nothing matches here."
    ]
