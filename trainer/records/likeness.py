"""Whether two evaluations may be compared: what differs between their records, in words.

Compared: the content of corpus, queries, judgments and candidate pool, how deep was ranked and how
scores are defined, the template, the prefixes given for the evaluation, whether texts were wrapped
in a chat template and the content of paraphrases; and where both have the same weights, the tokens
that these read. A model's own prefixes are part of the model. Versions of libraries are recorded
and reported, and refuse nothing: a comparison across them says so. A condition that a record does
not have (BM25 has no chat template, a model that ranks all documents no BM25) differs from nothing.
"""

from collections.abc import Mapping
from typing import Any

Record = Mapping[str, Any]
FORMAT = 3  # 2: the first texts are those of the smallest ids; 3: the convention of BM25
NO_RECORD = (
    "no record of the data and settings (made before these were kept): evaluate again to compare"
)
# The parts of a benchmark that are hashed one by one.
PARTS = {
    "corpus": "corpus",
    "queries": "queries",
    "judgments": "relevance judgments",
    "candidates": "candidate pool",
    "forms": "forms of a query",
}
CONDITIONS = {
    "pool": "candidate pool",
    "bm25": "BM25",
    "depth": "ranking depth",
    "convention": "convention",
    "template": "template",
    "chat_template": "chat template",
    "given_prefixes": "prefixes",
    "paraphrases": "paraphrases",
}
COUNTS = {"corpus": "documents", "queries": "questions"}


def differences(base: Record, other: Record) -> list[str]:
    """What differs between two evaluations, one text each; empty if they may be compared."""
    if not base or not other:
        return [NO_RECORD if not other else f"the other evaluation has {NO_RECORD}"]
    formats = [each.get("format") for each in (base, other)]
    if formats != [FORMAT, FORMAT]:
        named = " and ".join(str(each) for each in dict.fromkeys(formats) if each != FORMAT)
        return [
            f"a record of format {named}, and this version compares format {FORMAT}: evaluate "
            "again to compare"
        ]
    found = [
        _other_part(part, label, base["benchmark"], other["benchmark"])
        for part, label in PARTS.items()
        if base["benchmark"][part] != other["benchmark"][part]
    ]
    for name, label in CONDITIONS.items():
        here, there = base.get(name), other.get(name)
        if here is not None and there is not None and here != there:
            found.append(f"other {label} ({_shown(there)} instead of {_shown(here)})")
    if not found and _same_weights(base, other) and base.get("applied") != other.get("applied"):
        found.append(
            f"the same weights read other tokens ({_first_tokens(other)} instead of "
            f"{_first_tokens(base)})"
        )
    return found


def library_differences(base: Record, other: Record) -> list[str]:
    """Libraries whose versions differ: reported with a comparison, no reason to refuse it."""
    here, there = base.get("libraries", {}), other.get("libraries", {})
    return [
        f"{name} {there.get(name) or 'absent'} instead of {here.get(name) or 'absent'}"
        for name in sorted(here.keys() | there.keys())
        if here.get(name) != there.get(name)
    ]


def _other_part(part: str, label: str, here: Record, there: Record) -> str:
    counted = COUNTS.get(part)
    shown = [
        (f"{of[counted]:,}, " if counted else "") + f"sha256 {of[part][:12]}"
        for of in (there, here)
    ]
    return f"other {label} ({shown[0]} instead of {shown[1]})"


def _same_weights(base: Record, other: Record) -> bool:
    here, there = base["model"].get("weights_sha256"), other["model"].get("weights_sha256")
    return here is not None and here == there


def _first_tokens(record: Record) -> str:
    first = (record["applied"].get("query") or [{}])[0]
    tokens = first.get("tokens")
    return repr(" ".join(tokens[:8])) if tokens else repr(str(first.get("text"))[:60])


def _shown(value: Any) -> str:
    if isinstance(value, Mapping):
        return " and ".join(repr(each) for each in value.values())
    return str(value)
