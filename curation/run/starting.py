"""Start and resume runs: dataset, provider, recipe, limits.

The command line and the Curate page call the same functions; the work itself is a job of kind
`curate` with the run's id.
"""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from curation.providers.registry import PROVIDERS
from curation.recipe.recipe import Recipe, load_recipe, recipe_from_store
from db.corpus.datasets import get_dataset
from db.errors import BadInput
from db.run.failing_groups import reopen_dropped
from db.run.runs import create_run, get_run, reopen_run, set_run_status, store_recipe
from db.run.server_groups import join_group
from db.study.judgments import get_or_create_judge
from db.tables import Judge, Prompt, Run
from db.tables import Recipe as RecipeRow

GROUPS_IN_BATCHES = 5000


def choose_recipe(provider: str, recipe: str | None, settings: Sequence[str]) -> Recipe:
    """The named recipe, or the provider's default. Raises BadInput."""
    return load_recipe(recipe or PROVIDERS.find(provider).recipe, settings)


def start_run(
    session: Session,
    *,
    dataset: str,
    provider: str,
    recipe: str | None = None,
    settings: Sequence[str] = (),
    limit: int | None = None,
    sample: int | None = None,
    query_ids: Sequence[str] = (),
    concurrency: int | None = None,
    budget_usd: float | None = None,
    seed: int = 0,
    requests_per_minute: int | None = None,
    tokens_per_minute: int | None = None,
    batch: bool = False,
    guard: bool = True,
    fresh: bool = False,
    created_by: str = "",
) -> Run:
    """A run with its recipe and its waiting groups. Raises BadInput, NotFound. Does not commit."""
    chosen = choose_recipe(provider, recipe, settings)
    if concurrency is not None and concurrency < 1:
        raise BadInput(
            f"a concurrency of {concurrency}", "give at least 1", code="concurrency_below_one"
        )
    if batch:
        _check_batch(provider, requests_per_minute or tokens_per_minute)
    if budget_usd is not None and budget_usd <= 0:
        raise BadInput(f"a budget of {budget_usd} USD", "give more than 0", code="budget_usd")
    row = store_recipe(
        session,
        name=chosen.name,
        sha256=chosen.sha256,
        body=chosen.body(),
        prompts=chosen.prompts(),
    )
    validator(
        session, provider, chosen
    )  # created here, or workers that start at once would race to create it
    run = create_run(
        session,
        dataset_id=get_dataset(session, dataset).id,
        recipe_id=row.id,
        provider=provider,
        offline=PROVIDERS.find(provider).offline,
        seed=seed,
        concurrency=concurrency or default_concurrency(provider, batch=batch),
        budget_usd=budget_usd,
        limit=limit,
        sample=sample,
        query_ids=query_ids,
        requests_per_minute=requests_per_minute,
        tokens_per_minute=tokens_per_minute,
        batch=batch,
        guard=guard,
        fresh=fresh,
        created_by=created_by,
    )
    # their weights are hashed by the first worker: reading them takes minutes, and the writer waits
    run.models = {task: {"model": stage.model} for task, stage in chosen.stages.items()}
    return run


def default_concurrency(provider: str, *, batch: bool = False) -> int:
    """Default number of calls in flight; in batch mode of groups with calls at the server."""
    return GROUPS_IN_BATCHES if batch else PROVIDERS.find(provider).concurrency


def _check_batch(provider: str, limit: int | None) -> None:
    if not PROVIDERS.find(provider).batches:
        with_batches = " or ".join(name for name, kind in PROVIDERS.all().items() if kind.batches)
        raise BadInput(
            f"{provider!r} has no batch mode ({with_batches} has)",
            "omit `batch=`",
            code="no_batch_mode",
        )
    if limit:
        raise BadInput(
            "batch mode has no limits per minute",
            "omit `rpm=` and `tpm=`",
            code="batch_mode_no_limits",
        )


def validator(session: Session, provider: str, recipe: Recipe) -> Judge:
    """The judge that validates runs of this provider and recipe. Does not commit."""
    kind = PROVIDERS.find(provider)
    return get_or_create_judge(
        session,
        kind.judge_name(recipe.stages["validation"].model),
        kind="model",
        provider=provider,
        model=recipe.stages["validation"].model,
        offline=kind.offline,
    )


def resume_run(
    session: Session,
    run_id: int,
    *,
    budget_usd: float | None = None,
    concurrency: int | None = None,
    guard: bool = True,
    retry: str | None = None,
) -> Run:
    """Make a run ready to continue. Raises NotFound, Refused if it is done. Does not commit.

    With `retry`, a drop reason, the groups dropped for it are opened again, which a run that is
    done allows; raises BadInput without such a group, Refused if none of them may be opened.
    """
    run = get_run(session, run_id)
    if budget_usd is not None and budget_usd <= run.spent_usd:
        raise BadInput(
            f"a budget of {budget_usd} USD, but run {run_id} has spent {run.spent_usd:.4f}",
            "give more than that",
            code="budget_usd_but_run",
        )
    if retry is not None:
        reopen_dropped(session, run_id, retry)
        set_run_status(session, run_id, "running" if run.status == "running" else "paused")
    return reopen_run(session, run_id, budget_usd=budget_usd, concurrency=concurrency, guard=guard)


def job_config(
    run_id: int, *, concurrency: int | None = None, joins: bool = False
) -> dict[str, Any]:
    """The config of a job that works on a run; `concurrency` overrides the run's own.

    `joins`: it joins other workers of the run and does not wait for their slot.
    """
    config: dict[str, Any] = {"run_id": run_id}
    if concurrency is not None:
        config["concurrency"] = concurrency
    return config | ({"joins": True} if joins else {})


def leakage_config(run_id: int) -> dict[str, Any]:
    """The config of a job that only checks a run for leakage, whose result the page then shows."""
    return {"run_id": run_id, "only": "leakage"}


def settle_servers(session: Session, run: Run, recipe: Recipe) -> None:
    """Give a run its server group, once, and let the present endpoints join it.

    A run made before servers were recorded has none and keeps none. Does not commit.
    """
    servers = PROVIDERS.find(run.provider).servers
    if servers is None or run.server_group is None:
        return
    name = join_group(session, servers(recipe), run.server_group or recipe.server_group)
    run.server_group = name


def scope_of(run: Run) -> dict[str, Any]:
    """What limits whose answers a run takes, as part of its calls' keys."""
    if run.offline or run.server_group is None:
        return {}
    scope: dict[str, Any] = {}
    if run.server_group:
        scope["server_group"] = run.server_group
    if run.seed:
        scope["seed"] = run.seed
    if run.fresh:
        scope["fresh"] = run.id
    return scope


def recipe_of(session: Session, run: Run) -> Recipe:
    """The recipe of a run, with its prompts, as they were stored at its start."""
    body = session.get_one(RecipeRow, run.recipe_id).body
    wanted = [stage["prompt_sha256"] for stage in body["stages"].values()]
    prompts = session.execute(select(Prompt.sha256, Prompt.text).where(Prompt.sha256.in_(wanted)))
    return recipe_from_store(body, dict(prompts.all()))
