"""Curate page: start a run, watch its funnel while it works, resume a stopped one."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import streamlit as st

from app.access.identity import SessionUser
from app.access.session_user import failures_shown, signed_in_user
from app.connections.form import draw_form as draw_connection_form
from app.curate import actions
from app.curate.checks import draw_leakage, draw_place_bias, draw_shared_parts, draw_text_baseline
from app.curate.estimate import draw_estimate
from app.curate.outcome import draw_reasons, run_sentence
from app.curate.run_comparison import draw_comparison
from app.curate.run_live import (
    draw_batches,
    draw_calls,
    draw_controls,
    draw_lanes,
    draw_pulse,
    draw_retry,
    draw_time_left,
    draw_trouble,
)
from app.curate.server_choice import draw_models, draw_problem, draw_server_choice
from app.curate.trial import MAX_PAIRS, draw_results, draw_trial
from app.curate.verdict_versions import draw_versions
from app.datasets.import_form import draw_import_form
from app.groups.funnel import draw_funnel, draw_stages
from app.groups.run_label import run_name
from app.jobs_page.card import follow_job
from app.kit.choice import choose
from app.kit.fields import draw_fields, values_of_form
from app.kit.frame.dataset import chosen_dataset
from app.kit.frame.links import page_link
from app.kit.menu import may_open
from app.kit.page import (
    draw_drawer,
    draw_empty,
    draw_hand_off,
    draw_heading,
    draw_labels,
    draw_status,
)
from app.operations import recipes
from app.operations.overview import run as run_now
from app.operations.overview.frame import PageDataset
from app.text.numbers import counted
from app.text.plain import plain
from app.text.remedies import in_pages
from curation.providers.registry import PROVIDERS
from curation.recipe.drop_reasons import reason_text
from curation.recorded import NAME as RECORDED
from curation.run.guard import Guard
from curation.run.starting import RunStart
from curation.run.time_left import time_left
from db.errors import BadInput
from db.run.runs import (
    Funnel,
    Outcomes,
    RunSummary,
)
from db.run.versions import FIRST

EVERY_SECONDS = 2.0
NOTHING, NO_RUNS = Outcomes(0, {}), run_now.RunsOfDataset((), has_pairs=False, job_id=None)
# the limits of a run: what an empty field means, and a value in words
LIMITS = {
    "limit": ("all", "the first {:,} pairs"),
    "budget_usd": ("no limit", "${:,.2f}"),
    "concurrency": ("the server's", "{:,} calls at once"),
    "workers": ("one process", "{:,} processes"),
    "requests_per_minute": ("no limit", "{:,} requests per minute"),
    "tokens_per_minute": ("no limit", "{:,} tokens per minute"),
    "timeout_seconds": ("the recipe's", "{:g} s per call"),
}
OVERRIDES: dict[str, dict[str, Any]] = {
    "settings": {"placeholder": "validation.model=o4-mini\ntemperature=0.7"},
    "seed": {"width": 160},
}
BY_DEFAULT = "the connection's"


def draw_form(user: SessionUser, dataset: PageDataset | None) -> None:
    """The path of a run: its pairs, connection, recipe and budget; `dataset`: one with pairs."""
    names = (None, *recipes.names(user))
    actions.read_address(names)
    draw_pairs(dataset)
    st.markdown("**2. Connection**")
    chosen = draw_server_choice()
    draw_models(chosen)
    draw_problem(chosen)
    if may_open(user, "connections"):
        draw_drawer(
            "Connect a model server",
            draw_connection_form,
            key="curate.connect",
            field="connections.name",
            icon=":material/hub:",
            is_open=not chosen.has_server,
        )
    st.markdown("**3. Recipe**")
    st.selectbox(
        "Recipe",
        names,
        format_func=lambda name: name or BY_DEFAULT,
        key="curate.recipe",
    )
    with st.expander("Override recipe settings"):
        draw_fields(RunStart, ("settings", "seed"), key="curate", more=OVERRIDES)
    st.markdown("**4. Budget**")
    with st.expander("Limits"), st.container(horizontal=True):
        words = {name: {"width": 160, "placeholder": empty} for name, (empty, _) in LIMITS.items()}
        draw_fields(RunStart, LIMITS, key="curate", more=words)
    st.caption(plain(limits_sentence(values_of_form(RunStart, key="curate"))))
    with_batches = PROVIDERS.find(chosen.provider).batches
    draw_fields(RunStart, ("batch", "fresh") if with_batches else ("fresh",), key="curate")
    if chosen.provider == "offline":
        st.caption(
            "Offline: rules write instructions that can be checked on the text, and an embedding "
            "model judges. All results are labelled offline."
        )
    wants_table = st.toggle("Estimate time and cost", key="curate.estimate")
    is_paid = PROVIDERS.find(chosen.provider).paid and chosen.problem is None
    summary = "Import pairs first." if dataset is None else ""
    if dataset is not None and (wants_table or is_paid):
        summary = draw_estimate(with_table=wants_table)
    with st.container(horizontal=True, vertical_alignment="center"):
        st.button(
            "Start run",
            type="primary",
            key="curate.start",
            on_click=actions.start,
            disabled=dataset is None or chosen.problem is not None,
        )
        st.caption(plain(summary), width="stretch")
    if dataset is not None:
        with st.expander("Try it on a few pairs first", icon=":material/science:"):
            draw_trial(user, dataset.id, can_start=chosen.problem is None)


def draw_pairs(dataset: PageDataset | None) -> None:
    """The first step of a run: the dataset's pairs, and the form that imports others in place."""
    st.markdown(f"**1. Pairs**{f' · {plain(dataset.name)}' if dataset else ''}")
    draw_chosen_pairs()
    draw_drawer(
        "New file",
        draw_import_form,
        key="curate.import",
        field="datasets.name",
        icon=":material/upload_file:",
        is_open=dataset is None,
    )


