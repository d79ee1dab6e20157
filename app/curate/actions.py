"""What the Curate page's buttons do: queue a run, resume one."""

import os

import streamlit as st

from app.access.session_user import action, notify, require_permission
from app.jobs.actions import launch_job
from curation.recipe.prices import Price, save_price
from curation.run.starting import job_config, resume_run, start_run
from db.errors import BadInput
from db.run.runs import set_concurrency, stop_run
from db.store.store import open_store


def is_ready(provider: str) -> str | None:
    """Why a provider cannot be used on this server; None where it can. Keys stay out of pages."""
    if provider == "openai" and not os.environ.get("OPENAI_API_KEY"):
        return (
            "OPENAI_API_KEY is not set where the app runs: set it (and OPENAI_BASE_URL for another "
            "server) and start `inf serve` again"
        )
    return None


def recipe_settings() -> list[str]:
    """What the form changes in the recipe, `stage.key=value`, one a line."""
    lines = (st.session_state["curate.settings"] or "").splitlines()
    return [line.strip() for line in lines if line.strip()]


@action
def start(trial: bool = False) -> None:
    """Make the run that the form describes and queue the work on it; a trial for its pairs only."""
    state = st.session_state
    user = require_permission("curate")
    if problem := is_ready(state["curate.provider"]):
        raise BadInput(problem)
    with open_store().write() as session:
        run_id = start_run(
            session,
            dataset=state["curate.dataset"],
            provider=state["curate.provider"],
            recipe=state["curate.recipe"],
            settings=recipe_settings(),
            limit=None if trial else int(state["curate.limit"]) or None,
            query_ids=list(state["curate.trial_pairs"]) if trial else (),
            concurrency=int(state["curate.concurrency"]) or None,
            budget_usd=float(state["curate.budget"]) or None,
            seed=int(state["curate.seed"]),
            requests_per_minute=int(state["curate.rpm"]) or None,
            tokens_per_minute=int(state["curate.tpm"]) or None,
            batch=bool(state.get("curate.batch")) and not trial,
            created_by=user.name,
        ).id
        session.commit()
    _queue(run_id, f"Run {run_id} on {state['curate.dataset']}")


@action
def keep_prices(models: tuple[str, ...]) -> None:
    """Write the prices that the form shows into the user's own table."""
    require_permission("curate")
    for model in models:
        sent, came = (
            float(st.session_state[f"curate.price.{model}.{what}"]) for what in ("in", "out")
        )
        save_price(model, Price(sent, came))


@action
def resume(run_id: int) -> None:
    """Queue the rest of a run, under the budget that the page shows."""
    require_permission("curate")
    budget = float(st.session_state.get(f"curate.raise-{run_id}") or 0.0)
    with open_store().write() as session:
        resume_run(session, run_id, budget_usd=budget or None)
        session.commit()
    _queue(run_id, f"The rest of run {run_id}")


@action
def stop(run_id: int, cancel: bool = False) -> None:
    """Ask every worker of the run to stop; what is in flight is finished and kept."""
    require_permission("curate")
    with open_store().write() as session:
        stop_run(session, run_id, cancel=cancel)
        session.commit()
    notify(f"Run {run_id} is {'cancelled' if cancel else 'paused'}: what is in flight is finished.")


@action
def set_width(run_id: int) -> None:
    """Another number of calls at a time, from now on."""
    require_permission("curate")
    width = int(st.session_state[f"curate.width-{run_id}"])
    with open_store().write() as session:
        set_concurrency(session, run_id, width)
        session.commit()


def _queue(run_id: int, what: str) -> None:
    st.session_state["curate.job"] = launch_job("curate", job_config(run_id), what=what)
    st.session_state["curate.run"] = str(run_id)
    st.query_params["run"] = str(run_id)
