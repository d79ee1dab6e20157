"""`inf curate`: grow groups from the pairs of a dataset, validate them, keep the right ones."""

import dataclasses
import sys
from datetime import timedelta

import click
from sqlalchemy.orm import Session

from app.cli.kit.registered import RegistryOption
from app.cli.kit.report import (
    Result,
    counts,
    detach_option,
    lines,
    me,
    ready_store,
    reporting,
    work,
)
from app.text.numbers import duration, money
from app.text.remedies import in_commands
from curation.providers.registry import PROVIDERS, describe_providers
from curation.recipe.prices import Price, how_to_price, load_prices, save_price
from curation.recipe.recipe import Recipe
from curation.run.estimate import estimate_run, prices_for
from curation.run.reuse import reuse_of_run
from curation.run.shared_parts import shared_sentence
from curation.run.starting import (
    choose_recipe,
    default_concurrency,
    job_config,
    resume_run,
    start_run,
)
from db.corpus.datasets import get_dataset
from db.errors import BadInput
from db.run.runs import get_run


def _human(result: Result) -> str:
    if "stages" in result:
        return _human_estimate(result)
    if "kept" not in result:
        job = result["job_id"]
        return (
            f"run {result['run_id']} is queued as job {job}: follow it with `inf jobs show {job}`"
        )
    label = "offline (rules and an embedding model)" if result["offline"] else result["provider"]
    pairs: list[tuple[str, object]] = [
        ("run", result["run_id"]),
        ("provider", label),
        ("pairs", result["pairs"]),
        ("generated", result["generated"]),
        ("kept", result["kept"]),
        ("dropped", counts(result["dropped"])),
        ("calls", _calls(result["calls"])),
    ]
    if result["spent_usd"]:
        pairs.append(("spent", f"{result['spent_usd']:.4f} USD"))
    if result["unpriced"]:
        pairs.append(("price unknown", ", ".join(result["unpriced"])))
    if shared := shared_sentence(result.get("shared_parts")):
        pairs.append(("shared", shared))
    if result["paused"]:
        pairs.append(("paused", in_commands(result["reason"])))
    return lines(*pairs)


def _calls(calls: dict[str, int]) -> str:
    text = f"{calls['made']:,} made, {calls['reused']:,} reused"
    unknown = calls.get("unknown_server")
    return f"{text} ({unknown:,} from an unknown server)" if unknown else text


def _estimate(
    session: Session,
    dataset: str,
    provider: str,
    recipe: Recipe,
    limit: int | None,
    concurrency: int | None,
    batch: bool,
) -> Result:
    dataset_id = get_dataset(session, dataset).id
    found = estimate_run(
        session,
        dataset_id,
        recipe,
        prices_for(provider, recipe, batch=batch),
        limit=limit,
        concurrency=concurrency or default_concurrency(provider),
        provider=provider,
    )
    result: Result = {"dataset_id": dataset_id, "batch": batch, **dataclasses.asdict(found)}
    if batch:
        result["hours"] = None
    if found.usd is None:
        result["reason"] = "\n".join(how_to_price(model) for model in found.unpriced)
    return result


def _human_estimate(result: Result) -> str:
    rows = [
        f"{stage['task']:<30} {stage['model']:<24} {stage['calls']:>10,} calls "
        f"{stage['input_tokens']:>14,} in {stage['output_tokens']:>13,} out "
        + ("   price unknown" if stage["usd"] is None else f"{money(stage['usd']):>15}")
        for stage in result["stages"]
    ]
    total = result["reason"] if result["usd"] is None else f"about {money(result['usd'])}"
    if result["measured_usd"] is not None:
        total += f"; {money(result['measured_usd'])} at what such calls cost so far"
    rows += _measured_rows(result["stages"])
    hours = "in batches: four rounds, each within 24 hours and usually much faster"
    if not result["batch"]:
        hours = (
            f"about {duration(timedelta(hours=result['hours']))} at "
            f"{result['seconds_per_call']:.2g} s per call"
        )
    return "\n".join([f"{result['pairs']:,} pairs", *rows, total, hours])


def _measured_rows(stages: list[Result]) -> list[str]:
    """What calls of the same task and model took in this store, per call."""
    rows = [
        f"{stage['task']:<30} {found['seconds']:>6.2f} s {found['input_tokens']:>8,.0f} in "
        f"{found['output_tokens']:>7,.0f} out {100 * found['usd']:>9.4f} cents "
        f"(mean of {found['calls']:,} calls)"
        for stage in stages
        if (found := stage["measured"]) is not None
    ]
    return ["such calls took so far, each:", *rows] if rows else []


def _recipe(provider: str, recipe: str | None, settings: tuple[str, ...]) -> Recipe:
    """The recipe that the arguments name. Raises UsageError for invalid ones."""
    try:
        return choose_recipe(provider, recipe, settings)
    except BadInput as error:
        raise click.UsageError(in_commands(str(error))) from error


def _ask_for_prices(provider: str, recipe: Recipe) -> None:
    """On a terminal, prompt for unknown prices of the models and save them."""
    if not PROVIDERS.find(provider).paid or not sys.stdin.isatty():
        return
    known = load_prices()
    for model in sorted({stage.model for stage in recipe.stages.values()} - set(known)):
        click.echo(f"The price of {model!r} is unknown (enter 0 for a free model).", err=True)
        input_price, output_price = (
            click.prompt(f"USD per million {what} tokens", type=click.FloatRange(min=0), err=True)
            for what in ("input", "output")
        )
        save_price(model, Price(input_price, output_price))


