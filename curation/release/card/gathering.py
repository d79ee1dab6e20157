"""Gathering the facts of a dataset card from the store and from the counts of the export."""

from collections.abc import Callable

from sqlalchemy.orm import Session

from analysis.found.runs import LeakageReport
from curation.recipe.settings import present_names
from curation.release.agreement import agreement_metadata, agreements
from curation.release.card.facts import CardFacts, RunFacts, Stage
from curation.release.findings import findings
from curation.release.plan import ChosenRun, Plan
from curation.release.writing import Counted
from curation.servers.addresses import published_url
from db.release.releases import recipe_of_run
from db.review.reviews import count_reviews
from db.run.runs import funnel
from db.run.versions import rules_now
from db.tables import Run


def facts_of(
    session: Session,
    plan: Plan,
    written: Counted,
    leakage: LeakageReport | None,
    report: Callable[[str], None] | None = None,
) -> CardFacts:
    """The facts of the card for a release with these counts and this leakage report.

    report: called with each stage that can take long.
    """
    agreed = agreements(session, plan, report)
    return CardFacts(
        title=plan.name,
        shape=plan.shape,
        runs=[_run_facts(session, each, written) for each in plan.runs],
        licences=written.licences,
        reviews=plan.choice.reviews,
        include_dropped=plan.choice.include_dropped,
        verdicts=written.verdicts,
        splits=written.splits,
        files=written.files,
        sources=written.sources,
        chosen=_filter_sentences(plan),
        held_out=plan.wanted.held_out,
        held_out_by=plan.wanted.held_out_by,
        seed=plan.wanted.seed,
        format=plan.wanted.format,
        texts=written.texts,
        content_sha256=written.content_sha256,
        findings=findings(session, plan, leakage, agreed),
        agreement=[agreement_metadata(each) for each in agreed],
        languages=written.languages,
        rescued=written.rescued,
    )


def _run_facts(session: Session, chosen: ChosenRun, written: Counted) -> RunFacts:
    run_id = chosen.run.id
    recipe, prompts = recipe_of_run(session, run_id)
    counts = funnel(session, run_id)
    stages = [
        Stage(
            task, _model(chosen.run, task, stage["model"]), stage["prompt"], stage["prompt_sha256"]
        )
        for task, stage in recipe.body.get("stages", {}).items()
    ]
    return RunFacts(
        dataset=chosen.dataset.name,
        source=chosen.dataset.source,
        run_id=run_id,
        status=chosen.run.status,
        provider=chosen.run.provider,
        offline=chosen.run.offline,
        recipe=recipe.name,
        recipe_sha256=recipe.sha256,
        stages=stages,
        validation=recipe.body.get("validation", {}),
        filters=present_names(recipe.body.get("filters", {}), f"recipe {recipe.name}"),
        review_counts=count_reviews(session, run_id),
        pairs=counts.pairs,
        reached=counts.reached,
        kept=counts.kept,
        dropped=counts.dropped,
        by_licence=None if written.by_run is None else written.by_run.get(run_id, {}),
        duplicates=written.duplicates.get(run_id, 0),
        prompts={
            prompts[stage.prompt_sha256].name: prompts[stage.prompt_sha256].text
            for stage in stages
            if stage.prompt_sha256 in prompts
        },
        origin=str(recipe.body.get("origin", "")),
        servers=tuple(dict.fromkeys(map(published_url, _urls(chosen.run)))),
        verdict_version=chosen.run.verdict_version,
        rules=rules_now(session, chosen.run),
    )


def _model(run: Run, task: str, requested: str) -> str:
    """The model of a stage, with the name under which it answered where that is another one."""
    answered = run.models.get(task, {}).get("answered_as")
    return f"{requested} (answered as {answered})" if answered else requested


def _urls(run: Run) -> list[str]:
    return [url for url in str(run.server.get("url") or "").split(", ") if url]


def _filter_sentences(plan: Plan) -> list[str]:
    sentences = []
    if plan.wanted.leave_out_contaminated:
        sentences.append("without groups that overlap with evaluation sets")
    if plan.choice.sources:
        sentences.append(f"only the source {' and '.join(plan.choice.sources)}")
    if plan.choice.languages:
        sentences.append(f"only the language {' and '.join(plan.choice.languages)}")
    if plan.choice.study_id is not None:
        sentences.append(f"only groups of study {plan.choice.study_id}")
    if plan.wanted.balance != "none":
        sentences.append(f"as many groups of every {plan.wanted.balance} (seed {plan.wanted.seed})")
    return sentences
