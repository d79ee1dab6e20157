"""Names of measures and models as tables show them."""

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
