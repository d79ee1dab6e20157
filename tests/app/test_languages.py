"""The catalogue of the annotators' pages: complete in every language, and what chooses one."""

import re
from pathlib import Path
from string import Formatter

import pytest
from starlette.testclient import TestClient

import app
from app.server.web import app as server
from app.text import languages
from app.text.languages import COOKIE, LANGUAGES, best_language, error_text, text
from curation.rules.language import lang_of
from db.errors import BadInput, Refused
from db.store.store import Store

ENGLISH = LANGUAGES["en"].texts
SOURCES = "\n".join(
    path.read_text(encoding="utf-8")
    for suffix in ("py", "js")
    for path in Path(app.__file__).parent.rglob(f"*.{suffix}")
    if "languages" not in path.parts
)


def placeholders(one: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(one) if name}


def test_a_language_is_one_file_to_add(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    german = Path(languages.__file__).with_name("de.py").read_text(encoding="utf-8")
    (tmp_path / "qx.py").write_text(german.replace('"Deutsch"', '"Qx"'), encoding="utf-8")
    monkeypatch.setattr(languages, "__path__", [*languages.__path__, str(tmp_path)])
    found = languages.found()
    assert next(iter(found)) == "en" and found.keys() == {*LANGUAGES, "qx"}
    assert found["qx"].name == "Qx" and found["qx"].texts == LANGUAGES["de"].texts


@pytest.mark.parametrize("code", LANGUAGES)
def test_a_language_has_every_text_with_the_same_placeholders(code: str) -> None:
    texts = LANGUAGES[code].texts
    assert texts.keys() == ENGLISH.keys()
    assert [key for key in texts if placeholders(texts[key]) != placeholders(ENGLISH[key])] == []
    assert [key for key in texts if not texts[key].strip()] == []


def test_every_text_that_a_page_names_exists() -> None:
    named = set(re.findall(r"""(?:\bsay|\bt|say_to|text)\((?:\w+, )?["']([a-z_.]+)["']""", SOURCES))
    assert "judge.title" in named and "card.too_fast" in named
    assert named - ENGLISH.keys() == set()


def test_the_cookie_comes_before_the_browser_and_both_before_english() -> None:
    assert best_language("en", "de") == "en"
    assert best_language("", "qx-CH, de;q=0.7, en;q=0.4") == "de"  # codes that no language has
    assert best_language("", "en;q=0.4, de-AT;q=0.9") == "de"
    assert best_language("xx", "qx") == best_language("", "") == "en"
    assert best_language("", "de;q=nonsense") == "en"


def test_a_refusal_with_a_code_is_translated_and_others_stay_as_they_are() -> None:
    closed = Refused("closed", code="study_is_closed", study="Tee")
    assert "„Tee“ ist geschlossen" in error_text("de", closed)
    assert error_text("de", Refused("as it is", code="other")) == "as it is"
    assert error_text("de", BadInput("a bad line", code="other")) == "a bad line"
    assert text("de", "reason.unclear") != text("en", "reason.unclear")


@pytest.mark.parametrize("wanted", ["//evil.example", "https://evil.example", "/\\evil.example"])
def test_choosing_a_language_never_leaves_the_server(sqlite_store: Store, wanted: str) -> None:
    client = TestClient(server, follow_redirects=False)
    answer = client.get("/language/de", params={"next": wanted})
    assert (answer.headers["location"], answer.cookies[COOKIE]) == ("/", "de")
    assert COOKIE not in client.get("/language/tlh").cookies


def test_the_language_of_a_text_comes_from_the_text_alone() -> None:
    assert lang_of("The town burned in 1702 and was rebuilt on the old foundations.") == "en"
    assert lang_of("Die Stadt brannte 1702 ab und wurde auf den alten Fundamenten gebaut.") == "de"
    assert lang_of("העיר ברגן הייתה הנמל הגדול בנורווגיה עד המאה התשע־עשרה") == "he"
    assert lang_of("كانت بيرغن أكبر ميناء في النرويج حتى القرن التاسع عشر") == "und-Arab"
    assert lang_of("42") == ""
