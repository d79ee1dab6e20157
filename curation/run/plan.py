"""What a worker reads from the store before it begins."""

from dataclasses import dataclass

from analysis.embed.model_hash import model_sha256
from curation.judging.candidates import HardPassages, Pool, hard_passages, load_pool
from curation.recipe.recipe import Recipe
from curation.recipe.tasks import Task
from curation.run.starting import judges_of, recipe_of, settle_servers
from db.run.runs import get_run
from db.store.store import Store
from db.tables import Run


@dataclass(frozen=True)
class Plan:
    """What a worker has to know about its run."""

    run: Run
    recipe: Recipe
    pool: Pool
    judges: dict[Task, int]
    concurrency: int
    follows_run: bool
    hard: HardPassages | None


def make_plan(store: Store, run_id: int, concurrency: int | None) -> Plan:
    """The plan of a worker; `concurrency` overrides the run's own. Raises NotFound."""
    _record_weights(store, run_id)
    with store.write() as session:
        run = get_run(session, run_id)
        recipe = recipe_of(session, run)
        judges = judges_of(session, run.provider, recipe)
        settle_servers(session, run, recipe)
        rules = recipe.validation
        pool = load_pool(
            session, run.dataset_id, distractors=rules.distractors + rules.hard_distractors
        )
        hard = hard_passages(session, pool, recipe)
        session.flush()
        session.refresh(run, ["spent_usd"])  # a sum, which no flush keeps
        session.commit()
        return Plan(
            run=run,
            recipe=recipe,
            pool=pool,
            judges=judges,
            concurrency=concurrency or run.concurrency,
            follows_run=concurrency is None,
            hard=hard,
        )


def _record_weights(store: Store, run_id: int) -> None:
    """Record the sha256 of the weights of a run's models, once: the first worker's count.

    They are read between two transactions: the writer would be held for minutes. A run from before
    models were recorded keeps none, as other weights may have been used until now.
    """
    with store.read() as session:
        models = get_run(session, run_id).models
    if all("sha256" in of for of in models.values()):
        return
    known = {name: model_sha256(name) for name in {str(of["model"]) for of in models.values()}}
    with store.write() as session:
        run = get_run(session, run_id)
        # a worker that was faster has recorded what it began with
        run.models = {task: {"sha256": known[of["model"]], **of} for task, of in run.models.items()}
        session.commit()
