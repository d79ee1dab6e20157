"""What judging is asked for: studies, their judges, gold and rules, judgments, reviews and jobs."""

from collections.abc import Mapping
from datetime import date
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, StrictInt, StrictStr, model_validator

from analysis.agreement.intervals import DRAWS
from analysis.agreement.judgment_filter import JudgmentFilter
from analysis.study.design import Target
from curation.judging.sampling import Sample, Sampling, Stratum
from curation.rules.language import Language
from curation.servers.patient import Patient
from db.errors import BadInput
from db.requests import Request, option
from db.review.queue import QueueFilter
from db.values import STUDY_STATUSES, Verdict


class JudgeStart(Patient):
    """Let a model answer what it has not judged of a study, or of all groups of a run.

    Without a judge the run's validator judges its edited groups, or the one of `group_id`.
    """

    study_id: int | None = option(None, "A study.", names=(), metavar="STUDY")
    run_id: int | None = option(
        None, "Instead of a study: every group of this run.", names=("--run",)
    )
    judge: str | None = option(None, "The judge; none: the run's validator.")
    group_id: int | None = option(None, "Only this edited group.", names=())
    budget_usd: float | None = option(
        None, "What its answers may cost, USD [no limit].", names=("--budget",), gt=0
    )

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        if (self.study_id is None) == (self.run_id is None):
            raise ValueError("give either a study or a run")
        if self.judge is None and self.run_id is None:
            raise ValueError("give a judge for the study")
        if self.judge is None and self.budget_usd is not None:
            raise ValueError("a budget is of a judge that is named")
        return self


class ItemsLease(Request):
    """Lease items of a study to a program that answers them as a model judge.

    The judge is named by the `label` and the hash of its source. The same worker is given the items
    that it holds still, so a repeated request leases no others.
    """

    study_id: int = option(..., "The study.")
    label: str = option(..., "The name of the function.", min_length=1, max_length=100)
    model: str = option(..., "The sha256 of its source, hexadecimal.", pattern="^[0-9a-f]{64}$")
    worker: str = option(
        ..., "A name of the program that asks, such as a UUID.", min_length=1, max_length=100
    )
    count: int = option(20, "Maximum number of items.", ge=1, le=100)


class LeaseAnswer(BaseModel):
    """The answer to a leased item: the place of a passage from 0, null for none of them, or, as
    text, an answer of another question."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    lease: str = Field(description="The lease of the item.")
    choice: StrictInt | StrictStr | None = Field(description="The answer.")


class AnswersRecord(Request):
    """Store answers to leased items, all or none; an answer that is sent twice is stored once.

    The other leases of its worker are renewed.
    """

    study_id: int = option(..., "The study.")
    answers: tuple[LeaseAnswer, ...] = option((), "Answers to leased items.", max_length=100)
    returned: tuple[str, ...] = option(
        (), "Leases that are given back without an answer.", max_length=100
    )


class AgreementStart(Request):
    """Compute and store the figures of a study's agreement for a reader."""

    what: Literal["agreement"] = option("agreement", "What is done with the study.")
    study_id: int = option(..., "The study.", names=("--study",))
    reader: str = option("", "Whose hidden items are left out: a member's name; empty: nobody's.")

    @model_validator(mode="before")
    @classmethod
    def _of_earlier_versions(cls, given: Any) -> Any:
        """They called the study `study`, and had no reader or None."""
        if isinstance(given, dict) and "study" in given:
            rest = {name: value for name, value in given.items() if name != "study"}
            given = {"study_id": given["study"], **rest, "reader": given.get("reader") or ""}
        return given


class _Judged(Request):
    """Whose judgments are compared, and how many draws an interval is of."""

    study_id: int | None = option(None, "Id of the study.", names=("--study",))
    judgments: str | None = option(
        None,
        "CSV or JSONL with item, judge, label and, if there are models, kind (person or model).",
        metavar="FILE",
        path="file",
    )
    resamples: int = option(DRAWS, "Posterior draws; 0 omits the intervals.", ge=0)


