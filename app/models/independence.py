"""Scores that are circular: the evaluated or base model chose the groups it is evaluated on."""

from collections.abc import Iterable, Mapping

from sqlalchemy.orm import Session

from analysis.embed.model_hash import is_same_model, model_sha256
from db.outcome.evaluations import Scored
from db.outcome.independence import run_of_benchmark, validators_of
from db.run.runs import get_run


def circular_sentences(session: Session, scores: Iterable[Scored]) -> list[str]:
    """A sentence per held-out benchmark whose groups a scored model, or its base, has validated."""
    by_benchmark: dict[str, list[Scored]] = {}
    for each in scores:
        by_benchmark.setdefault(each.benchmark, []).append(each)
    found = []
    for benchmark, scored in by_benchmark.items():
        run_id = run_of_benchmark(session, benchmark)
        if run_id is None:
            continue
        recorded = get_run(session, run_id).models.get("validation") or {}
        sentence = circular_sentence(
            benchmark, scored, validators_of(session, run_id), recorded.get("sha256")
        )
        if sentence:
            found.append(sentence)
    return found


def circular_sentence(
    benchmark: str,
    scores: Iterable[Scored],
    validators: Mapping[str, str],
    recorded: str | None = None,
) -> str:
    """Which scores on a benchmark are circular, why, and what is independent; empty for none.

    recorded: the sha256 of the validator's weights as stored with the run, which holds also where
    the validator itself is no longer on this machine.
    """
    circular = []
    for each in scores:
        for judge, model in validators.items():
            names = [name for name in (each.model, each.base_model) if name]
            same = [name for name in names if _is_validator(name, model, recorded)]
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
        "--reviews approved) and runs validated by another judge."
    )


def _is_validator(name: str, model: str, recorded: str | None) -> bool:
    return is_same_model(name, model) or (recorded is not None and model_sha256(name) == recorded)
