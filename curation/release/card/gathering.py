"""Gathering the facts of a dataset card from the store and from the counts of the export."""

from typing import Any

from sqlalchemy.orm import Session

from curation.release.card.facts import CardFacts, Stage
from curation.release.findings import findings
from curation.release.plan import Plan
from curation.release.writing import Counted
from db.release.releases import recipe_of_run
from db.review.reviews import count_reviews
from db.run.runs import funnel


def facts_of(
    session: Session, plan: Plan, written: Counted, leakage: dict[str, Any] | None
) -> CardFacts:
    """The facts of the card for a release with these counts and this leakage report."""
    recipe, prompts = recipe_of_run(session, plan.run.id)
    counts = funnel(session, plan.run.id)
    stages = [
        Stage(task, stage["model"], stage["prompt"], stage["prompt_sha256"])
        for task, stage in recipe.body.get("stages", {}).items()
    ]
    return CardFacts(
        title=plan.name,
        dataset=plan.dataset.name,
        source=plan.dataset.source,
        licences=written.licences,
        run_id=plan.run.id,
        run_status=plan.run.status,
        provider=plan.run.provider,
        offline=plan.run.offline,
        recipe=recipe.name,
        recipe_sha256=recipe.sha256,
        stages=stages,
        validation=recipe.body.get("validation", {}),
        filters=recipe.body.get("filters", {}),
        reviews=plan.choice.reviews,
        review_counts=count_reviews(session, plan.run.id),
        include_dropped=plan.choice.include_dropped,
        verdicts=written.verdicts,
        splits=written.splits,
        files=written.files,
        sources=written.sources,
        chosen=_filter_sentences(plan),
        held_out=plan.held_out,
        seed=plan.seed,
        format=plan.format,
        texts=written.texts,
        pairs=counts.pairs,
        reached=counts.reached,
        kept=counts.kept,
        dropped=counts.dropped,
        content_sha256=written.content_sha256,
        prompts={
            prompts[stage.prompt_sha256].name: prompts[stage.prompt_sha256].text
            for stage in stages
            if stage.prompt_sha256 in prompts
        },
        findings=findings(session, plan, leakage),
        languages=written.languages,
        origin=str(recipe.body.get("origin", "")),
    )


def _filter_sentences(plan: Plan) -> list[str]:
    sentences = []
    if plan.leave_out_contaminated:
        sentences.append("without groups that overlap with evaluation sets")
    if plan.choice.sources:
        sentences.append(f"only the source {' and '.join(plan.choice.sources)}")
    if plan.choice.languages:
        sentences.append(f"only the language {' and '.join(plan.choice.languages)}")
    if plan.choice.study_id is not None:
        sentences.append(f"only groups of study {plan.choice.study_id}")
    if plan.balance != "none":
        sentences.append(f"as many groups of every {plan.balance} (seed {plan.seed})")
    return sentences
