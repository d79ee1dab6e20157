"""The Recipes page: files to edit, what is wrong at its place, versions, a preview."""

import re

import pytest
from app_pages import open_page, sign_in, words
from curation_runs import add_dataset
from streamlit.testing.v1 import AppTest

from app.access.identity import owner
from app.operations import recipes, runs
from app.operations.recipes import RecipeSave, RecipeShow
from app.recipes import actions
from app.text.remedies import in_pages
from curation.recipe.recipe import files_of, renamed
from db.errors import BadInput
from db.run.runs import set_run_status
from db.store.store import Store
from db.tables import Job

ADA = owner("ada")
MINE = renamed(files_of("promptriever"), "mine")
FIELD = actions.TEXT.format("mine@1", "mine.toml")


def shown_errors(at: AppTest) -> str:
    return " ".join(each.value for each in at.error).replace("\\", "")


def with_text(at: AppTest, before: str, after: str, key: str = FIELD) -> AppTest:
    field = at.text_area(key=key)
    assert before in field.value
    return field.set_value(field.value.replace(before, after)).run()


@pytest.fixture
def page(sqlite_store: Store) -> AppTest:
    add_dataset(sqlite_store, pairs=6)
    recipes.save(ADA, RecipeSave(files=MINE, note="first"))
    return open_page("recipes", recipe="mine")


def test_a_person_edits_saves_compares_and_restores_without_a_shell(page: AppTest) -> None:
    at = page
    assert not at.exception and "Valid" in words(at)
    assert {each.label for each in at.tabs} == set(MINE)
    assert at.button(key="recipes.save").disabled
    at = with_text(at, "negation = 1", "negation = 9")
    at.text_input(key=actions.NOTE.format("mine@1")).set_value("more negations").run()
    at = at.button(key="recipes.save").click().run()
    assert not at.exception and not at.error
    newest, first = recipes.versions(ADA, "mine").data
    assert (newest.number, newest.note) == (2, "more negations")
    assert any("negation = 9" in each.value for each in at.code if each.value.startswith("@@"))
    at.selectbox(key="recipes.second-mine").select(1).run()
    at = at.button(key="recipes.restore").click().run()
    assert recipes.show(ADA, RecipeShow(recipe="mine")).files == MINE
    assert recipes.versions(ADA, "mine").data[0].note == "as version 1"
    assert first.number == 1


def test_an_error_stands_at_its_place_in_the_words_of_the_command(page: AppTest) -> None:
    at = with_text(page, '"N" = "drop text"', '"N" = "drop it"')
    files = MINE | {"mine.toml": at.text_area(key=FIELD).value}
    with pytest.raises(Exception) as raised:
        recipes.check(ADA, recipes.RecipeCheck(files=files))
    assert str(raised.value) in shown_errors(at)
    (near,) = [each.value for each in at.code if "→" in each.value]
    (line,) = [each for each in near.split("\n") if each.startswith("→")]
    assert '"N" = "drop it"' in line
    assert at.button(key="recipes.preview_start").disabled
    before = recipes.versions(ADA, "mine").total
    at.button(key="recipes.save").click().run()
    assert recipes.versions(ADA, "mine").total == before


FITS = actions.TEXT.format("mine@1", "promptriever_fits.md")
OWN = MINE["mine.toml"]
CHECKS = OWN[OWN.index('over = ["P+", "B", "N"]') : OWN.index("[rules]")]
OF_TWO = 'over = ["P+", "B"]\nwith = ["I", "Q"]\nexpected = { "P+" = "yes", "B" = "yes" }\n\n'
DROP_N = '"N" = "drop text"'
# by kind: the file's field, what is replaced, by what, what its line begins with
WRONG = {
    "a cycle": (FIELD, 'inputs = ["Q", "P+", "style"', 'inputs = ["Q", "N", "style"', "[steps.ins"),
    "an unknown slot": (FIELD, 'inputs = ["Q", "P+", "I"]', 'inputs = ["Q", "J"]', "inputs"),
    "a claim without a passage": (FIELD, '{ 2 = "P+", 1 = "N" }', '{ 1 = "N" }', '"(I, Q)"'),
    "a check over nothing": (FIELD, 'over = ["P+", "B", "N"]', "over = []", "over"),
    "a weight of 0": (FIELD, "medium = 2", "medium = 0", "length"),
    "a rule without a check": (FIELD, CHECKS, OF_TWO, DROP_N),
    "a rule about an instruction": (FIELD, DROP_N, '"I" = "drop group"', '"I" ='),
    "a stand-in that nobody judges": (FIELD, CHECKS, OF_TWO.replace("B", "N"), '"P+" = "else B"'),
    "a stand-in that is to fail": (FIELD, '"B" = "yes"', '"B" = "no"', '"P+" = "else B"'),
    "a stand-in of another kind": (FIELD, "else B", "else I", '"P+" = "else I"'),
    "an unknown table": (FIELD, "[rules]", "[rulez]", "[rulez]"),
    "no claims": (FIELD, '[claims]\n"(I, Q)" = { 2 = "P+", 1 = "N" }\n', "", "[texts]"),
    "a misspelt key": (FIELD, "gives = [", "give = [", "give ="),
    "a wrong type": (FIELD, "temperature = 1.0", 'temperature = "hot"', "temperature"),
    "an empty file": (FIELD, MINE["mine.toml"], " ", ""),
    "what a prompt is not given": (FITS, "{passage}", "{passage} {reason}", "{passage} {reason}"),
}


