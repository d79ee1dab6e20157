"""The report of a study: design, people, agreement, validity, disagreements, adjudication, limits.

All of it is read from the store whenever it is requested; nothing is entered by hand.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from analysis.agreement.agreement import interval_caption
from analysis.agreement.flagged import flag_sentence, measures_of
from analysis.figures.numbers import counted
from analysis.files.document import Document, Section, Table
from app.access.identity import Actor, SessionUser
from app.operations.acting import reading
from app.operations.judging import agreement, studies
from curation.judging.agreement import reader_of
from curation.judging.request import AgreementShow, StudyReport
from db.errors import BadInput, Refused
from db.question import PICK, about_of
from db.study import adjudication
from db.study.adjudication import Disputed
from db.study.items import questions_of_study
from db.study.judgments import ADJUDICATOR
from db.study.rules import rules_of
from db.study.studies import count_parts, current_guideline, get_study
from db.tables import Judge, Judgment, utc_now

RIGHT = "studies"
ESTIMATED = {
    "precision": "kept items that people confirm",
    "overturned": "dropped items that people confirm",
    "recall": "confirmed items that were kept",
}
MAX_TEXT = 600  # characters of a passage in an example
Figures = Mapping[str, Any]


class StudyReported(Document):
    """The report of a study; `out`: its file, "" where it is printed."""

    study_id: int
    out: str


def report(actor: Actor, wanted: StudyReport) -> Document:
    """Report a study: design, people, agreement with intervals, validity, disagreements with
    examples, what was adjudicated, limits.

    Examples have people's answers: only of a closed study, or for the store's owner. Raises
    NotFound; Refused for who may still judge items of it.
    """
    study_id = wanted.study_id
    with reading(actor, RIGHT) as session:
        study = get_study(session, study_id)
        is_person = isinstance(actor, SessionUser)
        if is_person and reader_of(session, study_id, actor.name).is_blind:
            raise Refused(
                f"you may still judge items of study {study_id}: its report counts their answers",
                "judge them, or wait until it is closed",
                code="study_judged_by_reader",
            )
        shows_answers = study.status == "closed" or not is_person or actor.owns_store
        design = _design(session, study_id)
        adjudicated = _adjudicated(session, study_id)
        disputed = adjudication.disputed_ids(session, study_id)
        examples = [
            adjudication.get_disputed(session, study_id, item_id)
            for item_id in (disputed[: wanted.examples] if shows_answers else ())
        ]
    found = agreement.agreement(actor, AgreementShow(study_id=study_id)).as_json()
    by_question = found.get("questions") or {"": found}
    shown = studies.show(actor, study_id)
    sections = (
        design,
        _people(actor, study_id),
        Section(
            title="Agreement",
            sentences=(found["scope"]["sentence"], *_sentences(by_question)),
            tables=tuple(_agreement(name, one) for name, one in by_question.items()),
        ),
        _validity(found["audit"]) if "audit" in found else _validity_of_run(actor, study_id),
        _disagreements(disputed, examples, shows_answers=shows_answers),
        adjudicated,
        _limits(shown, by_question, wanted),
    )
    return Document(
        title=f"Study {study_id}: {shown.name}",
        lead=f"{shown.status}; {shown.done:,} of {shown.places:,} judgments by people; "
        f"as of {utc_now():%Y-%m-%d %H:%M} UTC",
        sections=sections,
    )


def _design(session: Session, study_id: int) -> Section:
    study, rules = get_study(session, study_id), rules_of(get_study(session, study_id))
    guideline = current_guideline(session, study_id)
    parts = count_parts(session, study_id)
    times = select(func.min(Judgment.decided_at), func.max(Judgment.decided_at))
    first, last = session.execute(times.where(Judgment.study_id == study_id)).one()
    listed = questions_of_study(session, study_id)
    questions = [
        (one.name, one.kind, one.text, ", ".join(f"{k}: {v}" for k, v in one.labels.items()))
        for one in listed
    ] or [("", "pick", "Which passage is the most relevant?", "a passage, none of them")]
    rows = (
        ("items", f"{parts.get('main', 0):,}, each for {counted(study.overlap, 'judge')}"),
        ("hidden gold", f"{parts.get('gold', 0):,}; required {rules.gold_threshold:.0%}"),
        ("qualification", f"{parts.get('training', 0):,}; pass mark {rules.pass_mark:.0%}"),
        ("guidelines", f"version {guideline.version}, {guideline.created_at:%Y-%m-%d}"),
        (
            "first and last answer",
            f"{first:%Y-%m-%d %H:%M} to {last:%Y-%m-%d %H:%M} UTC" if first and last else "–",
        ),
        ("seed", str(study.seed)),
        ("created by", study.created_by or "–"),
    )
    return Section(
        title="Design",
        sentences=(
            "Judges see instruction, query and passages in an order of their own; no role, no "
            "verdict and no other answer.",
        ),
        tables=(
            Table(columns=("", ""), rows=rows),
            Table(
                caption="Questions",
                columns=("Question", "Type", "Text", "Labels"),
                rows=tuple(questions),
            ),
        ),
    )


def _people(actor: Actor, study_id: int) -> Section:
    rows = studies.judges(actor, study_id).data
    return Section(
        title="Judges",
        tables=(
            Table(
                columns=("Judge", "Kind", "Done", "Seconds", "Gold", "Agreement", "In doubt"),
                rows=tuple(
                    (
                        one.name,
                        "simulated" if one.simulated else one.kind,
                        f"{one.done or one.judged:,}",
                        "–" if one.median_seconds is None else f"{one.median_seconds:.1f}",
                        f"{one.gold_right} of {one.gold_seen}" if one.gold_seen else "–",
                        "–" if one.agreement is None else f"{one.agreement:.0%}",
                        one.doubt or "–",
                    )
                    for one in rows
                ),
            ),
        ),
    )


def _value(found: Figures) -> tuple[str, str]:
    """A figure and its interval as cells."""
    if found.get("value") is None:
        return "undefined", str(found.get("reason", ""))
    between = found.get("interval")
    return f"{found['value']:.3f}", f"{between[0]:.3f} to {between[1]:.3f}" if between else "–"


def _agreement(name: str, of: Figures) -> Table:
    rows = [(who, measure, *_value(figure)) for who, measure, figure in measures_of(of)]
    rows += [("people", f"with {model}", *_value(one)) for model, one in of["human_model"].items()]
    about = f"{name}: {of['text']} " if name else ""
    return Table(
        caption=f"{about}({of['judgments']:,} judgments of {of['items']:,} items)",
        columns=("Among", "Measure", "Value", "95 % interval"),
        rows=tuple(rows),
    )


def _sentences(by_question: Mapping[str, Figures]) -> Iterator[str]:
    for name, of in by_question.items():
        about = f"{name}: " if name else ""
        if caption := interval_caption(of):
            yield f"{about}intervals: {caption}."
        if sentence := flag_sentence(of["human_human"]):
            yield f"{about}{sentence}"


def _validity_of_run(actor: Actor, study_id: int) -> Section:
    """Of a study that asks which passage answers: what its people say about the run's filter."""
    try:
        found = agreement.estimates(actor, study_id).as_json()
    except BadInput as error:
        return Section(title="Validity", sentences=(str(error),))
    if found.get("reason"):
        return Section(title="Validity", sentences=(found["reason"],))
    rows = [(label, *_value(found[name])) for name, label in ESTIMATED.items()]
    return Section(
        title="Validity",
        sentences=(f"Of the groups of run {found['run_id']}, by what most people answered.",),
        tables=(Table(columns=("Of the run", "Share", "95 % interval"), rows=tuple(rows)),),
    )


