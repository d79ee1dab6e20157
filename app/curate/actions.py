"""Actions of the Curate page: start, resume and stop runs, choose their pairs, save prices."""

from collections.abc import Collection
from typing import Any

import streamlit as st

from app.access.identity import Actor
from app.access.session_user import action, notify, signed_in_user
from app.curate.server_choice import chosen_server, model_settings
from app.kit.acting import acting
from app.kit.fields import values_of_form
from app.kit.frame.dataset import require_dataset
from app.operations import connections, runs
from app.operations.acting import Launch, queued
from app.operations.overview import run
from curation.providers.registry import PROVIDERS
from curation.recipe.prices import Price
from curation.rules.deciding import RunDecide
from curation.run.starting import RunResume, RunStart, RunWork
from db.errors import BadInput
from db.requests import Request

PAIRS = "curate.pairs"
DECIDED = "curate.decided_again"  # what deciding again, or its preview, found
MAX_ID = 2**63 - 1


@action
def start(trial: bool = False) -> None:
    """Create the run that the form describes and queue it; a trial takes only the chosen pairs."""
    if problem := chosen_server().problem:
        raise BadInput(
            problem,
            "choose another server, or change it on the Connections page",
            code="run_start_impossible",
        )
    launch = _queuing("Run", f" on {require_dataset().name}")
    runs.create(signed_in_user(), wanted_run(trial=trial), launch)


def wanted_run(*, trial: bool = False) -> RunStart:
    """The run that the form describes. Raises BadInput."""
    server, given = chosen_server(), values_of_form(RunStart, key="curate")
    chosen = st.session_state["curate.trial_pairs"] if trial else chosen_query_ids()
    # the checkbox keeps its value when another provider hides it
    given["batch"] = given.get("batch", False) and PROVIDERS.find(server.provider).batches
    given |= {"limit": None, "batch": False} if trial else {}
    return RunStart.read(
        given
        | {
            "dataset": require_dataset().name,
            "provider": server.provider,
            "connection": server.connection,
            "settings": [*model_settings(server), *given.get("settings", ())],
            "query_ids": list(chosen or ()),
        }
    )


@action
def save_prices(models: tuple[str, ...]) -> None:
    """Save the prices of the form to prices.toml."""
    for model in models:
        typed = (st.session_state[f"curate.price.{model}.{what}"] for what in ("in", "out"))
        connections.save_price(signed_in_user(), model, Price(*map(float, typed)))


@action
def resume(run_id: int, guard: bool = True) -> None:
    """Queue the rest of a run with the budget of the form, without its guard if so chosen."""
    budget = st.session_state.get(f"curate.raise-{run_id}")
    wanted = RunResume(run_id=run_id, budget_usd=budget, no_guard=not guard)
    runs.resume(signed_in_user(), wanted, _queuing("The rest of run"))


@action
def retry(run_id: int) -> None:
    """Open the groups dropped for the chosen reason again and queue them."""
    wanted = RunResume(run_id=run_id, retry=st.session_state[f"curate.retry-{run_id}"])
    runs.resume(signed_in_user(), wanted, _queuing("The retry of run"))


@action
def check(run_id: int) -> None:
    """Queue the check of a run for shared parts and leakage."""
    runs.check(signed_in_user(), run_id, _queuing("The check of run"))


@action
def decide(run_id: int, preview: bool = False) -> None:
    """Decide a run again by the rules of the form, or count what that would change."""
    lines = (st.session_state.get(f"curate.rules-{run_id}") or "").splitlines()
    wanted = RunDecide(
        run_id=run_id,
        settings=tuple(line.strip() for line in lines if line.strip()),
        preview=preview,
    )
    st.session_state.pop(DECIDED, None)
    found = st.session_state[DECIDED] = runs.decide(signed_in_user(), wanted)
    if found.version is not None:
        notify(f"Run {run_id} uses verdict version {found.version}.")


def _used(found: Any) -> str:
    return f"Version {next(row.number for row in found.data if row.current)} is used."


VERSION = {"number": "curate.version-{0}"}
use_version = acting(runs.use_version, _used, takes=("run_id",), held=VERSION)
remove_version = acting(runs.remove_version, _used, takes=("run_id",), held=VERSION)


@action
def stop(run_id: int, cancel: bool = False) -> None:
    """Request that every worker of the run stops; calls in flight are completed and kept."""
    runs.stop(signed_in_user(), run_id, cancel=cancel)
    notify(f"Run {run_id} is {'cancelled' if cancel else 'paused'}; calls in flight are completed.")


@action
def grow(run_id: int) -> None:
    """Queue a further worker of the run."""
    runs.join(signed_in_user(), RunWork(run_id=run_id), _queuing("A further worker of run"))


@action
def shrink(run_id: int) -> None:
    """Let the newest worker of the run leave."""
    found = runs.shrink(signed_in_user(), runs.RunShrink(run_id=run_id))
    notify(f"Job {found.leaving[0]} leaves run {run_id}; its groups are the others'.")


set_width = acting(runs.change_concurrency, held={"calls": "curate.width-{0}"})


def _queuing(before: str, after: str = "") -> Launch[int]:
    """Queue the job of a run, which the page then shows and follows."""

    def launch(actor: Actor, kind: str, request: Request) -> int:
        run_id = request.config()["run_id"]
        job_id = queued(actor, kind, request)
        notify(f"{before} {run_id}{after} is queued as job {job_id}.")
        st.session_state["curate.job"] = job_id
        st.query_params["run"] = str(run_id)
        return job_id

    return launch


def read_address(recipes: Collection[str | None]) -> None:
    """Take the pairs from the address that led here (`?pairs=`), as the map does, and one of the
    recipes (`?recipe=`); before the form is drawn.

    For pairs that were grown before, new answers are requested: the same ones would give the same
    groups.
    """
    recipe = st.query_params.get("recipe")
    if recipe in recipes and st.session_state.get("curate.recipe_address") != recipe:
        st.session_state["curate.recipe_address"] = st.session_state["curate.recipe"] = recipe
    named = st.query_params.get("pairs")
    if named is None or st.session_state.get("curate.pairs_address") == named:
        return
    st.session_state["curate.pairs_address"] = named
    ids = [int(each) for each in named.split(",") if each.isdecimal() and int(each) <= MAX_ID]
    st.session_state[PAIRS] = ids
    st.session_state["curate.fresh"] = run.were_grown(signed_in_user(), ids)


def chosen_query_ids() -> list[str] | None:
    """The chosen pairs of the form's dataset by their ids in its source; None for all.

    Raises BadInput where none of them is of the dataset: a run over all would be another one.
    """
    ids = st.session_state.get(PAIRS)
    if ids is None:
        return None
    return run.query_ids(signed_in_user(), require_dataset().name, ids)


def forget_pairs() -> None:
    """Take all pairs of the dataset again."""
    st.session_state.pop(PAIRS, None)
    st.query_params.pop("pairs", None)
