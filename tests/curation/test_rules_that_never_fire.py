"""Rules of recipes that no answer brings about, or by which an unjudged text takes a place.

Each is one sentence with file, line and remedy. The page has the same ones in
tests/app/test_recipes_page.py.
"""

from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Ran
from shaped_recipes import write_recipe

from curation.recipe.recipe import FOLDER, load_recipe
from db.errors import BadInput

TEXT = (FOLDER / "promptriever.toml").read_text()
CHECKS = TEXT[TEXT.index("[checks.fits]") : TEXT.index("[rules]")]
HEAD = CHECKS[: CHECKS.index("over = ")]
ELSE_B, DROP_N = '"P+" = "else B"', '"N" = "drop text"'
GIVEN = (
    "\n[vary]",
    '"H" = { field = "passage", column = "given", count = 2, from_source = true }\n\n[vary]',
)
CLAIMED = ('1 = "N" }', '1 = "N", 0 = "H" }')
VALIDATION = '[stages.validation]\nmodel = "x"\nprompt = "validation.md"\n\n'
GRADE = '{ "0" = "off", "1" = "violates", "2" = "satisfies" }'


def fits(over: str, expected: str, head: str = HEAD) -> tuple[str, str]:
    """One check in place of both."""
    signs = ", ".join(f'"{sign}"' for sign in over.split())
    answers = ", ".join(
        f'"{sign}" = "{answer}"'
        for sign, _, answer in (each.partition("=") for each in expected.split(", ") if each)
    )
    table = f'over = [{signs}]\nwith = ["I", "Q"]\nexpected = {{ {answers} }}\n\n'
    return CHECKS, head + table


# by name: what is replaced by what, what the line begins with, the sentence, the remedy
WRONG: dict[str, tuple[tuple[tuple[str, str], ...], str, str, str]] = {
    "a text without a check": (
        (fits("P+ B", "P+=yes, B=yes"),),
        DROP_N,
        "no check is over 'N', so nothing drops it",
        "add 'N' to the over and expected of a check, or leave the rule out",
    ),
    "a text that is asked about, of which nothing is expected": (
        (fits("P+ B N", "P+=yes, B=yes"),),
        DROP_N,
        "no check expects an answer about 'N', so nothing drops it",
        "add 'N' to the expected of a check, or leave the rule out",
    ),
    "a check that expects nothing": (
        (fits("P+ B N", ""),),
        ELSE_B,
        "no check expects an answer about 'P+', so nothing takes its place",
        "add 'P+' to the expected of a check",
    ),
    "no check at all": (
        ((CHECKS, ""),),
        ELSE_B,
        "no check is over 'P+', so nothing takes its place",
        "add 'P+' to the over and expected of a check",
    ),
    "no check, and a judge that picks": (
        ((CHECKS, VALIDATION),),
        ELSE_B,
        "no check is over 'P+', so nothing takes its place",
        "add 'P+' to the over and expected of a check",
    ),
    "given negatives without a check": (
        (GIVEN, CLAIMED, (DROP_N, f'{DROP_N}\n"H" = "drop text"')),
        '"H" = "drop text"',
        "no check is over 'H', so nothing drops it",
        "add 'H' to the over and expected of a check",
    ),
    "an instruction without a check": (
        ((DROP_N, f'{DROP_N}\n"I" = "drop group"'),),
        '"I" = "drop group"',
        "no check is over 'I', so nothing drops its group",
        "add 'I' to the over and expected of a check",
    ),
    "the pair's query": (
        ((DROP_N, f'{DROP_N}\n"Q" = "drop group"'),),
        '"Q" = "drop group"',
        "no check is over 'Q', so nothing drops its group",
        "add 'Q' to the over and expected of a check",
    ),
    "a list that drops its group, without a check": (
        (fits("P+ B", "P+=yes, B=yes"), (DROP_N, '"N" = "drop group"')),
        '"N" = "drop group"',
        "no check is over 'N', so nothing drops its group",
        "add 'N' to the over and expected of a check",
    ),
    "a stand-in that nobody judges": (
        (fits("P+ N", "P+=yes, N=no"),),
        ELSE_B,
        "no check that judges 'P+' expects an answer about 'B', which takes its place",
        "add 'B' to the over and expected of one",
    ),
    "a stand-in of which nothing is expected": (
        (fits("P+ B N", "P+=yes, N=no"),),
        ELSE_B,
        "no check that judges 'P+' expects an answer about 'B', which takes its place",
        "add 'B' to the over and expected of one",
    ),
    "a stand-in that another check judges": (
        (
            fits("P+ N", "P+=yes, N=no"),
            (
                "[rules]",
                CHECKS[CHECKS.index("[checks.answers]") :].replace('"N"', '"B"') + "[rules]",
            ),
        ),
        ELSE_B,
        "no check that judges 'P+' expects an answer about 'B', which takes its place",
        "add 'B' to the over and expected of one",
    ),
    "a stand-in that is to fail": (
        (fits("P+ B N", "P+=yes, B=no, N=no"),),
        ELSE_B,
        "the check 'fits' expects yes of 'P+' and no of 'B', which takes its place",
        "expect the same of both",
    ),
    "a stand-in of a grade that its text may not have": (
        (
            fits(
                "P+ B N",
                "P+=>= 2, B=< 2, N=1",
                HEAD.replace('"yes_no"', f'"grade"\nlabels = {GRADE}'),
            ),
        ),
        ELSE_B,
        "the check 'fits' expects >= 2 of 'P+' and < 2 of 'B', which takes its place",
        "expect the same of both",
    ),
    "a stand-in of which a group needs one": (
        (('column = "backup"', 'column = "backup", at_least = 1'),),
        ELSE_B,
        "'B' has at_least, and is looked at only to take the place of 'P+'",
        "take out the at_least of 'B'",
    ),
    "a negative of the pair as a stand-in": (
        (('column = "backup"', 'column = "backup", from_source = true'),),
        ELSE_B,
        "'B' comes with the pair, as a negative of it",
        "name another text",
    ),
    "a stand-in of another kind": (
        ((ELSE_B, '"P+" = "else I"'),),
        '"P+" = "else I"',
        "'I' is no passage of [texts]; there are P+, B, N",
        "name one of these",
    ),
    "a passage for an instruction": (
        ((DROP_N, f'{DROP_N}\n"I" = "else B"'),),
        '"I" = "else B"',
        "'B' is no instruction of [texts]; there are I",
        "name one of these",
    ),
    "itself": (
        ((ELSE_B, '"P+" = "else P+"'),),
        '"P+" = "else P+"',
        "'P+' cannot take its place",
        "name another text",
    ),
    "a rule about no text": (
        ((DROP_N, f'{DROP_N}\n"M" = "drop text"'),),
        '"M" = "drop text"',
        "'M' is no text of [texts]; there are Q, P+, I, B, N",
        "name one of these",
    ),
    "a rule in capitals": (
        ((DROP_N, '"N" = "Drop text"'),),
        '"N" = "Drop text"',
        "'Drop text' is no rule",
        "write “drop text”",
    ),
    "a rule that is a list": (
        ((DROP_N, '"N" = ["drop text"]'),),
        '"N" = ["drop text"]',
        "is no rule",
        "write “drop text”",
    ),
    "else of nothing": (
        ((ELSE_B, '"P+" = "else "'),),
        '"P+" = "else "',
        "'else ' is no rule",
        "write “drop text”",
    ),
}


