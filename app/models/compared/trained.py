"""Whether an evaluated model was trained with InF Studio, by what is stored, not by absence."""

from db.tables import Evaluation


def is_trained(evaluation: Evaluation) -> bool | None:
    """True for a checkpoint, also one of another store; False for any other model.

    None where it is unknown: a TREC run, a record from before this was stored, or no record.
    """
    if evaluation.checkpoint_id is not None:
        return True
    model = evaluation.record.get("model") or {}
    return model["trained_on"] is not None if "trained_on" in model else None
