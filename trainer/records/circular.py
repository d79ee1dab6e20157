"""Circular scores: the evaluated or base model chose the groups that it is evaluated on."""

from collections.abc import Iterable, Mapping
from typing import Any

from sqlalchemy.orm import Session

from analysis.embed.independence import validator_models
from analysis.embed.model_hash import NamedModel, named_model, same_model
from db.outcome.evaluations import Scored, newest_scores
from db.outcome.independence import runs_of_benchmark, trained_on_dataset
from db.question import CHECK
from trainer.data.judged import judge_model
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


def circular_notes(session: Session, result: Mapping[str, Any]) -> list[str]:
    """Of what an evaluation made, a note for each score that is circular by what the store has: on
    benchmarks that its notes, of the validators which the release itself names, have none for."""
    made = {
        model["evaluation_id"]
        for part in (result, *result.get("ordinary", []))
        for model in part["models"]
    }
    known = {note.partition(":")[0] for note in result["notes"]}
    scored = (each for each in newest_scores(session) if each.evaluation_id in made)
    return [
        sentence
        for sentence in circular_sentences(session, scored)
        if sentence.partition(":")[0] not in known
    ]


def circular_sentences(session: Session, scores: Iterable[Scored]) -> list[str]:
    """A sentence per held-out benchmark whose groups a scored model, or its base, has validated,
    and per dataset that one was trained on."""
    by_benchmark: dict[str, list[Scored]] = {}
    for each in scores:
        by_benchmark.setdefault(each.benchmark, []).append(each)
    found = []
    for benchmark, scored in by_benchmark.items():
        found += _seen(session, benchmark, scored)
        validators: dict[str, NamedModel] = {}
        for run_id in runs_of_benchmark(session, benchmark):
            validators |= validator_models(session, run_id)
        # the release of another store is known by what the record keeps of it
        validators = validators or validators_of_record(scored)
        sentence = circular_sentence(benchmark, scored, validators)
        if sentence:
            found.append(sentence)
    return found


def _seen(session: Session, benchmark: str, scored: Iterable[Scored]) -> list[str]:
    """A sentence where models are measured on the dataset that their training was grown from."""
    seen = {
        each.model
        for each in scored
        if each.checkpoint_id is not None
        and trained_on_dataset(session, each.checkpoint_id, benchmark)
    }
    if not seen:
        return []
    return [
        f"Seen in training: {', '.join(sorted(seen))} learned from queries and passages of "
        f"{benchmark}, so scores there do not show that ordinary retrieval did not suffer. "
        "Independent is a BEIR folder, or another dataset."
    ]
