"""Numbers under which a state, a health service or a tax office knows a person, by form and check
digit.

The same kinds as Microsoft's presidio and a few more, without its language model (spaCy alone would
take more memory than a worker has). A form that many other numbers share is only taken for one
where a word says so shortly before (`near`). The check digits are those that the offices publish.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date

from curation.rules.check_digits import digits_of, is_eleven_ten, is_luhn, is_verhoeff, weighted

NEAR = 48  # characters before a number in which a word may say what it is
# what may hold a number: capitals and digits with single separators between them
_RUN = re.compile(r"(?<![\w])[A-Z0-9](?:[A-Z0-9]|[ ./+-](?=[A-Z0-9])){8,}")
_FOUR_DIGITS = re.compile(r"(?:\d\D*){4}")


@dataclass(frozen=True)
class Kind:
    """A kind of number: its form, its check, and the word that has to stand before it."""

    name: str
    form: re.Pattern[str]
    holds: Callable[[str], bool]
    near: re.Pattern[str] | None = None


def find_identity_numbers(text: str) -> Iterator[tuple[str, str]]:
    """The kind and the words of each number of a person that a text holds."""
    for run in _RUN.finditer(text):
        if _FOUR_DIGITS.search(run.group()) is None:
            continue
        end = min(run.end() + 1, len(text))  # with what follows, which a form may forbid
        for kind in KINDS:
            for match in kind.form.finditer(text, run.start(), end):
                plain = re.sub(r"[ ./-]", "", match.group())
                if kind.holds(plain) and (
                    kind.near is None
                    or kind.near.search(text, max(0, match.start() - NEAR), match.start())
                ):
                    yield kind.name, match.group()


def is_ssn(plain: str) -> bool:
    """A US social security number: no area 000, 666 or 9xx, no group 00, no serial 0000."""
    return (
        plain[:3] not in ("000", "666")
        and plain[0] != "9"
        and plain[3:5] != "00"
        and plain[5:] != "0000"
    )


def is_nhs(plain: str) -> bool:
    """NHS (GB): weights 10 to 2, eleven less the rest is the last digit."""
    check = 11 - weighted(plain[:9], range(10, 1, -1)) % 11
    return check != 10 and check % 11 == int(plain[9])


def is_nino(plain: str) -> bool:
    """National insurance (GB): some pairs of letters are never given."""
    return plain[:2] not in ("BG", "GB", "KN", "NK", "NT", "TN", "ZZ")


def is_nif(plain: str) -> bool:
    """NIF and NIE (ES): the letter is the rest by 23; X, Y, Z stand for 0, 1, 2."""
    number = int(plain[:-1].translate(str.maketrans("XYZ", "012")))
    return "TRWAGMYFPDXBNJZSQVHLCKE"[number % 23] == plain[-1]


_ODD = dict(
    zip(
        "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ",
        (
            *(1, 0, 5, 7, 9, 13, 15, 17, 19, 21),
            *(1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16),
            *(10, 22, 25, 24, 23),
        ),
        strict=True,
    )
)


def is_codice_fiscale(plain: str) -> bool:
    """Codice fiscale (IT): odd places by a table, even ones by value, the rest by 26 a letter."""
    odd = sum(_ODD[letter] for letter in plain[0:15:2])
    even = sum(
        int(letter) if letter.isdigit() else ord(letter) - ord("A") for letter in plain[1:15:2]
    )
    return chr(ord("A") + (odd + even) % 26) == plain[15]


def is_pesel(plain: str) -> bool:
    """PESEL (PL): a birthday whose month tells the century, weights 1 3 7 9."""
    century = {0: 1900, 1: 2000, 2: 2100, 3: 2200, 4: 1800}[int(plain[2]) // 2]
    month = int(plain[2:4]) % 20
    check = -weighted(plain[:10], [1, 3, 7, 9] * 3) % 10
    return _is_date(century + int(plain[:2]), month, plain[4:6]) and check == int(plain[10])


def is_tfn(plain: str) -> bool:
    """Tax file number (AU): a weighted sum that 11 divides."""
    return weighted(plain, [1, 4, 3, 7, 5, 8, 6, 9, 10]) % 11 == 0


def is_medicare(plain: str) -> bool:
    """Medicare (AU): weights 1 3 7 9, the rest by ten is the ninth digit."""
    return weighted(plain[:8], [1, 3, 7, 9] * 2) % 10 == int(plain[8])


def is_nric(plain: str) -> bool:
    """NRIC and FIN (SG): weights 2 7 6 5 4 3 2, an offset and letters by series."""
    added, letters = {
        "S": (0, "JZIHGFEDCBA"),
        "T": (4, "JZIHGFEDCBA"),
        "F": (0, "XWUTRQPNMLK"),
        "G": (4, "XWUTRQPNMLK"),
        "M": (3, "KLJNPQRTUWX"),
    }[plain[0]]
    place = (weighted(plain[1:8], [2, 7, 6, 5, 4, 3, 2]) + added) % 11
    return letters[10 - place if plain[0] == "M" else place] == plain[8]


def is_hetu(written: str) -> bool:
    """Henkilötunnus (FI), its century sign left out or kept: a birthday, the rest by 31."""
    plain = re.sub(r"(?<=^\d{6})[+A-FYXWVU]", "", written)
    real = any(
        _is_date(century + int(plain[4:6]), int(plain[2:4]), plain[:2])
        for century in (1800, 1900, 2000)
    )
    return real and "0123456789ABCDEFHJKLMNPRSTUVWXY"[int(plain[:9]) % 31] == plain[9]


def is_rrn(plain: str) -> bool:
    """Resident registration (KR): a birthday, the century's digit, a weighted sum by 11."""
    century = 1900 if plain[6] in "1256" else 2000
    check = (11 - weighted(plain[:12], [2, 3, 4, 5, 6, 7, 8, 9, 2, 3, 4, 5]) % 11) % 10
    real = _is_date(century + int(plain[:2]), int(plain[2:4]), plain[4:6])
    return real and check == int(plain[12])


