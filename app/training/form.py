"""The form of a training: four settings and a preset, all others folded; checked while typing.

Numbers are text fields: Streamlit's number field reports its value only when it loses focus, and
silently restores the old number in place of an invalid one.
"""

import re
from collections.abc import Sequence
from functools import partial

import streamlit as st

from app.jobs.launching import chosen_launcher
from app.kit.page import draw_drawer
from app.text.plain import plain
from app.text.remedies import in_pages
from app.training import actions
from app.training.sweeps import TYPING_PAUSE
from app.training.wording import equation
from db.errors import BadInput
from db.jobs.jobs import LOCAL
from db.requests import default_of
from trainer.launch.request import TrainStart
from trainer.objectives.names import ALL_OBJECTIVES
from trainer.settings.experiment_files import list_experiments
from trainer.settings.setting import Setting
from trainer.settings.table import GROUPS, SETTINGS, settings_of

COLUMNS = 4
PAPER = f"paper defaults, {SETTINGS['rows_per_batch'].default} groups per batch"
MAIN = ("base_model", "objective", "epochs", "max_steps")  # the others are under Advanced
OBJECTIVE_LABELS = {name: objective.label for name, objective in ALL_OBJECTIVES.items()}


def draw_form(release_id: int) -> TrainStart | None:
    """The training in the form; None if it is invalid, with the error on the page."""
    st.selectbox(
        "Preset",
        (None, *list_experiments()),
        format_func=lambda name: name or PAPER,
        key="train.preset",
        on_change=actions.apply_preset,
        help="Rows of Tables 2, 3 and 4, and baselines. Every setting can be changed afterwards.",
    )
    is_set = st.session_state.pop("train.preset_applied", False)
    wanted, wrong = None, ""
    try:
        wanted = actions.wanted_training(str(release_id))
    except BadInput as error:
        wrong = in_pages(str(error))
    _draw_fields([SETTINGS[name] for name in MAIN], wrong, is_set=is_set)
    st.latex(equation(ALL_OBJECTIVES[st.session_state["train.objective"]]))
    draw_drawer(
        "Advanced",
        partial(_draw_advanced, wrong, is_set=is_set),
        key="train.advanced",
        field="train.seed",
        icon=":material/tune:",
    )
    if (launcher := chosen_launcher()) != LOCAL:
        _draw_workers(launcher, wrong if is_about(wrong, "workers") else "")
    if wrong:
        st.error(plain(wrong), icon=":material/error:")
    return wanted


def _draw_advanced(wrong: str, *, is_set: bool) -> None:
    for group, tab in zip(GROUPS, st.tabs(list(GROUPS)), strict=True):
        with tab:
            members = [each for each in settings_of(group) if each.name not in MAIN]
            _draw_fields(members, wrong, is_set=is_set)


def _draw_fields(members: Sequence[Setting], wrong: str, *, is_set: bool) -> None:
    """The fields in rows of as many columns as there are."""
    columns = min(COLUMNS, len(members))
    for first in range(0, len(members), columns):
        row = members[first : first + columns]
        for setting, column in zip(row, st.columns(columns), strict=False):
            with column:
                message = wrong if is_about(wrong, setting.name) else ""
                draw_field(setting, message, is_set=is_set)


def is_about(wrong: str, name: str) -> bool:
    """Whether an error is about this setting: it starts with its name."""
    first = re.match(r"\w+", wrong)
    return first is not None and first[0] == name


def _draw_workers(launcher: str, wrong: str) -> None:
    now = st.session_state.get("train.workers", str(default_of(TrainStart, "workers")))
    st.text_input("Processes on the cluster", value=now, key="train.workers", live=TYPING_PAUSE)
    _draw_help(
        f"Jobs run on the Ray cluster at {launcher}. The processes share each batch; each has its "
        "own CPU cores and GPUs (INF_RAY_CPUS, INF_RAY_GPUS).",
        wrong,
    )


def draw_field(setting: Setting, wrong: str, *, is_set: bool) -> None:
    """The widget that fits a setting's type, and its help text or the error about it.

    The value is passed on every run, not only through the session: after an interrupted run the
    browser would otherwise show an empty field. Right after a preset has set it (`is_set`),
    Streamlit refuses a second source of the value.
    """
    key = f"train.{setting.name}"
    now = st.session_state.get(key, actions.as_typed(setting.default))
    if setting.choices:
        index = setting.choices.index(now) if now in setting.choices and not is_set else 0
        labels = OBJECTIVE_LABELS if setting.name == "objective" else {}
        st.selectbox(
            setting.label,
            setting.choices,
            index,
            key=key,
            format_func=lambda each: labels.get(each, each),
        )
    else:
        value = {} if is_set else {"value": now}
        st.text_input(setting.label, key=key, live=TYPING_PAUSE, **value)
    _draw_help(setting.help, wrong)


def _draw_help(sentence: str, wrong: str) -> None:
    if wrong:
        st.markdown(f":red[{plain(wrong)}]")
    else:
        st.caption(plain(sentence))
