"""Start and resume runs: their requests, and the config of their jobs.

The command line and the Curate page call the same functions; the work itself is a job of kind
`curate` with the run's id.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Self

from pydantic import PrivateAttr, field_validator, model_validator
from sqlalchemy import select
from sqlalchemy.orm import Session

from curation.providers.registry import PROVIDERS
from curation.recipe.prices import require_prices
from curation.recipe.recipe import Recipe, recipe_from_store
from curation.recipe.tasks import JUDGED, Task
from curation.run.recipes import Chosen, named_recipe
from curation.servers.connection import (
    PROVIDER_OF_KIND,
    environment_server,
    prices_of_run,
    url_of_connection,
)
from curation.servers.patient import Patient
from db.corpus.datasets import get_dataset
from db.errors import BadInput
from db.requests import option
from db.run.failing_groups import reopen_dropped
from db.run.new_items import store_questions
from db.run.recipes import store_recipe
from db.run.runs import create_run, get_run, keep_count, reopen_run, set_run_status
from db.run.versions import require_no_versions
from db.servers.connections import ENVIRONMENT, get_connection
from db.servers.groups import join_group
from db.study.judgments import get_or_create_judge
from db.tables import Prompt, Run
from db.tables import Recipe as RecipeRow

GROUPS_IN_BATCHES = 5000
# fields of a start that are no argument of `start_run`: of its settings, or of its work
ELSEWHERE = {"timeout_seconds", "settings", "no_guard", "patience_minutes", "fail_fast", "workers"}
MAX_WORKERS = 512


class Shared(Patient):
    """How many processes work on a run."""

    workers: int | None = option(
        None,
        "Processes that work on it, here or on the cluster; one that is killed is replaced.",
        ge=1,
        le=MAX_WORKERS,
    )

    def work(self) -> dict[str, Any]:
        """Its fields, for the work that follows from it."""
        return {**self.patience(), "workers": self.workers}


class RunStart(Shared):
    """A run: which pairs of a dataset, by which provider and recipe, within which limits."""

    dataset: str = option(..., "The dataset with the pairs.", names=(), metavar="DATASET")
    provider: str = option(
        "", "Who writes and judges: the name of a provider; or give a connection."
    )
    connection: str | None = option(
        None,
        "The model server, by its name in `connections list`; `environment`: the variables'.",
        metavar="NAME",
    )
    recipe: str | None = option(
        None, "A built-in recipe, one of the store (NAME, or NAME@VERSION), or a recipe file."
    )
    settings: tuple[str, ...] = option(
        (),
        "Override a setting.",
        names=("--set",),
        title="One per line: stage.key=value",
        metavar="STAGE.KEY=VALUE",
    )
    timeout_seconds: float | None = option(
        None,
        "Maximum time of one call; the recipe's, else 600.",
        names=("--timeout",),
        title="Timeout in s",
        metavar="SECONDS",
        gt=0,
    )
    limit: int | None = option(None, "Only the first N pairs.", title="Maximum pairs", ge=1)
    sample: int | None = option(None, "Only N random pairs; `seed=` fixes them.", ge=1)
    query_ids: tuple[str, ...] = option((), "Only this pair; repeatable.", names=("--query-id",))
    concurrency: int | None = option(
        None, "Calls in flight, of all workers together.", title="Concurrent calls", ge=1
    )
    requests_per_minute: int | None = option(
        None, "Maximum requests per minute, of all workers together.", names=("--rpm",), ge=1
    )
    tokens_per_minute: int | None = option(
        None,
        "Maximum tokens per minute of all workers together: prompts, and answers at their longest.",
        names=("--tpm",),
        ge=1,
    )
    batch: bool = option(
        False, "Use OpenAI's Batch API: half the price, within a day.", title="Use batches"
    )
    budget_usd: float | None = option(
        None, "Pause before spending more than this.", title="Budget in $", gt=0
    )
    seed: int = option(0, "Seed of the sampling; with another one a server's answers are new, too.")
    fresh: bool = option(
        False, "Request new answers instead of stored ones.", title="Request new answers"
    )
    no_guard: bool = option(
        False, "Do not pause when the first 25 groups are all dropped alike.", names=("--no-guard",)
    )

    _chosen: dict[tuple[Any, ...], Chosen] = PrivateAttr(default_factory=dict)

    @field_validator("settings")
    @classmethod
    def _without_blanks(cls, settings: tuple[str, ...]) -> tuple[str, ...]:
        """A form has them as lines."""
        return tuple(filter(None, map(str.strip, settings)))

    @model_validator(mode="after")
    def _has_one_that_answers(self) -> Self:
        if not self.provider and self.connection is None:
            raise BadInput("provider is missing: give it, or a connection", code="request_invalid")
        return self

    def overrides(self) -> list[str]:
        """The settings that override the recipe's, the timeout of a call among them."""
        if self.timeout_seconds is None:
            return list(self.settings)
        return [*self.settings, f"timeout_seconds={self.timeout_seconds}"]

    def chosen(self, session: Session, provider: str = "") -> Chosen:
        """The recipe with the settings that override its own, read once: a file that changes
        meanwhile does not change the run. provider: its connection's. Raises BadInput, NotFound."""
        key = provider or self.provider, self.recipe, tuple(self.overrides())
        if key not in self._chosen:
            self._chosen[key] = choose_recipe(session, *key)
        return self._chosen[key]

    def arguments(self, session: Session) -> dict[str, Any]:
        """The arguments of `start_run`."""
        provider = provider_of(session, self.provider, self.connection)
        found = self.model_dump(exclude=ELSEWHERE)
        recipe = self.chosen(session, provider)
        return found | {"recipe": recipe, "guard": not self.no_guard}


