"""What training changed, in words: each trained model against its base on one benchmark. Pure.

The measure is the first of instruction flip (held-out groups), p-MRR and nDCG@10 that both have.
The verdict is that of a paired test of the two (`trainer.report.compared.differences`).
"""

from collections.abc import Mapping, Sequence

from db.tables import Evaluation
from trainer.evaluate.following import INSTRUCTION_CONTROL, INSTRUCTION_FLIP
from trainer.report.compared.conditions import unlike
from trainer.report.compared.differences import difference_rows
from trainer.report.compared.measures import is_trained, model_name

MAX_NAMED = 3
# measure → what a model does, the value with what stands around it, and what it is a share of
SHARES = {
    INSTRUCTION_FLIP: ("follows the changed instruction", "in {value:.0%}", " of the groups"),
    "p-mrr": ("has p-MRR", "{scaled:+.1f}", ""),
    "ndcg@10": ("has nDCG@10", "{value:.3f}", ""),
}
VERDICTS = {
    "higher": "Clearly higher",
    "lower": "Clearly lower",
    "no clear difference": "No clear difference",
}
MEANING = {
    INSTRUCTION_FLIP: {
        "higher": "Training taught it to follow instructions better.",
        "lower": "Training made it follow instructions less.",
        "no clear difference": "These groups do not show whether training changed it.",
    },
    "p-mrr": {
        "higher": "Its ranking moves more in the direction that instructions require.",
        "lower": "Its ranking moves less in the direction that instructions require.",
        "no clear difference": "These queries do not show whether training changed it.",
    },
    "ndcg@10": {
        "higher": "It finds relevant passages better.",
        "lower": "It finds relevant passages less well.",
        "no clear difference": "These queries do not show whether training changed it.",
    },
}


def verdict_sentences(evaluations: Sequence[Evaluation], bases: Mapping[int, str]) -> list[str]:
    """A sentence or two per trained model next to its base, the newest models first.

    evaluations: the newest of each model on one benchmark; bases: {checkpoint id: base model}.
    """
    untrained = {each.model: each for each in evaluations if is_trained(each) is False}
    found = []
    for each in [one for one in evaluations if is_trained(one)][:MAX_NAMED]:
        base = untrained.get(bases.get(each.checkpoint_id or 0, ""))
        if base is None:
            found.append(
                f"{model_name(each.model)} has no base next to it: evaluate its base model on this "
                "benchmark to see what training changed."
            )
        else:
            found.append(_sentence(each, base))
    return [sentence for sentence in found if sentence]


def _sentence(trained: Evaluation, base: Evaluation) -> str:
    names = [
        name
        for name in SHARES
        if trained.metrics.get(name) is not None and base.metrics.get(name) is not None
    ]
    if not names:
        return ""
    name = names[0]
    does, _, of = SHARES[name]
    said = (
        f"{model_name(trained.model)} {does} {_value(trained, name)}{of}, its base "
        f"{model_name(base.model)} {_value(base, name)}"
    )
    if reasons := unlike(base, [trained]):
        (differing,) = reasons.values()
        return f"{said}; the two are not comparable: {', '.join(differing)}."
    rows = difference_rows(base, [trained], {name: name})
    if not rows:
        return f"{said}. Whether that is more than chance is unknown: there are no values by query."
    (row,) = rows
    verdict, low, high = row.verdict, row.low, row.high
    if verdict not in MEANING[name]:
        return f"{said}. Whether that is more than chance is {verdict}."
    scale = 1 if name == "p-mrr" else 100
    interval = (
        f" (95 % interval {low * scale:+.1f} to {high * scale:+.1f})"
        if low is not None and high is not None
        else ""
    )
    difference = row.difference * scale
    meaning = MEANING[name][verdict]
    if name == INSTRUCTION_FLIP and verdict == "higher":
        ends = base.metrics.get(INSTRUCTION_CONTROL), trained.metrics.get(INSTRUCTION_CONTROL)
        meaning = shared_with_control(*ends, low) or meaning
    noun = "groups" if name == INSTRUCTION_FLIP else "queries"
    return (
        f"{said}. {VERDICTS[verdict]}: {difference:+.1f} points{interval} over {row.queries:,} "
        f"{noun}, {row.gained:,} gained and {row.lost:,} lost. {meaning}"
    )


def shared_with_control(first: float | None, last: float | None, low: float | None) -> str:
    """What a gain does not show where the instruction alone gains as much; else "".

    first, last: the control's share before and after, None where it was not measured. low: the
    lower bound of the gain; where it is not above 0, there is nothing to share.
    """
    if first is None or last is None or low is None or low <= 0 or last - first < low:
        return ""
    return (
        f"Without the query, by the instruction alone, it gained {100 * (last - first):+.1f} "
        "points: what these groups show of it can be learned from the instruction."
    )


def _value(evaluation: Evaluation, name: str) -> str:
    value = float(evaluation.metrics[name])
    return SHARES[name][1].format(value=value, scaled=100 * value)
