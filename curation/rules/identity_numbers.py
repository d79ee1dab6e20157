"""Identity numbers of persons: found by form, check digit and, where needed, a nearby word.

The check digits come from `python-stdnum`; the written forms and the nearby words are ours. The
kinds are those of Microsoft's presidio and a few more, without its language model (spaCy alone
takes more memory than a worker has). A form that many other numbers share counts only where a word
before the number names it (`near`).
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date

from stdnum import luhn
from stdnum.au import tfn
from stdnum.br import cpf
from stdnum.cn import ric
from stdnum.de import idnr
from stdnum.es import nif
from stdnum.fi import hetu
from stdnum.fr import nir
from stdnum.gb import nhs
from stdnum.in_ import aadhaar, pan
from stdnum.it import codicefiscale
from stdnum.kr import rrn
from stdnum.nl import bsn
from stdnum.pl import pesel
from stdnum.se import personnummer
from stdnum.th import pin
from stdnum.tr import tckimlik
from stdnum.us import ssn
from stdnum.za import idnr as za_idnr

NEAR = 48  # characters before a number in which a word may name it
# possible numbers: capitals and digits with single separators between them
_RUN = re.compile(r"(?<![\w])[A-Z0-9](?:[A-Z0-9]|[ ./+-](?=[A-Z0-9])){8,}")
_FOUR_DIGITS = re.compile(r"(?:\d\D*){4}")


@dataclass(frozen=True)
class Kind:
    """A kind of number: its written form, its check, and the word required before it."""

    name: str
    form: re.Pattern[str]
    is_valid: Callable[[str], bool]
    near: re.Pattern[str] | None = None


def find_identity_numbers(text: str) -> Iterator[tuple[str, str]]:
    """Yield the kind and the characters of each identity number in a text."""
    for run in _RUN.finditer(text):
        if _FOUR_DIGITS.search(run.group()) is None:
            continue
        end = min(run.end() + 1, len(text))  # with what follows, which a form may forbid
        for kind in KINDS:
            for match in kind.form.finditer(text, run.start(), end):
                if kind.is_valid(match.group()) and (
                    kind.near is None
                    or kind.near.search(text, max(0, match.start() - NEAR), match.start())
                ):
                    yield kind.name, match.group()


def _is_nino(written: str) -> bool:
    """National insurance (GB), which has no check digit: some prefixes are never issued."""
    return written[:2] not in ("BG", "GB", "KN", "NK", "NT", "TN", "ZZ")


def _is_medicare(written: str) -> bool:
    """Medicare (AU), not in stdnum: weights 1 3 7 9; the sum modulo 10 is the ninth digit."""
    digits = _digits(written)
    return sum(d * w for d, w in zip(digits, [1, 3, 7, 9] * 2, strict=False)) % 10 == digits[8]


def _is_nric(written: str) -> bool:
    """NRIC and FIN (SG), not in stdnum: weights 2 7 6 5 4 3 2; offset and letters by series."""
    offset, letters = {
        "S": (0, "JZIHGFEDCBA"),
        "T": (4, "JZIHGFEDCBA"),
        "F": (0, "XWUTRQPNMLK"),
        "G": (4, "XWUTRQPNMLK"),
        "M": (3, "KLJNPQRTUWX"),
    }[written[0]]
    total = sum(d * w for d, w in zip(_digits(written), [2, 7, 6, 5, 4, 3, 2], strict=True))
    place = (total + offset) % 11
    return letters[10 - place if written[0] == "M" else place] == written[8]


def _is_pension(written: str) -> bool:
    """Versicherungsnummer (DE), not in stdnum.

    The letter counts as two digits; digit sums of the products with 2 1 2 5 7 1 2 1 2 1 2 1.
    """
    plain = written.replace(" ", "")
    numbers = plain[:8] + f"{ord(plain[8]) - ord('A') + 1:02}" + plain[9:11]
    total = sum(
        sum(divmod(int(digit) * weight, 10))
        for digit, weight in zip(numbers, [2, 1, 2, 5, 7, 1, 2, 1, 2, 1, 2, 1], strict=True)
    )
    return _is_date(1900 + int(plain[6:8]), int(plain[4:6]), int(plain[2:4])) and (
        total % 10 == int(plain[11])
    )


def _is_personnummer(written: str) -> bool:
    """Personnummer (SE), or a coordination number (60 more on the day), which stdnum refuses."""
    if personnummer.is_valid(written):
        return True
    plain = re.sub(r"\D", "", written)[-10:]
    year, month, day = int(plain[:2]), int(plain[2:4]), int(plain[4:6])
    return day > 60 and _is_date(2000 + year, month, day - 60) and luhn.is_valid(plain)


def _is_sin(written: str) -> bool:
    """Social insurance number (CA); `stdnum.ca.sin` refuses the example numbers from 0 on."""
    return luhn.is_valid(re.sub(r"[ -]", "", written))


def _is_cpf(written: str) -> bool:
    """CPF (BR); stdnum takes eleven equal digits, which fit the sums but are never issued."""
    return len(set(_digits(written))) > 1 and cpf.is_valid(written)


def _is_za_id(written: str) -> bool:
    """Identity number (ZA); only 0, 1 and 2 are citizenship digits."""
    return written[10] in "012" and za_idnr.is_valid(written)


def _no_check(written: str) -> bool:
    """True: the number has no check digit, its form and the word before it decide.

    ITIN (US) is here because stdnum does not know the groups 50 to 65, issued since 2011.
    """
    return True


def _digits(written: str) -> list[int]:
    return [int(one) for one in written if one.isdigit()]


def _is_date(year: int, month: int, day: int) -> bool:
    try:
        date(year, month, day)
    except ValueError:
        return False
    return True


def _kind(name: str, form: str, is_valid: Callable[[str], bool], near: str | None = None) -> Kind:
    return Kind(
        name,
        re.compile(rf"(?<![\w.,/=#&-])(?:{form})(?![\w-]|[.,]\d)"),
        is_valid,
        None if near is None else re.compile(rf"\b(?:{near})\b", re.IGNORECASE),
    )


KINDS: tuple[Kind, ...] = (
    _kind("social security number", r"\d{3}-\d{2}-\d{4}", ssn.is_valid),
    _kind("taxpayer number (US)", r"9\d{2}-(?:5\d|6[0-5]|7\d|8[0-8]|9[0-24-9])-\d{4}", _no_check),
    _kind("NHS number (GB)", r"\d{3}([ -])\d{3}\1\d{4}", nhs.is_valid),
    _kind("NHS number (GB)", r"\d{10}", nhs.is_valid, "NHS|national health"),
    _kind(
        "national insurance number (GB)",
        r"[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z]( ?)\d{2}\1\d{2}\1\d{2}\1[A-D]",
        _is_nino,
    ),
    _kind("NIF (ES)", r"\d{8}-?[A-HJ-NP-TV-Z]", nif.is_valid),
    _kind("NIE (ES)", r"[XYZ]-?\d{7}-?[A-HJ-NP-TV-Z]", nif.is_valid),
    _kind(
        "codice fiscale (IT)",
        r"[A-Z]{6} ?\d{2}[ABCDEHLMPRST]\d{2} ?[A-Z]\d{3}[A-Z]",
        codicefiscale.is_valid,
    ),
    _kind("PESEL (PL)", r"\d{11}", pesel.is_valid),
    _kind("tax file number (AU)", r"\d{3}([ -]?)\d{3}\1\d{3}", tfn.is_valid, "TFN|tax file"),
    _kind("Medicare number (AU)", r"[2-6]\d{3}[ -]\d{5}[ -]\d", _is_medicare),
    _kind("Medicare number (AU)", r"[2-6]\d{9}", _is_medicare, "medicare"),
    _kind("Aadhaar number (IN)", r"[2-9]\d{3}([ -])\d{4}\1\d{4}", aadhaar.is_valid),
    _kind("Aadhaar number (IN)", r"[2-9]\d{11}", aadhaar.is_valid, "aadhaar|aadhar|uidai"),
    _kind("PAN (IN)", r"[A-Z]{3}[ABCFGHJLPT][A-Z]\d{4}[A-Z]", pan.is_valid),
    _kind("NRIC or FIN (SG)", r"[STFGM]\d{7}[A-Z]", _is_nric),
    _kind(
        "henkilötunnus (FI)",
        r"(?:0[1-9]|[12]\d|3[01])(?:0[1-9]|1[0-2])\d{2}[-+A-FYXWVU]\d{3}[0-9A-FHJ-NPR-Y]",
        hetu.is_valid,
    ),
    _kind("resident registration number (KR)", r"\d{6}-[1-8]\d{6}", rrn.is_valid),
    _kind("tax number (DE)", r"\d{2} \d{3} \d{3} \d{3}", idnr.is_valid),
    _kind("tax number (DE)", r"\d{11}", idnr.is_valid, "steuer|tax|IdNr|TIN"),
    _kind("pension number (DE)", r"\d{2} ?\d{6} ?[A-Z] ?\d{3}", _is_pension),
    _kind("NIR (FR)", r"[12]( ?)\d{2}\1\d{2}\1\d{2}\1\d{3}\1\d{3}\1\d{2}", nir.is_valid),
    _kind("burgerservicenummer (NL)", r"\d{9}", bsn.is_valid, "BSN|burgerservice\\w*|sofi"),
    _kind(
        "social insurance number (CA)",
        r"\d{3}([ -]?)\d{3}\1\d{3}",
        _is_sin,
        "SIN|social insurance",
    ),
    _kind("CPF (BR)", r"\d{3}\.\d{3}\.\d{3}-\d{2}", _is_cpf),
    _kind("personnummer (SE)", r"(?:19|20)?\d{6}[-+]\d{4}", _is_personnummer),
    _kind("kimlik numarası (TR)", r"[1-9]\d{10}", tckimlik.is_valid),
    _kind("identity number (ZA)", r"\d{13}", _is_za_id),
    _kind("national id (TH)", r"[1-8]([ -])\d{4}\1\d{5}\1\d{2}\1\d", pin.is_valid),
    _kind("resident identity number (CN)", r"[1-9]\d{16}[\dX]", ric.is_valid),
    _kind(
        "passport number", r"[A-Z]{0,2}\d{6,9}", _no_check, "passport|passeport|pasaporte|reisepass"
    ),
)
