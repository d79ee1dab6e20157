"""Recipes: TOML files that name prompts, models, sampling and filter settings per task.

A recipe's identity is the sha256 of its body as JSON, the sha256 of every prompt included: it
determines what a run does.
"""

import json
import re
import tomllib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import inf
from pathlib import Path
from typing import Any

from analysis.embed.model_source import DEFAULT_MODEL
from analysis.files.written import write_files
from curation.recipe.checks import KEYS, Check, check_from, require_judged
from curation.recipe.prompt import Beside, Prompt, read_prompt
from curation.recipe.reasoning import with_room_to_reason
from curation.recipe.settings import (
    ANSWERS_AS,
    FILTERS,
    FORMER_FILTERS,
    HEAD,
    NUMBERS,
    PARAMETERS,
    REQUIRED,
    SERVERS,
    TRANSPORT,
    VALIDATION,
    YES_OR_NO,
    Filters,
    Validation,
    filters_from_store,
    filters_to_store,
    present_names,
    require_known,
    require_table,
    require_text,
    validation_from_store,
    validation_to_store,
)
from curation.recipe.slots import TABLES as OF_SHAPE
from curation.recipe.slots import Vary, add_stage, read_shape, with_line
from curation.recipe.structured import OUTPUTS
from curation.recipe.tasks import VALIDATION as VALIDATING
from curation.recipe.tasks import Task, TaskSpec, tasks_of
from db.corpus.datasets import text_sha256
from db.errors import BadInput, Refused
from db.shape import Shape, shape_in

FOLDER = Path(__file__).parent / "recipes"
TABLES = ("stages", "checks", "validation", "filters")  # and those of a shape
OF_CHECKS = "checks."  # such settings are of [checks.NAME]: checks.NAME.expected.SIGN, ….votes
DECIDING = ("votes", "agree")  # of [validation]: what decides stored answers again
FILE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*\.(toml|md|txt)")
ANYTHING = "any"  # as an expected answer: nothing is expected


@dataclass(frozen=True)
class Stage:
    """One task's model, prompt and sampling parameters."""

    model: str
    prompt: Prompt
    parameters: dict[str, Any]
    transport: dict[str, Any] = field(default_factory=dict)

    @property
    def answers_as(self) -> str:
        """By which name its model may answer, one of ANSWERS_AS."""
        return str(self.transport.get("answers_as", "own"))


@dataclass(frozen=True)
class Recipe:
    """Everything a run does, apart from the dataset, the seed and the budget.

    `endpoints`: addresses of servers in place of those of the environment. `server_group`: the
    name under which their answers are kept; empty: after the endpoints. `shape`: the texts and
    scenarios of its groups; `checks`: what else is asked about its texts; `vary`: what is drawn
    for each pair.
    """

    name: str
    description: str
    stages: dict[Task, Stage]
    shape: Shape
    validation: Validation = field(default_factory=Validation)
    filters: Filters = field(default_factory=Filters)
    endpoints: tuple[str, ...] = ()
    server_group: str = ""
    checks: tuple[Check, ...] = ()
    vary: Vary = field(default_factory=dict)

    @cached_property
    def tasks(self) -> dict[Task, TaskSpec]:
        """Its tasks in their order: those of its shape, then its checks."""
        return tasks_of(self.shape) | {check.task: check.spec for check in self.checks}

    @property
    def judge_model(self) -> str:
        """The model that validates its groups, or else the one of its first check."""
        judging = VALIDATING if VALIDATING in self.stages else self.checks[0].task
        return self.stages[judging].model

    @property
    def judged_calls(self) -> int:
        """How many answers its judges give about a group that reaches them."""
        picks = len(self.shape.roles) * self.validation.votes * (VALIDATING in self.stages)
        return picks + sum(check.answers for check in self.checks)

    @property
    def models(self) -> list[str]:
        """The models of its stages, by name."""
        return sorted({stage.model for stage in self.stages.values()})

    def with_rules_as_models(self) -> "Recipe":
        """The recipe for a provider without language models: rules write and an embedding model
        judges, unless it names one of these already."""
        if "/" in self.judge_model:
            return self
        judging = {VALIDATING, *(check.task for check in self.checks)}
        stages = {
            task: replace(stage, model=DEFAULT_MODEL if task in judging else "rules")
            for task, stage in self.stages.items()
        }
        return replace(self, stages=stages)

    def body(self) -> dict[str, Any]:
        """The recipe as JSON, with prompts by name and sha256."""
        return {
            "name": self.name,
            "description": self.description,
            "stages": {
                task: {
                    "model": stage.model,
                    "prompt": stage.prompt.name,
                    "prompt_sha256": stage.prompt.sha256,
                    **stage.parameters,
                    **stage.transport,
                }
                for task, stage in self.stages.items()
            },
            "validation": validation_to_store(self.validation),
            "filters": filters_to_store(self.filters),
            # left out where empty or InF-IR's: the hashes of such recipes stay as they are
            **({"endpoints": list(self.endpoints)} if self.endpoints else {}),
            **({"server_group": self.server_group} if self.server_group else {}),
            **self.shape.entry,
            **({"checks": [check.body() for check in self.checks]} if self.checks else {}),
            **({"vary": {name: dict(of) for name, of in self.vary.items()}} if self.vary else {}),
        }

    @property
    def sha256(self) -> str:
        """The identity of the recipe: of its body with every filter under its first name.

        So a recipe is the same one before and after a filter was renamed.
        """
        body = self.body()
        for first, name in FORMER_FILTERS.items():
            body["filters"][first] = body["filters"].pop(name)
        return text_sha256(json.dumps(body, sort_keys=True, ensure_ascii=False))

    def prompts(self) -> dict[str, tuple[str, str]]:
        """The prompts: sha256 to (name, text)."""
        return {
            stage.prompt.sha256: (stage.prompt.name, stage.prompt.text)
            for stage in self.stages.values()
        }


