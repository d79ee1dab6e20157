"""Sweeps: a grid of trainings as queued jobs, and their leaderboard."""

from typing import Any

import streamlit as st

from app.kit.figure import draw_rows
from app.text.numbers import counted
from app.text.plain import plain
from app.text.remedies import in_pages
from app.training import actions
from db.errors import BadInput
from db.tables import Job
from trainer.objectives.names import ALL_OBJECTIVES, OBJECTIVES
from trainer.settings.settings import TrainSettings

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
SELECTED_BY = "strict"
TYPING_PAUSE = "400ms"  # a pause this long reruns the page


def draw_sweep(release_id: int, settings: TrainSettings) -> None:
    """Choose the grid; all other settings come from the form above."""
    st.text_input(
        "Sweep name",
        value=f"Table 3 on release {release_id}",
        key="train.sweep_name",
        live=TYPING_PAUSE,
        help="The leaderboard is grouped by it.",
    )
    st.multiselect(
        "Objectives",
        list(ALL_OBJECTIVES),
        default=list(OBJECTIVES),
        format_func=lambda name: ALL_OBJECTIVES[name].label,
        key="train.sweep_objectives",
    )
    first, second = st.columns(2)
    first.multiselect(
        "Base models",
        [settings.base_model],
        default=[settings.base_model],
        accept_new_options=True,
        key="train.sweep_models",
    )
    second.multiselect(
        "Seeds",
        [settings.seed],
        default=[settings.seed],
        accept_new_options=True,
        key="train.sweep_seeds",
    )
    st.caption(
        "The eleven preselected objectives are those of Table 3; baselines can be added. "
        "Trainings wait in the queue for a free slot."
    )
    try:
        _, grid = actions.chosen_sweep()
    except BadInput as error:
        grid = []
        st.error(plain(in_pages(str(error))), icon=":material/error:")
    st.button(
        f"Queue {counted(len(grid), 'training')}" if grid else "Queue sweep",
        key="train.sweep_start",
        on_click=actions.start_sweep,
        args=(release_id,),
        disabled=not grid,
    )


def job_name(job: Job) -> str:
    """A training in one line that never changes: a select box identifies options by their label
    and would lose a choice whose label has changed.
    """
    settings = job.config.get("settings") or {}
    name = settings.get("objective", "P")
    objective = ALL_OBJECTIVES[name].label if name in ALL_OBJECTIVES else name
    if job.config.get("estimate"):
        return f"job {job.id} · estimate · {objective}"
    return f"job {job.id} · {objective} · seed {settings.get('seed', 42)}"


def draw_leaderboard() -> None:
    """The trainings of a sweep, best on its held-out groups first."""
    found = actions.read_sweep_jobs()
    if not found:
        return
    st.subheader("Sweeps", anchor=False)
    names = list(dict.fromkeys(str(job.config["sweep"]) for job in found))
    chosen = st.selectbox("Sweep", names, key="train.sweep_chosen")
    rows = leaderboard([job for job in found if job.config["sweep"] == chosen])
    draw_rows(
        rows,
        None,
        key="train.sweep",
        column_config={
            name: st.column_config.NumberColumn(label, format="%.4f")
            for name, label in MEASURES.items()
        },
    )
    st.caption(
        f"Ordered by {MEASURES[SELECTED_BY]} on the groups held out of the training. Do not select "
        "on a benchmark you report: selection on the test set biases its score."
    )


def leaderboard(found: list[Job]) -> list[dict[str, Any]]:
    """A row per training, best score first; trainings without a score last."""
    rows = []
    for job in found:
        settings = job.config.get("settings") or {}
        result = job.result or {}
        after = (result.get("held_out") or {}).get("after") or {}
        after |= (result.get("natural_probe") or {}).get("after") or {}
        rows.append(
            {
                "Objective": settings.get("objective"),
                "Base model": settings.get("base_model"),
                "Seed": settings.get("seed"),
                **{name: after.get(name) for name in MEASURES},
                "Status": job.status,
                "Job": job.id,
                "Checkpoint": (job.result or {}).get("checkpoint_id"),
            }
        )
    return sorted(rows, key=_order)


def _order(row: dict[str, Any]) -> tuple[float, float]:
    """The best first; trainings from before there was strict accuracy by nDCG@10."""
    values = (row[SELECTED_BY], row["ndcg@10"])
    strict, ndcg = (1.0 if value is None else -value for value in values)
    return strict, ndcg