def is_tax_id(plain: str) -> bool:
    """Steuer-Identifikationsnummer (DE): one digit of the first ten comes two or three times."""
    most = max(plain[:10].count(one) for one in "0123456789")
    return plain[0] != "0" and most in (2, 3) and is_eleven_ten(plain)


def is_pension(plain: str) -> bool:
    """Versicherungsnummer (DE): the letter as two digits, cross sums of weights 2 1 2 5 7 1 2 …."""
    numbers = plain[:8] + f"{ord(plain[8]) - ord('A') + 1:02}" + plain[9:11]
    weights = [2, 1, 2, 5, 7, 1, 2, 1, 2, 1, 2, 1]
    total = sum(
        sum(divmod(int(digit) * weight, 10)) for digit, weight in zip(numbers, weights, strict=True)
    )
    real = _is_date(1900 + int(plain[6:8]), int(plain[4:6]), plain[2:4])
    return real and total % 10 == int(plain[11])


def is_nir(plain: str) -> bool:
    """NIR (FR): 97 less the rest by 97 is the key."""
    return 97 - int(plain[:13]) % 97 == int(plain[13:])


def is_bsn(plain: str) -> bool:
    """Burgerservicenummer (NL): the test by eleven, the last digit taken off."""
    return weighted(plain, [9, 8, 7, 6, 5, 4, 3, 2, -1]) % 11 == 0


def is_cpf(plain: str) -> bool:
    """CPF (BR): two check digits, each the weighted sum times ten by eleven."""
    first = weighted(plain[:9], range(10, 1, -1)) * 10 % 11 % 10
    second = weighted(plain[:10], range(11, 1, -1)) * 10 % 11 % 10
    return len(set(plain)) > 1 and plain[9:] == f"{first}{second}"


def is_personnummer(written: str) -> bool:
    """Personnummer (SE): a birthday (60 more on the day for a coordination number), Luhn."""
    plain = written.replace("+", "")[-10:]
    day = f"{int(plain[4:6]) % 60:02}"
    return _is_date(2000 + int(plain[:2]), int(plain[2:4]), day) and is_luhn(plain)


def is_kimlik(plain: str) -> bool:
    """Kimlik numarası (TR): two check digits of sums of odd and even places."""
    d = digits_of(plain)
    return (7 * sum(d[0:9:2]) - sum(d[1:8:2])) % 10 == d[9] and sum(d[:10]) % 10 == d[10]


def is_za_id(plain: str) -> bool:
    """Identity number (ZA): a birthday, citizen or resident, Luhn."""
    real = _is_date(2000 + int(plain[:2]), int(plain[2:4]), plain[4:6])
    return real and plain[10] in "012" and is_luhn(plain)


def is_thai_id(plain: str) -> bool:
    """National id (TH): weights 13 to 2, eleven less the rest is the last digit."""
    return (11 - weighted(plain[:12], range(13, 1, -1)) % 11) % 10 == int(plain[12])


def is_resident_id(plain: str) -> bool:
    """Resident identity (CN): a birthday, powers of two by eleven, X for ten."""
    total = sum(2 ** (17 - place) * int(digit) for place, digit in enumerate(plain[:17]))
    check = "10X98765432"[total % 11]
    real = _is_date(int(plain[6:10]), int(plain[10:12]), plain[12:14])
    return real and check == plain[17]


def _any(_plain: str) -> bool:
    """A number without a check digit: its form, and what stands before it, have to do."""
    return True


