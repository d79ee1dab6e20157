"""Which weights are trained and how they are regularised: freezing, dropout, sizes of vectors."""

from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from torch import nn

from db.errors import BadInput

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer


def freeze(model: nn.Module, patterns: Sequence[str]) -> int:
    """Freeze the weights whose names fit one of the patterns; returns how many numbers they are.

    Raises BadInput for a pattern that fits no weight, and where none is left to train.
    """
    frozen = 0
    names = dict(model.named_parameters())
    for pattern in patterns:
        found = [name for name in names if fnmatchcase(name, pattern)]
        if not found:
            raise BadInput(
                f"freeze: {pattern!r} fits no weight; names are like {next(iter(names))!r}",
                "correct the pattern",
                code="freeze_matches_no_weight",
            )
        for name in found:
            frozen += names[name].numel() if names[name].requires_grad else 0
            names[name].requires_grad_(False)
    if not any(weights.requires_grad for weights in names.values()):
        raise BadInput(
            "freeze: every weight is frozen, nothing is left to train",
            "Freeze fewer",
            code="freeze_leaves_no_weight",
        )
    return frozen


def set_dropout(model: nn.Module, probability: float) -> None:
    """Set the probability of every dropout, also of those that layers apply as a function.

    Such a layer keeps the number itself, under names like `dropout`, `attention_dropout`,
    `activation_dropout`, `dropout_prob`.
    """
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = probability
        for name, value in vars(module).items():
            if "dropout" in name and type(value) in (int, float):
                setattr(module, name, probability)


def require_sizes(model: "SentenceTransformer", sizes: Sequence[int]) -> None:
    """Raise BadInput for a length that the model's vectors do not have."""
    whole = model.get_embedding_dimension()
    if too_long := [size for size in sizes if whole is not None and size >= whole]:
        raise BadInput(
            f"matryoshka: {too_long[0]} is not less than the {whole} numbers of its vectors",
            "leave it out",
            code="matryoshka_too_long",
        )