def draw_chosen_pairs() -> None:
    """How many pairs of the dataset are chosen, and the way back to all; nothing for all."""
    if st.session_state.get(actions.PAIRS) is None:
        return
    try:
        count = len(actions.chosen_query_ids() or ())
    except BadInput:
        count = 0
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(f":material/lasso_select: Only the {counted(count, 'pair')} chosen on the map")
        st.button(
            "All pairs",
            key="curate.all_pairs",
            on_click=actions.forget_pairs,
            type="tertiary",
        )


def limits_sentence(given: Mapping[str, Any]) -> str:
    """The limits of a run in words."""
    set_here = [words.format(given[name]) for name, (_, words) in LIMITS.items() if name in given]
    if not set_here:
        return "No limits: all pairs, whatever they cost, as fast as the server answers."
    return f"At most {', '.join(set_here)}."


def draw_run(user: SessionUser, listed: RunSummary) -> None:
    run, ended, concurrency, guarded, models = run_now.now(user, listed)
    with st.container(horizontal=True, vertical_alignment="center"):
        draw_status(run.status)
        draw_labels(offline=run.offline, recorded=run.provider == RECORDED)
        # the amount spent is shown below, where it is refreshed while the run works
        money = f" · budget ${run.budget_usd:,.2f}" if run.budget_usd is not None else ""
        server = f" · {models}" if models else ""
        server += f" · {run.connection}: {run.url}" if run.url else ""
        by = f"by {run.created_by}"
        recipe = run.recipe + (f"@{run.recipe_version}" if run.recipe_version else "")
        if run.verdict_version != FIRST:
            by += f" · verdict version {run.verdict_version}"
        st.caption(
            plain(f"recipe {recipe} {run.recipe_sha256[:10]} · {by}{server}{money}"),
            width="stretch",
        )
        page_link(
            "groups",
            "Groups",
            parameters={"run": run.id},
            icon=":material/arrow_forward:",
            width="content",
        )
    is_live = run.status in run_now.LIVE
    tripped = not is_live and guarded and Guard(NOTHING).tripped_by(ended) is not None
    if run.error and tripped:
        st.warning(plain(in_pages(run.error)), icon=":material/front_hand:")
    elif run.error and run.status in ("failed", "lost"):
        said = f"Run {run.id} {run.status}: {in_pages(run.error)}"
        st.error(plain(said), icon=":material/error:")
    elif run.error:
        st.text(in_pages(run.error))
    draw_controls(run, concurrency, guard_tripped=tripped)
    st.fragment(draw_live, run_every=EVERY_SECONDS if is_live else None)(run, is_live, [user])
    if not is_live:
        draw_retry(run, ended)
        draw_versions(user, run)


