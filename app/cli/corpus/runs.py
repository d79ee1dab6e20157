"""`inf runs`: create, resume, join, estimate, list, show, archive and purge runs; `inf curate`."""

import shlex
import sys
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import click

from analysis.found.runs import SharedParts
from app.access.identity import Actor
from app.cli.corpus.datasets import archived_option, dependents_text
from app.cli.corpus.versions import add_versions
from app.cli.kit.deleting import add_archiving
from app.cli.kit.doors import Noun
from app.cli.kit.formerly import FormerlyOne
from app.cli.kit.options import RegistryOption, field_options, request_of, wrong_arguments
from app.cli.kit.report import Launching, Result, command_actor, counts, launched, lines, reporting
from app.cli.kit.table import sheet
from app.operations import connections
from app.operations import runs as operations
from app.operations.acting import Launch
from app.operations.recipes import chosen as chosen_recipe
from app.operations.runs import RunEstimate, RunShrunk
from app.text.numbers import counted, duration, money
from app.text.remedies import in_commands
from curation.judging.text_baseline import TextBaseline, baseline_sentence
from curation.providers.registry import PROVIDERS, describe_providers
from curation.recipe.drop_reasons import reason_text, what_to_change
from curation.recipe.prices import Price
from curation.run.shared_parts import check_command, part_text, shared_sentence
from curation.run.starting import RunStart, RunWork
from db.requests import Request

STATUSES = ("created", "running", "paused", "done", "failed", "cancelled")


runs = Noun("runs", former={"run_id": "id"})
add_archiving(runs, "run_id")
add_versions(runs)


def _ended(result: Result) -> str:
    run_id = result["run_id"]
    if "kept" not in result:
        job = result["job_id"]
        queued = f"run {run_id} is queued as job {job}: follow it with `inf jobs show {job}`"
        return "\n".join([queued, *filter(None, [result.get("idle")])])
    label = "offline (rules and an embedding model)" if result["offline"] else result["provider"]
    facts: list[tuple[str, object]] = [
        ("run", run_id),
        ("provider", label),
        ("pairs", result["pairs"]),
        ("generated", result["generated"]),
        *_verdicts(result["kept"], result["dropped"]),
        ("calls", _calls(result["calls"])),
    ]
    if idle := result.get("idle"):
        facts.append(("workers", idle))
    if result["spent_usd"]:
        facts.append(("spent", f"{result['spent_usd']:.4f} USD"))
    if result["unpriced"]:
        facts.append(("price unknown", ", ".join(result["unpriced"])))
    if shared := shared_sentence(_shared(result)):
        facts.append(("shared", shared))
    if result["paused"]:
        why = in_commands(result["reason"])
        return f"{lines(*facts, ('paused', why))}\nnext: inf runs resume {run_id}"
    dataset = shlex.quote(result.get("dataset", "DATASET"))  # jobs of earlier versions lack it
    study = f"inf studies create {dataset} --run {run_id} --items 50 --overlap 3"
    then = f"{study} lets people judge a sample"
    if not result.get("picks", True):
        then = f"inf releases create {dataset} --run {run_id} --out FOLDER"
    if not result["kept"]:
        then = f"inf groups list {run_id} --verdict dropped shows what was dropped"
    return f"{lines(*facts)}\nnext: {then}"


def _shared(result: Result) -> SharedParts | None:
    found = result.get("shared_parts")
    return None if found is None else SharedParts.model_validate(found)


def _verdicts(kept: int, dropped: dict[str, int]) -> list[tuple[str, object]]:
    """How many groups are kept, and dropped for what, each with its share of the finished ones."""
    finished = kept + sum(dropped.values())

    def of_finished(number: int) -> str:
        return f"{number:,} ({number / finished:.1%})" if finished else "0"

    reasons = sorted(dropped.items(), key=lambda pair: (-pair[1], pair[0]))
    change = what_to_change(kept, dropped)
    return [
        ("kept", of_finished(kept)),
        ("dropped", of_finished(finished - kept)),
        *(("", f"{of_finished(count)} {why}: {reason_text(why)}") for why, count in reasons),
        *([("to change", in_commands(change))] if change else []),
    ]


