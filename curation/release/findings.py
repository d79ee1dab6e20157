"""The findings on a release's groups: agreement, diversity, coverage, contamination, shared parts
and leakage.

Read from the store when the release is made; a missing measurement is named with the command that
makes it.
"""

from collections.abc import Sequence
from typing import Any

from sqlalchemy.orm import Session

from analysis.embed.independence import map_sentence
from analysis.figures.numbers import score
from analysis.found.runs import LeakageReport
from analysis.found.texts import ContaminationFound, CoverageFound, DiversityFound
from analysis.map.coverage import points_frame
from analysis.map.printed_map import printed_map
from curation.release.agreement import StudyAgreement, agreement_paragraph
from curation.release.card.markdown import inline
from curation.release.plan import PICTURE, ChosenRun, Plan
from curation.run.leakage import auc_text, is_outdated, leaking_sentence, stored_leakage
from curation.run.shared_parts import is_unchecked, part_text, stored_shared_parts
from db.outcome.analyses import analyses_of_dataset
from db.release.choice import count_rescued
from db.tables import Analysis

CARD_DOTS_PER_INCH = 200


def findings(
    session: Session,
    plan: Plan,
    leakage: LeakageReport | None,
    agreed: Sequence[StudyAgreement],
) -> list[str]:
    """The paragraphs of the card's section "What was measured", in Markdown.

    Of several runs each under its own heading. leakage: the report over the release's groups, None
    in a preview where it is not known yet. agreed: the studies of the runs.
    """
    several = len(plan.runs) > 1
    found = []
    for each in plan.runs:
        found += [
            f"### {inline(each.dataset.name)}, run {each.run.id}" if several else "",
            *_agreement(session, each, agreed),
            _diversity(session, each),
            _coverage(session, each, with_picture=not several),
            _contamination(session, each, left_out=plan.wanted.leave_out_contaminated),
            _shared_parts(session, each),
        ]
    found += ["### All groups of this release" if several else "", _leakage(session, plan, leakage)]
    return [paragraph for paragraph in found if paragraph]


def contaminated_groups(session: Session, chosen: ChosenRun) -> frozenset[int] | None:
    """The groups that overlap with an evaluation set, None if not all of them were compared: a
    comparison of some sources, or of kept groups when dropped ones are exported (which includes
    those that a person approved), does not count."""
    found = _of_run(session, chosen, "contamination")
    if found is None or found.config.get("sources"):
        return None
    if found.config.get("groups") != "all" and (
        chosen.choice.include_dropped or count_rescued(session, chosen.choice)
    ):
        return None
    return frozenset(ContaminationFound.stored(found).groups)


def _agreement(session: Session, chosen: ChosenRun, agreed: Sequence[StudyAgreement]) -> list[str]:
    found = [agreement_paragraph(session, each) for each in agreed if each.run_id == chosen.run.id]
    return found or ["Agreement: no person has judged groups of this run (`inf studies create`)."]


def _diversity(session: Session, chosen: ChosenRun) -> str:
    found = _of_run(session, chosen, "diversity")
    if found is None:
        command = f"inf analyze diversity --dataset {chosen.dataset.name}"
        return f"Diversity: not measured (`{command}`)."
    result = DiversityFound.stored(found)
    (corpus,) = result.corpora
    rows = [
        f"| {field} | {numbers.texts:,} | {score(numbers.aps)} "
        f"| {score(numbers.ingf_2)} | {score(numbers.ingf_3)} |"
        for field, numbers in corpus.fields.items()
    ]
    return (
        f"Diversity of {_measured(found)}, with the vectors of {result.model}: mean "
        "pairwise similarity (APS, lower is more diverse) and inverse n-gram frequency (INGF, "
        "higher is more diverse; it grows with the number of texts).\n\n"
        "| | texts | APS | INGF 2 | INGF 3 |\n|---|---:|---:|---:|---:|\n" + "\n".join(rows)
    )


def _contamination(session: Session, chosen: ChosenRun, *, left_out: bool) -> str:
    found = _of_run(session, chosen, "contamination")
    if found is None:
        return (
            "Contamination: these texts were not compared with evaluation sets "
            "(`inf analyze contamination`)."
        )
    result = ContaminationFound.stored(found)
    against = ", ".join(each.corpus for each in result.against)
    sentence = " They are left out of this release." if left_out and result.groups else ""
    return (
        f"Contamination: of the run's texts, {result.texts:,} in {len(result.groups):,} "
        f"groups overlap with {against}.{sentence}"
    )