def renamed(files: Mapping[str, str], name: str) -> dict[str, str]:
    """A recipe's files under another name, which its own file is called by and has."""
    own, named = toml_of(files), f"name = {json.dumps(name)}"
    text = re.sub(r'^name = ".*"$', lambda _: named, files[own], count=1, flags=re.M)
    return {f"{name}.toml": text} | {each: files[each] for each in files if each != own}


def write_recipe(files: Mapping[str, str], folder: Path) -> Path:
    """Write a recipe's files into a new folder; returns the recipe's own. Raises BadInput."""
    if folder.exists():
        raise BadInput(f"{folder} exists", "name a new folder", code="file_exists")
    write_files(folder, files)
    return folder / toml_of(files)


def list_recipes() -> list[str]:
    """The names of the recipes that come with us."""
    return sorted(path.stem for path in FOLDER.glob("*.toml"))


def load_recipe(name_or_path: str, settings: Sequence[str] = ()) -> Recipe:
    """The built-in recipe of that name, or the file, with `stage.key=value` settings put in.

    `key=value` without a stage sets it in every stage. A reasoning model that a setting names gets
    room to reason, unless a setting names its limit too. Raises BadInput, which names the place.
    """
    path = _file_of(name_or_path)
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise _unreadable(path.name, error) from error
    return _from_text(path.name, text, path.parent, settings)


def _file_of(name_or_path: str) -> Path:
    """The built-in recipe's file, the file, or the only TOML file of the folder of that name."""
    given = Path(name_or_path)
    inside = sorted(given.glob("*.toml")) if name_or_path and given.is_dir() else []
    places = [FOLDER / f"{name_or_path}.toml", given, *(inside if len(inside) == 1 else [])]
    if (path := next((each for each in places if each.is_file()), None)) is None:
        raise BadInput(
            f"no recipe {name_or_path!r}",
            f"give a TOML file or one of {', '.join(list_recipes())}",
            code="recipe_unknown",
        )
    return path


def read_recipe(files: Mapping[str, str], settings: Sequence[str] = ()) -> Recipe:
    """The recipe of these texts by file name, one TOML file and the prompts that are its own.

    Nothing else is read, but for prompts that come with us. Raises BadInput as `load_recipe`.
    """
    name = toml_of(files)
    return _from_text(name, files[name], files, settings)


def toml_of(files: Mapping[str, str]) -> str:
    """The name of the recipe's own file. Raises BadInput where there is none, or several, and for a
    name that could not be a file beside it."""
    for name in files:
        check_file_name(name)
    found = [name for name in files if name.endswith(".toml")]
    if len(found) != 1:
        raise BadInput(
            f"a recipe is one TOML file with its prompts, and here are {len(found)}",
            "give one, as in books.toml",
            code="recipe_files_invalid",
        )
    return found[0]


