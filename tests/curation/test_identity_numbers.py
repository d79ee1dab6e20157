"""Numbers of persons: found where the check digit holds, let through where it does not."""

import json
import random
from pathlib import Path

import pytest
from stdnum import luhn, verhoeff
from stdnum.iso7064 import mod_11_10

import curation
from curation.rules.identity_numbers import KINDS, find_identity_numbers
from curation.rules.personal_data import find_personal_data

# kind, a number that the office (or its standard) gives as an example, one that cannot be
NUMBERS = [
    ("social security number", "536-22-1848", "666-22-1848"),
    ("taxpayer number (US)", "912-70-1234", "912-69-1234"),
    ("NHS number (GB)", "943 476 5919", "943 476 5918"),
    ("national insurance number (GB)", "AB 12 34 56 C", "BG 12 34 56 C"),
    ("national insurance number (GB)", "AB123456C", "AB123456E"),
    ("NIF (ES)", "12345678Z", "12345678A"),
    ("NIE (ES)", "X1234567L", "X1234567M"),
    ("codice fiscale (IT)", "RSSMRA85T10A562S", "RSSMRA85T10A562T"),
    ("PESEL (PL)", "44051401359", "44051401358"),
    ("Medicare number (AU)", "2123 45670 1", "2123 45671 1"),
    ("Aadhaar number (IN)", "2341 2341 2346", "2341 2341 2347"),
    ("PAN (IN)", "ABCPE1234F", "ABCDE1234F"),
    ("NRIC or FIN (SG)", "S1234567D", "S1234567E"),
    ("NRIC or FIN (SG)", "T1234567J", "T1234567D"),
    ("NRIC or FIN (SG)", "F1234567N", "F1234567X"),
    ("NRIC or FIN (SG)", "G1234567X", "G1234567N"),
    ("NRIC or FIN (SG)", "M1234567K", "M1234567L"),
    ("henkilötunnus (FI)", "131052-308T", "131052-308U"),
    ("henkilötunnus (FI)", "131052-308T", "311352-308T"),
    ("resident registration number (KR)", "900101-1234568", "900101-1234567"),
    ("resident registration number (KR)", "900101-1234568", "901301-1234568"),
    ("tax number (DE)", "86 095 742 719", "86 095 742 718"),
    ("pension number (DE)", "15 070649 C 103", "15 070649 C 104"),
    ("NIR (FR)", "2 55 08 14 168 025 38", "2 55 08 14 168 025 39"),
    ("CPF (BR)", "529.982.247-25", "529.982.247-26"),
    ("CPF (BR)", "529.982.247-25", "111.111.111-11"),
    ("personnummer (SE)", "811218-9876", "811218-9875"),
    ("kimlik numarası (TR)", "10000000146", "10000000145"),
    ("identity number (ZA)", "8001015009087", "8001015009086"),
    ("national id (TH)", "1-1017-00230-70-8", "1-1017-00230-70-7"),
    ("resident identity number (CN)", "11010519491231002X", "110105194912310021"),
]
NEEDS_A_WORD = [
    ("NHS number (GB)", "her NHS number", "9434765919", "9434765918"),
    ("tax file number (AU)", "the tax file number", "123 456 782", "123 456 783"),
    ("Medicare number (AU)", "Medicare card", "2123456701", "2123456711"),
    ("Aadhaar number (IN)", "Aadhaar", "234123412346", "234123412347"),
    ("tax number (DE)", "Steuer-ID", "47036892816", "47036892817"),
    ("burgerservicenummer (NL)", "BSN", "111222333", "111222334"),
    ("burgerservicenummer (NL)", "burgerservicenummer", "111222333", "111222334"),
    ("social insurance number (CA)", "SIN", "046 454 286", "046 454 287"),
    ("passport number", "passport no.", "C01234567", "C0123"),
]


def kinds_of(text: str) -> set[str]:
    return {kind for kind, _ in find_identity_numbers(text)}