def _validity(audit: Figures) -> Section:
    rows = [
        (name, "acceptable", *_value(one), str(one["of"]))
        for name, one in audit["acceptability"].items()
    ]
    for name, of in audit["validity"].items():
        parts = {kind: of[kind] for kind in ("positives", "negatives")}
        parts |= {_words(kind): one for kind, one in of["by_kind"].items()}
        parts["strict record validity"] = of["strict_record_validity"]
        rows += [(name, kind, *_value(one), str(one["of"])) for kind, one in parts.items()]
    return Section(
        title="Validity",
        sentences=(
            f"Shares of answers as expected, over {audit['records']:,} records; intervals by "
            f"resampling records, {audit['resamples']:,} times.",
        ),
        tables=(
            Table(columns=("Question", "Of", "Share", "95 % interval", "Cases"), rows=tuple(rows)),
        ),
    )


def _disagreements(
    disputed: Sequence[int], examples: Sequence[Disputed], *, shows_answers: bool
) -> Section:
    sentences = [f"{counted(len(disputed), 'item')} on which people disagree, or with a remark."]
    if disputed and not shows_answers:
        sentences.append("Examples are in the report of the closed study.")
    tables = []
    for one in examples:
        votes = Counter(_words(each.choice) for each in one.answers if each.kind == "person")
        texts = [("instruction", one.instruction), ("query", one.query)]
        texts += [(_words(label), text[:MAX_TEXT]) for label, text in one.candidates]
        texts += [
            (f"{each.judge}", f"{_words(each.choice)} {each.note}".strip()) for each in one.answers
        ]
        tables.append(
            Table(
                caption=f"Item {one.item_id}{_question_of(one)}: "
                + ", ".join(f"{number} × {choice}" for choice, number in votes.most_common()),
                columns=("", ""),
                rows=tuple(texts),
            )
        )
    return Section(title="Disagreements", sentences=tuple(sentences), tables=tuple(tables))


