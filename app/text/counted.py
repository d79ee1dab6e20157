"""A count with its noun in the right number."""


def counted(number: int, noun: str, plural: str = "") -> str:
    """`1 group`, `1,200 groups`, `2 studies` (an irregular plural is given)."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"
