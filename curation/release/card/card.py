"""The dataset card of a release: written from the store, valid for `datasets` and the Hub."""

from curation.release.card.facts import CardFacts
from curation.release.card.front_matter import configs, front_matter
from curation.release.card.markdown import inline
from curation.release.card.runs import runs_sections, sources_section
from curation.release.plan import HELD_OUT, TEST, is_held_out
from curation.release.rows import default_columns, kinds_of
from db.shape import Shape

OFFLINE_WARNING = (
    "> [!WARNING]\n"
    "> **Made offline, without a language model.** Rules wrote the instructions, the negative "
    "queries and the negative passages; an embedding model judged them. These texts show how the "
    "data look. Do not train a model for use on them and do not publish them as InF-IR data."
)
PAPER = """@article{zhuang2025towards,
  title   = {Towards Better Instruction Following Retrieval Models},
  author  = {Yuchen Zhuang and Aaron Trinh and Rushi Qiang and Haotian Sun and Chao Zhang and
             Hanjun Dai and Bo Dai},
  journal = {arXiv preprint arXiv:2505.21439},
  year    = {2025}
}"""
CONFIG_MEANINGS = {
    "provenance": "where each group comes from, and how it was judged",
    "triplets": "instruction, query, passage and a label, {triplets} per group",
    "judgments": "who chose which candidate; people under pseudonyms",
    "sentence-transformers": "anchor, positive and negatives, {scenarios} per group",
    "tevatron": "queries with their passages, {scenarios} per group",
    "promptriever": "queries with and without instruction, passages by kind, {queries} per group",
}
NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


