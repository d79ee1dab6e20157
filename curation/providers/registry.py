"""The providers by name: who writes and validates a run's texts.

Another package adds one by an entry point in the group `inf_studio.providers` that names a
`ProviderKind`; see `curation.registry`. Imports of a provider wait until a run uses it.
"""

from collections.abc import Callable
from dataclasses import dataclass

from sqlalchemy import select
from sqlalchemy.orm import Session

from curation.providers.provider import Provider
from curation.recipe.recipe import Recipe
from curation.registry import Registry
from curation.servers.addresses import server_urls
from curation.servers.connection import server_of_run, url_of_connection
from db.run.workers import worker_totals
from db.store.store import Store
from db.tables import Pair, Passage, Run


@dataclass(frozen=True)
class WorkerSetting:
    """The worker of a run that a provider is made for; `owner` marks what it leases."""

    store: Store
    run: Run
    recipe: Recipe
    concurrency: int
    owner: str
    patience_seconds: float = 0.0


@dataclass(frozen=True)
class ProviderKind:
    """A provider of answers.

    `make`: the provider of one worker; raises ProviderError where it cannot be used. `recipe`:
    the default one, built in or a path. `judge`: the name of the judge that validates its runs,
    with `{model}` for the recipe's validation model. `offline`: no language model; its groups
    are labelled so everywhere. `paid`: its calls cost money, so models need a price. `batches`:
    has a mode in which answers come within a day. `servers`: the addresses of the environment that
    answer a recipe's runs without a connection; only with them are answers kept by server, and is
    the recipe all that decides what is sent.
    """

    help: str
    make: Callable[[WorkerSetting], Provider]
    recipe: str
    judge: str
    concurrency: int = 16
    offline: bool = False
    paid: bool = True
    batches: bool = False
    servers: Callable[[Recipe], list[str]] | None = None

    def urls_of(self, run: Run, recipe: Recipe) -> list[str] | None:
        """The addresses that answer a run; None where answers are not kept by server."""
        if self.servers is None:
            return None
        stored = url_of_connection(run)
        return self.servers(recipe) if stored is None else [stored]

    def judge_name(self, model: str) -> str:
        """The name of the judge that validates a run whose validation model is this one."""
        return self.judge.replace("{model}", model)


def _offline(setting: WorkerSetting) -> Provider:
    from curation.offline.provider import OfflineProvider  # numpy, for the embedding judge
    from curation.offline.vocabulary import MAX_PAIRS, build_vocabulary

    with setting.store.read() as session:
        vocabulary = build_vocabulary(sampled_pairs(session, setting.run.dataset_id, MAX_PAIRS))
    return OfflineProvider(
        setting.store,
        vocabulary,
        shape=setting.recipe.shape,
        seed=setting.run.seed,
        judge_model=setting.recipe.judge_model,
    )


def _openai(setting: WorkerSetting) -> Provider:
    from curation.providers.openai_server import OpenAIProvider  # the SDK takes a second to import

    run = setting.run
    with setting.store.read() as session:
        server = server_of_run(session, run, setting.recipe.endpoints)
        was_reached = worker_totals(session, run.id).made > 0
    wire = OpenAIProvider.of_server(
        server,
        setting.recipe,
        concurrency=setting.concurrency,
        with_budget=run.budget_usd is not None,
        requests_per_minute=run.requests_per_minute,
        tokens_per_minute=run.tokens_per_minute,
        batch=run.batch,
        patience_seconds=setting.patience_seconds,
        was_reached=was_reached,
        parks=not run.batch,
    )
    noted = {of["model"]: of["names"] for of in run.models.values() if of.get("names")}
    wire.expect_names({model: names.split(", ") for model, names in noted.items()})
    if not run.batch:
        return wire
    from curation.providers.batch import BatchProvider

    return BatchProvider(wire, setting.store, run.id, setting.owner)


def _recorded(setting: WorkerSetting) -> Provider:
    from curation.recorded.provider import RecordedProvider
    from curation.recorded.recording import load_recording

    return RecordedProvider(load_recording(), setting.recipe.judge_model)


PROVIDERS = Registry(
    "provider",
    "inf_studio.providers",
    ProviderKind,
    {
        "offline": ProviderKind(
            "rules write, an embedding model judges; no language model, no network",
            _offline,
            recipe="offline",
            judge="offline:embedding",
            concurrency=96,
            offline=True,
            paid=False,
        ),
        "openai": ProviderKind(
            "language models on the OpenAI-compatible server that is configured",
            _openai,
            recipe="msmarco",
            judge="openai:{model}",
            batches=True,
            servers=lambda recipe: server_urls(recipe.endpoints),
        ),
        "recorded": ProviderKind(
            "replays what a language model wrote and judged for the demo set; no network",
            _recorded,
            recipe="recorded",
            judge="recorded:{model}",
            paid=False,
        ),
    },
)


def describe_providers() -> str:
    """The names with what each is, for help texts."""
    return "; ".join(f"{name}: {kind.help}" for name, kind in PROVIDERS.all().items())


def sampled_pairs(session: Session, dataset_id: int, limit: int) -> list[tuple[str, str]]:
    """At most `limit` pairs (query, passage), evenly spread in the order of ids."""
    ids = list(
        session.scalars(select(Pair.id).where(Pair.dataset_id == dataset_id).order_by(Pair.id))
    )
    step = max(1, -(-len(ids) // limit))
    chosen = set(ids[::step])
    rows = session.execute(
        select(Pair.id, Pair.query, Passage.text)
        .join(Passage, Passage.id == Pair.passage_id)
        .where(Pair.dataset_id == dataset_id)
        .order_by(Pair.id)
        .execution_options(yield_per=1000)
    )
    return [(query, text) for key, query, text in rows if key in chosen]
