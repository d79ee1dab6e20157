"""Agreement in the studies of a release's runs: a paragraph of the card, and its metadata.

Both are read from one report per study, so that they have the same coefficient. People are named by
the pseudonyms that they have in the release's configuration `judgments` (`person-3`), where readers
find the answers of who is flagged and can leave them out; no name of an account is published.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from analysis.agreement.agreement import interval_caption, people, report_of
from analysis.agreement.flagged import WITHOUT, flag_note, under_names
from analysis.agreement.headline import COEFFICIENTS, rest_sentence
from analysis.agreement.intervals import DRAWS
from analysis.agreement.judgment_filter import study_answers
from analysis.agreement.measures import MEASURES
from analysis.embed.independence import validator_sentence
from analysis.study import run_text
from curation.judging.about_run import about_run
from curation.judging.scope import Scope, study_scope
from curation.release.plan import Plan
from db.release.rows import pseudonym
from db.study.quality import flagged_people
from db.tables import Judge, Study

DIGITS = 4  # of the metadata: more would say nothing


@dataclass(frozen=True)
class StudyAgreement:
    """The agreement of a study that people have judged; `pseudonyms` of who of them is flagged."""

    study_id: int
    run_id: int
    scope: Scope
    persons: int
    report: Mapping[str, Any]
    pseudonyms: Mapping[str, str]

    @property
    def who(self) -> str:
        """What the card calls those who judged."""
        return "simulated judges" if self.report["simulated"] else "people"


def agreements(
    session: Session, plan: Plan, report: Callable[[str], None] | None = None
) -> list[StudyAgreement]:
    """The agreement of each study of the plan's runs that people, or simulated ones, have judged.

    report: called with each study, which can take long.
    """
    found = []
    for each in plan.runs:
        of_run = select(Study.id).where(Study.run_id == each.run.id).order_by(Study.id)
        for study_id in session.scalars(of_run).all():
            if report is not None:
                report(f"computing the agreement of study {study_id}")
            answers = study_answers(session, study_id)
            if not (persons := people(answers.judges)):
                continue
            flagged = flagged_people(session, study_id)
            ids = select(Judge.name, Judge.id).where(Judge.name.in_(flagged))
            found.append(
                StudyAgreement(
                    study_id=study_id,
                    run_id=each.run.id,
                    scope=study_scope(session, study_id),
                    persons=len(persons),
                    report=report_of(answers, flagged, DRAWS),
                    pseudonyms={name: pseudonym(judge) for name, judge in session.execute(ids)},
                )
            )
    return found


def agreement_metadata(found: StudyAgreement) -> dict[str, Any]:
    """The team's coefficient of a study and each model's, with their intervals, as the front matter
    of the card, `release.json` and `croissant.json` hold them: plain values with four digits."""
    report = under_names(found.report, found.pseudonyms)
    models = [
        {"model": name, **_numbers(each)} for name, each in sorted(report["human_model"].items())
    ]
    return {
        "study": found.study_id,
        "run": found.run_id,
        "sample_of_run": found.scope.of_run,
        "between": found.who,
        "judges": found.persons,
        **_numbers(report["human_human"]),
        **({"with_models": models} if models else {}),
    }


def agreement_sentence(metadata: Mapping[str, Any]) -> str:
    """The metadata of a study in one sentence."""
    if metadata["value"] is None:
        value = f"undefined ({metadata['reason']})"
    else:
        value = f"{metadata['value']:.3f}{_brackets(metadata)}"
    label = COEFFICIENTS[metadata["coefficient"]].label
    text = (
        f"Study {metadata['study']}: {label} of {metadata['judges']} {metadata['between']} over "
        f"{metadata['items']} items: {value}."
    )
    if not (flagged := metadata.get("flagged")):
        return text
    without = metadata["without_flagged"]
    other = "undefined" if without["value"] is None else f"{without['value']:.3f}"
    return f"{text} Flagged: {', '.join(flagged)}; without them {other}{_brackets(without)}."


def agreement_paragraph(session: Session, found: StudyAgreement) -> str:
    """The agreement of a study for the card, in Markdown."""
    report, who = found.report, found.who
    who = f"**simulated** {who.removeprefix('simulated ')}" if report["simulated"] else who
    figures = [(f"{who} with each other", report["human_human"])]
    figures += [(f"{who} with `{name}`", each) for name, each in report["human_model"].items()]
    rows = [(label, each["label"], each) for label, each in figures]
    rows += [(who, MEASURES[name].label, each) for name, each in report["people"].items()]
    table = _table(
        ("between", "coefficient", "value"),
        [(between, label, _value(each)) for between, label, each in rows],
        [_value(each["without_flagged"]) for _, _, each in rows if "without_flagged" in each],
    )
    named = under_names({"flagged": report["flagged"]}, found.pseudonyms)
    notes = [
        flag_note([named], limit=len(named["flagged"])),
        rest_sentence(report),
        validator_sentence(session, found.study_id, report["human_model"]),
        _about_run(session, found),
    ]
    brackets = interval_caption(report)
    warning = " Simulated judges stand in for people; this says nothing about people." * bool(
        report["simulated"]
    )
    return (
        f"{'Agreement' if found.scope.of_run else 'Agreement on chosen items'}, study "
        f"{found.study_id} ({report['items']:,} items, {report['judgments']:,} judgments)"
        f"{brackets and f', with {brackets}'}. {found.scope.sentence}{warning}\n\n"
        + "\n\n".join([table, *(note for note in notes if note)])
    )


def _about_run(session: Session, found: StudyAgreement) -> str:
    """What the study says about the validator over the whole run, or why nothing."""
    report = under_names(about_run(session, found.study_id), found.pseudonyms)
    headline = run_text.headline(report, limit=len(report["flagged"]))
    if not report["known"] or report["precision"]["value"] is None:
        return headline
    shares, groups = run_text.FIGURES, run_text.GROUP_FIGURES
    rows = [(label, run_text.estimate(report[name])) for name, label in shares.items()]
    rows += [(label, run_text.bounds(report[name])) for name, label in groups.items()]
    flagged = [*shares, *groups] if report["flagged"] else []
    without = [run_text.without_flagged(report[name]) for name in flagged]
    return (
        f"Validator over the run, by study {found.study_id}: {headline} "
        f"{run_text.basis(report)} {run_text.WHY_BOUNDS}\n\n"
        + _table(("", "share (95 % interval)"), rows, without)
    )


def _numbers(figure: Mapping[str, Any]) -> dict[str, Any]:
    """A headline figure as metadata; of flagged people the names alone, their reasons are on the
    card."""
    found: dict[str, Any] = {
        "coefficient": figure["coefficient"],
        "value": _rounded(figure["value"]),
        "items": figure["items"],
    }
    if figure.get("interval"):
        found["interval_95"] = [_rounded(limit) for limit in figure["interval"]]
    if figure["value"] is None:
        found["reason"] = figure["reason"]
    if figure.get("flagged"):
        found["flagged"] = list(figure["flagged"])
        found["without_flagged"] = _numbers(figure["without_flagged"])
    return found


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(float(value), DIGITS)


def _brackets(metadata: Mapping[str, Any]) -> str:
    if "interval_95" not in metadata:
        return ""
    low, high = metadata["interval_95"]
    return f" (95 % interval {low:.3f} to {high:.3f})"


def _value(found: Mapping[str, Any]) -> str:
    if found["value"] is None:
        return f"undefined: {found.get('reason', '')}"
    if found.get("interval") is None:
        return f"{found['value']:.3f}"
    low, high = found["interval"]
    return f"{found['value']:.3f} ({low:.3f} to {high:.3f})"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]], without: Sequence[str]) -> str:
    """A table in Markdown, with a column of the figures without flagged people if there are any."""
    if without:
        head = (*head, WITHOUT.lower())
        rows = [(*row, other) for row, other in zip(rows, without, strict=True)]
    every = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(row)} |" for row in every)
