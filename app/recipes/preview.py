"""A recipe compared with another one on a few pairs: texts, verdicts, cost, before a run starts."""

import streamlit as st

from app.access.identity import SessionUser
from app.access.session_user import failures_shown, signed_in_user
from app.kit.frame.dataset import chosen_dataset
from app.kit.page import draw_empty, draw_labels, draw_status
from app.operations import connections, runs
from app.operations.recipes import RecipeRow
from app.operations.runs import PREVIEWED, PreviewGroup, PreviewPair, PreviewRun
from app.recipes import actions
from app.text.numbers import counted, money
from app.text.plain import plain
from app.text.texts import draw_text
from curation.recipe.drop_reasons import reason_text

EVERY_SECONDS = 2.0
LIVE = ("created", "running")
OFFLINE = "offline: rules and an embedding model"


def draw_preview(user: SessionUser, row: RecipeRow, others: list[str], *, is_valid: bool) -> None:
    """Draw the form of a preview and, once there is one, its runs side by side."""
    dataset = chosen_dataset()
    if dataset is None:
        draw_empty(
            "No pairs yet.",
            "A preview takes the first pairs of a dataset: import one first.",
            view="datasets",
            link="Datasets",
        )
        return
    servers = [each for each in connections.list_all(user).data if each.id is not None]
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.selectbox(
            "Connection",
            (None, *(each.name for each in servers if not each.problem)),
            format_func=lambda name: name or OFFLINE,
            key="recipes.server",
        )
        st.selectbox(
            "Compared with",
            others,
            index=0 if others else None,
            key="recipes.other",
            placeholder="no other recipe",
        )
        st.button(
            f"Preview on {PREVIEWED} pairs of {plain(dataset.name)}",
            key="recipes.preview_start",
            type="primary",
            icon=":material/science:",
            disabled=not is_valid,
            on_click=actions.preview,
            args=(row,),
        )
    st.caption(
        "Runs the files as they are above, saved or not, on the first pairs of the dataset. No "
        "list, study or release has these runs; a run that you start later finds their answers."
    )
    ids = [int(each) for each in (_chosen() or "").split(",") if each.isdecimal()][:2]
    if ids:
        found = runs.previewed(user, tuple(ids))
        is_live = any(run.status in LIVE for run in found.runs)
        st.fragment(_draw_now, run_every=EVERY_SECONDS if is_live else None)(tuple(ids), is_live)


def _chosen() -> str | None:
    value: str | None = st.query_params.get(actions.PREVIEW.partition(".")[2])
    return value


def _draw_now(ids: tuple[int, ...], was_live: bool) -> None:
    with failures_shown():
        found = runs.previewed(signed_in_user(), ids)
        if was_live and not any(run.status in LIVE for run in found.runs):
            st.rerun()
        for run, column in zip(found.runs, st.columns(len(found.runs)), strict=True):
            with column:
                _draw_run(run)
        for pair in found.pairs:
            _draw_pair(pair, found.runs)


def _name(run: PreviewRun) -> str:
    return plain(run.recipe + (f"@{run.version}" if run.version else ""))


def _draw_run(run: PreviewRun) -> None:
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(f"**{_name(run)}**", width="content")
        draw_status(run.status)
        draw_labels(offline=run.offline)
    cost = money(run.cost_usd)
    if run.spent_usd != run.cost_usd:
        cost += f" ({money(run.spent_usd)} of it new)"
    facts = (
        f"{run.kept} kept, {run.dropped} dropped",
        counted(run.calls, "call"),
        cost,
        f"hash {run.sha256[:10]}",
    )
    st.caption(plain(" · ".join(facts)))
    if run.error:
        st.warning(plain(run.error))


def _draw_pair(pair: PreviewPair, of: tuple[PreviewRun, ...]) -> None:
    with st.container(border=True):
        draw_text(pair.query, label=f"Query · {pair.query_id}")
        draw_text(pair.passage, label="Passage")
        for run, group, column in zip(of, pair.groups, st.columns(len(of)), strict=True):
            with column:
                _draw_group(run, pair, group)


def _draw_group(run: PreviewRun, pair: PreviewPair, group: PreviewGroup | None) -> None:
    """What a recipe made of a pair; what it left as it was stands above."""
    if group is None:
        st.caption("No group yet." if run.status in LIVE else "No group to show.")
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(_name(run), width="content")  # columns of a narrow screen stand below each other
        if group.verdict:
            draw_status(group.verdict)
        if group.drop_reason:
            detail = plain(group.drop_detail or "") or None
            st.caption(plain(reason_text(group.drop_reason)), width="content", help=detail)
    for name, text in group.texts.items():
        if text not in (pair.query, pair.passage):
            lost = group.lost.get(name)
            label = name + (f" · {reason_text(lost)}" if lost else "")
            draw_text(text, label=label, meaning=run.meanings[name])