def _texts(texts: dict[str, int]) -> list[tuple[str, object]]:
    """The texts of lists of the kept groups, and those that were dropped alone, for what."""
    lost = [(why, count) for why, count in texts.items() if why != "kept"]
    return [
        *([("their lists' texts", f"{texts.get('kept', 0):,} kept")] if texts else []),
        *(("", f"{count:,} {why}: {reason_text(why)}") for why, count in lost),
    ]


def _calls(calls: dict[str, int]) -> str:
    text = f"{calls['made']:,} made, {calls['reused']:,} reused"
    unknown = calls.get("unknown_server")
    return f"{text} ({unknown:,} from an unknown server)" if unknown else text


def _estimated(result: Result) -> str:
    keys = ("task", "model", "calls", "input_tokens", "output_tokens", "usd")
    stages = [
        {key: stage[key] for key in keys}
        | {"usd": "price unknown" if stage["usd"] is None else money(stage["usd"])}
        for stage in result["stages"]
    ]
    total = result["reason"] if result["usd"] is None else f"about {money(result['usd'])}"
    if result["measured_usd"] is not None:
        total += f"; {money(result['measured_usd'])} at what such calls cost so far"
    measured = [
        {"task": stage["task"], "model": stage["model"]} | stage["measured"]
        for stage in result["stages"]
        if stage["measured"] is not None
    ]
    more = ["such calls took so far, each:", sheet(measured)] if measured else []
    hours = "in batches: four rounds, each within 24 hours and usually much faster"
    if not result["batch"]:
        hours = (
            f"about {duration(timedelta(hours=result['hours']))} at "
            f"{result['seconds_per_call']:.2g} s per call, "
            f"{counted(result['concurrency'], 'call')} at once (--concurrency)"
        )
    then = "next: `inf runs create DATASET` with the same options starts it"
    return "\n".join([f"{result['pairs']:,} pairs", sheet(stages), *more, total, hours, then])


