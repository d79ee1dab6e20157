"""The form of a training: every setting with its sentence, checked at every change."""

import streamlit as st

from app import training
from app.components.plain import plain
from app.train_words import SECTIONS, WORDS, equation
from db.errors import BadInput
from trainer.experiment_files import list_experiments
from trainer.objectives.names import ALL_OBJECTIVES
from trainer.settings import CHOICES, FIELDS, TrainSettings

OPEN = ("Model", "Objective", "Length of the training")


def draw_form() -> TrainSettings | None:
    """The settings as they stand, None where they cannot be used (and the reason on the page)."""
    st.selectbox(
        "Preset",
        (None, *list_experiments()),
        format_func=lambda name: name or "defaults of the paper, 8 groups per batch",
        key="train.preset",
        on_change=training.take_preset,
        help="Rows of Tables 2, 3 and 4, and baselines; everything can be changed afterwards.",
    )
    known = {name for names in SECTIONS.values() for name in names}
    rest = tuple(name for name in FIELDS if name not in known)
    for section, names in {**SECTIONS, **({"More": rest} if rest else {})}.items():
        with st.expander(section, expanded=section in OPEN):
            for place in range(0, len(names), 3):
                for name, column in zip(names[place : place + 3], st.columns(3), strict=False):
                    with column:
                        draw_field(name)
            if section == "Objective":
                st.latex(equation(ALL_OBJECTIVES[st.session_state["train.objective"]]))
    try:
        return training.chosen_settings()
    except BadInput as error:
        st.error(plain(str(error)), icon=":material/error:")
        return None


def draw_field(name: str) -> None:
    """The widget that fits a setting's type, and its sentence."""
    label, sentence = WORDS.get(name, (name, ""))
    key, default = f"train.{name}", FIELDS[name].default
    st.session_state.setdefault(key, default)
    if name == "objective":
        st.selectbox(
            label,
            list(ALL_OBJECTIVES),
            format_func=lambda n: ALL_OBJECTIVES[n].label,
            key=key,
        )
    elif name in CHOICES:
        st.selectbox(label, CHOICES[name], key=key)
    elif FIELDS[name].type is int:
        st.number_input(label, min_value=0, step=1, key=key)
    elif FIELDS[name].type is float:
        small = isinstance(default, float) and 0 < default < 0.01
        shown = "%.1e" if small else ("%.2f" if default < 10 else "%.0f")
        st.number_input(label, min_value=0.0, format=shown, key=key)
    else:
        st.text_input(label, key=key)
    st.caption(sentence)
