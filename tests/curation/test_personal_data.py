"""Personal data and language of generated texts, by rule."""

import pytest

from curation.recipe.settings import Filters
from curation.rules.filters import check_passage
from curation.rules.language import changed_language, language_of
from curation.rules.personal_data import find_personal_data


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Write to jane.doe+news@mail-server.co.uk today.", "e-mail address"),
        ("Call +49 30 901820 from abroad.", "telephone number"),
        ("Her number is (415) 555-2671.", "telephone number"),
        ("The card 4111 1111 1111 1111 was charged.", "card number"),
        ("Pay to DE89 3704 0044 0532 0130 00 please.", "bank account"),
        ("SSN 536-22-1848 on file.", "social security number"),
        ("It answered from 84.17.53.155 at noon.", "IP address"),
    ],
)
def test_personal_data_is_found(text: str, kind: str) -> None:
    assert kind in {found.kind for found in find_personal_data(text)}


@pytest.mark.parametrize(
    "text",
    [
        "From 1939 to 1945, in 1 234 567 cases, about 12,345,678 people.",
        "The seasons 2001-02 and 2016-17; pages 112-118; 3.14159265.",
        "Mail user@example.com for an example; version 10.0.0.1; 192.168.0.1.",
        "ISBN 978-3-16-148410-0 and the year 2008 2009 2010.",
        "It weighs 4111 kg; order number 4111111111111112.",
        "Between 1 and 5 of 10 people at 37.5 degrees walked 100 000 000 steps.",
    ],
)
def test_figures_are_no_personal_data(text: str) -> None:
    assert find_personal_data(text) == []


def test_a_passage_with_new_personal_data_is_dropped_but_not_for_what_its_source_holds() -> None:
    written = "Ask at post@village.info for the key of the tower."
    rules = Filters()
    drop = check_passage("P1-", written, rules, positive="The tower is old.", instruction="x")
    assert drop is not None and drop.reason == "personal_data" and "post@" not in drop.detail
    held = "Who wants the key writes to post@village.info first."
    assert check_passage("P1-", written, rules, positive=held, instruction="x") is None


ENGLISH = "The tower of the village was built in the year of the flood and it is old."
GERMAN = "Der Turm des Dorfes ist in dem Jahr der Flut gebaut und er ist nicht neu."


def test_a_changed_language_is_noticed() -> None:
    assert language_of(ENGLISH) == "en" and language_of(GERMAN) == "de"
    assert language_of("башня деревни была построена очень давно") == "CYRILLIC"
    assert changed_language(ENGLISH, GERMAN) == ("en", "de")
    assert changed_language(ENGLISH, "pfui") is None
    assert changed_language(ENGLISH, ENGLISH.lower()) is None
    drop = check_passage("P1-", GERMAN, Filters(), positive=ENGLISH, instruction="x")
    assert drop is not None and drop.reason == "language_changed"
