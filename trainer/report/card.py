"""The card (README.md) of a checkpoint: what it is, from what, how, and how good."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from huggingface_hub import ModelCardData

from analysis.embed.model_hash import model_sha256
from analysis.figures.numbers import score
from analysis.files.rows import MTEB_TASK
from analysis.text.licences import licence_metadata
from db.run.versions import versions_in
from db.values import HELD_OUT_FILE
from trainer.data.release_files import ReleaseData
from trainer.data.splitting import Groups
from trainer.evaluate.intervals import HELD_OUT_INTERVALS
from trainer.objectives.names import parse_objective
from trainer.report.examples import INDEX_STAYS
from trainer.report.held_out_scores import Gain
from trainer.report.origins import circular_held_out, decides_alone, origin_rows, origins_of
from trainer.report.public_name import (
    portable_settings,
    public_name,
    shown_name,
    without_folders,
)
from trainer.settings.settings import TrainSettings
from trainer.settings.template import INSTRUCTED

OFFLINE_NOTE = (
    "> **Offline data.** The instructions and negatives this model was trained on were written by "
    "the offline provider's rules, not by a language model."
)

NO_PUBLIC_BASE = (
    "The base model is a folder that has no public name: the card names no `base_model`, and the "
    "weights' sha256 below identifies it."
)
WIDGET = {
    "source_sentence": "Prefer passages with a figure. how tall is the tower",
    "sentences": ["The tower is 330 m tall.", "The tower is very tall."],
}
INDEPENDENT = (
    "The validator is none of the base model, the teacher, the writers and the map's model."
)
CONFIRMED = "The held-out groups are those that the judge {} confirmed in every scenario."
APPROVED = (
    "The held-out groups are those that people approved: scores on them do not depend on the "
    "validator."
)
REPRODUCE = (
    f"`python {MTEB_TASK.name}` in the checkpoint's folder measures nDCG@10, strict accuracy and "
    "both flips of the trained model again, by mteb and sentence-transformers alone, on "
    f"`{HELD_OUT_FILE}`, where that is there."
)
UNKNOWN = "The release does not name its validator: whether scores are circular is unknown."


def write_card(settings: TrainSettings, groups: Groups, result: Mapping[str, Any]) -> str:
    """The card as Markdown with its YAML head."""
    release, held_out = groups.release, result["held_out"]
    probe = result.get("natural_probe") or {"before": {}, "after": {}}
    before, after = held_out["before"] | probe["before"], held_out["after"] | probe["after"]
    found_gains = (held_out.get("gain") or {}) | (probe.get("gain") or {})
    bm25 = (held_out.get("bm25") or {}) | (probe.get("bm25") or {})
    objective = parse_objective(settings.objective)
    licences, is_offline = groups.licences, groups.offline
    tags = [
        "sentence-transformers",
        "sentence-similarity",
        "feature-extraction",
        "instruction-following-retrieval",
        "inf-embed",
    ]
    base, shown = public_name(settings.base_model), shown_name(settings.base_model)
    known: dict[str, Any] = {
        **({"base_model": base} if base else {}),
        **({"language": found} if (found := _languages(groups)) else {}),
        **licence_metadata(licences),
    }
    head = ModelCardData(
        library_name="sentence-transformers",
        pipeline_tag="sentence-similarity",
        **known,
        tags=[*tags, "offline"] if is_offline else tags,
        widget=[WIDGET],
    )
    offline = {True: "yes", False: "no", None: "unknown"}[is_offline]
    rows: list[tuple[str, Any]] = [
        ("Release", f"{release.name} ({release.content_sha256[:12]})"),
        *(
            (
                "Also trained on",
                f"{each.release.name} ({each.release.content_sha256[:12]}), {each.groups} groups, "
                f"weight {each.weight:g}",
            )
            for each in groups.more
        ),
        ("Recipe of the release", _recipes(release.manifest) or "unknown"),
        *(
            ("Verdicts of", f"{versions} ({each.name})")
            for each in (release, *(more.release for more in groups.more))
            if (versions := versions_in(each.manifest.get("filter") or {}))
        ),
        ("Made offline", offline),
        ("Licence of the data", ", ".join(licences) or "unknown"),
        ("Base model", shown if base in (None, shown) else f"{shown}, grown from {base}"),
        (
            "Objective",
            f"{objective.label} (`{objective.name}`), temperature {settings.temperature}",
        ),
        ("Interaction", _interaction(settings)),
        *_reading(settings),
        (
            "Training",
            f"{len(groups.training)} groups, {result['steps']} steps, {result['seconds']:.0f} s",
        ),
    ]
    origins = [_origins(settings, one) for one in groups.releases]
    parts = [
        f"---\n{head.to_yaml().rstrip()}\n---",
        f"# InF-Embed: {shown} on {release.name}",
        OFFLINE_NOTE if is_offline else "",
        "Trained by InF Studio to follow instructions in retrieval.",
        "" if base else NO_PUBLIC_BASE,
        "| | |\n|---|---|\n" + "\n".join(f"| {name} | {_cell(value)} |" for name, value in rows),
        "## Who wrote, judged and was the base\n" + origins[0],
        *(
            f"### The same of {_cell(each.release.name)}\n" + of
            for each, of in zip(groups.more, origins[1:], strict=True)
        ),
        "## Use\n" + _index(settings, shown) + _usage(settings),
        "## Scores\n" + _scores(before, after, found_gains, bm25, held_out, len(groups.held_out)),
        REPRODUCE if groups.held_out and settings.interaction == "I" else "",
        *_notes(held_out, origins),
        "## Settings\n```json\n"
        + json.dumps(portable_settings(settings), indent=2, ensure_ascii=False)
        + "\n```",
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _origins(settings: TrainSettings, release: ReleaseData) -> str:
    origins = without_folders(origins_of(settings, release.manifest))
    rows = "\n".join(f"| {part} | {_cell(model)} |" for part, model in origin_rows(origins))
    approved = settings.held_out_groups == "approved"
    others_chose = approved or decides_alone(settings)
    sentences = circular_held_out(settings, origins) or (
        [] if others_chose else [INDEPENDENT if _all_judged(origins) else UNKNOWN]
    )
    sentences += [APPROVED] if approved else []
    sentences += (
        [CONFIRMED.format(without_folders(settings.held_out_judge))]
        if settings.held_out_judge
        else []
    )
    return f"| | |\n|---|---|\n{rows}\n\n" + "\n\n".join(sentences)


def _all_judged(origins: Mapping[str, Any]) -> bool:
    return all(each["judged"] for each in origins.get("runs") or [origins])


def _recipes(manifest: Mapping[str, Any]) -> str:
    runs = manifest.get("runs") or [manifest]
    return ", ".join(dict.fromkeys(str(run.get("recipe_sha256") or "") for run in runs))


def _languages(groups: Groups) -> list[str]:
    """The languages that the releases state, each once."""
    releases = [groups.release, *(each.release for each in groups.more)]
    return list(
        dict.fromkeys(name for one in releases for name in one.manifest.get("languages", []))
    )


def _cell(value: Any) -> str:
    return str(value).replace("|", "\\|").replace("\n", " ")


def _interaction(settings: TrainSettings) -> str:
    if settings.interaction == "II":
        return "II: instruction and query are encoded apart and joined by cross-attention"
    return f"I: one text, template `{settings.template}`"


def _reading(settings: TrainSettings) -> list[tuple[str, str]]:
    """Prefixes and lengths; where the index stays, those of queries with an instruction alone."""
    query, passage = settings.query_tokens, settings.passage_tokens
    if settings.trained_side == "both":
        return [
            ("Prefixes", f"query `{settings.query_prefix}`, passage `{settings.passage_prefix}`"),
            ("Lengths", f"query {query}, passage {passage} tokens"),
        ]
    prefix = f"`{settings.query_prefix}`" if settings.query_prefix else "the base model's own"
    others = "all other texts as the base model reads them"
    return [
        ("Prefixes", f"query with an instruction: {prefix}; {others}"),
        ("Lengths", f"query with an instruction: {query} tokens; {others}"),
    ]


def _index(settings: TrainSettings, base: str) -> str:
    """What the base model still does, where only instructed queries were trained."""
    if settings.trained_side == "both":
        return ""
    sha256 = model_sha256(settings.base_model)
    known = f" (weights sha256 `{sha256}`)" if sha256 else ""
    return INDEX_STAYS.format(base=f"{base}{known}") + "\n\n"


def _usage(settings: TrainSettings) -> str:
    instruction, query = "Prefer passages with a figure.", "how tall is the tower"
    passages = 'passages = model.encode_document(["It is 330 m tall.", "It is tall."])\n'
    ours = (
        "```python\nfrom inf_studio import load_model  # pip install 'inf-studio[train]'\n\n"
        'model = load_model("PATH")\n'
        f"query = model.encode_query([{query!r}], instruction={instruction!r})\n"
        f"{passages}print(model.similarity(query, passages))\n```"
    )
    if settings.interaction == "II":
        return "The model's module is InF Studio's, whose package loads it:\n" + ours
    text = settings.parsed_template.apply(instruction, query)
    call = f"model.encode_query([{text!r}])"
    if settings.trained_side == "query":
        door = f"task={INSTRUCTED!r}, prompt_name={INSTRUCTED!r}"
        call = f"model.encode([{text!r}], {door})"
    return (
        "With sentence-transformers alone, instruction and query are one text by the template "
        "(the prefixes come by themselves):\n"
        "```python\nfrom sentence_transformers import SentenceTransformer\n\n"
        'model = SentenceTransformer("PATH")\n'
        f"query = {call}\n{passages}```\n"
        "The same vectors with the template applied for you:\n" + ours
    )


def _scores(
    before: Mapping[str, float | None],
    after: Mapping[str, float | None],
    found_gains: Mapping[str, Gain],
    bm25: Mapping[str, float | None],
    held_out: Mapping[str, Any],
    groups: int,
) -> str:
    if not after:
        return "No groups were held out: nothing was measured."
    lines = []
    if groups:
        judge = held_out.get("judge")
        confirmed = f" that the judge {_cell(judge)} confirmed" if judge else ""
        lines.append(
            f"On {groups} held-out groups{confirmed} (no query or passage is shared with the "
            "training ones); `query-alone:` and `instruction-alone:` are controls that read one "
            "half of the text:"
        )
    intervals = held_out.get("intervals") or {}
    first, last = intervals.get("before") or {}, intervals.get("after") or {}
    lines += ["", "| measure | base | trained | gain | BM25 |", "|---|---|---|---|---|"]
    for name in after:
        lines.append(
            f"| {name} | {score(before.get(name))}{_interval(first.get(name))} "
            f"| {score(after[name])}{_interval(last.get(name))} "
            f"| {_gain(found_gains.get(name))} | {score(bm25[name]) if name in bm25 else ''} |"
        )
    fell = [f"{name} ({_gain(of)})" for name, of in found_gains.items() if (of["high"] or 0) < 0]
    return "\n".join(
        [
            *lines,
            *(["", f"Training made worse: {', '.join(fell)}."] if fell else []),
            *(["", HELD_OUT_INTERVALS] if last else []),
        ]
    )


def _gain(gain: Gain | None) -> str:
    """Trained minus base, paired; with its interval, or why it has none, and what was lost."""
    if gain is None:
        return ""
    low, high = gain["low"], gain["high"]
    limits = "too few differ for an interval" if low is None else f"{low:+.4f}, {high:+.4f}"
    counts = f"; {gain['gained']} gained, {gain['lost']} lost" if "lost" in gain else ""
    return f"{gain['value']:+.4f} [{limits}]{counts}"


def _interval(limits: Sequence[float | None] | None) -> str:
    low, high = limits or (None, None)
    return "" if low is None else f" [{low:.4f}, {high:.4f}]"


def _notes(held_out: Mapping[str, Any], origins: Sequence[str]) -> list[str]:
    """What the scores cannot show, but for what stands with the origins."""
    notes = [f"{note[0].upper()}{note[1:]}" for note in held_out.get("notes", ())]
    return [note for note in notes if not any(note in shown for shown in origins)]