class AgreementShow(JudgmentFilter, _Judged):
    """Agreement of people with each other and of each model with them, with intervals.

    Krippendorff's alpha of three people or more, Cohen's kappa of two and of pairs that share
    10 items or more. A study from a file has them by question, and weighted kappa and ordinal
    alpha where the answers are grades or scores.
    """

    over_time: bool = option(False, "Also report by windows of items over time.")
    by_judge: bool = option(False, "Also report pace, gold and position bias.")

    @model_validator(mode="after")
    def _of_one(self) -> Self:
        if (self.study_id is None) == (self.judgments is None):
            raise BadInput("give either `study=` or `judgments=`", code="request_invalid")
        of_study = self.over_time or self.by_judge or self.chosen != JudgmentFilter()
        if self.judgments is not None and of_study:
            raise BadInput(
                "filters, `over_time=` and `by_judge=` are of a study",
                "give `study=`",
                code="request_invalid",
            )
        return self

    @property
    def chosen(self) -> JudgmentFilter:
        """Which judgments count."""
        return JudgmentFilter(**{name: getattr(self, name) for name in JudgmentFilter.model_fields})


class ValidatorsCompare(Request):
    """How model judges, and votes among them, would filter a run of a dataset."""

    dataset: str = option(..., "The dataset.")
    run: int | None = option(None, "A run of the dataset (default: the latest).")
    study_id: int | None = option(
        None, "A study; adds each model's kappa with its people.", names=("--study",)
    )
    judges: tuple[str, ...] = option(
        (),
        "A voting judge; repeatable (default: all model judges with a fully judged group).",
        names=("--judge",),
    )


class PlanStudy(Request):
    """Which items a figure of a study needs to be known better; `add` puts them into the study."""

    study_id: int = option(..., "The study.", names=(), metavar="STUDY_ID")
    target: Target = option(
        "precision",
        "The figure to know better; `overturned` are missed items that people confirm.",
    )
    reach: float | None = option(None, "Half-width in points, such as 2.", ge=0.1, le=50)
    items: int | None = option(None, "Or N items, where they help most.", ge=1)
    add: bool = option(False, "Add exactly these items to the study.")


class StudyFilePlan(Request):
    """Create a study from a file of items and their questions, with nothing else in the store.

    A row has id, query, instruction and passages; what else it may have, and the form of the
    questions: docs/how-to/questions.md.
    """

    items_file: str = option(
        ..., "A file of items: id, query, instruction, passages.", names=(), metavar="FILE"
    )
    questions: str = option(..., "The questions as JSON.", names=(), metavar="FILE")
    questions_file: str = option("the questions", "Their file's name in messages.", names=())
    overlap: int = option(..., "Judges per item.", title="Judges per item", ge=1)
    seed: int = option(0, "Kept with the study; the order of the items is nobody's.")
    name: str = option("", "The name shown to judges [that of the questions].")
    guidelines: str | None = option(None, "Markdown [what the questions say].")
    close_when_done: bool = option(False, "The last answer closes the study.")


