"""`inf curate`: grow groups from the pairs of a data set, validate them, keep the right ones."""

import click

from app.cli.report import Result, counts, detach_option, lines, me, ready_store, reporting, work
from curation.starting import job_config, resume_run, start_run


def _human(result: Result) -> str:
    if "kept" not in result:
        return f"run {result['run_id']} is queued as job {result['job_id']}"
    label = "offline (rules and an embedding model)" if result["offline"] else result["provider"]
    pairs: list[tuple[str, object]] = [
        ("run", result["run_id"]),
        ("provider", label),
        ("pairs", result["pairs"]),
        ("generated", result["generated"]),
        ("kept", result["kept"]),
        ("dropped", counts(result["dropped"])),
        ("calls", f"{result['calls']['made']:,} made, {result['calls']['reused']:,} reused"),
    ]
    if result["spent_usd"]:
        pairs.append(("spent", f"{result['spent_usd']:.4f} USD"))
    if result["paused"]:
        pairs.append(("paused", result["reason"]))
    return lines(*pairs)


@click.command()
@click.option("--dataset", help="The data set whose pairs are grown.")
@click.option("--provider", type=click.Choice(["offline", "openai"]), help="Who writes and judges.")
@click.option("--recipe", help="A recipe file, or the name of a built-in one.")
@click.option("--set", "settings", multiple=True, metavar="STAGE.KEY=VALUE", help="Change it.")
@click.option("--limit", type=int, help="Only the first N pairs.")
@click.option("--concurrency", type=int, help="Calls in flight.")
@click.option("--budget-usd", type=float, help="Pause before more than this is spent.")
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--resume", type=int, metavar="RUN", help="Go on with a run.")
@detach_option
@reporting(_human)
def curate(
    dataset: str | None,
    provider: str | None,
    recipe: str | None,
    settings: tuple[str, ...],
    limit: int | None,
    concurrency: int | None,
    budget_usd: float | None,
    seed: int,
    resume: int | None,
    detach: bool,
) -> Result:
    """Grow groups from pairs and validate them (the paper's section 4.1)."""
    store = ready_store()
    with store.write() as session:
        if resume is not None:
            if dataset or provider or recipe or settings or limit is not None:
                raise click.UsageError(
                    "--resume goes on with the run's own data set, recipe and limit: "
                    "only --budget-usd and --concurrency can be given with it"
                )
            run = resume_run(session, resume, budget_usd=budget_usd, concurrency=concurrency)
        else:
            if not dataset or not provider:
                raise click.UsageError("give --dataset and --provider, or --resume RUN")
            run = start_run(
                session,
                dataset=dataset,
                provider=provider,
                recipe=recipe,
                settings=settings,
                limit=limit,
                concurrency=concurrency,
                budget_usd=budget_usd,
                seed=seed,
                created_by=me(),
            )
        session.commit()
        run_id = run.id
    result = work(store, "curate", job_config(run_id), detach=detach, title="curate")
    return {**result, "run_id": run_id} if detach else result
