"""What is wrong with a field of a form is under that field, in every form, by one helper."""

import re
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from app_pages import PASSWORD, open_drawers, open_page, sign_in, words
from exporting import export
from grown_dataset import grown
from records_world import make_run
from sqlalchemy import select
from streamlit.testing.v1 import AppTest
from study_world import make_world

from app.kit.fields import FIELDS, field_of
from app.recipes import actions
from db.errors import BadInput
from db.home import home
from db.people.accounts import add_account
from db.store.store import Store
from db.tables import Account, ApiToken, Job, Webhook

ROOT = Path(__file__).parents[2]
FIELD_TYPES = ("text_input", "text_area", "multiselect", "button_group", "number_input")


@pytest.fixture(autouse=True)
def nothing_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.jobs.supervisors.ensure_supervisor", lambda store: None)


def blamed(at: AppTest) -> str:
    """The key of the field above the page's one error."""
    assert not at.exception and len(at.error) == 1, [each.value for each in at.error]
    drawn = [each for each in at.main if each.type == "error" or each.type in FIELD_TYPES]
    place = next(n for n, each in enumerate(drawn) if each.type == "error")
    return str(drawn[place - 1].key)


def press(at: AppTest, label: str) -> AppTest:
    (button,) = [each for each in at.button if each.label == label]
    return button.click().run()


@pytest.mark.long
def test_a_taken_release_name_is_wrong_at_the_name(sqlite_store: Store) -> None:
    make_run(sqlite_store)
    (home() / "releases" / "taken").mkdir(parents=True)
    at = open_page("releases")
    for name in ("taken", "no name!"):
        at.text_input(key="releases.name").set_value(name).run()
        at.button(key="releases.start").click().run()
        assert blamed(at) == "releases.name"
        assert at.text_input(key="releases.name").value == name
        assert not at.run().error, "said once"


def test_the_name_of_a_release_that_is_queued_is_taken_too(sqlite_store: Store) -> None:
    make_run(sqlite_store)
    at = open_page("releases")
    for _ in range(2):
        at.button(key="releases.start").click().run()
    assert blamed(at) == "releases.name"
    with sqlite_store.read() as session:
        assert len(session.scalars(select(Job)).all()) == 1


def test_a_sweep_s_name_and_its_number_of_trainings_are_wrong_at_their_fields(
    sqlite_store: Store, tmp_path: Path
) -> None:
    make_run(sqlite_store)
    export(sqlite_store, tmp_path / "out")
    at = open_drawers(open_page("train"), "train.new", "train.sweep_drawer")
    at.text_input(key="train.sweep_name").set_value(" ").run()
    assert blamed(at) == "train.sweep_name"
    at.text_input(key="train.sweep_name").set_value("mine").run()
    assert not at.error
    at.multiselect(key="train.sweep_objectives").set_value([]).run()
    assert blamed(at) == "train.sweep_objectives"
    assert at.button(key="train.sweep_start").disabled


def test_the_name_of_a_recipe_and_of_a_prompt_are_wrong_at_their_fields(
    sqlite_store: Store,
) -> None:
    make_world(sqlite_store, 4)
    at = open_page("recipes", recipe="offline")
    name, file = (key.format("offline@0") for key in (actions.NAME, actions.NEW_FILE))
    for wrong in ("promptriever", "no name!", "a/b", ""):
        at.text_input(key=name).set_value(wrong).run()
        at.button(key="recipes.save").click().run()
        assert blamed(at) == name
        assert at.text_input(key=name).value == wrong
    at.text_input(key=file).set_value("../fits.md").run()
    at.button(key="recipes.add").click().run()
    assert blamed(at) == file
    at.text_input(key=file).set_value("fits").run()
    at.button(key="recipes.add").click().run()
    assert not at.error and "fits.md" in {each.label for each in at.tabs}


def test_an_analysis_of_no_corpus_is_wrong_at_what_is_to_be_chosen(sqlite_store: Store) -> None:
    grown(sqlite_store)
    at = open_page("diversity")
    at.multiselect(key="diversity.datasets").set_value([]).run()
    at.button(key="diversity.start").click().run()
    assert blamed(at) == "diversity.datasets"
    at = open_page("overlaps")
    at.multiselect(key="near_duplicates.datasets").set_value([]).run()
    at.button(key="near_duplicates.start").click().run()
    assert blamed(at) == "near_duplicates.datasets"
    at.button_group(key="overlaps.question").set_value("contamination").run()
    at.button(key="contamination.start").click().run()
    assert blamed(at) == "contamination.against_datasets"


def test_a_repository_that_is_no_name_is_wrong_at_its_field(
    sqlite_store: Store, tmp_path: Path
) -> None:
    make_run(sqlite_store)
    export(sqlite_store, tmp_path / "out")
    at = open_page("releases")
    at.text_input(key="releases.repo").set_value("books").run()
    at.button(key="releases.push_start").click().run()
    assert blamed(at) == "releases.repo"
    at.text_input(key="releases.repo").set_value("ada/books").run()
    at.selectbox(key="releases.push_way").select("branch").run()
    at.button(key="releases.push_start").click().run()
    assert blamed(at) == "releases.branch"