def _is_date(year: int, month: int, day: str) -> bool:
    try:
        date(year, month, int(day))
    except ValueError:
        return False
    return True


def _kind(name: str, form: str, holds: Callable[[str], bool], near: str | None = None) -> Kind:
    return Kind(
        name,
        re.compile(rf"(?<![\w.,/=#&-])(?:{form})(?![\w-]|[.,]\d)"),
        holds,
        None if near is None else re.compile(rf"\b(?:{near})\b", re.IGNORECASE),
    )


KINDS: tuple[Kind, ...] = (
    _kind("social security number", r"\d{3}-\d{2}-\d{4}", is_ssn),
    _kind("taxpayer number (US)", r"9\d{2}-(?:5\d|6[0-5]|7\d|8[0-8]|9[0-24-9])-\d{4}", _any),
    _kind("NHS number (GB)", r"\d{3}([ -])\d{3}\1\d{4}", is_nhs),
    _kind("NHS number (GB)", r"\d{10}", is_nhs, "NHS|national health"),
    _kind(
        "national insurance number (GB)",
        r"[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z]( ?)\d{2}\1\d{2}\1\d{2}\1[A-D]",
        is_nino,
    ),
    _kind("NIF (ES)", r"\d{8}-?[A-HJ-NP-TV-Z]", is_nif),
    _kind("NIE (ES)", r"[XYZ]-?\d{7}-?[A-HJ-NP-TV-Z]", is_nif),
    _kind(
        "codice fiscale (IT)",
        r"[A-Z]{6} ?\d{2}[ABCDEHLMPRST]\d{2} ?[A-Z]\d{3}[A-Z]",
        is_codice_fiscale,
    ),
    _kind("PESEL (PL)", r"\d{11}", is_pesel),
    _kind("tax file number (AU)", r"\d{3}([ -]?)\d{3}\1\d{3}", is_tfn, "TFN|tax file"),
    _kind("Medicare number (AU)", r"[2-6]\d{3}[ -]\d{5}[ -]\d", is_medicare),
    _kind("Medicare number (AU)", r"[2-6]\d{9}", is_medicare, "medicare"),
    _kind("Aadhaar number (IN)", r"[2-9]\d{3}([ -])\d{4}\1\d{4}", is_verhoeff),
    _kind("Aadhaar number (IN)", r"[2-9]\d{11}", is_verhoeff, "aadhaar|aadhar|uidai"),
    _kind("PAN (IN)", r"[A-Z]{3}[ABCFGHJLPT][A-Z]\d{4}[A-Z]", _any),
    _kind("NRIC or FIN (SG)", r"[STFGM]\d{7}[A-Z]", is_nric),
    _kind(
        "henkilötunnus (FI)",
        r"(?:0[1-9]|[12]\d|3[01])(?:0[1-9]|1[0-2])\d{2}[-+A-FYXWVU]\d{3}[0-9A-FHJ-NPR-Y]",
        is_hetu,
    ),
    _kind("resident registration number (KR)", r"\d{6}-[1-8]\d{6}", is_rrn),
    _kind("tax number (DE)", r"\d{2} \d{3} \d{3} \d{3}", is_tax_id),
    _kind("tax number (DE)", r"\d{11}", is_tax_id, "steuer|tax|IdNr|TIN"),
    _kind("pension number (DE)", r"\d{2} ?\d{6} ?[A-Z] ?\d{3}", is_pension),
    _kind("NIR (FR)", r"[12]( ?)\d{2}\1\d{2}\1\d{2}\1\d{3}\1\d{3}\1\d{2}", is_nir),
    _kind("burgerservicenummer (NL)", r"\d{9}", is_bsn, "BSN|burgerservice\\w*|sofi"),
    _kind(
        "social insurance number (CA)",
        r"\d{3}([ -]?)\d{3}\1\d{3}",
        is_luhn,
        "SIN|social insurance",
    ),
    _kind("CPF (BR)", r"\d{3}\.\d{3}\.\d{3}-\d{2}", is_cpf),
    _kind("personnummer (SE)", r"(?:19|20)?\d{6}[-+]\d{4}", is_personnummer),
    _kind("kimlik numarası (TR)", r"[1-9]\d{10}", is_kimlik),
    _kind("identity number (ZA)", r"\d{13}", is_za_id),
    _kind("national id (TH)", r"[1-8]([ -])\d{4}\1\d{5}\1\d{2}\1\d", is_thai_id),
    _kind("resident identity number (CN)", r"[1-9]\d{16}[\dX]", is_resident_id),
    _kind("passport number", r"[A-Z]{0,2}\d{6,9}", _any, "passport|passeport|pasaporte|reisepass"),
)
