"""The form of a training: every setting with its sentence, checked at every change."""

from collections.abc import Sequence
from typing import Any

import streamlit as st

from app import training
from app.components.plain import plain
from app.launching import chosen_launcher
from app.train_words import SECTIONS, WORDS, equation
from db.errors import BadInput
from db.jobs import LOCAL
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
    is_set = st.session_state.pop("train.preset_taken", False)
    known = {name for names in SECTIONS.values() for name in names}
    rest = tuple(name for name in FIELDS if name not in known)
    for section, names in {**SECTIONS, **({"More": rest} if rest else {})}.items():
        with st.expander(section, expanded=section in OPEN):
            for place in range(0, len(names), 3):
                for name, column in zip(names[place : place + 3], st.columns(3), strict=False):
                    with column:
                        draw_field(name, is_set=is_set)
            if section == "Objective":
                st.latex(equation(ALL_OBJECTIVES[st.session_state["train.objective"]]))
    if (launcher := chosen_launcher()) != LOCAL:
        st.number_input(
            "Processes on the cluster",
            min_value=1,
            value=training.chosen_workers(),
            step=1,
            key="train.workers",
        )
        st.caption(
            plain(
                f"Jobs go to the Ray cluster at {launcher}. The processes stand on its nodes and "
                "share each batch; each gets its own processors and GPUs (INF_RAY_CPUS, "
                "INF_RAY_GPUS)."
            )
        )
    try:
        return training.chosen_settings()
    except BadInput as error:
        st.error(plain(str(error)), icon=":material/error:")
        return None


def draw_field(name: str, *, is_set: bool) -> None:
    """The widget that fits a setting's type, and its sentence.

    It is told what it shows at every run, and not only once through the session: a run that was
    broken off in between would leave the browser with 0 for a number. Only where a preset has just
    set it (`is_set`) Streamlit wants it told in one way.
    """
    label, sentence = WORDS.get(name, (name, ""))
    key, default = f"train.{name}", FIELDS[name].default
    now = st.session_state.get(key, default)
    told = {} if is_set else {"value": now}
    if name == "objective":
        _draw_choice(
            label,
            list(ALL_OBJECTIVES),
            key,
            None if is_set else now,
            format_func=lambda n: ALL_OBJECTIVES[n].label,
        )
    elif name in CHOICES:
        _draw_choice(label, CHOICES[name], key, None if is_set else now)
    elif FIELDS[name].type is int:
        st.number_input(label, min_value=0, step=1, key=key, **told)
    elif FIELDS[name].type is float:
        small = isinstance(default, float) and 0 < default < 0.01
        shown = "%.1e" if small else ("%.2f" if default < 10 else "%.0f")
        st.number_input(label, min_value=0.0, format=shown, key=key, **told)
    else:
        st.text_input(label, key=key, **told)
    st.caption(sentence)


def _draw_choice(
    label: str, options: Sequence[str], key: str, now: str | None, **more: Any
) -> None:
    place = {"index": list(options).index(now)} if now in options else {}
    st.selectbox(label, options, key=key, **place, **more)
