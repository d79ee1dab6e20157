"""What the Hub refuses in a card's front matter (`/api/validate-yaml`), for the stand-in server.

By its published rules (huggingface.co/docs/hub: model-cards, datasets-cards, and the lists in
github.com/huggingface/huggingface.js `packages/tasks`) and the wording of its answers.
"""

import re
from typing import Any

import yaml

LICENCES = frozenset(
    [
        "apache-2.0",
        "mit",
        "openrail",
        "bigscience-openrail-m",
        "creativeml-openrail-m",
        "bigscience-bloom-rail-1.0",
        "bigcode-openrail-m",
        "afl-3.0",
        "artistic-2.0",
        "bsl-1.0",
        "bsd",
        "bsd-2-clause",
        "bsd-3-clause",
        "bsd-3-clause-clear",
        "c-uda",
        "cc",
        "cc0-1.0",
        "cc-by-2.0",
        "cc-by-2.5",
        "cc-by-3.0",
        "cc-by-4.0",
        "cc-by-sa-3.0",
        "cc-by-sa-4.0",
        "cc-by-nc-2.0",
        "cc-by-nc-3.0",
        "cc-by-nc-4.0",
        "cc-by-nd-4.0",
        "cc-by-nc-nd-3.0",
        "cc-by-nc-nd-4.0",
        "cc-by-nc-sa-2.0",
        "cc-by-nc-sa-3.0",
        "cc-by-nc-sa-4.0",
        "cdla-sharing-1.0",
        "cdla-permissive-1.0",
        "cdla-permissive-2.0",
        "wtfpl",
        "ecl-2.0",
        "epl-1.0",
        "epl-2.0",
        "etalab-2.0",
        "eupl-1.1",
        "eupl-1.2",
        "agpl-3.0",
        "gfdl",
        "gpl",
        "gpl-2.0",
        "gpl-3.0",
        "lgpl",
        "lgpl-2.1",
        "lgpl-3.0",
        "isc",
        "h-research",
        "intel-research",
        "lppl-1.3c",
        "ms-pl",
        "apple-ascl",
        "apple-amlr",
        "mpl-2.0",
        "odc-by",
        "odbl",
        "openmdw-1.0",
        "openrail++",
        "osl-3.0",
        "postgresql",
        "ofl-1.1",
        "ncsa",
        "unlicense",
        "zlib",
        "pddl",
        "lgpl-lr",
        "deepfloyd-if-license",
        "fair-noncommercial-research-license",
        "llama2",
        "llama3",
        "llama3.1",
        "llama3.2",
        "llama3.3",
        "llama4",
        "grok2-community",
        "gemma",
        "unknown",
        "other",
    ]
)
SIZES = [
    "n<1K",
    "1K<n<10K",
    "10K<n<100K",
    "100K<n<1M",
    "1M<n<10M",
    "10M<n<100M",
    "100M<n<1B",
    "1B<n<10B",
    "10B<n<100B",
    "100B<n<1T",
    "n>1T",
]
PIPELINES = ("sentence-similarity", "feature-extraction", "text-ranking", "text-generation")
TASKS = ("text-retrieval", "text-ranking", "sentence-similarity", "question-answering")
REPOSITORY = re.compile(r"([A-Za-z0-9][\w.-]{0,95}/)?[A-Za-z0-9][\w.-]{0,95}")
SPLIT = re.compile(r"\w+(\.\w+)*")


def card_errors(content: str, repo_type: str) -> list[str]:
    """What the Hub would refuse in a card, in its wording; empty where it accepts it."""
    found = re.match(r"---[ ]*\r?\n(.*?)\r?\n---", content, re.DOTALL)
    if found is None:
        return []  # a warning only: "empty or missing yaml metadata in repo card"
    try:
        card = yaml.safe_load(found.group(1))
    except yaml.YAMLError as error:
        return [f"YAML: {error}"]
    if not isinstance(card, dict):
        return ['"" must be of type object']
    errors = _shared(card)
    return errors + (_dataset(card) if repo_type == "dataset" else _model(card))


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


def _shared(card: dict[str, Any]) -> list[str]:
    errors = [
        f'"license" must be one of [{", ".join(sorted(LICENCES)[:3])}, …]'
        for name in _listed(card.get("license"))
        if name not in LICENCES
    ]
    if "license_name" in card and not re.fullmatch(r"[a-z0-9.-]+", str(card["license_name"])):
        errors.append('"license_name" must match /^[a-z0-9-.]+$/')
    if card.get("license") == "other" and "license_name" not in card:
        errors.append('"license_name" is required when "license" is "other"')
    errors += [
        f'"language[{place}]" must only contain lowercase characters, an ISO 639-1, 639-2 or 639-3 '
        "code, or a special value"
        for place, name in enumerate(_listed(card.get("language")))
        if not isinstance(name, str) or not re.fullmatch(r"[a-z]{2,3}(-[A-Za-z0-9]+)*|code", name)
    ]
    tags = card.get("tags", [])
    if not isinstance(tags, list) or any(not isinstance(tag, str) for tag in tags):
        errors.append('"tags" must be an array of strings')
    return errors


def _model(card: dict[str, Any]) -> list[str]:
    errors = []
    for key, kind in (("base_model", "model"), ("datasets", "dataset")):
        for name in _listed(card.get(key)):
            if not isinstance(name, str) or not REPOSITORY.fullmatch(name):
                errors.append(
                    f'"{key}" with value "{name}" is not valid. Use a {kind} id from '
                    f"https://hf.co/{kind}s."
                )
    if "pipeline_tag" in card and card["pipeline_tag"] not in PIPELINES:
        errors.append('"pipeline_tag" must be one of the tasks of https://hf.co/tasks')
    for each in card.get("widget", []):
        if not {"text"} & set(each) and not {"source_sentence", "sentences"} <= set(each):
            errors.append('"widget[0]" does not match any of the allowed types')
    for number, model in enumerate(_listed(card.get("model-index"))):
        where = f'"model-index[{number}]'
        if not isinstance(model.get("name"), str):
            errors.append(f'{where}.name" is required')
        for place, result in enumerate(model.get("results", [])):
            inside = f"{where}.results[{place}]"
            if not isinstance(result.get("task", {}).get("type"), str):
                errors.append(f'{inside}.task.type" is required')
            for key in ("type", "name"):
                if not isinstance(result.get("dataset", {}).get(key), str):
                    errors.append(f'{inside}.dataset.{key}" is required')
            metrics = result.get("metrics")
            if not metrics:
                errors.append(f'{inside}.metrics" is required')
            for metric in metrics or []:
                if not isinstance(metric.get("type"), str) or "value" not in metric:
                    errors.append(f'{inside}.metrics" needs type and value')
    return errors


def _dataset(card: dict[str, Any]) -> list[str]:
    errors = [
        f'"size_categories" must be one of [{", ".join(SIZES)}]'
        for name in _listed(card.get("size_categories"))
        if name not in SIZES
    ]
    errors += [
        '"task_categories" must be one of the tasks of https://hf.co/tasks'
        for name in _listed(card.get("task_categories"))
        if name not in TASKS
    ]
    names = [config.get("config_name") for config in card.get("configs", [])]
    if len(set(names)) != len(names):
        errors.append('"configs" contains a duplicate config_name')
    if sum(bool(config.get("default")) for config in card.get("configs", [])) > 1:
        errors.append('"configs" has more than one default')
    for config in card.get("configs", []):
        for file in config.get("data_files", []):
            if not SPLIT.fullmatch(str(file.get("split"))) or not file.get("path"):
                errors.append(f'"configs" split {file.get("split")!r} is not valid')
    return errors