def test_an_evaluation_of_no_model_is_wrong_at_the_models(sqlite_store: Store) -> None:
    at = open_page("evaluations")
    at.button(key="evaluations.submit").click().run()
    assert blamed(at) == "evaluations.benchmark", "there is no release"
    at.multiselect(key="evaluations.models").set_value([])
    at.button(key="evaluations.submit").click().run()
    assert blamed(at) == "evaluations.models"


def test_a_study_s_and_a_dataset_s_fields_have_their_errors(sqlite_store: Store) -> None:
    make_world(sqlite_store, 4)
    at = open_page("studies")
    at.selectbox(key="studies.sample").select("list").run()
    at.text_area(key="studies.lines").set_value("77").run()
    at.button(key="studies.create_button").click().run()
    assert blamed(at) == "studies.lines"
    at = open_page("datasets")
    at.text_input(key="datasets.name").set_value("x" * 300)
    at.text_input(key="datasets.pairs").set_value(str(ROOT / "pyproject.toml"))
    at.button(key="datasets.submit").click().run()
    assert blamed(at) == "datasets.name"


def test_an_account_s_form_keeps_what_was_typed_but_the_password(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    sign_in(sqlite_store, monkeypatch, "admin")
    with sqlite_store.write() as session:
        ann = add_account(session, "ann", PASSWORD, role="annotator", actor="test").id
        session.commit()
    at = open_page("accounts", account=str(ann))
    for name, password, field in (
        ("ann", PASSWORD, "name"),
        ("openai:gpt", PASSWORD, "name"),
        ("bob", "short", "password"),
    ):
        at.text_input(key="accounts.name").set_value(name)
        at.text_input(key="accounts.password").set_value(password)
        at.button(key="accounts.submit").click().run()
        assert blamed(at) == f"accounts.{field}"
        assert at.text_input(key="accounts.name").value == name
        assert at.text_input(key="accounts.password").value == ""
    at.text_input(key="accounts.password").set_value(PASSWORD)
    at.button(key="accounts.submit").click().run()
    assert not at.error and at.text_input(key="accounts.name").value == ""
    at.text_input(key=f"accounts.name-{ann}").set_value("BOB").run()
    at.button(key=f"accounts.rename-do-{ann}").click().run()
    assert blamed(at) == f"accounts.name-{ann}"
    with sqlite_store.read() as session:
        assert session.scalars(select(Account.name).order_by(Account.id)).all() == [
            *("a admin", "ann", "bob")
        ]


def test_members_tokens_and_webhooks_have_theirs(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    sign_in(sqlite_store, monkeypatch, "admin")
    with sqlite_store.write() as session:
        add_account(session, "ann", PASSWORD, role="annotator", actor="test")
        session.commit()
    assert blamed(press(open_page("members"), "Add member")) == "members.rights"
    at = open_page("tokens")
    assert blamed(press(at, "Create token")) == "tokens.name"
    at.text_input(key="tokens.name").set_value("nightly")
    assert blamed(press(at, "Create token")) == "tokens.rights"
    assert at.text_input(key="tokens.name").value == "nightly"
    at.text_input(key="webhooks.url").set_value("what")
    assert blamed(press(at, "Add webhook")) == "webhooks.url"
    with sqlite_store.read() as session:
        assert not session.scalars(select(ApiToken)).all()
        assert not session.scalars(select(Webhook)).all()


def test_an_error_of_no_field_that_is_drawn_is_above_the_page(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise BadInput("no licence", "give one", code="request_invalid", field="licence")

    make_run(sqlite_store)
    at = open_page("releases")
    monkeypatch.setattr("app.operations.releases.create", refuse)
    at.button(key="releases.start").click().run()
    assert ["No licence" in each.value for each in at.error] == [True]
    assert at.main[0].type != "error" and "No licence" in words(at)


def codes() -> Iterable[str]:
    """The codes of errors in the product."""
    for folder in ("app", "curation", "db", "trainer"):
        for path in (ROOT / folder).rglob("*.py"):
            yield from re.findall(r'code=f?"(\w+)', path.read_text(encoding="utf-8"))
            yield from re.findall(r'"(server_\w+)"', path.read_text(encoding="utf-8"))


def begins(code: str) -> Callable[[str], bool]:
    return lambda other: other.startswith(code)


def test_every_code_that_blames_a_field_is_raised() -> None:
    raised = set(codes())
    never = [
        code
        for code in FIELDS
        if code not in raised and not (code.endswith("_") and any(map(begins(code), raised)))
    ]
    assert not never
    assert field_of(BadInput("x", code="account_field_taken")) == "email", "the longest beginning"
    assert field_of(BadInput("x", code="other")) is None
