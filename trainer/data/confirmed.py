"""Which groups of a release a judge of its studies confirmed, for a held-out set of its choosing.

Read from the release's `judgments` files. A group is confirmed where this judge judged every
scenario of it and always chose the passage that was meant. Where the judge is neither the run's
validator nor a relative of the base model, scores on these groups are independent of both.
"""

from collections import defaultdict

from analysis.embed.model_hash import DEFAULT_MODEL, NamedModel, named_model
from db.errors import BadInput
from db.scenarios import SCENARIOS
from trainer.data.release_files import ReleaseData, rows_of_configuration


def confirmed_by(release: ReleaseData, judge: str) -> frozenset[str]:
    """The ids of the groups that the judge confirmed.

    Of an item whose texts were edited, only the last revision that anybody judged counts: who has
    judged an earlier one alone did not see what the release holds. Raises BadInput where the
    release has no judgment by that judge, naming those it has.
    """
    judges: set[str] = set()
    newest: dict[tuple[str, str], int] = {}
    last: dict[tuple[str, str], tuple[int, bool]] = {}
    for row in rows_of_configuration(release, "judgments"):
        judges.add(str(row.get("judge")))
        item = (str(row.get("group_id")), str(row.get("scenario")))
        revision, as_meant = int(row.get("revision") or 0), row.get("choice") == item[1]
        newest[item] = max(revision, newest.get(item, 0))
        if row.get("judge") != judge:
            continue
        before = last.get(item, (-1, True))
        if revision > before[0]:
            last[item] = (revision, as_meant)
        elif revision == before[0]:  # judged in two studies: both must confirm it
            last[item] = (revision, as_meant and before[1])
    if judge not in judges:
        known = ", ".join(sorted(judges)) or "none"
        raise BadInput(
            f"held_out_judge: {release.path} has no judgment by {judge!r} (its judges: {known}). "
            "Let it judge the groups in studies and export again with the configuration judgments"
        )
    scenarios: defaultdict[str, set[str]] = defaultdict(set)
    for (group_id, scenario), (revision, as_meant) in last.items():
        if as_meant and revision == newest[group_id, scenario]:
            scenarios[group_id].add(scenario)
    return frozenset(group for group, found in scenarios.items() if found >= set(SCENARIOS))


def judge_model(judge: str) -> NamedModel:
    """The model that answers under a judge's name (`FAMILY:MODEL`), with its hash if it is here."""
    family, _, rest = judge.partition(":")
    if judge == "offline:embedding":
        return named_model(DEFAULT_MODEL)
    if family == "transformers":
        rest = rest.removesuffix(":pointwise")
    return named_model(rest or judge)
