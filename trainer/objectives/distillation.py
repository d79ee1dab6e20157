"""A teacher's scores over a group's passages, taught together with an objective.

For anchor i (an instruction and a query) the group has three passages, one of them its own. Student
scores s are cosines over the temperature τ, teacher scores t are a reranker's over its own
temperature. Both losses are means over anchors; an anchor whose teacher scores are NaN (a plain
row: the teacher was asked with the instruction) is left out, and with none left the loss is 0.

    KL          Σ_k p_k (log p_k − log q_k),  p = softmax(t), q = softmax(s)   (Hinton et al. 2015)
    margin-MSE  mean over k ≠ own of ((s_own − s_k) − (t_own − t_k))²   (Hofstätter et al. 2020)

Differs from margin-MSE as published: there the student's scores are dot products without bounds,
here cosines are divided by τ, so that a margin may be as large as a teacher's.
"""

from typing import Final

import torch
from torch import Tensor

LOSSES: Final = ("kl", "margin-mse")


def teacher_loss(kind: str, student: Tensor, teacher: Tensor, own: Tensor) -> Tensor:
    """student, teacher (n, k) scores of the same passages; own (n,): which of them is right."""
    known = ~teacher.isnan().any(dim=1)  # (n,)
    if not known.any():
        return student.sum() * 0.0
    student, teacher, own = student[known], teacher[known], own[known]
    if kind == "kl":
        wanted = torch.log_softmax(teacher, dim=1)
        return (wanted.exp() * (wanted - torch.log_softmax(student, dim=1))).sum(dim=1).mean()
    margins = [scores.gather(1, own[:, None]) - scores for scores in (student, teacher)]
    squares = (margins[0] - margins[1]) ** 2  # 0 at the own passage
    return (squares.sum(dim=1) / (student.shape[1] - 1)).mean()
