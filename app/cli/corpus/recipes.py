"""`inf recipes`: list, show, check and begin recipes."""

from app.access.identity import Actor, owner
from app.cli.kit.doors import Noun
from app.cli.kit.report import Result, command_actor, lines, me
from app.operations import runs as operations

recipes = Noun("recipes")
recipes.listed(
    operations.list_recipes,
    columns=(("recipe", "name"), ("models", lambda row: ", ".join(row["models"])), "description"),
    empty="no recipes",
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


def _actor(given: Result) -> Actor:
    """Who runs the command; a recipe that is no run's is read without a store."""
    return owner(me()) if given.get("run_id") is None else command_actor()


recipes.door(operations.show_recipe, name="show", text=_shown, actor=_actor)
recipes.door(
    operations.new_recipe,
    name="new",
    text=("recipe", ("files", lambda found: ", ".join(found["files"]))),
    actor=_actor,
)
recipes.door(
    operations.check_recipe,
    name="check",
    text=(
        ("recipe", lambda found: f"{found['name']} is valid"),
        "sha256",
        ("stages", lambda found: ", ".join(found["stages"])),
        ("models", lambda found: ", ".join(found["models"])),
        ("without a price", lambda found: ", ".join(found["without_price"]) or "none"),
    ),
    actor=_actor,
)
