"""A finished run of a dataset of its own, without groups."""

from typing import Any

from sqlalchemy.orm import Session

from db.tables import Dataset, Recipe, Run, utc_now


def finished_run(
    session: Session,
    name: str,
    *,
    provider: str = "offline",
    offline: bool = True,
    **columns: Any,
) -> Run:
    """The run, flushed; columns: its dataset's, for other ones than a test's."""
    of_dataset = {"source": "made for a test", "licence": "CC0-1.0"} | columns
    dataset = Dataset(name=name, **of_dataset)
    recipe = Recipe(name=name, sha256=f"recipe-{name}", body={"stages": {}})
    session.add_all([dataset, recipe])
    session.flush()
    run = Run(
        dataset_id=dataset.id,
        recipe_id=recipe.id,
        provider=provider,
        offline=offline,
        status="done",
        finished_at=utc_now(),
    )
    session.add(run)
    session.flush()
    return run
