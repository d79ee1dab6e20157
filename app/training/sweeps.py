"""Sweeps: the form of a grid of trainings, and the table of trainings, best first in a sweep."""

import streamlit as st

from app.access.identity import Actor
from app.kit.fields import at_field, draw_wrong
from app.kit.figure import draw_rows
from app.operations import trainings
from app.operations.overview.demo import RECORDED
from app.operations.trainings import TrainingRow
from app.text.numbers import counted
from app.text.plain import plain
from app.text.remedies import in_pages
from app.training import actions
from db.errors import BadInput
from db.requests import default_of
from trainer.launch.request import TrainStart, TrainSweep
from trainer.objectives.names import ALL_OBJECTIVES

MEASURES = {
    "strict": "Strict group accuracy",
    "instruction-flip": "Instruction flip",
    "query-flip": "Query flip",
    "natural-flip": "Natural probe flip",
    "ndcg@10": "nDCG@10",
    "map": "MAP",
    "mrr": "MRR",
    "p-mrr": "p-MRR",
}
LABELS = {
    "id": "Training",
    "objective": "Objective",
    "base_model": "Base model",
    "seed": "Seed",
    **MEASURES,
    "status": "Status",
    "sweep": "Sweep",
    "release": "Release",
    "checkpoint_id": "Checkpoint",
    "started_by": "By",
    "created_at": "Created",
}
SELECTED_BY = "strict"
TYPING_PAUSE = "400ms"  # a pause this long reruns the page


def draw_sweep(release_id: int, wanted: TrainStart) -> None:
    """Choose the grid; all other settings come from the form above."""
    st.text_input(
        "Sweep name",
        value=f"Table 3 on release {release_id}",
        key="train.sweep_name",
        live=TYPING_PAUSE,
        help=TrainSweep.model_fields["name"].description,
    )
    below = {"name": st.container()}  # what is wrong there is known when all is read
    st.multiselect(
        "Objectives",
        list(ALL_OBJECTIVES),
        default=list(default_of(TrainSweep, "objectives")),
        format_func=lambda name: ALL_OBJECTIVES[name].label,
        key="train.sweep_objectives",
    )
    below["objectives"] = st.container()
    first, second = st.columns(2)
    for column, label, name, setting in (
        (first, "Base models", "base_models", "base_model"),
        (second, "Seeds", "seeds", "seed"),
    ):
        column.multiselect(
            label,
            [wanted.setting(setting)],
            default=[wanted.setting(setting)],
            accept_new_options=True,
            key=f"train.sweep_{name}",
        )
        below[name] = column.container()
    st.caption(
        "The eleven preselected objectives are those of Table 3; baselines can be added. "
        "Trainings wait in the queue for a free slot."
    )
    grid: list[TrainStart] = []
    try:
        with at_field("train.sweep_{}"):
            grid = actions.wanted_sweep(release_id).trainings()
    except BadInput as error:
        st.error(plain(in_pages(str(error))), icon=":material/error:")
    for name, place in below.items():
        with place:
            draw_wrong(f"train.sweep_{name}")
    st.button(
        f"Queue {counted(len(grid), 'training')}" if grid else "Queue sweep",
        key="train.sweep_start",
        on_click=actions.start_sweep,
        args=(release_id,),
        disabled=not grid,
    )


def job_name(row: TrainingRow) -> str:
    """A training in one line that never changes: a select box identifies options by their label
    and would lose a choice whose label has changed.
    """
    if row.estimate:
        return f"job {row.id} · estimate · {row.objective}"
    recorded = " · recorded" if row.started_by == RECORDED else ""
    return f"job {row.id} · {row.objective} · seed {row.seed}{recorded}"


def draw_trainings(user: Actor, newest: list[TrainingRow]) -> None:
    """The newest trainings, or those of a sweep, best on its held-out groups first."""
    st.header("Trainings", anchor=False)
    rows, sweeps = newest, trainings.sweeps(user)
    if sweeps:
        chosen = st.selectbox(
            "Sweep or search",
            (None, *sweeps),
            format_func=lambda name: name or "all, newest first",
            key="train.sweep_chosen",
        )
        rows = newest if chosen is None else list(trainings.list_sweep(user, chosen).data)
    draw_rows(
        [each.as_json() for each in rows],
        None,
        key="train.trainings",
        labels=LABELS,
        column_order=list(LABELS),
        column_config={
            "id": {"width": 70},
            **{name: st.column_config.NumberColumn(format="%.4f") for name in MEASURES},
            "created_at": st.column_config.DatetimeColumn(format="YYYY-MM-DD HH:mm"),
        },
    )
    st.caption(
        f"A sweep is ordered by {MEASURES[SELECTED_BY]} on the groups held out of the training. Do "
        "not select on a benchmark you report: selection on the test set biases its score."
    )