def check_file_name(name: str) -> None:
    """Raise BadInput for what cannot be the name of a recipe's file."""
    if not FILE_NAME.fullmatch(name):
        raise BadInput(
            f"a file of a recipe cannot be called {name!r}",
            "use letters, digits, dots, hyphens and underscores, and end it in .toml, .md or .txt",
            code="recipe_file_name_invalid",
        )


def files_of(name_or_path: str, settings: Sequence[str] = ()) -> dict[str, str]:
    """The texts of a built-in recipe, or of one in a folder, by file name: its own file first.

    Raises BadInput as `load_recipe`.
    """
    recipe = load_recipe(name_or_path, settings)
    path = _file_of(name_or_path)
    return {path.name: path.read_text(encoding="utf-8"), **dict(recipe.prompts().values())}


def _from_text(name: str, text: str, beside: Beside, settings: Sequence[str]) -> Recipe:
    try:
        tables = tomllib.loads(text.removeprefix("\ufeff"))  # as Windows' Notepad saves UTF-8
    except tomllib.TOMLDecodeError as error:
        raise _unreadable(name, error) from error
    where = f"the recipe {name}"
    try:
        return _read(tables, name, beside, where, settings)
    except BadInput as error:
        raise with_line(error, where, text) from error


def _unreadable(name: str, error: ValueError) -> BadInput:
    at = re.search(r"at line (\d+)", str(error))
    return BadInput(
        f"the recipe {name} cannot be read: {error}",
        "correct the file",
        code="recipe_unreadable",
        file=name,
        **({"line": int(at[1])} if at else {}),
    )


def _read(
    tables: dict[str, Any], name: str, beside: Beside, where: str, settings: Sequence[str]
) -> Recipe:
    require_known(tables, (*HEAD, *SERVERS, *TABLES, *OF_SHAPE), where)
    for table in (each for each in (*TABLES, *OF_SHAPE) if each in tables):
        require_table(tables[table], f"{where}, [{table}]")
    if not tables.keys() & {"stages", "texts"}:
        raise BadInput(
            f"{where} has neither [stages] nor [texts]",
            "begin with a built-in one: `recipes new FOLDER`",
            code="recipe_stages_missing",
        )
    if "filters" in tables:
        tables["filters"] = present_names(tables["filters"], f"{where}, [filters]")
    shape, vary, rules = read_shape(tables, where)
    checks = _checks(tables, shape, where)
    is_picked = not checks or VALIDATING in tables.get("stages", {})
    picked = {each.passage.sign for each in shape.all_scenarios if is_picked}
    require_judged(rules, checks, picked, where)
    checks = _set_in_checks(checks, settings, shape, where)
    for setting in (each for each in settings if not each.startswith(OF_CHECKS)):
        _put(tables, setting, [*tasks_of(shape), *(check.task for check in checks)])
    found = _build(tables, name, beside, shape, checks)
    return replace(_with_room_to_reason(found, settings), vary=vary)


def recipe_from_store(body: Mapping[str, Any], prompts: Mapping[str, str]) -> Recipe:
    """The recipe of a stored body; `prompts` maps sha256 to text."""
    stages = {
        task: Stage(
            model=stage["model"],
            prompt=Prompt(stage["prompt"], prompts[stage["prompt_sha256"]]),
            parameters={name: stage[name] for name in PARAMETERS if name in stage},
            transport={name: stage[name] for name in TRANSPORT if name in stage},
        )
        for task, stage in body["stages"].items()
    }
    shape = shape_in(body)
    return Recipe(
        name=body["name"],
        description=body["description"],
        stages=stages,
        validation=validation_from_store(body),
        filters=filters_from_store(body),
        endpoints=tuple(body.get("endpoints", ())),
        server_group=body.get("server_group", ""),
        shape=shape,
        checks=_with_prompts(
            [check_from(each, shape, "the stored recipe") for each in body.get("checks", ())],
            stages,
        ),
        vary=body.get("vary", {}),
    )


