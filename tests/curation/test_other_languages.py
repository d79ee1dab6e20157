"""Recipes in the language of each pair: the files of docs/how-to/languages.md, and the rules."""

import json
import re
import unicodedata
from pathlib import Path
from typing import Any

import pytest
from curation_runs import add_dataset, run_curation, slots_of
from decided_runs import decide
from exporting import export, rows_of
from openai_server import Server, answer_to
from sqlalchemy import select

from analysis.text.bm25 import NO_LANGUAGE, stemmer_of, tokens_of
from analysis.text.words import FUNCTION_WORDS, TOKEN, content_words, words
from curation.importing.importing import import_dataset
from curation.judging.text_baseline import listed_words
from curation.offline.grammar import swapped
from curation.offline.vocabulary import build_vocabulary
from curation.offline.writing import OtherLanguage, Writer
from curation.recipe.drop_reasons import DROP_REASONS
from curation.recipe.recipe import load_recipe, read_recipe
from curation.rules.language import UNCLEAR, language_name, language_of, language_of_texts
from db.errors import BadInput, Refused
from db.store.store import Store
from db.tables import Group, Pair

PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "languages.md"
FILES = dict(re.findall(r'^```\w+ title="(.+?)"\n(.*?)^```$', PAGE.read_text(), re.M | re.S))
RECIPE = {name: text for name, text in FILES.items() if name.endswith((".toml", ".md"))}
SAMPLES = {
    "German": "Das ist der Hund von dem Mann, und er ist nicht mit den anderen in das Haus.",
    "French": "Le chien est dans la maison et il ne sort pas avec les autres du village.",
    "Russian": "Собака живёт в доме, и она не выходит на улицу, когда идёт сильный дождь.",
    "Ukrainian": "Собака живе в домі, і її не видно на вулиці, коли йде дощ та їдуть гості.",
    "Greek": "Ο σκύλος είναι μέσα στο σπίτι και δεν βγαίνει έξω όταν βρέχει.",
    UNCLEAR: "12345 67890",
}


class GermanServer(Server):
    """Answers in German where the prompt says so, but for an instruction and a passage."""

    def completion(self, body: dict[str, Any], prompt: str, fault: str | None) -> dict[str, Any]:
        found = super().completion(body, prompt, fault)
        if "German" in prompt and not re.search(r"^Answer: <", prompt, re.M):
            found["choices"][0]["message"]["content"] = self.german(prompt)
        return found

    def german(self, prompt: str) -> str:
        query = re.search(r"^Query: (.*)$", prompt, re.M)
        assert query is not None
        if "Instruction: <" in prompt:
            said = answer_to(prompt)[1]
            topic = said.split()[-1]
            if "Suppe" in query[1]:
                return said + " and not of what is in the rest of it, for that is of no use to me"
            return f"Instruction: Das soll nicht allgemein sein und ist nur gut mit {topic}"
        instruction = re.search(r"^Instruction: (.*)$", prompt, re.M)
        assert instruction is not None
        topic = instruction[1].split()[-1]
        words = "Das ist seit langem bekannt und für viele nicht neu, auch in der Stadt: {}."
        other = "It is the first of those that are not in the language of the pair, as it was."
        negatives = [other if "Knoblauch" in query[1] else words.format("Nu"), words.format("Mu")]
        return json.dumps({"backup": words.format(topic), "instruction_negatives": negatives})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize("name", SAMPLES)
def test_the_language_of_a_pair_has_the_name_that_prompts_use(name: str) -> None:
    assert language_name("", SAMPLES[name]) == name


def test_a_stemmer_is_that_of_most_texts() -> None:
    german, russian = SAMPLES["German"], SAMPLES["Russian"]
    assert stemmer_of(language_of_texts([german, "x", german, SAMPLES["French"]])) == "de"
    assert stemmer_of(language_of_texts([russian])) == "ru"
    assert stemmer_of(language_of_texts([SAMPLES["Greek"]])) == NO_LANGUAGE
    assert stemmer_of(language_of_texts(["x", "12"])) == stemmer_of(None) == "en"


