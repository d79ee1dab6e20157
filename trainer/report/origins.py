"""Who wrote, judged and was the base of a trained model, by the content of weights.

Where one model has two of these parts, figures on held-out groups are circular, and the card says
so; where a hash is missing, independence is not asserted. The release names its writers and judges
with the hashes recorded by its run's first worker; a model behind an API has a name and no hash.
"""

from collections.abc import Mapping
from typing import Any

from analysis.embed.model_hash import NamedModel, model_sha256, same_model
from db.question import CHECK
from trainer.data.judged import judge_model
from trainer.evaluate.reranking import plain_name
from trainer.report.public_name import without_folders
from trainer.settings.settings import TrainSettings

VALIDATION = "validation"
BASE, TEACHER, MAP = "the base model", "the teacher", "the map's model"
BY_RUN = ("Wrote", "Judged", "Embeds")
Named = Mapping[str, Any]


def origins_of(settings: TrainSettings, manifest: Mapping[str, Any]) -> dict[str, Any]:
    """{wrote: {task: {model, sha256}}, judged, base, teacher: {model, sha256}, map}.

    judged, map and teacher are None where there is none or the release does not name it. Of several
    runs, `runs` has these of every run, and the others are those of the first.
    """
    if manifest.get("runs"):
        of_runs = [origins_of(settings, run) | {"run": run["run_id"]} for run in manifest["runs"]]
        return {**of_runs[0], "runs": of_runs}
    models = dict(manifest.get("models") or {})
    checks = [models.pop(task) for task in list(models) if task.startswith(CHECK)]
    judged = models.pop(VALIDATION, None) or next(iter(checks), None)
    return {
        "wrote": models,
        "judged": judged,
        "map": manifest.get("map"),
        "base": _named(settings.base_model),
        "teacher": _teacher(settings),
    }


def circular_origins(origins: Mapping[str, Any], *, approved: bool = False) -> list[str]:
    """A sentence for every pair of parts that one model has, and one for those of which it is
    unknown; empty where all are independent.

    approved: people approved the held-out groups, or a judge alone decided on them
    (`circular_judge`), so base model and teacher may be the validator.
    """
    if "runs" in origins:
        of_runs = (circular_origins(each, approved=approved) for each in origins["runs"])
        return list(dict.fromkeys(sentence for found in of_runs for sentence in found))
    judged, found = origins["judged"], []
    pairs = {label: same_model(_as_model(judged), _as_model(of)) for label, of in _checked(origins)}
    if approved:
        pairs = {label: same for label, same in pairs.items() if label not in (BASE, TEACHER)}
    for label in (BASE, TEACHER):
        if pairs.get(label):
            found.append(
                f"Circular: {label} is also the validator that chose the groups, so scores on "
                "held-out groups are too high for the base and gains are not independent of the "
                "filter. Independent are held-out groups approved by people "
                "(held_out_groups=approved) and runs validated by another judge."
            )
    for task in origins["wrote"]:
        if pairs.get(_writer(task)):
            found.append(
                f"Circular: {_writer(task)} also validated what it wrote. Independent is a "
                "validation by another model or by people."
            )
    if pairs.get(MAP):
        found.append(
            "Circular: the release's map is embedded by the validator that chose its groups. "
            "Independent is a map by another model."
        )
    if unknown := [label for label, same in pairs.items() if same is None]:
        found.append(
            f"Unknown: whether the validator is also {', '.join(unknown)}. The names differ, and "
            "weights that are not on this machine have no hash to compare."
        )
    return found


def circular_held_out(settings: TrainSettings, origins: Mapping[str, Any]) -> list[str]:
    """The sentences on held-out groups as these settings choose them."""
    judge, choice = settings.held_out_judge, settings.held_out_groups
    approved = choice == "approved"
    found = circular_origins(origins, approved=approved or decides_alone(settings))
    return found + (circular_judge(origins, judge) if judge and not approved else [])


def decides_alone(settings: TrainSettings) -> bool:
    """Whether the judge of held-out groups chose them, without the validator."""
    return bool(settings.held_out_judge) and settings.held_out_groups == "all"


def circular_judge(origins: Mapping[str, Any], judge: str) -> list[str]:
    """The same of the judge that confirmed the held-out groups, and base model and teacher."""
    model, found, named = judge_model(judge), [], without_folders(judge)
    parts = [(BASE, origins["base"]), (TEACHER, origins["teacher"])]
    pairs = {label: same_model(model, _as_model(of)) for label, of in parts if of}
    for label in (label for label, same in pairs.items() if same):
        found.append(
            f"Circular: {label} is also {named}, which confirmed the held-out groups, so scores on "
            "them are too high for the base. Independent is another judge."
        )
    if unknown := [label for label, same in pairs.items() if same is None]:
        found.append(
            f"Unknown: whether {named}, which confirmed the held-out groups, is also "
            f"{', '.join(unknown)}. The names differ, and weights that are not on this machine "
            "have no hash to compare."
        )
    return found


def _checked(origins: Mapping[str, Any]) -> list[tuple[str, Named]]:
    """(label, model) of every part that the validator should not have."""
    parts = [(BASE, origins["base"]), (TEACHER, origins["teacher"])]
    parts += [(_writer(task), of) for task, of in origins["wrote"].items()]
    return [(label, of) for label, of in [*parts, (MAP, origins["map"])] if of]


def _as_model(of: Named | None) -> NamedModel:
    return NamedModel(str(of["model"] or ""), of.get("sha256")) if of else NamedModel("", None)


def _writer(task: str) -> str:
    return f"the model of {task}"


def origin_rows(origins: Mapping[str, Any]) -> list[tuple[str, str]]:
    """(part, model with its hash) for the card."""
    if "runs" in origins:
        return [
            (f"{part}, run {each['run']}" if part.startswith(BY_RUN) else part, model)
            for place, each in enumerate(origins["runs"])
            for part, model in origin_rows(each)
            if place == 0 or part.startswith(BY_RUN)
        ]
    rows = [(f"Wrote ({task})", _shown(of)) for task, of in origins["wrote"].items()]
    rows += [("Judged (validation)", _shown(origins["judged"]))]
    rows += [("Base", _shown(origins["base"]))]
    rows += [("Teacher", _shown(origins["teacher"]))] if origins["teacher"] else []
    rows += [("Embeds the map", _shown(origins["map"]))] if origins["map"] else []
    return rows


def _teacher(settings: TrainSettings) -> dict[str, Any] | None:
    if judge := settings.judging_teacher:
        named = judge_model(judge)
        return {"model": named.name, "sha256": named.sha256}
    return _named(settings.teacher) if settings.teacher not in ("", "off") else None


def _named(name: str) -> dict[str, Any]:
    return {"model": name, "sha256": model_sha256(plain_name(name))}


def _shown(of: Named | None) -> str:
    if not of:
        return "not stated by the release"
    known = (
        f"weights sha256 `{of['sha256']}`" if of.get("sha256") else "weights not on this machine"
    )
    return f"{of['model']}, {known}"