class StudyPlan(Request):
    """Create a study of items sampled from all groups of a run that reached validation."""

    dataset: str = option(..., "Name of the dataset.", names=(), metavar="DATASET")
    items: int | None = option(None, "Number of items (default: all of the list).", ge=1)
    overlap: int = option(..., "Judges per item.", title="Judges per item", ge=1)
    seed: int = option(0, "Seed of the sampling.")
    sample: Sample = option(
        "stratified",
        "Stratified, random, by disagreement of judges, or from a list.",
        title="Sampling",
    )
    strata: tuple[Stratum, ...] = option(
        ("scenario",), "Strata of a stratified sample; repeatable."
    )
    only: Verdict | None = option(
        None,
        "Only kept or only dropped groups [both]; such a study knows one part of the run.",
        title="Only groups that are",
    )
    language: Language | None = option(
        None,
        "Only groups of pairs in this language; such a study is no sample of the run.",
        title="Only pairs in",
    )
    apart_from: tuple[int, ...] = option(
        (), "Leave out groups that this study has items of; repeatable.", metavar="STUDY"
    )
    of_study: int | None = option(
        None,
        "For disagreement: the judges of this earlier study.",
        title="Disagreement among",
    )
    judges: tuple[str, ...] = option(
        (),
        "For disagreement: these judges; repeatable [all model judges and the validator].",
        names=("--judge",),
        title="Only these judges",
    )
    lines: tuple[str, ...] = option(
        (),
        "For a list: lines GROUP, GROUP SCENARIO or item ITEM.",
        names=("--list",),
        title="Groups and items, one per line",
    )
    file: str = option("the list", "For a list: its name in messages.", names=())
    run_id: int | None = option(None, "A run of the dataset [latest finished].", names=("--run",))
    name: str = option("", "The name shown to judges.")
    guidelines: str | None = option(None, "Markdown (default: a short text on relevance).")
    qualification: int = option(
        0,
        "Qualification examples before the study, from approved groups.",
        title="Qualification examples",
        ge=0,
    )
    gold: int = option(
        0, "Gold items hidden in the study, from approved groups.", title="Gold items", ge=0
    )
    close_when_done: bool = option(
        False,
        "The last answer closes the study: answers are final, and people see how they agree with "
        "the validator.",
        title="Close when all is answered",
    )

    @model_validator(mode="before")
    @classmethod
    def _of_earlier_versions(cls, given: Any) -> Any:
        """They had the sampling as a mapping of its own, with "" for no verdict, as `Sampling`
        has it."""
        if isinstance(given, dict) and isinstance(given.get("sampling"), dict):
            rest = {name: value for name, value in given.items() if name != "sampling"}
            given = given["sampling"] | rest
        if isinstance(given, dict):
            given = given | {name: None for name in ("only", "language") if given.get(name) == ""}
        return given

    @property
    def sampling(self) -> Sampling:
        """The method of sampling. Raises BadInput for parts that do not go together."""
        return Sampling(
            sample=self.sample,
            strata=self.strata or ("scenario",),
            of_study=self.of_study,
            judges=self.judges,
            lines=self.lines,
            file=self.file,
            only=self.only or "",
            language=self.language or "",
            apart_from=self.apart_from,
        )


Tool = Literal["labelstudio", "argilla", "prodigy", "doccano"]
STUDY: Any = option(..., "The study.", names=(), metavar="STUDY_ID")
CODE = r"^[A-Za-z0-9-]{1,64}$"


class StudyChange(Request):
    """Change status, judges per item or guidelines of a study, all of it or nothing."""

    study_id: int = STUDY
    status: str | None = option(
        None, "Open, pause or close the study; a closed one stays closed.", choices=STUDY_STATUSES
    )
    overlap: int | None = option(None, "Increase the judges per item.", ge=1)
    guidelines: str | None = option(None, "Markdown: the next version of the guidelines.")


JudgeAction = Literal["pause", "let_in", "take_back", "give", "set", "unset"]


class JudgeChange(Request):
    """Pause judges of a study or let them in, return their items or give them to another, set how
    many items they are given and until when (`set`; `unset`: no limit). All of them or none."""

    study_id: int = STUDY
    action: JudgeAction = option(..., "What is done.", names=())
    judges: tuple[int | str, ...] = option(
        ..., "The judges, by id or name.", names=(), min_length=1, max_length=1000
    )
    reason: str = option("", "The reason of a pause, shown to the judges.")
    to: int | str | None = option(
        None, "The judge who gets the items, by id or name.", metavar="NAME"
    )
    quota: int | None = option(None, "To set: how many items each is given, gold among them.", ge=0)
    due_on: date | None = option(
        None,
        "To set: until when they are asked to be done.",
        names=("--due",),
        metavar="YYYY-MM-DD",
    )

    @model_validator(mode="after")
    def _agree(self) -> Self:
        is_set = self.quota is not None or self.due_on is not None
        for action, is_given, fields in (
            ("give", self.to is not None, "`to=`"),
            ("set", is_set, "`quota=` or `due_on=`"),
            ("pause", bool(self.reason) or self.action == "pause", "`reason=`"),
        ):
            if (self.action == action) != is_given:
                raise BadInput(
                    f"{fields} belongs to action={action}",
                    f"give {fields} for that action alone",
                    code="request_invalid",
                )
        return self


