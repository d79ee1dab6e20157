"""The sections of a card about its runs: how each was made, what was kept, how it was reviewed."""

from curation.recorded import NAME as RECORDED
from curation.recorded import NOTE as RECORDED_NOTE
from curation.release.card.facts import CardFacts, RunFacts
from curation.release.card.markdown import code, fenced, html, inline
from curation.release.duplicates import RULE

REVIEW_SENTENCES = {
    "not-rejected": "Groups that a reviewer rejected are left out; nobody had to approve a group.",
    "approved": "Only groups that a reviewer approved.",
}


def sources_section(facts: CardFacts) -> str:
    """Each run with its numbers and licences; "" for a release of one run."""
    if len(facts.runs) < 2:
        return ""
    rows = "\n".join(
        f"| {inline(run.dataset)} | {run.run_id} | {_groups(run)} | {run.duplicates:,} "
        f"| {run.kept:,} | {_licences(run)} | {'yes' if run.offline else 'no'} |"
        for run in facts.runs
    )
    return (
        "## Sources\n\n"
        "| dataset | run | groups here | duplicates left out | kept in the run | licences "
        f"| offline |\n|---|---:|---:|---:|---:|---|---|\n{rows}\n\n{RULE}"
    )


def runs_sections(facts: CardFacts) -> list[str]:
    """How the groups were made, accepted and reviewed; of several runs under a heading each."""
    if len(facts.runs) == 1:
        return _sections(facts.runs[0], facts.reviews)
    found = []
    for run in facts.runs:
        found.append(f"## {inline(run.dataset)}, run {run.run_id}")
        found += [f"#{section}" if section else "" for section in _sections(run, facts.reviews)]
    return found


def _sections(run: RunFacts, reviews: str) -> list[str]:
    return [_making(run), _acceptance(run), _reviewing(run, reviews)]


def _groups(run: RunFacts) -> str:
    return "counted at export" if run.by_licence is None else f"{sum(run.by_licence.values()):,}"


def _licences(run: RunFacts) -> str:
    return " · ".join(
        f"{inline(licence or 'unknown')} {groups:,}"
        for licence, groups in sorted((run.by_licence or {}).items())
    )


def _making(run: RunFacts) -> str:
    if run.origin:
        return (
            f"## How it was made\n\nThe groups were made elsewhere and imported from "
            f"{code(run.origin)} as run {run.run_id}; see there for how they were made."
        )
    provider = (
        "**offline** (rules and an embedding model; no language model)"
        if run.offline
        else f"{code(run.provider)}"
    )
    if run.servers:
        provider += f" at {', '.join(map(inline, run.servers))}"
    note = f"**{RECORDED_NOTE}**\n\n" if run.provider == RECORDED else ""
    rows = "\n".join(
        f"| {inline(stage.task)} | {inline(stage.model)} | {inline(stage.prompt)} "
        f"(`{stage.prompt_sha256[:12]}`) |"
        for stage in run.stages
    )
    settings = " · ".join(
        f"{name.replace('_', ' ')} {value}"
        for name, value in {**run.validation, **run.filters}.items()
    )
    prompts = "\n\n".join(
        f"<details><summary>Prompt <code>{html(name)}</code></summary>\n\n"
        f"{fenced(text)}\n\n</details>"
        for name, text in run.prompts.items()
    )
    unused = (
        "The prompts below were not sent anywhere: offline, rules stand in for them.\n\n"
        if run.offline and prompts
        else ""
    )
    return (
        "## How it was made\n\n"
        f"Run {run.run_id} ({run.status}) of the recipe {code(run.recipe)} "
        f"(`{run.recipe_sha256[:12]}`), provider {provider}.\n\n{note}"
        f"| stage | model | prompt |\n|---|---|---|\n{rows}\n\n"
        f"Settings: {inline(settings) or 'none'}.\n\n{unused}{prompts}"
    ).rstrip()


def _acceptance(run: RunFacts) -> str:
    if run.origin:
        return ""  # what was dropped elsewhere is not known here
    over = run.kept + sum(run.dropped.values())
    share = f" ({run.kept / over:.1%})" if over else ""
    reached = "\n".join(
        f"| reached {inline(stage)} | {number:,} |" for stage, number in run.reached.items()
    )
    reasons = "\n".join(
        f"| {inline(reason)} | {number:,} |" for reason, number in run.dropped.items()
    )
    listed = (
        f"\n\nWhy groups were dropped:\n\n| reason | groups |\n|---|---:|\n{reasons}"
        if reasons
        else "\n\nNo group was dropped."
    )
    return (
        f"## Acceptance\n\nOf {run.pairs:,} pairs, {run.kept:,} groups were kept{share}."
        f"{_again(run)}\n\n"
        f"| | groups |\n|---|---:|\n| pairs | {run.pairs:,} |\n{reached}\n"
        f"| kept | {run.kept:,} |{listed}"
    )


def _again(run: RunFacts) -> str:
    """Which verdicts these are, where they are not those that the run gave as it worked."""
    if not run.rules:
        return ""
    rules = ", ".join(map(code, run.rules))
    return (
        f" These are the verdicts of version {run.verdict_version}: the stored answers of the "
        f"run's judges were put together again by other rules than the recipe's ({rules}); nothing "
        "was requested anew."
    )


def _reviewing(run: RunFacts, reviews: str) -> str:
    meaning = {"approve": "approved", "reject": "rejected", "edit": "edited since"}
    counted = ", ".join(
        f"{number:,} {meaning[action]}" for action, number in sorted(run.review_counts.items())
    )
    return (
        f"## Reviews\n\n{REVIEW_SENTENCES[reviews]} In the run, people's current reviews: "
        f"{counted or 'none'}."
    )
