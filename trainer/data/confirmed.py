"""Which groups of a release a judge of its studies confirmed, for a held-out set of its choosing.

Read from the release's `judgments` files. A group is confirmed where this judge judged every
scenario of it and always chose the passage that was meant. Where the judge is neither the run's
validator nor a relative of the base model, scores on these groups are independent of both.
"""

from collections import defaultdict

from analysis.embed.model_hash import DEFAULT_MODEL, NamedModel, named_model
from trainer.data.judged import choices_of
from trainer.data.release_files import ReleaseData


def confirmed_by(release: ReleaseData, judge: str) -> frozenset[str]:
    """The ids of the groups that the judge confirmed; judged in two studies, both must confirm.

    Raises BadInput where the release has no judgment by that judge, naming those it has.
    """
    scenarios: defaultdict[str, set[str]] = defaultdict(set)
    for (group_id, scenario), choices in choices_of(release, judge, "held_out_judge").items():
        if set(choices) == {scenario}:
            scenarios[group_id].add(scenario)
    every = set(release.shape.roles)
    return frozenset(group for group, found in scenarios.items() if found >= every)


def judge_model(judge: str) -> NamedModel:
    """The model that answers under a judge's name (`FAMILY:MODEL`), with its hash if it is here."""
    family, _, rest = judge.partition(":")
    if judge == "offline:embedding":
        return named_model(DEFAULT_MODEL)
    if family == "transformers":
        rest = rest.removesuffix(":pointwise")
    return named_model(rest or judge)