class RunResume(Shared):
    """The rest of a run: within which budget, and which dropped groups are tried again."""

    run_id: int = option(..., "The run.", names=(), metavar="RUN")
    budget_usd: float | None = option(
        None, "Pause before spending more than this in all; default: the run's.", gt=0
    )
    concurrency: int | None = option(None, "Calls in flight; default: the run's.", ge=1)
    retry: str | None = option(
        None, "Try the groups dropped for this reason again.", metavar="REASON"
    )
    no_guard: bool = option(
        False, "Do not pause when the first 25 groups are all dropped alike.", names=("--no-guard",)
    )


class RunWork(Shared):
    """The config of a job on a run: all of a worker's share, or only what is measured at its end.

    `joins`: it joins other workers of the run and does not wait for their slot. `workers`: so many
    jobs are launched, this one and further ones that join it.
    """

    run_id: int = option(..., "The run.", names=(), metavar="RUN")
    concurrency: int | None = option(None, "Calls in flight; default: the run's.", ge=1)
    joins: bool = option(False, "Work on it as a further worker, with other workers.", names=())
    only: Literal["leakage"] | None = option(
        None, "Only check it for leakage and shared parts.", names=()
    )

    def config(self) -> dict[str, Any]:
        """The keys that are given, as a job stores them: a slot is chosen by `joins`."""
        return self.model_dump(mode="json", exclude_defaults=True)


def choose_recipe(
    session: Session, provider: str, recipe: str | None, settings: Sequence[str]
) -> Chosen:
    """The named recipe, or the provider's default. Raises BadInput, NotFound."""
    named = recipe or PROVIDERS.find(provider).recipe
    return for_provider(provider, named_recipe(session, named, settings))


def for_provider(provider: str, chosen: Chosen) -> Chosen:
    """The recipe as the provider runs it: an offline one has rules in place of its models."""
    return chosen.with_rules_as_models() if PROVIDERS.find(provider).offline else chosen


def start_run(
    session: Session,
    *,
    dataset: str,
    provider: str = "",
    connection: str | None = None,
    recipe: Chosen | Recipe | str | None = None,
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
    preview: bool = False,
    created_by: str = "",
) -> Run:
    """A run with its recipe and its waiting groups. Does not commit.

    Its server is the `connection`, else what the environment of this process names. Raises
    BadInput, NotFound.
    """
    provider = provider_of(session, provider, connection)
    found = Chosen(recipe) if isinstance(recipe, Recipe) else recipe
    if not isinstance(found, Chosen):
        found = choose_recipe(session, provider, found, settings)
    chosen = found.recipe
    if concurrency is not None and concurrency < 1:
        raise BadInput(
            f"a concurrency of {concurrency}", "give at least 1", code="concurrency_invalid"
        )
    if batch:
        _check_batch(provider, requests_per_minute or tokens_per_minute)
    if budget_usd is not None and budget_usd <= 0:
        raise BadInput(f"a budget of {budget_usd} USD", "give more than 0", code="budget_invalid")
    row = store_recipe(
        session,
        name=chosen.name,
        sha256=chosen.sha256,
        body=chosen.body(),
        prompts=chosen.prompts(),
    )
    # created here, or workers that start at once would race to create them
    judges_of(session, provider, chosen)
    store_questions(session, [check.question for check in chosen.checks])
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
        recipe_version=found.version,
        preview=preview,
        created_by=created_by,
    )
    # their weights are hashed by the first worker: reading them takes minutes, and the writer waits
    run.models = {task: {"model": stage.model} for task, stage in chosen.stages.items()}
    run.server = _record_of_server(session, provider, connection, chosen)
    if budget_usd is not None and PROVIDERS.find(run.provider).paid:
        require_prices(chosen, prices_of_run(session, run))
    return run


def provider_of(session: Session, provider: str, connection: str | None) -> str:
    """The provider of a run by this provider or this connection. Raises BadInput for two of them,
    NotFound."""
    if connection is None:
        return provider
    kind = "compatible"
    if connection != ENVIRONMENT:
        kind = get_connection(session, connection).kind
    found = PROVIDER_OF_KIND[kind]
    if provider not in ("", found):
        raise BadInput(
            f"the connection {connection} is of the provider {found!r}, not {provider!r}",
            "omit `provider=`",
            code="connection_of_other_provider",
        )
    return found