def _checks(tables: dict[str, Any], shape: Shape, where: str) -> list[Check]:
    """The [checks] of a file, taken out; the model, prompt and sampling of each become a stage."""
    checks = []
    for name, table in tables.pop("checks", {}).items():
        place = f"{where}, [checks.{name}]"
        if not re.fullmatch(r"[a-z][a-z_]*", name):
            raise BadInput(
                f"{place}: a check's name is of small letters and _",
                "rename the table",
                code="check_name_invalid",
            )
        require_known(table, (*REQUIRED, *KEYS, *PARAMETERS, *TRANSPORT), place)
        own = {key: table[key] for key in KEYS if key in table}
        checks.append(check_from({"name": name, **own}, shape, place))
        stage = {key: value for key, value in table.items() if key not in KEYS}
        add_stage(tables, checks[-1].task, stage, f"checks.{name}", where)
    return checks


def _with_prompts(checks: Sequence[Check], stages: Mapping[Task, Stage]) -> tuple[Check, ...]:
    return tuple(check.with_prompt(stages[check.task].prompt.sha256) for check in checks)


def _build(
    tables: dict[str, Any], name: str, beside: Beside, shape: Shape, checks: Sequence[Check]
) -> Recipe:
    where = f"the recipe {name}"
    tasks = tasks_of(shape) | {check.task: check.spec for check in checks}
    of_tables = {step.name: f"steps.{step.name}" for step in shape.steps}
    of_tables |= {check.task: f"checks.{check.name}" for check in checks}
    _check_head(tables, where)
    given = tables.get("stages", {})
    require_known(given, tuple(tasks), f"{where}, [stages]")
    stages: dict[Task, Stage] = {}
    for task, spec in tasks.items():
        if task == VALIDATING and checks and task not in given:
            continue  # its checks judge it
        table = given.get(task) or _like_an_earlier(task, tasks, given)
        if not isinstance(table, dict):
            raise BadInput(
                f"{where} has no [stages.{task}]",
                "see a built-in one with `recipes show NAME`",
                code="recipe_stages_missing",
            )
        place = f"{where}, [{of_tables.get(task, f'stages.{task}')}]"
        require_known(table, (*REQUIRED, *PARAMETERS, *TRANSPORT), place)
        _check_stage(table, place)
        for key in REQUIRED:
            if not isinstance(table.get(key), str) or not table[key]:
                raise BadInput(
                    f"{place} has no {key}",
                    "see a built-in one with `recipes show NAME`",
                    code="recipe_key_missing",
                )
        if table.get("output", "text") not in OUTPUTS:
            raise BadInput(
                f"{place}: output = {table['output']!r} is not text or json",
                "write one of them",
                code="recipe_output_invalid",
            )
        stages[task] = Stage(
            model=table["model"],
            prompt=read_prompt(task, spec, table["prompt"], beside, place),
            parameters={key: table[key] for key in PARAMETERS if key in table},
            transport={key: table[key] for key in TRANSPORT if key in table},
        )
    validation = _validation(tables, where)
    return Recipe(
        name=str(tables.get("name") or Path(name).stem),
        description=str(tables.get("description", "")),
        stages=stages,
        validation=validation,
        filters=Filters(**_number_table(tables, "filters", FILTERS, where)),
        endpoints=tuple(tables.get("endpoints", ())),
        server_group=tables.get("server_group", ""),
        shape=shape,
        checks=_with_prompts(checks, stages),
    )


def _validation(tables: dict[str, Any], where: str) -> Validation:
    validation = Validation(**_number_table(tables, "validation", VALIDATION, where))
    if validation.votes < 1:
        raise BadInput(
            f"{where}, [validation]: votes = {validation.votes}: at least 1 is needed",
            "write 1, or how often an item is judged",
            code="votes_invalid",
        )
    if validation.agree > validation.votes:
        raise BadInput(
            f"{where}, [validation]: agree = {validation.agree} of votes = {validation.votes}",
            "give at most as many as there are votes",
            code="votes_invalid",
        )
    return validation


def _with_room_to_reason(recipe: Recipe, settings: Sequence[str]) -> Recipe:
    """The recipe with higher limits where a setting chose a model that reasons."""
    named = {setting.partition("=")[0].strip() for setting in settings}
    stages = dict(recipe.stages)
    for task, stage in recipe.stages.items():
        limit = stage.parameters.get("max_output_tokens")
        new_model = bool(named & {"model", f"{task}.model"})
        new_limit = bool(named & {"max_output_tokens", f"{task}.max_output_tokens"})
        if limit and new_model and not new_limit:
            limit = with_room_to_reason(stage.model, limit)
            stages[task] = replace(
                stage, parameters=stage.parameters | {"max_output_tokens": limit}
            )
    return replace(recipe, stages=stages)