def _shared_parts(session: Session, chosen: ChosenRun) -> str:
    report = stored_shared_parts(session, chosen.run.id)
    if report is None or report.reason:
        why = "" if report is None else f", {report.reason}"
        command = f"inf analyze leakage --run {chosen.run.id}"
        return f"Shared parts: not measured{why} (`{command}`)."
    if is_unchecked(session, chosen.run.id):
        return (
            "Shared parts: not measured of these groups: the run was decided again since "
            f"(`inf analyze leakage --run {chosen.run.id}`)."
        )
    basis = (
        f"over the run's {report.groups:,} kept groups, {report.pairs:,} pairs compared with "
        "their own queries and passages"
    )
    if not report.parts:
        return f"Shared parts: none in generated texts that their sources lack, {basis}."
    rows = [f"- {inline(part_text(part, report.groups))}" for part in report.parts]
    return f"Shared parts: {basis}, generated texts have in common\n\n" + "\n".join(rows)


def _leakage(session: Session, plan: Plan, report: LeakageReport | None) -> str:
    if report is None:
        return "Leakage: measured over these groups when the release is made."
    rows = [
        f"| {name} | {auc_text(found)} | {_or_empty(found.length_auc)} | {found.pairs:,} |"
        for name, found in report.comparisons.items()
    ]
    signs = [
        f"- {name}: of negatives {_quoted(found.features['negative'])}; "
        f"of positives {_quoted(found.features['positive'])}"
        for name, found in report.comparisons.items()
        if found.features
    ]
    sentence = leaking_sentence(report)
    return (
        "Leakage: how well a classifier that sees one text alone, without query and instruction, "
        "separates negatives from positives in the groups of this release (AUC with its 95 % "
        "interval over pairs; 0.5 is chance), and the AUC of the text's length by itself. "
        f"{sentence}\n\n"
        "| | AUC | length alone | pairs |\n|---|---|---|---:|\n"
        + "\n".join(rows)
        + _of_the_run(session, plan, report)
        + ("\n\nThe words that separate most:\n\n" + "\n".join(signs) if signs else "")
    )


def _or_empty(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"


def _of_the_run(session: Session, plan: Plan, report: LeakageReport) -> str:
    """The figures on the run's page, where the release has other groups or other texts."""
    stored = stored_leakage(session, plan.first.run.id) if len(plan.runs) == 1 else None
    if stored is None or is_outdated(stored):
        return ""  # an earlier version's intervals were too narrow
    if stored.texts_sha256 == report.texts_sha256:
        return ""
    figures = "; ".join(f"{name} {auc_text(each)}" for name, each in stored.comparisons.items())
    return (
        f"\n\nThe run's own check, over the groups that it kept and their texts when it ended: "
        f"{figures}. This release has other groups, or texts edited since."
    )


def _quoted(words: Sequence[str]) -> str:
    return ", ".join(f"“{word}”" for word in words)


def model_of_map(session: Session, chosen: ChosenRun) -> dict[str, Any] | None:
    """{model, sha256} of what embeds the run's map; None without a map."""
    found = _of_run(session, chosen, "coverage")
    if found is None:
        return None
    return {"model": found.result["model"], "sha256": found.result.get("model_sha256")}


def coverage_picture(session: Session, plan: Plan) -> bytes | None:
    """The newest map of the run's texts as a PNG, None if none was drawn or there are several runs:
    maps of different runs have nothing in common but their colours."""
    found = _of_run(session, plan.first, "coverage") if len(plan.runs) == 1 else None
    if found is None or found.payload is None:
        return None
    return printed_map(points_frame(found.payload), "role", "png", CARD_DOTS_PER_INCH)


def _coverage(session: Session, chosen: ChosenRun, *, with_picture: bool) -> str:
    found = _of_run(session, chosen, "coverage")
    if found is None:
        command = f"inf analyze coverage --dataset {chosen.dataset.name}"
        return f"Coverage: no map was drawn (`{command}`)."
    picture = f"\n\n![Map of the texts by role]({PICTURE})" if with_picture else ""
    result = CoverageFound.stored(found)
    circular = map_sentence(session, result)
    return (
        f"Coverage: UMAP of the {result.points:,} texts of {_measured(found)}, with the "
        f"vectors of {result.model}; texts that mean similar things lie close together."
        f"{circular and ' '}{circular}{picture}"
    )


def _measured(found: Analysis) -> str:
    """Which groups of the run an analysis took."""
    groups = "groups, kept and dropped" if found.config.get("groups") == "all" else "kept groups"
    sources = ", ".join(map(inline, found.config.get("sources") or ()))
    number = found.result["corpora"][0].get("groups")
    counted = "" if number is None else f"{number:,} "
    return f"the run's {counted}{groups}{sources and ' of '}{sources}"


def _of_run(session: Session, chosen: ChosenRun, kind: str) -> Analysis | None:
    """The newest analysis of this dataset that was made of this run alone."""
    for found in analyses_of_dataset(session, kind, chosen.dataset.id):
        corpora = found.result.get("corpora", [])
        if [corpus.get("run_id") for corpus in corpora] == [chosen.run.id]:
            return found
    return None