@pytest.mark.parametrize(("kind", "valid", "invalid"), NUMBERS)
def test_a_number_is_found_where_its_check_holds_and_not_where_it_does_not(
    kind: str, valid: str, invalid: str
) -> None:
    assert (kind, valid) in list(find_identity_numbers(f"It is {valid}, they said."))
    assert (kind, valid) in list(find_identity_numbers(valid))
    assert kind in {found.kind for found in find_personal_data(f"It is {valid}.")}
    assert kind not in kinds_of(f"It is {invalid}, they said.")


@pytest.mark.parametrize(("kind", "word", "valid", "invalid"), NEEDS_A_WORD)
def test_a_common_form_is_a_number_of_a_person_only_after_a_word_that_says_so(
    kind: str, word: str, valid: str, invalid: str
) -> None:
    assert kind in kinds_of(f"They noted {word} {valid} twice.")
    assert kind not in kinds_of(f"They noted {word} {invalid} twice.")
    assert kind not in kinds_of(f"They noted part {valid} twice.")
    assert kind not in kinds_of(f"{word} {'is a long story ' * 5} {valid}.")


def test_every_kind_has_an_example_here() -> None:
    assert {one.name for one in KINDS} == {name for name, *_ in (*NUMBERS, *NEEDS_A_WORD)}


@pytest.mark.parametrize(
    "text",
    [
        "https://example.org/item/44051401359?id=10000000146#8001015009087",
        "x44051401359 and 44051401359x and 1.44051401359 and 44051401359.5",
        "The seasons 2001-02 and 2016-17; pages 112-118; 3.14159265358979.",
        "ISBN 978-3-16-148410-0, ISSN 1234-5678, DOI 10.1000/182, 1234567890123456789012345.",
        "In THE YEAR 2024 AND THE YEAR 2025 ALL CAPITALS WERE USED 12 TIMES.",
        "",
    ],
)
def test_parts_of_addresses_longer_numbers_and_other_codes_are_none(text: str) -> None:
    assert kinds_of(text) == set()


def test_no_passage_of_the_demo_set_is_taken_for_one() -> None:
    demo = Path(curation.__file__).parent / "demo" / "passages.jsonl"
    texts = [json.loads(line)["text"] for line in demo.read_text("utf-8").splitlines()]
    assert len(texts) > 200
    assert [text for text in texts if kinds_of(text)] == []


def test_a_telephone_number_is_not_told_beside_the_identity_number_that_it_is() -> None:
    found = [one.kind for one in find_personal_data("It is 943 476 5919.")]
    assert found == ["NHS number (GB)"]


def test_check_digits_by_hand() -> None:
    # 7992739871 3: doubled from the right 7 9 18 2 14 3 18 8 14 1 -> digit sums 67, check 3
    assert luhn.is_valid("79927398713") and not luhn.is_valid("79927398710")
    # Verhoeff's own example: 236 gets 3
    assert verhoeff.is_valid("2363") and not verhoeff.is_valid("2364")
    # ISO 7064's MOD 11,10 example: 0794 gets 5
    assert mod_11_10.is_valid("07945") and not mod_11_10.is_valid("07946")


def test_fewer_than_one_in_a_hundred_random_numbers_is_taken_for_a_german_tax_number() -> None:
    chance = random.Random(0)
    digits = [f"{chance.randrange(10**11):011d}" for _ in range(5000)]
    texts = [f"{one[:2]} {one[2:5]} {one[5:8]} {one[8:]}" for one in digits]
    assert sum(bool(kinds_of(text)) for text in texts) < 0.01 * len(texts)


@pytest.mark.parametrize(
    ("kind", "valid"),
    [
        ("personnummer (SE)", "811278-9873"),
        ("taxpayer number (US)", "912-52-1234"),
    ],
)
def test_numbers_that_the_library_does_not_know_are_found_too(kind: str, valid: str) -> None:
    assert kind in kinds_of(f"It is {valid}, they said.")
