"""`inf recipes`: list, show, check, write and save recipes, compare versions, preview them."""

from app.access.identity import Actor, owner
from app.cli.kit.doors import Noun
from app.cli.kit.options import request_options
from app.cli.kit.report import Launching, Result, command_actor, launched, lines, me, reporting
from app.operations import recipes as operations
from app.operations import runs
from app.operations.recipes import RecipeShown
from db.rows import Row

recipes = Noun("recipes", former={})
recipes.listed(
    operations.list_all,
    columns=(
        ("recipe", "name"),
        ("version", lambda row: row["version"] or "built-in"),
        ("models", lambda row: ", ".join(row["models"])),
        ("description", lambda row: row["problem"] or row["description"]),
    ),
    empty="no recipes",
    actor=lambda _: owner(me()),  # built-in ones are listed without a store
)


def _shown(result: RecipeShown) -> str:
    body = result.recipe
    parts = [lines(("recipe", body.name), ("description", body.description or "–"))]
    parts.append(lines(("sha256", result.sha256)))
    for task, stage in body.stages.items():
        parts += ["", f"[{task}]", lines(*_settings(stage.as_json()))]
    for name, table in (("validation", body.validation), ("filters", body.filters)):
        if table:
            parts += ["", f"[{name}]", lines(*_settings(table))]
    given = body.as_json()
    servers: Result = {name: given[name] for name in ("endpoints", "server_group") if name in given}
    return "\n".join([*parts, *(["", lines(*_settings(servers))] if servers else [])])


def _settings(values: Result) -> list[tuple[str, object]]:
    return [(name, str(value)) for name, value in values.items() if name != "prompt_sha256"]


WRITTEN = ("recipe", ("files", lambda found: ", ".join(found["files"])))


def _actor(given: Result) -> Actor:
    """Who runs the command; a recipe that comes with us or is a file is read without a store."""
    named = given.get("recipe") or given.get("like")
    return command_actor() if not named or operations.needs_store(named) else owner(me())


recipes.door(operations.show, text=_shown, actor=_actor)
recipes.door(operations.new, text=WRITTEN, actor=_actor)
recipes.door(operations.export, text=WRITTEN, actor=_actor)
recipes.door(
    operations.check,
    text=(
        ("recipe", lambda found: f"{found['name']} is valid"),
        "sha256",
        ("stages", lambda found: ", ".join(found["stages"])),
        ("models", lambda found: ", ".join(found["models"])),
        ("without a price", lambda found: ", ".join(found["without_price"]) or "none"),
    ),
    actor=_actor,
)
recipes.door(
    operations.save,
    text=("name", "number", "sha256", ("files", lambda found: ", ".join(found["files"]))),
)
recipes.listed(
    operations.versions,
    name="versions",
    columns=("number", "note", "runs", "created_by", "created_at"),
    empty="it comes with us: no version is of the store",
)


def _differences(result: Result) -> str:
    parts = [f"{result['first']} → {result['second']}"]
    for file in result["files"]:
        if file["lines"]:
            counts = f"{file['file']}: +{file['added']} −{file['removed']}"
            parts += ["", counts, *file["lines"]]
    return "\n".join(parts if len(parts) > 1 else [*parts, "no differences"])


recipes.door(operations.diff, text=_differences)


def preview_text(result: Result) -> str:
    """A preview, pair by pair; with --detach the runs that make it."""
    if "pairs" not in result:
        queued = zip(result["runs"], result["job_ids"], strict=True)
        return lines(*((f"run {run}", f"job {job}") for run, job in queued))
    parts = []
    for run in result["runs"]:
        name = run["recipe"] + (f"@{run['version']}" if run["version"] else "")
        cost = f"{run['calls']} calls, ${run['cost_usd']:.4f} (${run['spent_usd']:.4f} of it new)"
        label = " offline" if run["offline"] else ""
        kept = f"kept {run['kept']}, dropped {run['dropped']}"
        parts.append(f"run {run['run_id']}: {name}{label}, {run['status']}: {kept}; {cost}")
    for pair in result["pairs"]:
        parts += ["", f"{pair['query_id']}: {pair['query']}"]
        for run, group in zip(result["runs"], pair["groups"], strict=True):
            parts += _group_lines(run, group)
    return "\n".join(parts)


def _group_lines(run: Result, group: Result | None) -> list[str]:
    if group is None:
        return [f"  run {run['run_id']}: no group yet"]
    reason = f": {group['drop_reason']}" if group["drop_reason"] else ""
    found = [f"  run {run['run_id']}: {group['verdict']}{reason}"]
    for name, text in group["texts"].items():
        lost = f" ({group['lost'][name]})" if name in group["lost"] else ""
        found.append(f"    {name}{lost}  {' '.join(text.split())[:200]}")
    return found


@recipes.command("preview")
@request_options(runs.RunPreview)
@launched
@reporting(preview_text)
def preview(request: runs.RunPreview, launch: Launching) -> Row:
    """Run a recipe on five pairs, --with another to compare it with; offline by default."""
    actor = command_actor()
    made = runs.preview(actor, request, launch("preview"))
    if launch.is_detached:
        jobs = tuple(each["job_id"] for each in made.launched)
        return runs.PreviewQueued(runs=made.runs, job_ids=jobs)
    return runs.previewed(actor, made.runs)