@pytest.mark.parametrize("kind", WRONG)
def test_each_kind_of_wrong_recipe_is_one_sentence_at_its_line(page: AppTest, kind: str) -> None:
    field, before, after, begins = WRONG[kind]
    assert not page.error
    at = with_text(page, before, after, field)
    (error,) = at.error
    assert "\n" not in error.value.strip() and re.search(r"line \d+", error.value), error.value
    (near,) = [each.value for each in at.code if "→" in each.value]
    (line,) = [each for each in near.split("\n") if each.startswith("→")]
    assert begins in line, line
    wanted = {FIELD: "mine.toml", FITS: "promptriever_fits.md"}
    files = MINE | {name: at.text_area(key=key).value for key, name in wanted.items()}
    with pytest.raises(BadInput) as raised:
        recipes.check(ADA, recipes.RecipeCheck(files=files))
    assert raised.value.remedy and in_pages(str(raised.value)) in shown_errors(at)


def test_a_built_in_recipe_is_saved_as_one_of_ones_own(page: AppTest) -> None:
    at = open_page("recipes", recipe="offline")
    at.text_input(key=actions.NAME.format("offline@0")).set_value("plain").run()
    at = at.button(key="recipes.save").click().run()
    assert not at.exception and not at.error
    saved = recipes.show(ADA, RecipeShow(recipe="plain"))
    assert saved.version == 1 and saved.files == renamed(files_of("offline"), "plain")
    at = open_page("recipes", recipe="offline")
    at.text_input(key=actions.NAME.format("offline@0")).set_value("promptriever").run()
    at = at.button(key="recipes.save").click().run()
    assert "comes with us" in shown_errors(at)


@pytest.mark.long
def test_a_preview_runs_what_is_edited_and_stands_beside_the_saved_version(
    page: AppTest, sqlite_store: Store
) -> None:
    at = with_text(page, "negation = 1", "negation = 9")
    at.selectbox(key="recipes.other").select("mine@1").run()
    at = at.button(key="recipes.preview_start").click().run()
    assert not at.exception and not at.error
    with sqlite_store.read() as session:
        jobs = session.query(Job).all()
        edited, saved = (job.config["run_id"] for job in jobs)
    vary = recipes.show(ADA, RecipeShow(run_id=edited)).recipe.vary
    assert vary is not None and vary["style"]["negation"] == 9
    assert recipes.show(ADA, RecipeShow(run_id=saved)).version == 1
    assert recipes.versions(ADA, "mine").total == 1 and runs.list_all(ADA).total == 0
    with sqlite_store.write() as session:  # as if their jobs had ended
        for run_id in (edited, saved):
            set_run_status(session, run_id, "done")
        session.commit()
    at = at.run()
    shown = words(at)
    assert shown.count("offline") >= 2 and "0 kept, 0 dropped" in shown


def test_a_preview_that_is_of_another_s_dataset_is_not_shown(
    page: AppTest, sqlite_store: Store
) -> None:
    at = open_page("recipes", recipe="mine", preview="99")
    assert not at.exception and "No run 99" in shown_errors(at)


@pytest.mark.parametrize("role", ["annotator", "curator"])
def test_who_may_curate_has_the_page(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch, role: str
) -> None:
    sign_in(sqlite_store, monkeypatch, role)
    if role == "curator":
        at = open_page("recipes")
        assert not at.exception and at.text_area
        return
    with pytest.raises(ValueError, match="recipes"):
        open_page("recipes")


def test_the_curate_page_takes_the_recipe_of_the_address(page: AppTest) -> None:
    at = open_page("curate", recipe="mine", new="1")
    assert not at.exception
    assert at.selectbox(key="curate.recipe").value == "mine"
    at = open_page("curate", recipe="/etc/passwd", new="1")
    assert not at.exception and at.selectbox(key="curate.recipe").value is None
