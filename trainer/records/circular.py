"""Circular scores: the evaluated or base model chose the groups that it is evaluated on."""

from collections.abc import Iterable, Mapping
from typing import Any

from analysis.embed.model_hash import NamedModel, named_model, same_model
from db.outcome.evaluations import Scored
from db.question import CHECK
from trainer.data.confirmed import judge_model
from trainer.data.release_files import ReleaseData

VALIDATION = "validation"


def held_out_record(release: ReleaseData, split: Mapping[str, Any]) -> dict[str, Any]:
    """What a record keeps of held-out groups: their choice, whether people approved them (by that
    choice or as the release has approved groups only), and who else chose them: the validators that
    the release names, the judge of held-out groups, or with all of them this judge alone."""
    manifest = release.manifest
    validators = {
        str(of["model"]): of.get("sha256")
        for run in manifest.get("runs") or [manifest]
        for task, of in (run.get("models") or {}).items()
        if (task == VALIDATION or task.startswith(CHECK)) and of.get("model")
    }
    if judge := split.get("judge"):
        chose = judge_model(judge)
        validators = ({} if split["choice"] == "all" else validators) | {chose.name: chose.sha256}
    exported_approved = (manifest.get("filter") or {}).get("reviews") == "approved"
    return {
        **split,
        "approved": split["choice"] == "approved" or exported_approved,
        "validators": validators,
    }


def validators_of_record(scored: Iterable[Scored]) -> dict[str, NamedModel]:
    """The validators that records of held-out groups name, by their names."""
    return {
        name: named_model(name, sha256)
        for each in scored
        for name, sha256 in ((each.held_out or {}).get("validators") or {}).items()
    }


def circular_sentence(
    benchmark: str,
    scores: Iterable[Scored],
    validators: Mapping[str, NamedModel],
) -> str:
    """Which scores on a benchmark are circular, why, and what is independent; empty for none.

    Groups that people approved are nobody's choice but theirs.
    """
    circular = []
    for each in scores:
        if (each.held_out or {}).get("approved"):
            continue
        for judge, model in validators.items():
            models = [named_model(each.model, each.weights_sha256)]
            models += [named_model(each.base_model)] if each.base_model else []
            same = [found.name for found in models if same_model(found, model)]
            if same:
                of = "" if each.model in same else " (its base model)"
                circular.append(f"{each.model}{of} is {judge}")
                break
    if not circular:
        return ""
    named = "; ".join(dict.fromkeys(circular))
    return (
        f"Circular on {benchmark}: {named}, the validator that chose these groups, so its scores "
        "there are too high. Independent are held-out groups approved by people (export with "
        "approved reviews alone) and runs validated by another judge."
    )