def _show_reuse(run_id: int) -> None:
    """Print how many answers of a run are stored already, before it starts."""
    with ready_store().read() as session:
        message = reuse_of_run(session, run_id)
    if message:
        click.echo(in_commands(message), err=True)


@click.command()
@click.option("--dataset", help="The dataset with the pairs.")
@click.option(
    "--provider",
    type=click.Choice(PROVIDERS.names()),
    cls=RegistryOption,
    describe=describe_providers,
)
@click.option("--recipe", help="A recipe file, or the name of a built-in one.")
@click.option(
    "--set", "settings", multiple=True, metavar="STAGE.KEY=VALUE", help="Override a setting."
)
@click.option(
    "--timeout",
    "timeout_seconds",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="Maximum time of one call; the recipe's, else 600.",
)
@click.option("--limit", type=click.IntRange(min=1), help="Only the first N pairs.")
@click.option(
    "--sample", type=click.IntRange(min=1), help="Only N random pairs; --seed fixes them."
)
@click.option("--query-id", "query_ids", multiple=True, help="Only this pair; repeatable.")
@click.option("--concurrency", type=click.IntRange(min=1), help="Calls in flight.")
@click.option(
    "--rpm",
    "requests_per_minute",
    type=click.IntRange(min=1),
    help="Maximum requests per minute, per worker.",
)
@click.option(
    "--tpm",
    "tokens_per_minute",
    type=click.IntRange(min=1),
    help="Maximum tokens per minute, per worker.",
)
@click.option("--batch", is_flag=True, help="Use OpenAI's Batch API: half the price, within a day.")
@click.option(
    "--budget-usd",
    type=click.FloatRange(min=0, min_open=True),
    help="Pause before spending more than this.",
)
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--fresh", is_flag=True, help="Request new answers instead of stored ones.")
@click.option("--resume", type=int, metavar="RUN", help="Resume a run.")
@click.option(
    "--retry",
    metavar="REASON",
    help="With --resume: try the groups dropped for this reason again.",
)
@click.option(
    "--no-guard", is_flag=True, help="Do not pause when the first 25 groups are all dropped alike."
)
@click.option("--estimate", is_flag=True, help="Estimate time and cost without starting.")
@click.option("--worker", type=int, metavar="RUN", help="Join a running run as another worker.")
@detach_option
@reporting(_human)
def curate(
    dataset: str | None,
    provider: str | None,
    recipe: str | None,
    settings: tuple[str, ...],
    timeout_seconds: float | None,
    limit: int | None,
    sample: int | None,
    query_ids: tuple[str, ...],
    concurrency: int | None,
    requests_per_minute: int | None,
    tokens_per_minute: int | None,
    batch: bool,
    budget_usd: float | None,
    seed: int,
    fresh: bool,
    resume: int | None,
    retry: str | None,
    no_guard: bool,
    estimate: bool,
    worker: int | None,
    detach: bool,
) -> Result:
    """Generate groups from pairs and validate them (section 4.1 of the paper)."""
    if timeout_seconds is not None:
        settings = (*settings, f"timeout_seconds={timeout_seconds}")
    existing_run = resume if resume is not None else worker
    if existing_run is not None:
        if dataset or provider or recipe or settings or query_ids or limit or sample or batch:
            raise click.UsageError(
                "--resume and --worker use the run's own dataset, recipe, timeout, pairs and mode"
            )
        if worker is not None and (resume is not None or budget_usd is not None or no_guard):
            raise click.UsageError("--worker can be combined with --concurrency only")
    elif not dataset or not provider:
        raise click.UsageError("give --dataset and --provider, or --resume RUN, or --worker RUN")
    if retry is not None and resume is None:
        raise click.UsageError("--retry requires --resume RUN")
    if batch and provider and not PROVIDERS.find(provider).batches:
        raise click.UsageError("--batch requires --provider openai")
    if estimate and (dataset is None or provider is None):
        raise click.UsageError("--estimate requires --dataset and --provider")
    store = ready_store()
    if estimate:
        assert dataset is not None and provider is not None
        chosen = _recipe(provider, recipe, settings)
        with store.read() as session:
            return _estimate(
                session, dataset, provider, chosen, limit or sample, concurrency, batch
            )
    if dataset is not None and provider is not None:
        _ask_for_prices(provider, _recipe(provider, recipe, settings))
    with store.write() as session:
        if worker is not None:
            run = get_run(session, worker)
        elif resume is not None:
            run = resume_run(
                session,
                resume,
                budget_usd=budget_usd,
                concurrency=concurrency,
                guard=not no_guard,
                retry=retry,
            )
        else:
            assert dataset is not None and provider is not None
            run = start_run(
                session,
                dataset=dataset,
                provider=provider,
                recipe=recipe,
                settings=settings,
                limit=limit,
                sample=sample,
                query_ids=query_ids,
                concurrency=concurrency,
                budget_usd=budget_usd,
                requests_per_minute=requests_per_minute,
                tokens_per_minute=tokens_per_minute,
                batch=batch,
                guard=not no_guard,
                seed=seed,
                fresh=fresh,
                created_by=me(),
            )
        session.commit()
        run_id = run.id
    if worker is None:
        _show_reuse(run_id)
    joins = worker is not None
    config = job_config(run_id, concurrency=concurrency if joins else None, joins=joins)
    result = work(store, "curate", config, detach=detach, title="curate")
    return {**result, "run_id": run_id} if detach else result