def _check_head(tables: dict[str, Any], where: str) -> None:
    for key in HEAD:
        require_text(tables.get(key, ""), key, where)
    endpoints = tables.get("endpoints", [])
    if not isinstance(endpoints, list) or not all(isinstance(one, str) for one in endpoints):
        raise BadInput(
            f"{where}: endpoints = {endpoints!r} is not a list of addresses",
            'write endpoints = ["https://HOST/v1"]',
            code="endpoints_invalid",
        )
    group = tables.get("server_group", "")
    if not isinstance(group, str) or group.startswith("http"):  # such a name is of no person's
        raise BadInput(
            f"{where}: server_group = {group!r} is not a name",
            'write one that is no address, as in server_group = "ours"',
            code="server_group_invalid",
        )


def _like_an_earlier(
    task: Task, tasks: Mapping[Task, TaskSpec], given: Mapping[str, Any]
) -> dict[str, Any] | None:
    """For a task the recipe does not name: the last stage before it that writes the same kind.

    Its prompt is `TASK.md`. A recipe written before a scenario was added stays usable.
    """
    names = list(tasks)
    for earlier in reversed(names[: names.index(task)]):
        if tasks[earlier].gives == tasks[task].gives and isinstance(given.get(earlier), dict):
            return dict(given[earlier], prompt=f"{task}.md")
    return None


def _check_stage(table: dict[str, Any], place: str) -> None:
    for name, (kind, above) in NUMBERS.items():
        number = table.get(name, 1)
        if isinstance(number, bool) or not isinstance(number, kind) or not above < number < inf:
            what = "a whole number" if kind is int else "a number"
            least = "from 0 up" if above < 0 else "above 0"
            raise BadInput(
                f"{place}: {name} = {number!r} is not {what} {least}",
                "write one, or leave it out",
                code="recipe_number_invalid",
            )
    require_text(table.get("reasoning_effort", ""), "reasoning_effort", place)
    for name in ("headers", "extra_body"):
        if not isinstance(table.get(name, {}), dict):
            raise BadInput(
                f"{place}: {name} = {table[name]!r} is not a table",
                "write one, as in {a = 1}",
                code="recipe_table_invalid",
            )
    for name, value in table.get("headers", {}).items():
        require_text(value, name, f"{place}, headers")
    if table.get("limit_name", "max_tokens") not in ("max_tokens", "max_completion_tokens"):
        raise BadInput(
            f"{place}: limit_name = {table['limit_name']!r} is no name of a limit",
            "write max_tokens or max_completion_tokens",
            code="limit_name_invalid",
        )
    if table.get("answers_as", "own") not in ANSWERS_AS:
        raise BadInput(
            f"{place}: answers_as = {table['answers_as']!r} is no way to be named",
            "write own, one or any",
            code="answers_as_invalid",
        )


def _number_table(
    tables: dict[str, Any], name: str, known: Collection[str], where: str
) -> dict[str, Any]:
    table: dict[str, Any] = tables.get(name, {})
    require_known(table, known, f"{where}, [{name}]")
    for key, value in table.items():
        if key in YES_OR_NO:
            if not isinstance(value, bool):
                raise BadInput(
                    f"{where}, [{name}]: {key} = {value!r} is no switch",
                    "write true or false",
                    code="recipe_boolean_invalid",
                )
        elif not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise BadInput(
                f"{where}, [{name}]: {key} = {value!r} is not a whole number from 0 up",
                "write one, as in 3",
                code="recipe_number_invalid",
            )
    return table