def start_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of a run's start, `--provider` among them, whose names are plugins' too."""
    provider = click.option(
        "--provider",
        type=click.Choice(PROVIDERS.names()),
        cls=RegistryOption,
        describe=describe_providers,
    )
    return field_options(RunStart)(provider(command))


def _request(given: dict[str, Any]) -> RunStart:
    """The request, its recipe read. Raises UsageError for what they refuse."""
    wanted = request_of(RunStart, given)
    if wanted.connection is not None:
        provider = connections.show(command_actor(), wanted.connection).provider
        wanted = wanted.model_copy(update={"provider": wanted.provider or provider})
    if wanted.batch and not PROVIDERS.find(wanted.provider).batches:
        raise click.UsageError("--batch requires --provider openai")
    with wrong_arguments():
        chosen_recipe(command_actor(), wanted)  # here what it refuses is a wrong option
    return wanted


def _ask_for_prices(actor: Actor, wanted: RunStart) -> None:
    """On a terminal, prompt for unknown prices of the models and save them."""
    for model in operations.unpriced(actor, wanted) if sys.stdin.isatty() else ():
        click.echo(f"The price of {model!r} is unknown (enter 0 for a free model).", err=True)
        input_price, output_price = (
            click.prompt(f"USD per million {what} tokens", type=click.FloatRange(min=0), err=True)
            for what in ("input", "output")
        )
        connections.save_price(actor, model, Price(input_price, output_price))


def _showing_reuse(work: Launch[Result]) -> Launch[Result]:
    """Work on the run, or queue it; how many of its answers are stored is shown before, and how
    many of its workers are idle is part of the result."""

    def launch_run(actor: Actor, kind: str, request: Request) -> Result:
        assert isinstance(request, RunWork)
        if not request.joins and (message := operations.reuse(actor, request.run_id)):
            click.echo(in_commands(message), err=True)
        idle = operations.idle(actor, request)
        result = work(actor, kind, request) | {"run_id": request.run_id}
        return result | {"idle": idle} if idle else result

    return launch_run


@runs.command()
@start_options
@launched
@reporting(_ended)
def create(launch: Launching, **given: Any) -> Result:
    """Generate groups from the pairs of a dataset and validate them (section 4.1 of the paper)."""
    wanted, actor = _request(given), command_actor()
    _ask_for_prices(actor, wanted)
    return operations.create(actor, wanted, _showing_reuse(launch("curate")))


@runs.command()
@start_options
@reporting(_estimated)
def estimate(**given: Any) -> RunEstimate:
    """Estimate time and cost of a run with these options, without starting it."""
    return operations.estimate(command_actor(), _request(given))


resume, join = (
    runs.door(each, text=_ended, title="curate", around=_showing_reuse)
    for each in (operations.resume, operations.join)
)


def _shrunk(found: RunShrunk) -> str:
    who = ", ".join(map(str, found.leaving))
    return f"jobs that leave: {who}; {counted(found.workers, 'worker')} of run {found.run_id} stay"


runs.door(operations.shrink, text=_shrunk)


curate = FormerlyOne(
    "curate",
    create,
    {
        "--worker": (join, "runs join"),
        "--resume": (resume, "runs resume"),
        "--estimate": (estimate, "runs estimate"),
    },
    argument="--dataset",
    left_out={"--seed": 1, "--fresh": 0, "--rpm": 1, "--tpm": 1},
)


def _state(row: Result) -> str:
    return f"{row['status']}, archived" if row["archived"] else str(row["status"])


runs.listed(
    operations.list_all,
    click.option("--dataset", help="Only runs of this dataset."),
    click.option("--status", type=click.Choice(STATUSES), help="Only runs of this status."),
    archived_option,
    columns=(
        *(("run", "id"), "dataset", "recipe", "provider", ("status", _state)),
        *("pairs", "kept", "dropped", ("USD", lambda row: f"{row['spent_usd']:.2f}")),
    ),
    empty="no such runs",
)


def _server_text(result: Result) -> str:
    """The server that answers a run, and the connection that it is."""
    if not result["url"]:
        return result["connection"] or "–"
    return f"{result['url']} (connection {result['connection']})"


def _shown(result: Result) -> str:
    progress = result["funnel"]
    facts: list[tuple[str, object]] = [
        ("run", result["id"]),
        ("dataset", result["dataset"]),
        ("status", _state(result)),
        ("recipe", f"{result['recipe']} ({result['recipe_sha256'][:12]})"),
        ("provider", result["provider"] + (" (offline)" if result["offline"] else "")),
        ("server", _server_text(result)),
        ("pairs", f"{result['pairs']:,} ({progress['waiting']:,} waiting)"),
        ("reached", counts(progress["reached"])),
        *_verdicts(result["kept"], progress["dropped"]),
        *_texts(result["texts"]),
        ("verdicts", f"version {result['verdict_version']}"),
        ("reviews", counts(result["reviews"])),
        ("spent", _spent(result)),
        ("budget", "–" if result["budget_usd"] is None else f"{result['budget_usd']:.2f} USD"),
        ("workers", _workers(result)),
        *([("waiting", result["waiting"])] if result["waiting"] else []),
        ("seed", result["seed"]),
        ("created", f"{result['created_at']} by {result['created_by'] or '–'}"),
        ("finished", result["finished_at"] or "–"),
    ]
    if result["text_baseline"]:
        facts.append(("items", baseline_sentence(TextBaseline(**result["text_baseline"]))))
    if shared := _shared(result):
        found = [part_text(part, shared.groups) for part in shared.parts]
        facts += [("shared parts", found[0] if found else shared.reason or "none")]
        facts += [("", part) for part in found[1:]]
    if result["unchecked"]:
        facts.append(("" if shared else "shared parts", in_commands(check_command(result["id"]))))
    if result["error"]:
        facts.append(("message", in_commands(result["error"])))
    parts = [lines(*facts), *dependents_text(result["dependents"]), f"next: {_after(result)}"]
    return "\n".join(parts)


def _spent(run: Result) -> str:
    spent = f"{run['spent_usd']:.4f} USD"
    if not run["unanswered_usd"]:
        return spent
    return f"{spent}, of it at most {run['unanswered_usd']:.4f} USD for calls without an answer"


def _workers(run: Result) -> str:
    calls = run["died_in_flight"]
    more = f"; about {calls:,} calls in flight when workers died, which may be billed" * bool(calls)
    return f"{run['workers']}{more}"


def _after(run: Result) -> str:
    """What a person would do with a run as it is."""
    if run["status"] == "done":
        return f"inf groups list {run['id']}"
    resume = f"inf runs resume {run['id']}"
    return resume if run["status"] in ("paused", "failed", "cancelled") else "inf status"


runs.door(operations.show, text=_shown)