def _words(name: str) -> str:
    """The name of a text or an answer as people read it."""
    return name.replace("_", " ")


def _question_of(one: Disputed) -> str:
    """The question of an item and the text that it is about; "" of a pick of InF-IR's."""
    if one.question == PICK:
        return ""
    about = _words(about_of(one.scenario))
    return f", {one.question.name}" + (f" of {about}" if about else "")


def _adjudicated(session: Session, study_id: int) -> Section:
    decided = session.execute(
        select(Judgment.item_id, Judgment.choice, Judge.name)
        .join(Judge, Judge.id == Judgment.judge_id)
        .where(Judgment.study_id == study_id, Judgment.is_current, Judge.kind == "adjudicator")
    ).all()
    if not decided:
        return Section(title="Adjudication", sentences=("Nothing was adjudicated.",))
    confirmed: Counter[str] = Counter()
    for item_id, choice, _ in decided:
        votes = Counter(
            session.scalars(
                select(Judgment.choice)
                .join(Judge, Judge.id == Judgment.judge_id)
                .where(
                    Judgment.study_id == study_id,
                    Judgment.is_current,
                    Judgment.item_id == item_id,
                    Judge.kind == "person",
                )
            )
        )
        most = [each for each, number in votes.items() if number == max(votes.values())]
        tie = "a tie" if len(most) != 1 else ""
        confirmed[tie or ("the most frequent answer" if choice in most else "another answer")] += 1
    by = Counter(name.removeprefix(ADJUDICATOR) for _, _, name in decided)
    return Section(
        title="Adjudication",
        sentences=(
            f"{counted(len(decided), 'item')} decided by "
            + ", ".join(f"{name} ({number})" for name, number in by.most_common())
            + ". Decisions are left out of agreement.",
        ),
        tables=(
            Table(
                columns=("Decided for", "Items"),
                rows=tuple((what, str(number)) for what, number in confirmed.most_common()),
            ),
        ),
    )


def _limits(
    shown: studies.StudyShown, by_question: Mapping[str, Figures], wanted: StudyReport
) -> Section:
    first = next(iter(by_question.values()))
    found = []
    if shown.done < shown.places:
        found.append(f"{shown.places - shown.done:,} of {shown.places:,} judgments are missing.")
    if first["simulated"]:
        found.append("The people are simulated judges: a demonstration, not evidence.")
    if first["simulated_left_out"]:
        found.append("Simulated judges are left out of figures of people.")
    if any(one["offline"] for one in first["judges"]):
        found.append("Offline judges are rules and a small embedding model, no language model.")
    if first["human_human"].get("flagged"):
        found.append("People in doubt are counted; figures without them stand above.")
    if shown.overlap < 3:
        found.append(f"With {counted(shown.overlap, 'judge')} per item there is no majority.")
    found.append("The judges are those who took part: intervals resample items, not people.")
    if wanted.examples:
        found.append("Examples are the most disputed items, no sample of them.")
    return Section(title="Limits", sentences=tuple(found))
