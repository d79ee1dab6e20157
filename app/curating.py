"""What the Curate page's buttons do: queue a run, resume one."""

import os
from typing import Any

import streamlit as st

from app.actions import launch_job
from app.visit import action
from db.errors import BadInput

PROVIDERS = ("offline", "openai")


def is_ready(provider: str) -> str | None:
    """Why a provider cannot be used on this server; None where it can. Keys stay out of pages."""
    if provider == "openai" and not os.environ.get("OPENAI_API_KEY"):
        return (
            "OPENAI_API_KEY is not set where the app runs: set it (and OPENAI_BASE_URL for another "
            "server) and start `inf serve` again"
        )
    return None


def chosen_config() -> dict[str, Any]:
    """The job's config as the form stands. Raises BadInput."""
    state = st.session_state
    provider = state["curate.provider"]
    if problem := is_ready(provider):
        raise BadInput(problem)
    settings = [line.strip() for line in (state["curate.settings"] or "").splitlines()]
    config: dict[str, Any] = {
        "dataset": state["curate.dataset"],
        "provider": provider,
        "recipe": state["curate.recipe"],
        "settings": [line for line in settings if line],
        "limit": int(state["curate.limit"]) or None,
        "concurrency": int(state["curate.concurrency"]),
        "budget_usd": float(state["curate.budget"]) or None,
        "seed": int(state["curate.seed"]),
    }
    return config


@action
def start() -> None:
    """Queue the run that the form describes."""
    config = chosen_config()
    job_id = launch_job("curate", config, what=f"Curating {config['dataset']}")
    st.session_state["curate.job"] = job_id
    st.session_state.pop("curate.run", None)
    st.query_params.pop("run", None)


@action
def resume(run_id: int) -> None:
    """Queue the rest of a run."""
    job_id = launch_job("curate", {"run_id": run_id}, what=f"Resuming run {run_id}")
    st.session_state["curate.job"] = job_id
