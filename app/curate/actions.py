"""Actions of the Curate page: start, resume and stop runs, save prices."""

from typing import NamedTuple

import streamlit as st

from app.access.identity import Actor
from app.access.session_user import (
    action,
    notify,
    record_read,
    require_permission,
    signed_in_user,
)
from app.curate.pairs_actions import chosen_query_ids
from app.curate.server_choice import chosen_server, model_settings
from app.kit.frame.dataset import require_dataset
from app.operations import runs
from app.operations.acting import Launch, queued
from curation.judging.text_baseline import TextBaseline, text_baseline
from curation.providers.registry import PROVIDERS
from curation.recipe.prices import Price, save_price
from curation.run.starting import RunResume, RunStart, RunWork
from db.assignment.hidden import hidden_pair
from db.corpus.browsing import PairView, list_pairs
from db.errors import BadInput
from db.release.releases import recipe_of_run
from db.requests import Request
from db.run.batches import BatchSummary, list_batches
from db.run.calls import CallTotals, call_totals, count_unknown_servers
from db.run.comparison import (
    SharedPair,
    changed_pairs,
    count_shared,
    differing_settings,
    shared_funnels,
)
from db.run.group_detail import GroupDetail, get_group
from db.run.groups import GroupRow, list_groups
from db.run.position_bias import PlaceCount, position_bias
from db.run.runs import Funnel
from db.store.store import open_store
from db.tables import Group, Pair


@action
def start(trial: bool = False) -> None:
    """Create the run that the form describes and queue it; a trial takes only the chosen pairs."""
    if problem := chosen_server().problem:
        raise BadInput(problem, code="run_start_impossible")
    launch = _queuing("Run", f" on {require_dataset().name}")
    runs.create(signed_in_user(), wanted_run(trial=trial), launch)


def uses_batches() -> bool:
    """Whether batches are chosen; the checkbox keeps its value when another provider hides it."""
    state = st.session_state
    return bool(state.get("curate.batch")) and PROVIDERS.find(chosen_server().provider).batches


def wanted_run(*, trial: bool = False) -> RunStart:
    """The run that the form describes. Raises BadInput."""
    state, server = st.session_state, chosen_server()
    chosen = state["curate.trial_pairs"] if trial else chosen_query_ids()
    lines = (state["curate.settings"] or "").splitlines()
    return RunStart.read(
        {
            "dataset": require_dataset().name,
            "provider": server.provider,
            "connection": server.connection,
            "recipe": state["curate.recipe"],
            "settings": [
                *model_settings(server),
                *(line.strip() for line in lines if line.strip()),
            ],
            "timeout_seconds": int(state["curate.timeout"]) or None,
            "limit": None if trial else int(state["curate.limit"]) or None,
            "query_ids": list(chosen or ()),
            "concurrency": int(state["curate.concurrency"]) or None,
            "budget_usd": float(state["curate.budget"]) or None,
            "seed": int(state["curate.seed"]),
            "requests_per_minute": int(state["curate.rpm"]) or None,
            "tokens_per_minute": int(state["curate.tpm"]) or None,
            "batch": not trial and uses_batches(),
            "fresh": bool(state["curate.fresh"]),
        }
    )


@action
def save_prices(models: tuple[str, ...]) -> None:
    """Save the prices of the form to prices.toml."""
    require_permission("curate")
    for model in models:
        input_price, output_price = (
            float(st.session_state[f"curate.price.{model}.{what}"]) for what in ("in", "out")
        )
        save_price(model, Price(input_price, output_price))


@action
def resume(run_id: int, guard: bool = True) -> None:
    """Queue the rest of a run with the budget of the form, without its guard if so chosen."""
    budget = float(st.session_state.get(f"curate.raise-{run_id}") or 0.0) or None
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
    wanted = RunWork(run_id=run_id, only="leakage")
    runs.work_on(signed_in_user(), wanted, _queuing("The check of run"))


@action
def stop(run_id: int, cancel: bool = False) -> None:
    """Request that every worker of the run stops; calls in flight are completed and kept."""
    runs.stop(signed_in_user(), run_id, cancel=cancel)
    notify(f"Run {run_id} is {'cancelled' if cancel else 'paused'}; calls in flight are completed.")


@action
def set_width(run_id: int) -> None:
    """Change the number of concurrent calls of a run."""
    width = int(st.session_state[f"curate.width-{run_id}"])
    runs.change_concurrency(signed_in_user(), run_id, width)


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


def position_counts(run_id: int) -> list[PlaceCount]:
    """How often each candidate position was right and chosen in a run."""
    with open_store().read() as session:
        return position_bias(session, run_id)


def baseline_of(run_id: int) -> TextBaseline | None:
    """How often shared words alone find the right passage of a run's items."""
    with open_store().read() as session:
        return text_baseline(session, run_id)


def batches_of(run_id: int) -> list[BatchSummary]:
    """The batches of a run."""
    with open_store().read() as session:
        return list_batches(session, run_id)


def calls_of(run_id: int) -> tuple[list[CallTotals], dict[str, dict[str, str]]]:
    """Totals of a run's calls, and the stages of its recipe."""
    with open_store().read() as session:
        stages = recipe_of_run(session, run_id)[0].body.get("stages", {})
        return call_totals(session, run_id), stages


def unknown_servers(run_id: int) -> int:
    """Answers of a run that are older than the recording of servers."""
    with open_store().read() as session:
        return count_unknown_servers(session, run_id)


def search_pairs(dataset_id: int, text: str, *, limit: int) -> list[PairView]:
    """The first pairs of a dataset whose query contains the text."""
    with open_store().read() as session:
        return list_pairs(session, dataset_id, search=text, limit=limit)[0]


def finished_groups(run_id: int, *, limit: int) -> list[GroupDetail]:
    """The first groups of a run in full, those with a verdict and not hidden from the user."""
    user = require_permission("curate")
    with open_store().read() as session:
        without = hidden_pair(session, user.name, Group.pair_id)
        rows = list_groups(session, run_id, without=without, limit=limit).rows
        found = [get_group(session, row.id, viewer=user.name) for row in rows if row.verdict]
    record_read([group.id for group in found], user)
    return found


def dropped_examples(run_id: int, reason: str, *, limit: int) -> list[GroupRow]:
    """The first groups dropped for a reason, without those hidden from the user."""
    user = require_permission("curate")
    with open_store().read() as session:
        without = hidden_pair(session, user.name, Group.pair_id)
        return list(
            list_groups(
                session, run_id, verdict="dropped", reason=reason, without=without, limit=limit
            ).rows
        )


class Compared(NamedTuple):
    """Two runs over the pairs that both finished."""

    funnels: tuple[Funnel, Funnel]
    shared: dict[tuple[str, str], int]
    changed: list[SharedPair]
    settings: list[tuple[str, str, str]]


def compare_runs(first: int, second: int, *, offset: int, limit: int) -> Compared:
    """Funnels and outcomes of the pairs that both runs finished, those with different outcomes,
    and every setting that differs."""
    user = require_permission("curate")
    with open_store().read() as session:
        without = hidden_pair(session, user.name, Pair.id)
        return Compared(
            shared_funnels(session, first, second),
            count_shared(session, first, second),
            changed_pairs(session, first, second, without=without, offset=offset, limit=limit),
            differing_settings(session, first, second),
        )