def test_german_pairs_give_german_groups_and_a_release(
    sqlite_store: Store, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import_dataset(sqlite_store, name="de", pairs=folder / "de.jsonl")
    with GermanServer() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        done = run_curation(
            sqlite_store,
            dataset="de",
            provider="openai",
            recipe=str(folder / "any.toml"),
            settings=["model=small"],
        )
    assert done["status"] == "done" and done["dropped"] == {"language_changed": 1}, done
    assert done["kept"] == 11
    with sqlite_store.read() as session:
        lost = select(Pair.external_id).join(Group, Group.pair_id == Pair.id)
        assert session.scalars(lost.where(Group.drop_reason.is_not(None))).all() == ["1"]
    texts = [
        (name, text, reason)
        for of in slots_of(sqlite_store, done["run_id"]).values()
        for name, (text, reason) in of.items()
    ]
    english = [(name, reason) for name, text, reason in texts if language_of(text) == "en"]
    assert english == [("N", "language_changed")]
    assert all(language_of(text) in ("de", None) for _, text, reason in texts if reason is None)
    export(sqlite_store, folder / "out", dataset="de", runs=[done["run_id"]], format="jsonl")
    rows = [row for part in rows_of(folder / "out").values() for row in part]
    assert len(rows) == 22 and any("ä" in json.dumps(row, ensure_ascii=False) for row in rows)


def test_the_filter_is_a_rule_of_its_own_and_no_part_of_other_recipes(
    sqlite_store: Store, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_it = read_recipe(RECIPE)
    without = read_recipe(RECIPE, ["filters.in_pair_language=false"])
    assert with_it.body()["filters"]["in_pair_language"] is True
    assert "in_pair_language" not in without.body()["filters"]
    assert "in_pair_language" not in load_recipe("msmarco").body()["filters"]
    with pytest.raises(BadInput, match="no switch"):
        read_recipe(RECIPE, ["filters.in_pair_language=3"])
    import_dataset(sqlite_store, name="de", pairs=folder / "de.jsonl")
    with GermanServer() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        loose = ["model=small", "filters.in_pair_language=false"]
        done = run_curation(
            sqlite_store,
            dataset="de",
            provider="openai",
            recipe=str(folder / "any.toml"),
            settings=loose,
        )
        made = server.answered.total()
        decided = decide(done["run_id"], "filters.in_pair_language=true")
        assert server.answered.total() == made
        strict = run_curation(
            sqlite_store,
            dataset="de",
            provider="openai",
            recipe=str(folder / "any.toml"),
            settings=["model=small"],
        )
    assert decided.only_in_first >= 1 and decided.only_in_second == 0
    with pytest.raises(Refused):  # what follows a dropped instruction was never written
        decide(strict["run_id"], "filters.in_pair_language=false")


def test_a_prompt_without_the_language_asks_what_it_asked_before(sqlite_store: Store) -> None:
    """The name is an input where a prompt names it, and no part of another call's key."""
    add_dataset(sqlite_store, pairs=1)
    for stage in load_recipe("promptriever").stages.values():
        assert "text_language" not in stage.prompt.places


# ---- rules and counts by language

SPANISH = [
    (
        "¿Cuándo visitar la Alhambra?",
        "La Alhambra es un palacio de Granada que se visita con una entrada de hora fija. Los "
        "jardines del Generalife son más frescos por la mañana.",
    ),
    (
        "¿Dónde se ve el Guernica?",
        "El Guernica es un cuadro que Picasso pintó en París en 1937. Se muestra en el Reina "
        "Sofía, y no sale de Madrid.",
    ),
    (
        "¿Cómo llegar al Teide?",
        "El Teide es un volcán de Tenerife y se sube con un teleférico. Para la cumbre hace falta "
        "un permiso, y los autobuses salen de La Orotava.",
    ),
]
BEGINS = {
    "de": ("Zeige", "Es soll", "Ich suche", "Bitte"),
    "es": ("Muéstrame", "También", "Busco", "Omite", "Que sea"),
    "fr": ("Montre", "Il faut", "Je cherche", "Laisse", "Un texte"),
}
FRENCH = [
    (
        "Qui a construit le pont du Gard ?",
        "Le pont du Gard est un aqueduc des Romains qui porte l'eau vers Nîmes. Les pierres sont "
        "de Vers, et il est dans les guides depuis 1840.",
    ),
    (
        "Où voir les chevaux de Camargue ?",
        "Les chevaux de Camargue sont dans les marais près des Saintes-Maries. On les voit aussi à "
        "Arles, et ils sont gris dans leur jeunesse.",
    ),
]


@pytest.mark.parametrize("language", ["de", "es", "fr"])
def test_the_offline_rules_write_in_the_language_of_the_pair(language: str) -> None:
    german = [json.loads(line) for line in FILES["de.jsonl"].splitlines()]
    pairs = {"de": [(row["query"], row["passage"]) for row in german], "es": SPANISH, "fr": FRENCH}[
        language
    ]
    writer = Writer(build_vocabulary(pairs), 0)
    for query, passage in pairs:
        assert language_of(passage) == language
        plan = writer.plan(query, passage)
        for instruction in (
            writer.instruction_positive(query, passage),
            writer.instruction_negative(query, passage),
        ):
            assert instruction.startswith(BEGINS[language]), instruction
            assert language_of(instruction) in (language, None), instruction
        right, wrong = passage, writer.passage_instruction_negative(query, passage)
        assert plan.positive.holds(right) and not plan.positive.holds(wrong)
        assert language_of(wrong) == language


def test_a_pair_in_another_language_is_dropped_with_its_name_not_answered_in_english() -> None:
    italian = (
        "Quando visitare il Colosseo?",
        "Il Colosseo è un anfiteatro che si trova nel centro di Roma e che è aperto anche di sera. "
        "Il biglietto per il Foro è compreso, e non si fa più la fila.",
    )
    russian = (
        "Когда сажать чеснок?",
        "Чеснок сажают осенью, за месяц до первых морозов, и зимой он не вымерзает.",
    )
    writer = Writer(build_vocabulary([italian, russian, *SPANISH]), 0)
    for pair, name in ((italian, "Italian"), (russian, "Russian")):
        for write in (writer.instruction_positive, writer.passage_query_negative):
            with pytest.raises(OtherLanguage, match=f"the pair is in {name}") as refused:
                write(*pair)
            assert refused.value.reason in DROP_REASONS


def test_a_spanish_preposition_is_no_english_article() -> None:
    text = "Desde Segovia se va a Madrid en tren."
    assert swapped(text, "Madrid", "Oviedo", "es") == "Desde Segovia se va a Oviedo en tren."
    assert swapped("a Madrid street", "Madrid", "Oviedo") == "an Oviedo street"


def test_words_are_not_split_at_their_marks() -> None:
    assert words("हिन्दी में किताबें, नहीं?") == ["हिन्दी", "में", "किताबें", "नहीं"]
    apart = unicodedata.normalize("NFD", "Die Äpfel für Zoë")
    assert [unicodedata.normalize("NFC", word) for word in words(apart)] == [
        "die",
        "äpfel",
        "für",
        "zoë",
    ]
    assert words("שָׁלוֹם עֲלֵיכֶם") == ["שָׁלוֹם", "עֲלֵיכֶם"]
    assert tokens_of(["हिन्दी में किताबें"], "none") == [["हिन्दी", "में", "किताबें"]]
    plain = "Don't split e-mail addresses; l'eau, ¿qué? 3,000 naïve_words — Straße"
    assert re.findall(TOKEN, plain) == re.findall(r"(?u)\b\w\w+\b", plain)


def test_function_words_are_those_of_the_language() -> None:
    text = "welche Suppe mit einer Kartoffel nicht mehr Not hat"
    german = content_words(text, listed_words("de"))
    assert german == {"suppe", "kartoffel", "not"}
    assert listed_words(None) == listed_words("en") == listed_words("CYRILLIC") == FUNCTION_WORDS
