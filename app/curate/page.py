"""Curate: start a run, watch its funnel while it works, resume one that stopped."""

from dataclasses import replace

import streamlit as st

from app.access.session_user import failures_shown
from app.curate import actions as curating
from app.curate.batches import draw_batches
from app.curate.estimate import draw_estimate
from app.curate.place_bias import draw_place_bias
from app.curate.run_comparison import draw_comparison
from app.curate.run_live import draw_calls, draw_controls, draw_pulse
from app.curate.trial import MOST, draw_results, draw_trial
from app.groups.funnel import draw_funnel
from app.groups.run_label import LIVE as LIVE_RUN
from app.groups.run_label import as_it_is, run_name
from app.jobs.card import LIVE, follow_job
from app.kit.choice import choose
from app.kit.menu import view_file
from app.kit.page import draw_empty, draw_heading, draw_labels, draw_status
from app.text.plain import plain
from curation.providers.registry import PROVIDERS, describe_providers
from curation.recipe.recipe import list_recipes
from db.corpus.datasets import DatasetSummary, list_datasets
from db.jobs import jobs
from db.run.runs import RunSummary, funnel, get_run, list_runs
from db.run.workers import worker_totals
from db.store.store import open_store

EVERY_SECONDS = 2.0
BY_DEFAULT = "by provider"
NUMBERS = (
    ("Pairs at most", 10**7, "curate.limit", "0: all."),
    ("Calls at a time", 50_000, "curate.concurrency", "0: as the provider takes."),
    ("Requests a minute", 10**7, "curate.rpm", "At most, per worker. 0: no limit."),
    ("Tokens a minute", 10**9, "curate.tpm", "At most, per worker. 0: no limit."),
    ("Seed", 2**31 - 1, "curate.seed", "The same seed draws the same candidates."),
)


def draw_form(found: list[DatasetSummary]) -> None:
    first, second, third = st.columns([2, 1, 1])
    first.selectbox("Dataset", [each.name for each in found], key="curate.dataset")
    provider = second.selectbox(
        "Provider", PROVIDERS.names(), key="curate.provider", help=describe_providers()
    )
    third.selectbox(
        "Recipe",
        (None, *list_recipes()),
        format_func=lambda name: name or BY_DEFAULT,
        key="curate.recipe",
    )
    with st.container(horizontal=True):
        for label, most, key, words in NUMBERS:
            st.number_input(label, 0, most, 0, key=key, help=words, width=140)
        st.number_input(
            "Budget in $",
            0.0,
            1e6,
            0.0,
            key="curate.budget",
            help="0: none. At it, the run pauses.",
            width=140,
        )
    if provider and PROVIDERS.find(provider).batches:
        st.checkbox(
            "In batches: half the price, within a day",
            key="curate.batch",
            help="OpenAI's Batch API. Calls at a time then means pairs in work.",
        )
    with st.expander("Settings of the recipe"):
        st.text_area(
            "One a line, stage.key=value",
            key="curate.settings",
            placeholder="validation.model=o4-mini\ntemperature=0.7",
        )
    problem = curating.is_ready(provider or "offline")
    if problem:
        st.caption(plain(problem))
    if provider == "offline":
        st.caption(
            "Offline: rules write instructions that can be checked on the text, an embedding model "
            "judges. Whatever it makes is labelled offline everywhere."
        )
    if st.toggle("What it will take and cost", key="curate.estimate"):
        draw_estimate(found)
    st.button(
        "Start the run",
        type="primary",
        key="curate.start",
        on_click=curating.start,
        disabled=problem is not None,
    )
    with st.expander("Try it on a few pairs first", icon=":material/science:"):
        draw_trial(found)


def draw_run(listed: RunSummary) -> None:
    with open_store().read() as session:
        run = as_it_is(session, listed, worker_totals(session, listed.id))
        concurrency = get_run(session, run.id).concurrency
    with st.container(horizontal=True, vertical_alignment="center"):
        draw_status(run.status)
        draw_labels(offline=run.offline)
        # what is spent stands below, where it is drawn anew while the run works
        money = f" · budget ${run.budget_usd:,.2f}" if run.budget_usd is not None else ""
        st.caption(
            plain(f"recipe {run.recipe} {run.recipe_sha256[:10]} · by {run.created_by}{money}"),
            width="stretch",
        )
        st.page_link(
            view_file("groups"),
            label="Groups",
            query_params={"run": str(run.id)},
            icon=":material/arrow_forward:",
        )
    if run.error:
        st.text(run.error)
    is_live = run.status in LIVE_RUN
    draw_controls(run, concurrency)
    st.fragment(draw_live, run_every=EVERY_SECONDS if is_live else None)(run, is_live)


def draw_live(run: RunSummary, was_live: bool) -> None:
    with failures_shown():
        with open_store().read() as session:
            found, now = funnel(session, run.id), get_run(session, run.id)
            workers = worker_totals(session, run.id)
            is_now = as_it_is(session, replace(run, status=now.status), workers)
        if was_live and is_now.status != run.status:
            st.rerun()
        run = replace(run, spent_usd=now.spent_usd)
        draw_pulse(run, found, workers, live=was_live)
        draw_funnel(found)
        if now.batch:
            draw_batches(run.id)
        draw_calls(run.id)
        draw_place_bias(run.id)
        if found.pairs <= MOST:
            draw_results(run.id)


draw_heading(
    "Curate", "Grow three triplets from every pair and keep what a judge confirms three times."
)
with open_store().read() as session:
    found = [each for each in list_datasets(session) if each.pairs]
    runs = list_runs(session)
    live = jobs.list_jobs(session, kind="curate", statuses=LIVE, limit=1)
if not found:
    draw_empty(
        "There are no pairs yet.",
        "A run grows groups from the pairs of a dataset: import one first.",
        view="datasets",
        link="Datasets",
        command="inf import --dataset NAME --pairs pairs.jsonl",
    )
    st.stop()
with st.expander("New run", icon=":material/add:", expanded=not runs):
    draw_form(found)
job_id = live[0].id if live else st.session_state.get("curate.job")
if job_id is not None:
    follow_job(job_id, key="curate.follow")
if runs:
    chosen = choose(
        "Run", runs, key="curate.run", parameter="run", ident=lambda run: run.id, name=run_name
    )
    draw_run(chosen)
    draw_comparison(
        chosen,
        [run for run in runs if run.dataset_id == chosen.dataset_id and run.id != chosen.id],
    )
