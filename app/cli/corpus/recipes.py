"""`inf recipes`: list, show and check recipes."""

import click

from app.cli.kit.doors import Noun
from app.cli.kit.report import Result, command_actor, facts, lines, reporting
from app.operations import runs as operations
from curation.recipe.prices import load_prices
from curation.recipe.recipe import load_recipe

recipes = Noun("recipes")
recipes.listed(
    operations.list_recipes,
    columns=(("recipe", "name"), ("models", lambda row: ", ".join(row["models"])), "description"),
    empty="no recipes",
    then="inf recipes show {name}",
    former=("recipes", {}),
)


def _shown(result: Result) -> str:
    body = result["recipe"]
    parts = [lines(("recipe", body["name"]), ("description", body["description"] or "–"))]
    parts.append(lines(("sha256", result["sha256"])))
    for task, stage in body["stages"].items():
        parts += ["", f"[{task}]", lines(*_settings(stage))]
    for name in ("validation", "filters"):
        if body[name]:
            parts += ["", f"[{name}]", lines(*_settings(body[name]))]
    servers = {name: body[name] for name in ("endpoints", "server_group") if name in body}
    return "\n".join([*parts, *(["", lines(*_settings(servers))] if servers else [])])


def _settings(values: Result) -> list[tuple[str, object]]:
    return [(name, str(value)) for name, value in values.items() if name != "prompt_sha256"]


setting_option = click.option(
    "--set", "settings", multiple=True, metavar="STAGE.KEY=VALUE", help="Override a setting."
)


@recipes.command()
@click.argument("recipe", required=False)
@click.option("--run", "run_id", type=int, help="The recipe of this run, as it was stored.")
@setting_option
@reporting(_shown)
def show(recipe: str | None, run_id: int | None, settings: tuple[str, ...]) -> Result:
    """Show a recipe: a built-in one, a TOML file, or that of a run; --json includes prompts."""
    if (recipe is None) == (run_id is None):
        raise click.UsageError("give either the name or file of a recipe, or --run RUN")
    if recipe is not None:
        found = load_recipe(recipe, settings)
    else:
        if settings:
            raise click.UsageError("--set requires the name or file of a recipe")
        assert run_id is not None
        found = operations.recipe(command_actor(), run_id)
    prompts = dict(found.prompts().values())
    return {"recipe": found.body(), "sha256": found.sha256, "prompts": prompts}


@recipes.command()
@click.argument("recipe")
@setting_option
@reporting(
    facts(
        ("recipe", lambda found: f"{found['name']} is valid"),
        "sha256",
        ("stages", lambda found: ", ".join(found["stages"])),
        ("models", lambda found: ", ".join(found["models"])),
        ("without a price", lambda found: ", ".join(found["without_price"]) or "none"),
    )
)
def check(recipe: str, settings: tuple[str, ...]) -> Result:
    """Check a recipe and its prompts without a run; an error names the place and the remedy."""
    found = load_recipe(recipe, settings)
    prices = load_prices()
    return {
        "name": found.name,
        "sha256": found.sha256,
        "stages": list(found.stages),
        "models": found.models,
        "without_price": [model for model in found.models if model not in prices],
    }
