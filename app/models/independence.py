"""Scores that are circular: the evaluated or base model chose the groups it is evaluated on."""

from collections.abc import Iterable

from sqlalchemy.orm import Session

from analysis.embed.model_hash import NamedModel
from curation.judging.independence import validator_models
from db.outcome.evaluations import Scored
from db.outcome.independence import runs_of_benchmark, trained_on_dataset
from trainer.records.circular import circular_sentence, validators_of_record


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
