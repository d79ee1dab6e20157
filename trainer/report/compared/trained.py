"""Whether a model was trained with InF Studio, by what is stored, and whether its index stayed."""

from db.tables import Checkpoint, Evaluation
from trainer.report.compared.measures import model_name
from trainer.report.examples import INDEX_STAYS


def is_trained(evaluation: Evaluation) -> bool | None:
    """True for a checkpoint, also one of another store; False for any other model.

    None where it is unknown: a TREC run, a record from before this was stored, or no record.
    """
    if evaluation.checkpoint_id is not None:
        return True
    model = evaluation.record.get("model") or {}
    return model["trained_on"] is not None if "trained_on" in model else None


def index_stays(checkpoint: Checkpoint | None) -> str:
    """The sentence that the base model's index stays valid; empty for any other training."""
    if checkpoint is None or checkpoint.config.get("trained_side") != "query":
        return ""
    return INDEX_STAYS.format(base=model_name(checkpoint.base_model))
