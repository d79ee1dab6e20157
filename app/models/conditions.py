"""Whether two evaluations may be compared: same data, template, prefixes and depth.

Read from the job that made an evaluation. What the record does not state is unknown and differs
from nothing, except the queries, which every evaluation stores. A model's own prompts are part of
the model; only prefixes given for the evaluation count.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from db.tables import Evaluation

Conditions = Mapping[str, str | None]
LABELS = {
    "source": "data",
    "queries": "queries",
    "query_count": "number of queries",
    "documents": "number of documents",
    "template": "template",
    "prefixes": "prefixes",
    "depth": "ranking depth and convention",
}


def conditions_of(
    evaluation: Evaluation, config: Mapping[str, Any] | None, result: Mapping[str, Any] | None
) -> Conditions:
    """The conditions of an evaluation from its job's config and result; None where unknown."""
    config = config or {}
    part = _part_of(evaluation, result or {})
    models: Sequence[Mapping[str, Any]] = part.get("models", ())
    mine = [model for model in models if model.get("evaluation_id") == evaluation.id]
    source = config.get("benchmark")  # a release is named by its hash in the benchmark's name
    subset = f" ({config['subset']})" if config.get("subset") else ""
    given = [str(config.get(key) or "") for key in ("query_prefix", "passage_prefix")]
    return {
        "source": f"{source}{subset}" if source else None,
        "queries": "\n".join(sorted(evaluation.per_query)) or None,
        "query_count": None if evaluation.per_query else _text(part.get("queries")),
        "documents": _text(part.get("documents")),
        "template": mine[0].get("template") if mine else None,
        "prefixes": " and ".join(map(repr, given)) if config else None,
        "depth": part.get("convention"),
    }


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def _part_of(evaluation: Evaluation, result: Mapping[str, Any]) -> Mapping[str, Any]:
    """The part of a job's result that holds the evaluation; empty if there is none."""
    parts: Sequence[Mapping[str, Any]] = (result, *result.get("parts", ()))
    for part in parts:
        if any(model.get("evaluation_id") == evaluation.id for model in part.get("models", ())):
            return part
    return {}


def differences(base: Conditions, other: Conditions) -> list[str]:
    """What differs between two evaluations, one text each; empty if they may be compared."""
    found = []
    for name, label in LABELS.items():
        here, there = base[name], other[name]
        if here is None or there is None or here == there:
            continue
        if name == "queries":
            common = set(here.split("\n")) & set(there.split("\n"))
            found.append(f"other {label} ({len(common):,} in common)")
        else:
            found.append(f"other {label} ({there} instead of {here})")
    return found


def unlike(
    base: Evaluation, others: Sequence[Evaluation], conditions: Mapping[int, Conditions]
) -> dict[int, list[str]]:
    """By evaluation id what differs from the base, for those that may not be compared with it."""
    found = {each.id: differences(conditions[base.id], conditions[each.id]) for each in others}
    return {key: texts for key, texts in found.items() if texts}
