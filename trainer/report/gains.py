"""What training gained, measured on the same groups and items before and after: paired."""

from collections.abc import Iterable

from analysis.figures.paired import Questions, Scores, paired_difference

Gain = dict[str, float | None]
"""value, low and high: trained minus base with its 95 % interval; None where there is none. gained
and lost: on how many groups or items the trained model is better and worse (not in checkpoints of
earlier versions)."""


def gains(
    before: Scores, after: Scores, measures: Iterable[str], questions: Questions | None = None
) -> dict[str, Gain]:
    """{measure: its gain} of those that both have. questions: which belong to one cluster, as
    `paired_difference` takes them; without it everything scored is independent."""
    alone = {name: {"cluster": name, "scored": True} for name in before}
    found = {}
    for measure in measures:
        gain = paired_difference(before, after, measure, questions or alone)
        if gain.value is not None:
            found[measure] = {
                **{"value": gain.value, "low": gain.low, "high": gain.high},
                **{"gained": gain.gained, "lost": gain.lost},
            }
    return found