def changed(folder: Path, changes: tuple[tuple[str, str], ...]) -> Path:
    text = TEXT
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new, 1)
    (folder / "mine.toml").write_text(text)
    return folder / "mine.toml"


@pytest.mark.parametrize("kind", WRONG)
def test_a_rule_that_cannot_do_what_it_says_is_one_sentence_at_its_line(
    tmp_path: Path, inf: Callable[..., Ran], kind: str
) -> None:
    changes, begins, sentence, remedy = WRONG[kind]
    file = changed(tmp_path, changes)
    with pytest.raises(BadInput) as refused:
        load_recipe(str(file))
    message, line = refused.value.message, refused.value.values["line"]
    assert message.startswith(f"the recipe mine.toml, line {line}") and sentence in message, message
    assert "\n" not in message and (refused.value.remedy or "").startswith(remedy)
    assert file.read_text().split("\n")[line - 1].startswith(begins), message
    shown = inf("recipes", "check", file)
    assert shown.code == 1 and message in shown.err


def test_a_setting_may_take_an_expectation_away(tmp_path: Path) -> None:
    """What a file expects makes its rules; a run may decide without one of them."""
    for sign in ("N", "P+", "B"):
        found = load_recipe("promptriever", [f"checks.fits.expected.{sign}=any"])
        assert (
            sign not in found.checks[0].expected
            and found.shape == load_recipe("promptriever").shape
        )
    file = changed(tmp_path, (fits("P+ B N", "P+=yes, B=yes"),))
    with pytest.raises(BadInput, match="no check expects an answer about 'N'"):
        load_recipe(str(file), ["checks.fits.expected.N=no"])


def test_a_judge_that_picks_brings_about_drop_group(tmp_path: Path) -> None:
    path = Path(write_recipe(tmp_path, "two"))
    path.write_text(path.read_text() + '\n[rules]\n"N1" = "drop group"\n')
    assert load_recipe(str(path)).shape.roles == ("plain", "defying")
    path.write_text(path.read_text() + '"D" = "drop group"\n')
    with pytest.raises(BadInput, match="no check is over 'D', so nothing drops its group"):
        load_recipe(str(path))


@pytest.mark.parametrize(
    "changes",
    [
        ((DROP_N, f'{DROP_N}\n"B" = "drop text"'),),  # as it is without
        ((DROP_N, '"N" = "drop group"'),),
        (("count = 3", "count = 3, at_least = 3"),),
        (fits("P+ B N", "P+=yes, B=yes, N=no"),),
    ],
)
def test_rules_that_do_something_load(tmp_path: Path, changes: tuple[tuple[str, str], ...]) -> None:
    assert load_recipe(str(changed(tmp_path, changes))).checks