def draw_after_run(found: Funnel, *, can_study: bool) -> None:
    """What comes after a run: its largest group of dropped ones, a study, a release."""
    with st.container(horizontal=True, key="curate-next"):
        if found.dropped:
            reason, count = next(iter(found.dropped.items()))  # the most frequent one is first
            label = f"Review what was dropped: {reason_text(reason)} ({count:,})"
            draw_hand_off("groups", label, run=found.run_id, reason=reason)
        if found.kept and can_study:
            draw_hand_off("studies", "Let people judge a sample", run=found.run_id)
        if found.kept:
            draw_hand_off("releases", "Release what was kept", run=found.run_id)


def draw_live(shown: RunSummary, was_live: bool, with_page: list[SessionUser]) -> None:
    """Draw how far the run is; `with_page`: the page's user, the first time."""
    with failures_shown():
        user = with_page.pop() if with_page else signed_in_user()  # later by the rights of then
        at = run_now.progress(user, shown, is_live=was_live)
        if was_live and at.run.status != shown.status:
            st.rerun()
        found, workers = at.funnel, at.workers
        run = shown.model_copy(update={"spent_usd": at.run.spent_usd})
        if not was_live:
            report = None if at.leakage is None else at.leakage.as_json()
            st.markdown(plain(run_sentence(found, report, run.spent_usd, at.outdated)))
        draw_pulse(run, found, workers, live=was_live)
        draw_trouble(workers.trouble, live=was_live)
        if was_live and not at.batch:
            draw_time_left(time_left(found, workers.pace, at.shape, at.judged))
            draw_lanes(user, run.id)
        if not was_live:
            draw_after_run(found, can_study=at.can_study)
        if was_live:
            draw_funnel(found)
        else:
            draw_stages(found)
            draw_reasons(user, found)
        if at.batch:
            draw_batches(user, run.id)
        draw_calls(user, run.id)
        draw_place_bias(user, run.id)
        draw_text_baseline(user, run.id)
        draw_shared_parts(at.shared_parts, run.id, unchecked=at.unchecked)
        draw_leakage(at.leakage, run.id, at.outdated)
        if found.pairs <= MAX_PAIRS:
            draw_results(user, run.id)


draw_heading(
    "Curate", "Generate a group of texts from every pair; keep those that a judge confirms."
)
chosen = chosen_dataset()
user = signed_in_user()
of_dataset = NO_RUNS if chosen is None else run_now.of_dataset(user, chosen.id)
if not of_dataset.has_pairs:
    draw_empty(
        "No pairs yet.",
        "A run generates groups from pairs: import them in step 1; then come connection, recipe "
        "and budget.",
        command="inf datasets import NAME --pairs pairs.jsonl",
    )
runs = of_dataset.runs
is_new = not runs or not {"new", "pairs"}.isdisjoint(st.query_params)
draw_drawer(
    "New run",
    partial(draw_form, user, chosen if of_dataset.has_pairs else None),
    key="curate.new",
    field="curate.recipe",
    icon=":material/add:",
    is_open=is_new,
)
job_id = of_dataset.job_id or st.session_state.get("curate.job")
if job_id is not None:
    follow_job(job_id, key="curate.follow")
if runs:
    shown = choose(
        "Run", runs, key="curate.run", parameter="run", ident=lambda run: run.id, name=run_name
    )
    draw_run(user, shown)
    draw_comparison(user, shown, [run for run in runs if run.id != shown.id])
