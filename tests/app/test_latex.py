"""Tables for LaTeX: numbers, dashes, and text that LaTeX would read as its own."""

from app.text.latex import as_latex, escaped


def test_a_table_has_every_column_with_numbers_to_the_right() -> None:
    rows = [{"Model": "a_b & c", "p": 0.12345}, {"Model": "d", "n": 3, "p": None}]
    assert as_latex(rows).splitlines() == [
        r"\begin{tabular}{lrr}",
        r"\toprule",
        r"Model & p & n \\",
        r"\midrule",
        r"a\_b \& c & 0.1235 & -- \\",
        r"d & -- & 3 \\",
        r"\bottomrule",
        r"\end{tabular}",
    ]


def test_no_text_is_a_command() -> None:
    text = "\\input{/etc/passwd} $x^2$ 50% #1 ~ {}\n\\end{tabular}"
    assert "\\input" not in escaped(text) and "\n" not in escaped(text)
    assert r"\textbackslash{}input\{" in escaped(text)
    assert escaped("[2cm] * a|b <c> κ") == (
        r"{[}2cm] {*} a\textbar{}b \textless{}c\textgreater{} $\kappa$"
    )
    assert as_latex([]).splitlines()[0] == r"\begin{tabular}{l}"
    assert as_latex([{"a": float("nan"), "b": True, "c": ["x", "_"]}]).splitlines()[4] == (
        r"-- & True & x, \_ \\"
    )
