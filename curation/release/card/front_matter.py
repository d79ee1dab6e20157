"""The YAML front matter of a dataset card, as the Hub and `datasets` read it."""

import re
from typing import Any

from huggingface_hub import DatasetCardData

from curation.release.card.facts import CardFacts
from curation.release.licences import hub_identifier, slug
from curation.release.rows import CONFIGS, PASSAGE

TAGS = ("information-retrieval", "instruction-following", "inf-ir", "inf-studio", "synthetic")
SIZES = (
    (1_000, "n<1K"),
    (10_000, "1K<n<10K"),
    (100_000, "10K<n<100K"),
    (1_000_000, "100K<n<1M"),
    (10_000_000, "1M<n<10M"),
)


def front_matter(facts: CardFacts) -> str:
    """The front matter between its dashes; a preview, which has no files, lists none."""
    known: dict[str, Any] = {
        **_licence(facts),
        "pretty_name": facts.title,
        "task_categories": ["text-retrieval"],
        "tags": [*TAGS, *(["offline-rules"] if facts.offline else [])],
        "size_categories": [size_category(sum(facts.splits.values()))],
    }
    if facts.files:
        known |= {"configs": _data_files(facts), "dataset_info": _features(facts)}
    card = DatasetCardData(**known)
    return f"---\n{card.to_yaml().rstrip()}\n---"


def configs(facts: CardFacts) -> list[str]:
    """The configurations that have files, in their order."""
    return list(dict.fromkeys(file["config"] for file in facts.files))


def size_category(rows: int) -> str:
    """The Hub's category for a number of rows."""
    return next((name for bound, name in SIZES if rows < bound), "10M<n<100M")


def _licence(facts: CardFacts) -> dict[str, str]:
    identifiers = sorted({hub_identifier(licence) for licence in facts.licences}) or ["unknown"]
    if len(identifiers) == 1 and identifiers[0] != "other":
        return {"license": identifiers[0]}
    name = "-and-".join(sorted({slug(licence) or "unknown" for licence in facts.licences}))
    return {"license": "other", "license_name": name, "license_link": "README.md"}


def _data_files(facts: CardFacts) -> list[dict[str, Any]]:
    found = []
    for config in configs(facts):
        files = [
            {"split": split, "path": _pattern(parts)}
            for split, parts in _by_split(facts, config).items()
        ]
        more = {"keep_default_na": False} if facts.format == "csv" else {}
        found.append({"config_name": config, "data_files": files, **more})
    return found


def _features(facts: CardFacts) -> list[dict[str, Any]]:
    return [
        {
            "config_name": config,
            "features": [_feature(name, kind) for name, kind in CONFIGS[config].items()],
            "splits": [
                {
                    "name": split,
                    "num_bytes": sum(file["bytes"] for file in files),
                    "num_examples": sum(file["rows"] for file in files),
                }
                for split, files in _by_split(facts, config).items()
            ],
        }
        for config in configs(facts)
    ]


def _feature(name: str, kind: str) -> dict[str, Any]:
    if kind != "passages":
        return {"name": name, "dtype": kind}
    return {"name": name, "list": [{"name": part, "dtype": "string"} for part in PASSAGE]}


def _by_split(facts: CardFacts, config: str) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for file in facts.files:
        if file["config"] == config:
            found.setdefault(file["split"], []).append(file)
    return found


def _pattern(files: list[dict[str, Any]]) -> str:
    """The path of a split's only file, or the pattern of its parts."""
    path: str = files[0]["path"]
    return path if len(files) == 1 else re.sub(r"-\d{5}-of-", "-*-of-", path)