def write_card(facts: CardFacts, release_id: int | None) -> str:
    """The card as Markdown with its YAML front matter; `release_id` None for a preview."""
    parts = [
        front_matter(facts),
        f"# {inline(facts.title)}",
        _offline_warning(facts),
        _what(facts),
        _counts(facts),
        sources_section(facts),
        *runs_sections(facts),
        "\n\n".join(["## What was measured", *facts.findings]) if facts.findings else "",
        _licence(facts),
        _loading(facts),
        _columns(facts.shape),
        f"## Citing\n\n{_cited(facts.shape)}:\n\n```bibtex\n{PAPER}\n```",
        _identity(facts, release_id),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _offline_warning(facts: CardFacts) -> str:
    if not facts.offline:
        return ""
    if all(run.offline for run in facts.runs):
        return OFFLINE_WARNING
    made = ", ".join(str(run.run_id) for run in facts.runs if run.offline)
    return OFFLINE_WARNING.replace(
        "Made offline, without a language model.**",
        f"Partly made offline, without a language model: run {made}** (column `offline`).",
    )


def _what(facts: CardFacts) -> str:
    groups = sum(facts.splits.values())
    origins = dict.fromkeys((run.dataset, run.source) for run in facts.runs)
    grown_from = " and ".join(
        f"{inline(dataset)} ({inline(source)})" if source else inline(dataset)
        for dataset, source in origins
    )
    dropped = ""
    if facts.include_dropped:
        dropped = (
            f" **{facts.verdicts.get('dropped', 0):,} of them were dropped** and are here for "
            f'study: train on those with `verdict == "kept"`{_or_approved(facts)} only.'
        )
    return (
        f"{groups:,} groups for training retrieval models that follow instructions, grown from "
        f"the queries and passages of {grown_from}. {_shape(facts.shape)}{dropped}{_rescued(facts)}"
    )


def _shape(shape: Shape) -> str:
    """What a group is."""
    if shape.is_inf_ir:
        return (
            "Each group is three triplets of instruction, query and passage: a positive one, and "
            "two in which the instruction or the query was poisoned and a passage was written to "
            "match, so that the positive passage no longer fits."
        )
    listed = "\n".join(
        f"- {inline(each.title)}: {inline(each.label)}" for each in shape.all_scenarios
    )
    count = len(shape.roles)
    are = "a triplet" if count == 1 else f"{_number(count)} triplets"
    return (
        f"Each group is {are} of instruction, query and passage, of the recipe's own shape and "
        f"not of InF-IR's:\n\n{listed}\n"
    )


def _cited(shape: Shape) -> str:
    if shape.is_inf_ir:
        return "The method is that of the paper"
    return "The method follows that of the paper, with groups of another shape"


def _number(count: int) -> str:
    return NUMBERS[count] if count < len(NUMBERS) else str(count)


def _rows(count: int) -> str:
    return f"{_number(count)} row{'s' if count != 1 else ''}"


def _or_approved(facts: CardFacts) -> str:
    return ' or `review == "approve"`' if facts.rescued else ""


def _held_out_name(facts: CardFacts) -> str:
    return TEST if TEST in facts.splits else f"…{HELD_OUT}"


def _counts(facts: CardFacts) -> str:
    number = {kind: f"{counts['number']:,}" for kind, counts in facts.texts.items()}
    different = {kind: f"{counts['different']:,}" for kind, counts in facts.texts.items()}
    mean = {kind: _decimal(counts["mean_words"]) for kind, counts in facts.texts.items()}
    splits = "\n".join(f"| {split} | {rows:,} |" for split, rows in facts.splits.items())
    held_out = ""
    if facts.held_out:
        out = sum(rows for split, rows in facts.splits.items() if is_held_out(split))
        share = out / max(1, sum(facts.splits.values()))
        of_source = "no group of their sources, " if facts.held_out_by == "source" else ""
        held_out = (
            f"`{_held_out_name(facts)}` holds {share:.0%} of the groups "
            f"(seed {facts.seed}): {of_source}no query and no passage of theirs, whatever its "
            "case and spacing, is in another split. Evaluate on them, do not train on them.\n\n"
        )
    sources = ""
    if len(facts.sources) > 1:
        listed = " · ".join(f"{inline(name)} {rows:,}" for name, rows in facts.sources.items())
        sources = f"Groups by source: {listed}.\n\n"
    chosen = f"Chosen: {'; '.join(map(inline, facts.chosen))}.\n\n" if facts.chosen else ""
    table = (
        "As in Table 1 of the paper, which counts every text of every group (`#I` is "
        f"{_number(len(kinds_of(facts.shape)['I']))} per group); below them how many are "
        "different. Averages are in words.\n\n"
        "| | #I | #Q | #P | Avg. I | Avg. Q | Avg. P |\n|---|---:|---:|---:|---:|---:|---:|\n"
        f"| all | {number['I']} | {number['Q']} | {number['P']} "
        f"| {mean['I']} | {mean['Q']} | {mean['P']} |\n"
        f"| different | {different['I']} | {different['Q']} | {different['P']} | | | |"
        if facts.texts
        else "The texts are counted when the release is made."
    )
    return (
        "## Counts\n\n"
        f"| split | groups |\n|---|---:|\n{splits}\n\n{held_out}{sources}{chosen}{table}"
    )


def _rescued(facts: CardFacts) -> str:
    if not facts.rescued:
        return ""
    groups, are = ("group", "is") if facts.rescued == 1 else ("groups", "are")
    return (
        f" **{facts.rescued:,} {groups}** that the filter had dropped {are} here because a person "
        'approved them: their `verdict` is `"dropped"`, their `review` `"approve"`.'
    )


def _licence(facts: CardFacts) -> str:
    names = ", ".join(inline(licence or "unknown") for licence in facts.licences) or "unknown"
    several = (
        " The sources have different licences: the column `licence` says which holds for a row."
        if len(facts.licences) > 1
        else ""
    )
    return (
        f"## Licence\n\nInherited from the source: **{names}**. Texts that were generated from "
        f"the source's texts are passed on under the same licence.{several}"
    )


def _loading(facts: CardFacts) -> str:
    first, shape = next(iter(facts.splits)), facts.shape
    shown = "only_instruction" if shape.lists else shape.first.instruction.column
    return (
        "## Loading\n\n"
        "```python\n"
        "from datasets import load_dataset\n\n"
        'groups = load_dataset("PATH_OR_NAME")  # this folder, or its name on the Hub\n'
        f'print(groups["{first}"][0]["{shown}"])\n'
        f"{_other_configs(facts)}```{_apostrophes(facts)}"
    )


def _other_configs(facts: CardFacts) -> str:
    count = len(facts.shape.roles)
    queries = len({(claim.instruction, claim.query) for claim in facts.shape.claims})
    rows = {
        "triplets": "rows" if facts.shape.lists else _rows(2 * count - 1),
        "scenarios": _rows(count),
        "queries": _rows(queries),
    }
    return "".join(
        f'{name.replace("-", "_")} = load_dataset("PATH_OR_NAME", "{name}")  '
        f"# {CONFIG_MEANINGS[name].format(**rows)}\n"
        for name in configs(facts)[1:]
    )


def _apostrophes(facts: CardFacts) -> str:
    if facts.format != "csv":
        return ""
    return (
        "\n\nIn these CSV files a text that begins with `=`, `+`, `-`, `@`, a tab or a line break "
        "has an apostrophe in front, so that a spreadsheet shows it instead of running it. Take it "
        "off, or use the Parquet release, where texts are as they are."
    )


def _columns(shape: Shape) -> str:
    rows = "\n".join(
        f"| `{name}` | {inline(column.meaning)} |"
        for name, column in default_columns(shape).items()
    )
    head = "| column | is |\n|---|---|"
    first = f"The first {_number(len(shape.columns))} are"
    named = "named as in InF-IR" if shape.is_inf_ir else "the texts of the recipe's shape"
    if shape.lists:
        first = "A row is a query with its instruction or without, and the columns are"
        named = "Promptriever's with a few more: groups have differing numbers of passages"
    return f"## Columns\n\n{first} {named}.\n\n{head}\n{rows}"


def _identity(facts: CardFacts, release_id: int | None) -> str:
    if release_id is None:
        return "A preview: this release has not been made."
    return (
        f"Release {release_id} by InF Studio; content sha256 `{facts.content_sha256}` "
        "(over the groups and the judgments as JSONL, by split)."
    )


def _decimal(value: float | None) -> str:
    return "undefined" if value is None else f"{value:.2f}"
