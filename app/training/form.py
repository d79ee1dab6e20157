"""The form of a training: every setting with its sentence, checked while it is typed.

Numbers are typed into text fields too: a field of Streamlit's for numbers tells what was typed only
once it is left, and then silently keeps the old number in place of one that cannot be.
"""

import re
from collections.abc import Sequence

import streamlit as st

from app.jobs.launching import chosen_launcher
from app.text.plain import plain
from app.training import actions as training
from app.training.sweeps import TOLD_AFTER
from app.training.words import SECTIONS, WORDS, equation
from db.errors import BadInput
from db.jobs.jobs import LOCAL
from trainer.objectives.names import ALL_OBJECTIVES
from trainer.settings.experiment_files import list_experiments
from trainer.settings.settings import CHOICES, FIELDS, TrainSettings

OPEN = ("Model", "Objective", "Length of the training")
OBJECTIVE_LABELS = {name: objective.label for name, objective in ALL_OBJECTIVES.items()}


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
    settings, wrong = None, ""
    try:
        settings = training.chosen_settings()
    except BadInput as error:
        wrong = str(error)
    known = {name for names in SECTIONS.values() for name in names}
    rest = tuple(name for name in FIELDS if name not in known)
    for section, names in {**SECTIONS, **({"More": rest} if rest else {})}.items():
        with st.expander(section, expanded=section in OPEN):
            for place in range(0, len(names), 3):
                for name, column in zip(names[place : place + 3], st.columns(3), strict=False):
                    with column:
                        draw_field(name, wrong if is_about(wrong, name) else "", is_set=is_set)
            if section == "Objective":
                st.latex(equation(ALL_OBJECTIVES[st.session_state["train.objective"]]))
    if (launcher := chosen_launcher()) != LOCAL:
        _draw_workers(launcher, wrong if is_about(wrong, "workers") else "")
    if wrong:
        st.error(plain(wrong), icon=":material/error:")
    return settings


def is_about(wrong: str, name: str) -> bool:
    """Whether an error tells of this setting: it begins with its name."""
    told = re.match(r"\w+", wrong)
    return told is not None and told[0] == name


def _draw_workers(launcher: str, wrong: str) -> None:
    now = st.session_state.get("train.workers", "1")
    st.text_input("Processes on the cluster", value=now, key="train.workers", live=TOLD_AFTER)
    _draw_sentence(
        f"Jobs go to the Ray cluster at {launcher}. The processes stand on its nodes and share "
        "each batch; each gets its own processors and GPUs (INF_RAY_CPUS, INF_RAY_GPUS).",
        wrong,
    )


def draw_field(name: str, wrong: str, *, is_set: bool) -> None:
    """The widget that fits a setting's type, and its sentence, or what is wrong with it.

    It is told what it shows at every run, and not only once through the session: a run that was
    broken off in between would leave the browser with nothing. Only where a preset has just set it
    (`is_set`) Streamlit wants it told in one way.
    """
    label, sentence = WORDS.get(name, (name, ""))
    key = f"train.{name}"
    now = st.session_state.get(key, training.as_typed(FIELDS[name].default))
    if name == "objective":
        _draw_choice(label, list(OBJECTIVE_LABELS), key, now, is_set=is_set)
    elif name in CHOICES:
        _draw_choice(label, CHOICES[name], key, now, is_set=is_set)
    else:
        st.text_input(label, key=key, live=TOLD_AFTER, **({} if is_set else {"value": now}))
    _draw_sentence(sentence, wrong)


def _draw_sentence(sentence: str, wrong: str) -> None:
    if wrong:
        st.markdown(f":red[{plain(wrong)}]")
    else:
        st.caption(plain(sentence))


def _draw_choice(label: str, options: Sequence[str], key: str, now: str, *, is_set: bool) -> None:
    place = {"index": list(options).index(now)} if now in options and not is_set else {}
    words = OBJECTIVE_LABELS if key == "train.objective" else {}
    st.selectbox(label, options, key=key, format_func=lambda each: words.get(each, each), **place)
