"""Who wrote, judged and was the base of a trained model, by the content of weights.

Where one model has two of these parts, figures on held-out groups are circular, and the card says
so. The release names its writers and judges with the hashes recorded when its run was started; a
model behind an API has a name and no hash.
"""

from collections.abc import Mapping
from typing import Any

from analysis.embed.model_hash import model_sha256
from trainer.settings.settings import TrainSettings

VALIDATION = "validation"
Named = Mapping[str, Any]


def origins_of(settings: TrainSettings, manifest: Mapping[str, Any]) -> dict[str, Any]:
    """{wrote: {task: {model, sha256}}, judged, base, teacher: {model, sha256}, map}.

    judged, map and teacher are None where there is none or the release does not name it.
    """
    models = dict(manifest.get("models") or {})
    judged = models.pop(VALIDATION, None)
    return {
        "wrote": models,
        "judged": judged,
        "map": manifest.get("map"),
        "base": _named(settings.base_model),
        "teacher": _named(settings.teacher) if settings.teacher not in ("", "off") else None,
    }


def same_model(one: Named | None, other: Named | None) -> bool:
    """Whether both are one model: equal content where both are known, else equal names."""
    if not one or not other:
        return False
    if one["sha256"] and other["sha256"]:
        return bool(one["sha256"] == other["sha256"])
    return bool(one["model"]) and one["model"] == other["model"]


def circular_origins(origins: Mapping[str, Any]) -> list[str]:
    """A sentence for every pair of parts that one model has; empty where all are independent."""
    judged, found = origins["judged"], []
    for part, label in (("base", "the base model"), ("teacher", "the teacher")):
        if same_model(judged, origins[part]):
            found.append(
                f"Circular: {label} is also the validator that chose the groups, so scores on "
                "held-out groups are too high for the base and gains are not independent of the "
                "filter. Independent are held-out groups approved by people "
                "(held_out_groups=approved) and runs validated by another judge."
            )
    for task, writer in origins["wrote"].items():
        if same_model(judged, writer):
            found.append(
                f"Circular: the model of {task} also validated what it wrote. Independent is a "
                "validation by another model or by people."
            )
    if same_model(origins["map"], judged):
        found.append(
            "Circular: the release's map is embedded by the validator that chose its groups. "
            "Independent is a map by another model."
        )
    return found


def origin_rows(origins: Mapping[str, Any]) -> list[tuple[str, str]]:
    """(part, model with its hash) for the card."""
    rows = [(f"Wrote ({task})", _shown(of)) for task, of in origins["wrote"].items()]
    rows += [("Judged (validation)", _shown(origins["judged"]))]
    rows += [("Base", _shown(origins["base"]))]
    rows += [("Teacher", _shown(origins["teacher"]))] if origins["teacher"] else []
    rows += [("Embeds the map", _shown(origins["map"]))] if origins["map"] else []
    return rows


def _named(name: str) -> dict[str, Any]:
    plain = name.partition(":")[2] if ":" in name else name
    return {"model": name, "sha256": model_sha256(plain)}


def _shown(of: Named | None) -> str:
    if not of:
        return "not stated by the release"
    known = f"weights sha256 `{of['sha256']}`" if of["sha256"] else "weights not on this machine"
    return f"{of['model']}, {known}"
