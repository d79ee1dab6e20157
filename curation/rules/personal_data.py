"""Personal data in generated text (the paper's A.3): found by rule, dropped, counted.

E-mail addresses, telephone numbers, payment cards (Luhn), IBANs (mod 97), identity numbers of some
twenty countries (`identity_numbers`) and IP addresses. Rules for what has a check digit or a fixed
form; names are not looked for: a passage about a public person is no leak. What P+ itself holds
was not generated.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from stdnum import iban, luhn

from curation.rules.identity_numbers import find_identity_numbers

_EMAIL = re.compile(r"\b[\w.+-]+@[\w-]+(?:\.[\w-]+)+\b")
_RESERVED = re.compile(r"@(?:[\w-]+\.)*example(?:\.(?:com|org|net))?$", re.IGNORECASE)
_PHONE = re.compile(
    r"\+\d{1,3}(?:[\s.-]?\(?\d{2,8}\)?){2,5}(?![\w,-]|\.\d)"
    r"|(?<![\w.,-])(?:\(\d{2,4}\)[\s.-]?|\d{2,4}[\s.-])\d{2,4}(?:[\s.-]\d{2,4}){1,3}"
    r"(?![\w,-]|\.\d)"
)
_CARD = re.compile(r"(?<![\d.-])\d(?:[ -]?\d){12,18}(?![\d.-])")
_IBAN = re.compile(r"\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?\b")
_IP = re.compile(
    r"(?<![\d.])(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)\.){3}(?:25[0-5]|2[0-4]\d|1?\d?\d)(?![\d.])"
)


class Found(NamedTuple):
    """A piece of personal data and what it is."""

    kind: str
    text: str


def find_personal_data(text: str) -> list[Found]:
    """The personal data in a text, in no particular order."""
    return list(_all(text))


def _all(text: str) -> Iterator[Found]:
    for match in _EMAIL.finditer(text):
        if not _RESERVED.search(match.group()):
            yield Found("e-mail address", match.group())
    cards = [match.group() for match in _CARD.finditer(text) if is_card(match.group())]
    yield from (Found("card number", card) for card in cards)
    for match in _IBAN.finditer(text):
        if is_iban(match.group()):
            yield Found("bank account", match.group())
    numbers = list(find_identity_numbers(text))
    yield from (Found(kind, number) for kind, number in numbers)
    numbers_found = [*cards, *(number for _, number in numbers)]
    for match in _PHONE.finditer(text):
        if _is_phone(match.group()) and not any(match.group() in one for one in numbers_found):
            yield Found("telephone number", match.group())
    for match in _IP.finditer(text):
        if not match.group().startswith(("0.", "127.", "10.", "192.168.", "192.0.2.", "255.")):
            yield Found("IP address", match.group())


def is_card(text: str) -> bool:
    """Whether the digits are a payment card's: 13 to 19, a known first digit, Luhn's sum."""
    digits = "".join(character for character in text if character.isdigit())
    if not 13 <= len(digits) <= 19 or digits[0] not in "23456" or len(set(digits)) < 2:
        return False
    return bool(luhn.is_valid(digits))


def is_iban(text: str) -> bool:
    """Whether the characters are an IBAN: the country's length and form, and mod 97 leaves 1."""
    return bool(iban.is_valid(text))


def _is_phone(text: str) -> bool:
    """Enough digits for a telephone, grouped like one; years and ranges of years are none."""
    digits = re.sub(r"\D", "", text)
    if not 9 <= len(digits) <= 15:
        return False
    groups = re.findall(r"\d+", text)
    if all(re.fullmatch(r"1\d{3}|20\d{2}", group) for group in groups):
        return False
    separators = set(re.findall(r"(?<=\d)[\s.-](?=\d)", text))
    thousands = separators <= {" ", "."} and all(len(group) == 3 for group in groups[1:])
    return text.startswith("+") or "(" in text or not thousands