def with_rules(recipe: Recipe, settings: Sequence[str]) -> Recipe:
    """The recipe with other rules over the answers that its runs have stored.

    Rules are `filters.NAME`, `validation.votes` (the first of those that were requested),
    `validation.agree`, `checks.NAME.votes` and `checks.NAME.expected.SIGN`, in the words of a
    run's settings. Raises BadInput for what is none, Refused for what needs answers that were
    never requested.
    """
    body = recipe.body()
    tables = {name: dict(body[name]) for name in ("validation", "filters")}
    for setting in (each for each in settings if not each.startswith(OF_CHECKS)):
        place, value = read_setting(setting)
        section, _, key = place.rpartition(".")
        if section == "filters" or (section == "validation" and key in DECIDING):
            tables[section][FORMER_FILTERS.get(key, key)] = value
        else:
            raise needs_answers(f"the setting {place}")
    rules = _validation(tables, "the rules")
    found = replace(
        recipe,
        validation=replace(recipe.validation, votes=rules.votes, agree=rules.agree),
        filters=Filters(**_number_table(tables, "filters", FILTERS, "the rules")),
        checks=_with_prompts(
            _set_in_checks(recipe.checks, settings, recipe.shape, "the rules"), recipe.stages
        ),
    )
    for name, now, before in (
        ("validation.votes", found.validation.votes, recipe.validation.votes),
        *(
            (f"checks.{one.name}.votes", one.votes, other.votes)
            for one, other in zip(found.checks, recipe.checks, strict=True)
        ),
    ):
        if now > before:
            raise needs_answers(f"{name} = {now}, and {before} were requested:")
    return found


def needs_answers(what: str) -> Refused:
    """The refusal of rules that the stored answers cannot decide; `what` needs others."""
    return Refused(
        f"{what} needs answers that were never requested",
        "create a run with it (`runs create`), which reuses the stored answers",
        code="rules_need_answers",
    )


def read_setting(setting: str) -> tuple[str, Any]:
    """The place and the value of PLACE=VALUE; a value that is no TOML is a text. Raises
    BadInput."""
    place, equals, text = setting.partition("=")
    if not equals or not text:
        raise BadInput(
            f"the setting {setting!r} has no place and value",
            "write stage.key=value, as in validation.model=o3-mini",
            code="setting_without_place",
        )
    try:
        return place.strip(), tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return place.strip(), text.strip()


def _set_in_checks(
    checks: Sequence[Check], settings: Sequence[str], shape: Shape, where: str
) -> list[Check]:
    """The checks, without their prompts, with the settings that are about them."""
    bodies = {check.name: check.body() for check in checks}
    for setting in settings:
        if setting.startswith(OF_CHECKS):
            _put_in_check(bodies, *read_setting(setting))
    return [check_from(body, shape, f"{where}, [checks.{name}]") for name, body in bodies.items()]


def _put_in_check(checks: Mapping[str, Any], place: str, value: Any) -> None:
    """Set `checks.NAME.votes` or `checks.NAME.expected.SIGN` in the tables of the checks."""
    name, _, key = place.removeprefix(OF_CHECKS).partition(".")
    table = checks.get(name)
    if not isinstance(table, dict):
        raise BadInput(
            f"the setting {place!r} names no check",
            f"there are {', '.join(checks)}" if checks else "the recipe has no [checks]",
            code="setting_place_unknown",
        )
    key, _, sign = key.partition(".")
    if key == "votes" and not sign:
        table[key] = value
    elif key == "expected" and sign:
        expected = table["expected"]
        expected.pop(sign, None)
        if value != ANYTHING:
            expected[sign] = str(value)
        elif sign not in table.get("over", ()):
            expected[sign] = ANYTHING  # refused, as any other sign that is not there
    else:
        raise BadInput(
            f"the setting {place!r} is none of a check",
            f"write checks.{name}.votes=N or checks.{name}.expected.SIGN=ANSWER",
            code="setting_place_unknown",
        )


def _put(tables: dict[str, Any], setting: str, tasks: Collection[Task]) -> None:
    place, value = read_setting(setting)
    section, _, key = place.rpartition(".")
    if place == "server_group":
        tables[place] = str(value)
    elif place == "endpoints":
        # a person who may start runs on a page could send the server's key to any address
        raise BadInput(
            "endpoints are set in a recipe file or by OPENAI_BASE_URL, not by `set=`",
            "leave it out",
            code="endpoints_not_settable",
        )
    elif not section:
        for table in tables.get("stages", {}).values():
            table[key] = value
    elif section == "filters" or (section == "validation" and key in VALIDATION):
        tables.setdefault(section, {})[FORMER_FILTERS.get(key, key)] = value
    elif section in tasks:
        tables.setdefault("stages", {}).setdefault(section, {})[key] = value
    else:
        raise BadInput(
            f"the setting {setting!r} has no stage {section!r}",
            f"there are {', '.join(tasks)} and filters",
            code="setting_place_unknown",
        )
