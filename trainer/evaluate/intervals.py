"""Means of the measures of instruction following, each with its interval over clusters."""

from analysis.figures.means import Mean, cluster_mean
from analysis.figures.paired import P_MRR, Questions, Scores
from trainer.evaluate.compliance import SICR, WISE
from trainer.evaluate.following import FOLLOWING, STABILITY

SIGNED = (WISE, P_MRR)  # from -1 to 1; the others are shares
MEASURED = (*FOLLOWING, STABILITY, SICR, WISE, P_MRR)


def following_means(per_query: Scores, questions: Questions) -> dict[str, Mean]:
    """{measure: its mean} of those that any query has, the headline of held-out groups first."""
    found = {
        name: cluster_mean(per_query, name, questions, is_share=name not in SIGNED)
        for name in MEASURED
    }
    return {name: of for name, of in found.items() if of is not None}
