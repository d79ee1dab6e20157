"""What a worker reads from the store before it begins."""

from dataclasses import dataclass

from curation.judging.candidates import HardPassages, Pool, load_pool
from curation.recipe.recipe import Recipe
from curation.run.starting import recipe_of, settle_servers, validator
from db.run.runs import get_run
from db.store.store import Store
from db.tables import Run


@dataclass(frozen=True)
class Plan:
    """What a worker has to know about its run."""

    run: Run
    recipe: Recipe
    pool: Pool
    judge_id: int
    concurrency: int
    follows_run: bool
    hard: HardPassages | None


def make_plan(store: Store, run_id: int, concurrency: int | None) -> Plan:
    """The plan of a worker; `concurrency` overrides the run's own. Raises NotFound."""
    with store.write() as session:
        run = get_run(session, run_id)
        recipe = recipe_of(session, run)
        judge = validator(session, run.provider, recipe)
        settle_servers(session, run, recipe)
        rules = recipe.validation
        pool = load_pool(
            session, run.dataset_id, distractors=rules.distractors + rules.hard_distractors
        )
        hard = HardPassages(session, pool) if rules.hard_distractors else None
        session.commit()
        return Plan(
            run=run,
            recipe=recipe,
            pool=pool,
            judge_id=judge.id,
            concurrency=concurrency or run.concurrency,
            follows_run=concurrency is None,
            hard=hard,
        )
