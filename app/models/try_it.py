"""What the Try it page opens with: what a training gained and lost, and where it still fails."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import streamlit as st

from app.kit.page import draw_link
from app.operations.try_it import FAILS, GAINS, LOST, UNCHANGED, WORKS, Examples
from app.text.numbers import counted
from app.text.plain import plain
from app.text.texts import draw_text
from trainer.report.compared.measures import model_name
from trainer.report.examples import NEITHER, RULE, SIGNS

TITLES = {WORKS: "Where it now works", FAILS: "Where it fails", LOST: "What it lost"}
CHANGES = {GAINS: "Gained", LOST: "Lost", UNCHANGED: "Unchanged"}
MODELS = {"before": "Base model", "after": "Trained model"}
TASK = (
    "Passages A and B both answer the query: A is right under instruction 1, B under instruction 2."
)
LETTERS = {SIGNS[0]: "A", SIGNS[1]: "B"}
NOT_SEARCHED = (
    "Fills the search below with this query and the first instruction. It searches the dataset's "
    "own passages; B was generated and is not among them."
)


def verdict(model: str, first: str, right: str) -> tuple[str, bool]:
    """(what the model ranks first, whether that is right); short, as a badge cuts off its end."""
    if first == NEITHER:
        return f"{model} ranks A and B equal: wrong", False
    is_right = first == right
    return f"{model} ranks {LETTERS[first]} first: {'right' if is_right else 'wrong'}", is_right


def totals(examples: Examples) -> str:
    """How many held-out groups the base and the trained model follow, and how many were gained and
    lost; the index where it stayed."""
    found = examples.found
    moved = (
        f" {counted(found['gained'], 'group')} gained, {found[LOST]['count']:,} lost."
        if LOST in found
        else ""
    )
    stays = f" {examples.stays}" if examples.stays else ""
    return (
        f"Of {counted(found['groups'], 'held-out group')}, the base model "
        f"({model_name(examples.base)}) follows the instruction in {found['followed_before']:,}, "
        f"the trained one ({model_name(examples.model)}) in {found['followed']:,}.{moved}{stays}"
    )


def parts(examples: Examples) -> str:
    """What each tab counts, and the groups in neither: the two are not all groups."""
    found = examples.found
    works, fails = found[WORKS]["count"], found[FAILS]["count"]
    others = found["groups"] - works - fails
    rest = (
        f" In the other {others:,} it follows, too; there the base model follows as well, or fails "
        "in another way."
    )
    lost = (
        f" {TITLES[LOST]} ({found[LOST]['count']:,}): those of them that the base model follows."
        if LOST in found
        else ""
    )
    return (
        f"{TITLES[WORKS]} ({works:,}): the trained model follows, and the base model ranks one "
        f"passage first under both instructions. {TITLES[FAILS]} ({fails:,}): the trained model "
        f"does not follow.{lost}{rest if others else ''}"
    )


def draw_examples(examples: Examples) -> None:
    """The kinds side by side as tabs, each with its count, and the rule; or why there is none."""
    if examples.missing:
        _draw_why_not("", examples)
        return
    st.header("What the training changed", anchor=False)
    st.markdown(plain(totals(examples)))
    st.caption(plain(parts(examples)))
    found = examples.found
    kinds = examples.kinds
    tabs = st.tabs([f"{TITLES[kind]} ({found[kind]['count']:,})" for kind in kinds])
    for kind, tab in zip(kinds, tabs, strict=True):
        with tab:
            if kind in examples.shown:
                _draw_example(examples.shown[kind])
                texts = examples.shown[kind]["texts"]
                st.button(
                    "Use in the search",
                    key=f"try_it.use_{kind}",
                    on_click=_use,
                    args=(texts["Q+"], texts["I+"]),
                    help=NOT_SEARCHED,
                )
            else:
                _draw_why_not(kind, examples)
    with st.expander("How the examples were chosen"):
        st.markdown(plain(RULE))


def draw_change(stored: Mapping[str, Any], read: Callable[[str], Examples], *, key: str) -> None:
    """An example of what a training gained, lost or left unchanged, which the reader chooses.

    stored: what the training stored of its examples. read: those of a kind that may be seen.
    """
    chosen = st.segmented_control(
        "Held-out groups",
        list(CHANGES),
        default=GAINS,
        required=True,
        key=key,
        format_func=lambda kind: f"{CHANGES[kind]} {stored[kind]['count']:,}",
    )
    kind = chosen or GAINS
    examples = read(kind)
    if kind in examples.shown:
        _draw_example(examples.shown[kind])
    else:
        _draw_why_not(kind, examples)


def _draw_why_not(kind: str, examples: Examples) -> None:
    names = {"model": model_name(examples.model), "base": model_name(examples.base)}
    why = examples.missing or examples.why_not[kind]
    groups = f"{examples.found['groups']:,}" if examples.found else ""
    st.info(plain(why.format(**names, groups=groups)), icon=":material/lightbulb:")


def _draw_example(example: Mapping[str, Any]) -> None:
    texts = example["texts"]
    st.caption(TASK)
    draw_text(texts["Q+"], label="Query")
    for number, (column, sign) in enumerate(zip(st.columns(2), ("I+", "I-"), strict=True)):
        right = SIGNS[number]
        with column:
            draw_text(texts[sign], label=f"Instruction {number + 1}")
            for firsts, model in MODELS.items():
                _draw_verdict(model, example[firsts][number], right)
            draw_text(texts[right], label=f"Passage {LETTERS[right]}")


def _draw_verdict(model: str, first: str, right: str) -> None:
    text, is_right = verdict(model, first, right)
    st.badge(
        plain(text),
        icon=":material/check:" if is_right else ":material/close:",
        color="green" if is_right else "red",
    )


def draw_swap(examples: Examples, *, key: str) -> None:
    """One held-out query of what now works, its instruction chosen by the reader: which passage
    each model ranks first. Nothing where none is stored or may be seen."""
    example = examples.shown.get(WORKS)
    if example is None:
        return
    texts = example["texts"]
    with st.container(border=True, key=key):
        st.markdown("**Try it in small** · change the instruction of a held-out query")
        draw_text(texts["Q+"], label="Query")
        chosen = st.segmented_control(
            "Instruction",
            (0, 1),
            default=0,
            required=True,
            key=f"{key}.instruction",
            format_func=lambda number: f"Instruction {number + 1}",
        )
        number = int(chosen or 0)
        draw_text(texts[("I+", "I-")[number]], label=f"Instruction {number + 1}")
        for (firsts, model), column in zip(MODELS.items(), st.columns(2), strict=True):
            first = example[firsts][number]
            with column:
                _draw_verdict(model, first, SIGNS[number])
                if first != NEITHER:
                    draw_text(texts[first], label=f"{model}: first passage")
        draw_link("try_it", label="Search for yourself", icon=":material/search:")


def _use(query: str, instruction: str) -> None:
    """Fill the search form."""
    st.session_state["try_it.query"] = query
    st.session_state["try_it.instruction"] = instruction


def moves(now: Sequence[str], before: Sequence[str] | None) -> list[str]:
    """A label per passage: ▲3 up, ▼2 down, new, or "". `before` is None without a ranking."""
    if before is None:
        return ["" for _ in now]
    places = {name: place for place, name in enumerate(before)}
    return [_move(places.get(name), place) for place, name in enumerate(now)]


def _move(before: int | None, now: int) -> str:
    if before is None:
        return "new"
    if before == now:
        return ""
    return f"▲{before - now}" if before > now else f"▼{now - before}"
