"""Check digits that several kinds of numbers share."""

from collections.abc import Iterable

# the dihedral group of order ten, and its permutation (Verhoeff 1969)
_TIMES = (
    "0123456789",
    "1234067895",
    "2340178956",
    "3401289567",
    "4012395678",
    "5987604321",
    "6598710432",
    "7659821043",
    "8765932104",
    "9876543210",
)
_TURNED = (
    "0123456789",
    "1576283094",
    "5803796142",
    "8916043527",
    "9453126870",
    "4286573901",
    "2793806415",
    "7046913258",
)


def digits_of(plain: str) -> list[int]:
    """The digits as numbers."""
    return [int(one) for one in plain]


def weighted(plain: str, weights: Iterable[int]) -> int:
    """The sum of the digits, each times its weight; weights left over are not used."""
    return sum(digit * weight for digit, weight in zip(digits_of(plain), weights, strict=False))


def is_luhn(plain: str) -> bool:
    """Luhn's sum: every second digit from the right twice, 9 less where that has two digits."""
    total = 0
    for place, digit in enumerate(reversed(digits_of(plain))):
        doubled = digit * 2 if place % 2 else digit
        total += doubled - 9 if doubled > 9 else doubled
    return total % 10 == 0


def is_verhoeff(plain: str) -> bool:
    """Verhoeff's check over the dihedral group, the last digit included."""
    check = 0
    for place, digit in enumerate(reversed(plain)):
        check = int(_TIMES[check][int(_TURNED[place % 8][int(digit)])])
    return check == 0


def is_eleven_ten(plain: str) -> bool:
    """ISO 7064, MOD 11,10: the last digit checks those before it."""
    product = 10
    for digit in digits_of(plain[:-1]):
        total = (digit + product) % 10 or 10
        product = 2 * total % 11
    return (11 - product) % 10 == int(plain[-1])