class StudyExample(Request):
    """Add an item with an answer, right or wrong, to the guidelines, as their next version."""

    study_id: int = STUDY
    item_id: int = option(
        ...,
        "An item of the qualification, or of a closed study.",
        names=("--item",),
        title="Item",
    )
    answer: str = option("", "The answer, a label [the right one, where it is known].")
    is_right: bool = option(
        True, "Whether the answer is right.", names=("--right/--wrong",), title="Shown as"
    )
    why: str = option("", "Why it is right or wrong, Markdown.")


class StudyRecruiting(Request):
    """Recruit people from a platform: one link for all, who judge in this study alone.

    A new link ends the one before; who came by that one can go on only by the new one.
    """

    study_id: int = STUDY
    platform: Literal["prolific", "mturk"] = option(..., "The platform.", names=("--from",))
    complete: str = option(
        ..., "The platform's code for who is done.", title="Completion code", pattern=CODE
    )
    screened_out: str = option(
        ...,
        "Its code for who fails the qualification or the gold items.",
        title="Screen-out code",
        pattern=CODE,
    )
    people: int = option(..., "How many people may come.", ge=1, le=10_000)
    quota: int | None = option(
        None, "How many items each is given, gold among them.", title="Items each", ge=1
    )


class StudyMessage(Request):
    """Write to people of a study: to some, or to everyone, also who joins later."""

    study_id: int = STUDY
    body: str = option(..., "The message.", names=(), metavar="TEXT", min_length=1)
    to: tuple[int | str, ...] = option(
        (),
        "Only to this judge, by id or name; repeatable [everyone].",
        metavar="NAME",
        max_length=1000,
    )


class RulesChange(Request):
    """Set rules of a study; those that are not given stay."""

    study_id: int = STUDY
    rules: Mapping[str, Any] = option({}, "Rules by name (`studies rules`).", names=())


class GoldChange(RulesChange):
    """Add items with known answers to a part of a study, and set its rules about them."""

    part: Literal["gold", "training"] = option(..., "Gold, or qualification.", names=())
    file: str | None = option(
        None,
        "Items with `right` and `explanation` (.jsonl, .csv, .parquet), a file of the server.",
        metavar="FILE",
        path="file",
    )
    sample: int | None = option(None, "Sample N items from approved groups.", ge=1)


class StudyTasks(Request):
    """Write a study's items as tasks of another annotation tool, with its labelling config."""

    study_id: int = STUDY
    tool: Tool = option(..., "The tool.", names=("--for",))


class StudyExport(Request):
    """Export the grades of a study's passages: qrels, a benchmark, and rows to train on."""

    study_id: int = STUDY
    question: str = option("", "The question whose grades count [the only one about passages].")
    judge: str = option("", "Only this judge's grades [those of most people, or adjudicated].")
    positive: int | None = option(
        None, "The lowest grade of a positive passage [the highest there is].", ge=1
    )
    violates: int = option(1, "The grade that answers but violates the instruction.", ge=1)


class StudyReport(Request):
    """Report a study: design, people, agreement, validity, disagreements, adjudication, limits."""

    study_id: int = STUDY
    examples: int = option(5, "How many disputed items are shown in full.", ge=0, le=50)


