"""Tables for LaTeX (booktabs)."""

from collections.abc import Mapping, Sequence
from typing import Any

MISSING = "--"
SPECIAL = str.maketrans(
    {
        **{char: f"\\{char}" for char in "&%$#_{}"},
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "|": r"\textbar{}",
        "\n": " ",
        "\r": " ",
        # after a row's end, LaTeX reads these as arguments of the row's end
        "[": "{[}",
        "*": "{*}",
        # letters that LaTeX has as mathematics only
        "κ": r"$\kappa$",
        "→": r"$\to$",
        "×": r"$\times$",
        "−": r"$-$",
        "†": r"$^\dagger$",
    }
)


def escaped(text: str) -> str:
    """The text escaped for LaTeX."""
    return text.translate(SPECIAL)


def as_latex(rows: Sequence[Mapping[str, Any]]) -> str:
    """Rows as a tabular with the union of their columns; numbers to the right with four digits,
    an undefined value as a dash."""
    columns = list(dict.fromkeys(column for row in rows for column in row))
    sides = "".join("r" if _is_numeric(rows, column) else "l" for column in columns) or "l"
    lines = [
        rf"\begin{{tabular}}{{{sides}}}",
        r"\toprule",
        " & ".join(escaped(str(column)) for column in columns) + r" \\",
        r"\midrule",
        *(" & ".join(_cell(row.get(column)) for column in columns) + r" \\" for row in rows),
        r"\bottomrule",
        r"\end{tabular}",
    ]
    return "\n".join(lines) + "\n"


def _is_numeric(rows: Sequence[Mapping[str, Any]], column: str) -> bool:
    there = [row[column] for row in rows if row.get(column) is not None]
    return bool(there) and all(isinstance(value, int | float) for value in there)


def _cell(value: Any) -> str:
    if value is None or value != value:  # NaN
        return MISSING
    if isinstance(value, float):
        return f"{value:.4f}".rstrip("0").rstrip(".")
    if isinstance(value, list | tuple):
        value = ", ".join(str(part) for part in value)
    return escaped(str(value))
