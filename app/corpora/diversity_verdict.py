"""The first sentences of the Diversity page: which corpus has the more varied texts. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

PLURAL = {"instruction": "instructions", "query": "queries", "passage": "passages", "text": "texts"}


def diversity_sentence(corpora: Sequence[Mapping[str, Any]]) -> str:
    """What the average pairwise similarity says, a sentence per kind of text; "" without any.

    Of several corpora the samples are compared, as only those are of one size. Two corpora that
    differ by no more than two disjoint samples of one corpus do are alike.
    """
    fields = dict.fromkeys(field for corpus in corpora for field in corpus["fields"])
    if len(corpora) == 1:
        return _of_one(corpora[0], list(fields))
    found = (_of_several(corpora, field) for field in fields)
    return " ".join(sentence for sentence in found if sentence)


def _of_one(corpus: Mapping[str, Any], fields: Sequence[str]) -> str:
    values = {_plural(field): corpus["fields"][field]["aps"] for field in fields}
    shown = [f"{value:.3f} ({name})" for name, value in values.items() if value is not None]
    if not shown:
        return ""
    return (
        f"Two texts of {corpus['corpus']} have an average similarity (APS; 0: unrelated, 1: the "
        f"same) of {', '.join(shown)}. Measure it with another corpus to know whether that is much."
    )


def _of_several(corpora: Sequence[Mapping[str, Any]], field: str) -> str:
    values = []
    for corpus in corpora:
        numbers = corpus["fields"].get(field) or {}
        aps = (numbers.get("sampled") or {}).get("aps")
        if aps is not None:
            halves = (numbers.get("halves") or {}).get("aps")
            values.append((float(aps["mean"]), str(corpus["corpus"]), halves))
    if len(values) < 2:
        return ""
    (best, first, one), (next_best, second, other) = sorted(values, key=lambda each: each[:2])[:2]
    both = f"APS {best:.3f} and {next_best:.3f}"
    known = [halves for halves in (one, other) if halves is not None]
    if not known:
        return f"The {_plural(field)} of {first} and {second} are too few to compare ({both})."
    if next_best - best <= max(known):
        return f"{first} and {second} have equally varied {_plural(field)} ({both})."
    return f"{first} has the most varied {_plural(field)}, before {second} ({both})."


def _plural(field: str) -> str:
    return PLURAL.get(field, field)