class WorkReport(Request):
    """The time and work of people, in a study or in all, in a time or ever; days are UTC."""

    study_id: int | None = option(None, "Only this study.", names=(), metavar="STUDY_ID")
    since: date | None = option(None, "First day, UTC.", metavar="YYYY-MM-DD")
    until: date | None = option(None, "Last day, UTC.", metavar="YYYY-MM-DD")


class DisagreementList(Request):
    """The items of a study by disagreement, with how many gave each answer, and comments."""

    study_id: int = STUDY
    question: str = option("", "Only items of this question.")
    kind: str = option("", "Only items of this scenario, or about a passage of this kind.")
    judges: int = option(1, "Only items that at least N people have judged.", ge=1)
    include_agreed: bool = option(False, "Also list items on which people agree.", names=("--all",))
    limit: int = option(20, "Maximum number of items.", ge=1, le=200)
    offset: int = option(0, "Items to leave out: the `next` of the list before.", ge=0)


class Adjudication(Request):
    """Decide an item by the label of its right candidate, with all answers, roles and names."""

    study_id: int = STUDY
    item_id: int = option(..., "Decide this item.", names=("--item",))
    choice: str = option(..., "The right answer: a candidate's label, or none.")
    note: str = option("", "Reason for the decision.")


class AnswerChange(Request):
    """Change an own answer: a position in the order shown, as the study still allows."""

    study_id: int = STUDY
    token: str = option(..., "The item as it was shown to the judge.", names=())
    position: int | str | None = option(
        None, "The candidate, from 0, or answer; none of them.", names=()
    )


class JudgeMessage(Request):
    """A judge's message to the curators about an item; sent twice with one `written` it is one."""

    study_id: int = STUDY
    token: str = option(..., "The item as it was shown to the judge.", names=())
    body: str = option(..., "The message.", names=())
    written: int = option(..., "How many messages the thread had.", names=(), ge=0)


class CuratorMessage(Request):
    """A curator's answer to a judge about an item; sent twice with one `written` it is one."""

    study_id: int = STUDY
    item_id: int = option(..., "The item.", names=())
    judge_id: int = option(..., "The judge.", names=())
    body: str = option(..., "The message.", names=())
    written: int = option(..., "How many messages the thread had.", names=(), ge=0)


class ReviewSet(Request):
    """Approve a group, reject it with a reason, or edit its texts."""

    group_id: int = option(..., "The group.", names=(), metavar="GROUP_ID")
    action: Literal["approve", "reject", "edit"] = option(..., "What is done.", names=())
    reason: str = option("", "Reason of the rejection or edit.")
    changes: Mapping[str, str] = option(
        {},
        "Replace a text; repeatable. Fields are the columns of the group's written texts (of "
        "InF-IR's P1- hard_negative_document_1), of a list's texts with the number, as "
        "instruction_negatives[1]: one is added at a number that the group has not, and an empty "
        "text takes it out.",
        names=("--edit",),
        metavar="FIELD=[TEXT]",
    )


class ReviewPropose(Request):
    """Propose to approve or reject a group, with the reason; a person reviews it."""

    group_id: int = option(..., "The group.", names=(), metavar="GROUP_ID")
    action: Literal["approve", "reject"] = option(..., "What is proposed.", names=())
    reason: str = option(..., "Why, in a sentence or two.", min_length=1, max_length=2000)


class ReviewMany(QueueFilter):
    """Approve or reject all groups of a run that match, each with a review of its own."""

    action: Literal["approve", "reject"] = option(..., "What is done.", names=())
    because: str = option("", "Reason of the rejection.", names=("--reason",))
    expected: int | None = option(
        None, "How many groups were shown to match; another number is refused.", names=()
    )
    mark: str = option("", "By which the reviews are found again to undo them.", names=())


class VerdictsShown(Request):
    """Show or hide a run's verdicts to those who review it; neither: leave them."""

    run_id: int = option(..., "The run.", names=(), metavar="RUN_ID")
    shown: bool | None = option(None, "Show or hide them.", names=("--show/--hide",))
