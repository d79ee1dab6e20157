"""How a study's items were chosen and what they are, in a sentence for people. Pure.

`inf studies` prints the same in the words of its options (`curation.judging.sampling`).
"""

from collections.abc import Mapping
from typing import Any, Final

from curation.rules.language import name_of
from db.shape import Role

EVENLY_OVER: Final = {
    "scenario": "the kinds of triplet",
    "source": "sources",
    "verdict": "kept and dropped groups",
}
TRIPLETS: Final[dict[Role, str]] = {
    "positive": "with the real pair",
    "instruction_negative": "with another instruction",
    "query_negative": "with another query",
}


def sampled_sentence(
    settings: Mapping[str, Any],
    seed: int,
    scenarios: Mapping[str, int],
    verdicts: Mapping[str, int],
) -> str:
    """`settings`: the study's; `scenarios` and `verdicts`: how many items are of each."""
    if settings.get("sampling") == "file":
        names = ", ".join(settings.get("questions", ()))
        return f"Items are all rows of {settings['file']}, with its questions ({names})."
    others = {role: f"of “{role.replace('_', ' ')}”" for role in scenarios}
    named = {role: TRIPLETS.get(role, words) for role, words in (TRIPLETS | others).items()}
    parts = [
        [f"{scenarios[role]} {words}" for role, words in named.items() if scenarios.get(role)],
        [f"{count} from {verdict} groups" for verdict, count in verdicts.items()],
    ]
    sources = settings.get("sources", {})
    if len(sources) > 1:
        parts.append([f"{count} from {name or 'no source'}" for name, count in sources.items()])
    counts = "; ".join(", ".join(part) for part in parts if part)
    again = "" if settings.get("sampling") == "list" else f" Seed {seed} repeats the choice."
    return f"Items were {_how(settings)}{_where(settings)}: {counts}.{again}"


def _how(settings: Mapping[str, Any]) -> str:
    sample = settings.get("sampling", "stratified")
    if sample == "list":
        return f"taken from {settings.get('file', 'a list')}"
    if sample == "disagreement":
        earlier = settings.get("of_study")
        whose = "model judges" if earlier is None else f"the judges of study {earlier}"
        return f"chosen where {', '.join(settings.get('judges') or [whose])} disagree most"
    if sample == "random":
        return "chosen at random"
    over = [EVENLY_OVER.get(name, name) for name in settings.get("strata") or ["scenario"]]
    return f"chosen at random, as evenly as possible over {' and '.join(over)}"


def _where(settings: Mapping[str, Any]) -> str:
    only = f", from {settings['only']} groups only" if settings.get("only") else ""
    if language := settings.get("language"):
        only += f", from pairs in {name_of(language)} only"
    apart = [str(each) for each in settings.get("apart_from") or ()]
    if not apart:
        return only
    studies = f"{'study' if len(apart) == 1 else 'studies'} {' and '.join(apart)}"
    return f"{only}, from no group of {studies}"
