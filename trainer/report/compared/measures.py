"""Names of measures and models as tables show them."""

from db.tables import Checkpoint, Evaluation
from trainer.report.examples import INDEX_STAYS

NAMES = {
    "ndcg@5": "nDCG@5",
    "ndcg@10": "nDCG@10",
    "map": "MAP",
    "mrr": "MRR",
    "recall@10": "Recall@10",
    "p-mrr": "p-MRR ×100",
}
# Shown only if the benchmark has them; on held-out groups strict and flip are the headline.
SOMETIMES = {
    "strict": "Strict group accuracy",
    "instruction-flip": "Instruction flip",
    "query-flip": "Query flip",
    "right-first": "Right first of all",
    "plain-ndcg@10": "nDCG@10 of Q+ alone",
    "sicr": "SICR",
    "wise": "WISE",
    "paraphrase-stability": "Paraphrase stability",
    "followir score": "FollowIR score",
    "robustness@10": "Robustness@10",
    "judged@10": "Judged@10",
}


def model_name(path: str) -> str:
    """The last two parts of a model's path or name."""
    parts = [part for part in path.split("/") if part]
    return "/".join(parts[-2:])


# Whether a model was trained with InF Studio, by what is stored, and whether its index stayed.
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