def _record_of_server(
    session: Session, provider: str, connection: str | None, recipe: Recipe
) -> dict[str, Any]:
    """What a new run keeps of its server. Raises BadInput for a recipe with addresses of its own:
    the connection's key would be sent to them."""
    if connection not in (None, ENVIRONMENT):
        if recipe.endpoints:
            raise BadInput(
                f"the recipe {recipe.name} names endpoints of its own",
                "omit `connection=`, or take the endpoints out of the recipe",
                code="connection_with_endpoints",
            )
        found = get_connection(session, str(connection))
        return {"connection": found.name, "kind": found.kind, "url": found.url}
    if PROVIDERS.find(provider).servers is None:
        return {}
    return environment_server(recipe.endpoints).record()


def default_concurrency(provider: str, *, batch: bool = False) -> int:
    """Default number of calls in flight; in batch mode of groups with calls at the server."""
    return GROUPS_IN_BATCHES if batch else PROVIDERS.find(provider).concurrency


def _check_batch(provider: str, limit: int | None) -> None:
    if not PROVIDERS.find(provider).batches:
        with_batches = " or ".join(name for name, kind in PROVIDERS.all().items() if kind.batches)
        raise BadInput(
            f"{provider!r} has no batch mode ({with_batches} has)",
            "omit `batch=`",
            code="batch_mode_unsupported",
        )
    if limit:
        raise BadInput(
            "batch mode has no limits per minute",
            "omit `rpm=` and `tpm=`",
            code="batch_mode_without_limits",
        )


def judges_of(session: Session, provider: str, recipe: Recipe) -> dict[Task, int]:
    """The ids of the judges of runs of this provider and recipe, by task. Does not commit."""
    kind = PROVIDERS.find(provider)
    judging = (task for task, spec in recipe.tasks.items() if spec.gives in JUDGED)
    return {
        task: get_or_create_judge(
            session,
            kind.judge_name(recipe.stages[task].model),
            kind="model",
            provider=provider,
            model=recipe.stages[task].model,
            offline=kind.offline,
        ).id
        for task in judging
        if task in recipe.stages
    }


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
    done allows; raises BadInput without such a group, Refused if none of them may be opened, and
    for a run that was decided again, whose versions would not be of the same groups.
    """
    run = get_run(session, run_id)
    if budget_usd is not None and budget_usd <= run.spent_usd:
        raise BadInput(
            f"a budget of {budget_usd} USD, but run {run_id} has spent {run.spent_usd:.4f}",
            "give more than that",
            code="budget_already_spent",
        )
    if budget_usd is not None and PROVIDERS.find(run.provider).paid:
        # else it could not hold: a call without a price has no highest cost
        require_prices(recipe_of(session, run), prices_of_run(session, run))
    if retry is not None:
        require_no_versions(session, run_id)
        reopen_dropped(session, run_id, retry)
        keep_count(session, run_id)
        set_run_status(session, run_id, "running" if run.status == "running" else "paused")
    return reopen_run(session, run_id, budget_usd=budget_usd, concurrency=concurrency, guard=guard)


def settle_servers(session: Session, run: Run, recipe: Recipe) -> None:
    """Give a run its server group, once, and let the present endpoints join it.

    A run made before servers were recorded has none and keeps none. Does not commit.
    """
    urls = PROVIDERS.find(run.provider).urls_of(run, recipe)
    if urls is None:
        return
    if url_of_connection(run) is None:
        _note_environment(run, recipe)
    if run.server_group is None:
        return
    name = join_group(session, urls, run.server_group or recipe.server_group)
    run.server_group = name


def _note_environment(run: Run, recipe: Recipe) -> None:
    """Add the server of this process's environment to those that a run names."""
    now, before = environment_server(recipe.endpoints).record(), run.server.get("url")
    urls = [*(before.split(", ") if before else ()), *now["url"].split(", ")]
    run.server = now | {"url": ", ".join(dict.fromkeys(urls))}


def note_answering_models(
    session: Session, run_id: int, names: Mapping[str, Sequence[str]]
) -> None:
    """Record by which names a server's models answered, in order: `names` of a run's stages, and
    `answered_as`, those of them that were not requested."""
    run = get_run(session, run_id)
    run.models = {
        task: _with_names(of, names.get(of["model"], ())) for task, of in run.models.items()
    }


def _with_names(of: dict[str, str | None], found: Sequence[str]) -> dict[str, str | None]:
    before = (of.get("names") or "").split(", ")
    names = [name for name in dict.fromkeys([*before, *found]) if name]
    if not names:
        return of
    others = ", ".join(sorted(set(names) - {of["model"]}))
    return of | {"names": ", ".join(names)} | ({"answered_as": others} if others else {})


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
