"""The YAML front matter of a dataset card, as the Hub and `datasets` read it."""

import re
from collections.abc import Mapping
from typing import Any

from huggingface_hub import DatasetCardData

from analysis.text.licences import licence_metadata
from curation.release.card.facts import CardFacts
from curation.release.rows import LISTS, configs_of

TAGS = (
    "instruction-following-retrieval",
    "information-retrieval",
    "instruction-following",
    "inf-ir",
    "inf-studio",
    "synthetic",
)
MIN_LANGUAGE_SHARE = 0.01  # below, a group is as likely a wrong guess as of that language
SIZES = (
    (1_000, "n<1K"),
    (10_000, "1K<n<10K"),
    (100_000, "10K<n<100K"),
    (1_000_000, "100K<n<1M"),
    (10_000_000, "1M<n<10M"),
    (100_000_000, "10M<n<100M"),
)


def front_matter(facts: CardFacts) -> str:
    """The front matter between its dashes; a preview, which has no files, lists none."""
    known: dict[str, Any] = {
        **licence_metadata(facts.licences),
        **({"language": found} if (found := languages_of(facts.languages)) else {}),
        "pretty_name": facts.title,
        "task_categories": ["text-retrieval"],
        "tags": [
            *(tag for tag in TAGS if tag != "inf-ir" or facts.shape.is_inf_ir),
            *(["offline-rules"] if facts.offline else []),
        ],
        "size_categories": [size_category(sum(facts.splits.values()))],
    }
    if facts.agreement:
        # The Hub has no field for agreement and keeps keys that it does not know.
        known["annotator_agreement"] = list(facts.agreement)
    if facts.files:
        known |= {"configs": _data_files(facts), "dataset_info": _features(facts)}
    card = DatasetCardData(**known)
    return f"---\n{card.to_yaml().rstrip()}\n---"


def configs(facts: CardFacts) -> list[str]:
    """The configurations that have files, in their order."""
    return list(dict.fromkeys(file["config"] for file in facts.files))


def size_category(rows: int) -> str:
    """The Hub's category for a number of rows."""
    return next((name for bound, name in SIZES if rows < bound), "100M<n<1B")


def languages_of(groups: dict[str, int]) -> list[str]:
    """The languages of at least one group in a hundred, the most frequent first.

    groups: number of groups by language, "" where it is unclear.
    """
    total = sum(groups.values())
    named = sorted(
        (-count, name)
        for name, count in groups.items()
        if name and count >= MIN_LANGUAGE_SHARE * total
    )
    return [name for _, name in named]


def _data_files(facts: CardFacts) -> list[dict[str, Any]]:
    found = []
    for config in configs(facts):
        files = [
            {"split": split, "path": _pattern(parts)}
            for split, parts in _by_split(facts, config).items()
        ]
        more = _of_csv(configs_of(facts.shape)[config]) if facts.format == "csv" else {}
        default = {"default": True} if config == "default" else {}
        found.append({"config_name": config, **default, "data_files": files, **more})
    return found


def _of_csv(columns: Mapping[str, str]) -> dict[str, Any]:
    """What pandas is to read: a text "NA" as it is, an empty number as none."""
    numbers = [name for name, kind in columns.items() if kind.startswith(("int", "float"))]
    more = {"na_values": {name: [""] for name in numbers}} if numbers else {}
    return {"keep_default_na": False, **more}


def _features(facts: CardFacts) -> list[dict[str, Any]]:
    return [
        {
            "config_name": config,
            "features": [
                _feature(name, kind) for name, kind in configs_of(facts.shape)[config].items()
            ],
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
    if kind not in LISTS:
        return {"name": name, "dtype": kind}
    return {"name": name, "list": [{"name": part, "dtype": "string"} for part in LISTS[kind]]}


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
