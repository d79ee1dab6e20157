"""The routes of `/api/v1`: each is a method and a path, a request and the operation that takes it.

The fields of a route's request that its path names come from there; the others from the query of
GET and DELETE, else from the body. Whoever calls an operation by its name, as Python and agents do,
gives all of them as one request. What starts a job answers `Started` at once.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from pydantic import BaseModel, create_model, field_validator

from analysis.agreement.judgment_filter import JudgmentFilter
from analysis.files.document import Document
from app.access.identity import Actor
from app.access.permissions import require
from app.operations import (
    connections,
    datasets,
    evaluations,
    groups,
    jobs,
    models,
    people,
    recipes,
    releases,
    runs,
    trainings,
)
from app.operations.acting import queued
from app.operations.doors import tokens, webhooks
from app.operations.judging import (
    agreement,
    disagreements,
    figures,
    judgments,
    report,
    reviews,
    studies,
)
from app.operations.judging.studies import StudyChanged, StudyShown
from curation.hub.request import PushStart
from curation.judging import request
from curation.judging.leases import AnswersRecorded, ItemsLeased
from curation.judging.request import JudgeStart, StudyPlan
from curation.mining.request import NegativesMine
from curation.release.request import ReleasePlan
from curation.run.starting import RunResume, RunStart, RunWork
from db.answers.announcements import SentRow
from db.corpus.browsing import PairView
from db.home import home
from db.requests import Request, option
from db.review.queue import QueueFilter
from db.review.reviews import ProposalRow, ReviewRow
from db.rows import Listed, Row, as_text
from db.run.group_detail import GroupShown
from db.run.groups import GroupRow
from db.run.runs import RunSummary
from db.study.judgments import JudgmentShown, ListedJudgment
from db.study.quality import JudgeRow
from db.study.studies import StudySummary
from db.study.work import WorkRow
from trainer.evaluate.request import EvaluationStart
from trainer.launch.request import TrainStart

PAGE, MAX_PAGE = 50, 500


class Paged(Request):
    """Part of a list: at most `limit` rows, from the `next` of the list before on."""

    limit: int = option(PAGE, "Maximum number of rows.", ge=1, le=MAX_PAGE)
    cursor: int = option(0, "The `next` of the list before.", ge=0)


class OfDataset(Paged):
    """A list, of one dataset or of all that the token sees."""

    dataset: str | None = option(None, "Name of the dataset.")


class DatasetsWanted(Paged):
    """Which datasets are listed."""

    archived: bool = option(False, "Archived ones, too.")


class RunsWanted(OfDataset):
    """Which runs are listed."""

    status: str | None = option(None, "Only runs of this status.")
    archived: bool = option(False, "Archived ones, too.")


class StudiesWanted(OfDataset):
    """Which studies are listed."""


class JobsWanted(Paged):
    """Which jobs are listed."""

    statuses: tuple[str, ...] = option((), "Only jobs of these statuses; repeatable.")


class EvaluationsWanted(Paged):
    """Which evaluations are listed."""

    benchmark: str | None = option(None, "Only on this benchmark.")


class GroupsWanted(QueueFilter, Paged):
    """Which groups of a run are listed."""


class JudgmentsWanted(Paged):
    """Which judgments of a study are listed: those after the `next` of the list before."""

    study_id: int = option(..., "Id of the study.")
    limit: int = option(judgments.PAGE, "Maximum number of rows.", ge=1, le=MAX_PAGE)


class Nothing(Request):
    """A request without any field."""


class One(Request):
    """One thing by its id."""

    id: int = option(..., "Its id.")


class OneRecipe(Request):
    """One recipe by its name, or by NAME@VERSION."""

    recipe: str = option(..., "Its name.")


class VersionsWanted(OneRecipe, Paged):
    """Which versions of a recipe of the store are listed."""


class RunChange(One):
    """What is changed of a run."""

    concurrency: int = option(..., "Calls in flight.", ge=1)


class PairsWanted(Paged):
    """Which pairs of a dataset are listed."""

    id: int = option(..., "Id of the dataset.")
    search: str = option("", "Only those with this text in the query.")


class DeliveriesWanted(Paged):
    """Which deliveries to an endpoint are listed, newest first."""

    id: int = option(..., "Id of the endpoint.")


class RunRetry(RunResume):
    """Groups of a run that were dropped for a reason are tried again."""

    retry: str = option(..., "The reason, as `runs drops` counts it.", min_length=1)


class RunStop(One):
    """A run is stopped: it can be resumed, or not where it is cancelled."""

    cancel: bool = option(False, "Cancel it.")


def by_id(model: type[Request], key: str) -> type[One]:
    """The request of an operation, in which the `id` of the path is what it calls `key`."""
    fields: Any = {name: (each.annotation, each) for name, each in model.model_fields.items()}
    del fields[key]
    return create_model(model.__name__, __base__=One, __doc__=model.__doc__, **fields)


class ReleaseWanted(ReleasePlan):
    """A release in the server's folder of releases; `out` is its name there."""

    out: str = option(..., "The name of a new folder in the server's folder of releases.")

    @field_validator("out")
    @classmethod
    def _place(cls, out: str) -> str:
        if not out or out.startswith(".") or not out.isprintable() or {"/", "\\"} & set(out):
            raise ValueError("a name of one folder is needed, without / and not hidden")
        return out


class Named(Request):
    """One thing by its name."""

    name: str = option(..., "Its name.")


class OfRun(Paged):
    """A list of what a run has."""

    run_id: int = option(..., "Id of the run.")


class Comparison(Request):
    """Evaluations that are compared."""

    base: int = option(..., "Id of the evaluation of the base.")
    others: tuple[int, ...] = option(..., "Ids of those compared with it.")


class Tried(Request):
    """A connection to try."""

    name: str = option(..., "Name of the connection.")
    model: str = option("", "The model to call; by default the first of its list.")


class Changed(Row):
    """What a change did."""

    id: int
    done: str


class Started(Row):
    """A job that was queued; `run_id` of what a run is about, `idle`: how many of its workers its
    concurrency leaves so, "" for none."""

    job_id: int
    run_id: int | None = None
    idle: str = ""


class Me(Row):
    """Whom a token acts for, and what it may: rights everywhere or by dataset id."""

    person: str
    rights: dict[str, list[int] | None]


class Log(Row):
    """The last lines of a job's log."""

    id: int
    text: str


@dataclass(frozen=True)
class Route:
    """A route: `call` answers a `answers` for an actor and a request."""

    name: str
    method: str
    path: str
    permission: str
    request: type[Request]
    answers: type[BaseModel]
    call: Callable[[Actor, Any], Any]
    status: int = 200

    @property
    def noun(self) -> str:
        """The thing it is about: the first word of its name."""
        return self.name.partition(" ")[0]

    @property
    def in_path(self) -> tuple[str, ...]:
        """The fields that its path names."""
        parts = (part.partition("}")[0] for part in self.path.split("{")[1:])
        return tuple(part.partition(":")[0] for part in parts)

    def text(self, actor: Actor, wanted: Any) -> str:
        """What it answers, as the one text of JSON."""
        found = self.call(actor, wanted)
        return as_text(found.as_json() if isinstance(found, Row | Listed) else found)

    @property
    def has_body(self) -> bool:
        """Whether the other fields are in the body."""
        return self.method in ("POST", "PUT", "PATCH")


def started(actor: Actor, kind: str, request: Request) -> Started:
    """Launch a job in the queue."""
    idle = runs.idle(actor, request) if isinstance(request, RunWork) else ""
    run_id = getattr(request, "run_id", None)
    return Started(job_id=queued(actor, kind, request), run_id=run_id, idle=idle)


def me(actor: Actor, _: Nothing) -> Me:
    """Whom the token acts for, and what it may."""
    found = require(actor, "any").rights
    rights = sorted({*found.everywhere, *(r for held in found.on_datasets.values() for r in held)})
    by_right = {right: found.datasets(right) for right in rights}
    return Me(
        person=actor.name,
        rights={right: None if ids is None else sorted(ids) for right, ids in by_right.items()},
    )


def _archive(actor: Actor, wanted: One, *, back: bool) -> Changed:
    name = datasets.name_of(actor, wanted.id)
    (datasets.unarchive if back else datasets.archive)(actor, dataset=name)
    return Changed(id=wanted.id, done="unarchived" if back else "archived")


def _mine(actor: Actor, wanted: One) -> Started:
    about = wanted.model_dump(exclude={"id"}) | {"name": datasets.name_of(actor, wanted.id)}
    return datasets.mine(actor, NegativesMine.read(about), started)


def _change_run(actor: Actor, wanted: RunChange) -> runs.RunShown:
    runs.change_concurrency(actor, wanted.id, wanted.concurrency)
    return runs.show(actor, wanted.id)


def _stop_run(actor: Actor, wanted: RunStop) -> runs.RunShown:
    runs.stop(actor, wanted.id, cancel=wanted.cancel)
    return runs.show(actor, wanted.id)


def _change_study(actor: Actor, wanted: One) -> StudyChanged:
    rest = wanted.model_dump(exclude={"id"})
    return studies.change(actor, request.StudyChange.read({"study_id": wanted.id, **rest}))


def _create_study(actor: Actor, wanted: StudyPlan) -> StudyShown:
    return studies.show(actor, studies.create(actor, wanted).id)


def _release(actor: Actor, wanted: ReleaseWanted) -> Started:
    plan = wanted.model_dump() | {"out": str(home() / "releases" / wanted.out)}
    return releases.create(actor, ReleasePlan.read(plan), started)


def _groups(actor: Actor, wanted: GroupsWanted) -> Listed[GroupRow]:
    only = QueueFilter.read(wanted.model_dump(exclude={"limit", "cursor"}))
    return groups.list_some(actor, only, limit=wanted.limit, offset=wanted.cursor)


def _part(listed: Listed[Any], wanted: Paged) -> Listed[Any]:
    return listed.part(wanted.limit, wanted.cursor)


def _at(wanted: Paged) -> dict[str, Any]:
    return {"limit": wanted.limit, "offset": wanted.cursor}


@cache
def routes() -> tuple[Route, ...]:
    """All routes by noun."""
    R = Route
    return (
        R("me show", "GET", "/me", "any", Nothing, Me, me),
        R("datasets list", "GET", "/datasets", "curate", DatasetsWanted,
          Listed[datasets.DatasetRow],
          lambda a, w: _part(datasets.list_all(a, archived=w.archived), w)),
        R("datasets show", "GET", "/datasets/{id:int}", "curate", One, datasets.DatasetShown,
          lambda a, w: datasets.show(a, datasets.name_of(a, w.id))),
        R("datasets archive", "POST", "/datasets/{id:int}:archive", "curate", One, Changed,
          lambda a, w: _archive(a, w, back=False)),
        R("datasets unarchive", "POST", "/datasets/{id:int}:unarchive", "curate", One, Changed,
          lambda a, w: _archive(a, w, back=True)),
        R("datasets pairs", "GET", "/datasets/{id:int}/pairs", "curate", PairsWanted,
          Listed[PairView],
          lambda a, w: datasets.pairs(a, w.id, search=w.search, **_at(w))),
        R("datasets mine", "POST", "/datasets/{id:int}:mine", "curate",
          by_id(NegativesMine, "name"), Started, _mine, 202),
        R("recipes list", "GET", "/recipes", "curate", Paged, Listed[recipes.RecipeRow],
          lambda a, w: _part(recipes.list_all(a), w)),
        R("recipes check", "POST", "/recipes:check", "curate", recipes.RecipeCheck,
          recipes.RecipeChecked, recipes.check),
        R("recipes save", "POST", "/recipes", "curate", recipes.RecipeSave,
          recipes.RecipeVersionRow, recipes.save, 201),
        R("recipes show", "GET", "/recipes/{recipe}", "curate", OneRecipe, recipes.RecipeShown,
          lambda a, w: recipes.show(a, recipes.RecipeShow(recipe=w.recipe))),
        R("recipes versions", "GET", "/recipes/{recipe}/versions", "curate", VersionsWanted,
          Listed[recipes.RecipeVersionRow], lambda a, w: _part(recipes.versions(a, w.recipe), w)),
        R("recipes diff", "GET", "/recipes/{recipe}/diff", "curate", recipes.RecipeDiff,
          recipes.RecipeDiffed, recipes.diff),
        R("connections list", "GET", "/connections", "curate", Paged,
          Listed[connections.ConnectionRow], lambda a, w: _part(connections.list_all(a), w)),
        R("connections show", "GET", "/connections/{name}", "curate", Named,
          connections.ConnectionRow, lambda a, w: connections.show(a, w.name)),
        R("connections test", "POST", "/connections/{name}:test", "curate", Tried,
          connections.ConnectionRow, lambda a, w: connections.test(a, w.name, w.model)),
        R("runs estimate", "POST", "/runs:estimate", "curate", RunStart, runs.RunEstimate,
          runs.estimate),
        R("runs list", "GET", "/runs", "curate", RunsWanted, Listed[RunSummary],
          lambda a, w: _part(runs.list_all(a, w.dataset, w.status, archived=w.archived), w)),
        R("runs create", "POST", "/runs", "curate", RunStart, Started,
          lambda a, w: runs.create(a, w, started), 202),
        R("runs show", "GET", "/runs/{id:int}", "curate", One, runs.RunShown,
          lambda a, w: runs.show(a, w.id)),
        R("runs change", "PATCH", "/runs/{id:int}", "curate", RunChange, runs.RunShown,
          _change_run),
        R("runs resume", "POST", "/runs/{run_id:int}:resume", "curate", RunResume, Started,
          lambda a, w: runs.resume(a, w, started), 202),
        R("runs retry", "POST", "/runs/{run_id:int}:retry", "curate", RunRetry, Started,
          lambda a, w: runs.resume(a, w, started), 202),
        R("runs stop", "POST", "/runs/{id:int}:stop", "curate", RunStop, runs.RunShown, _stop_run),
        R("runs join", "POST", "/runs/{run_id:int}:join", "curate", RunWork, Started,
          lambda a, w: runs.join(a, w, started), 202),
        R("runs shrink", "POST", "/runs/{run_id:int}:shrink", "curate", runs.RunShrink,
          runs.RunShrunk, lambda a, w: runs.shrink(a, w)),
        R("runs drops", "GET", "/runs/{id:int}/drops", "curate", One, Listed[groups.DropRow],
          lambda a, w: groups.drops(a, w.id)),
        R("groups list", "GET", "/runs/{run_id:int}/groups", "groups", GroupsWanted,
          Listed[GroupRow], _groups),
        R("groups show", "GET", "/groups/{id:int}", "curate", One, GroupShown,
          lambda a, w: groups.show(a, w.id)),
        R("reviews list", "GET", "/runs/{run_id:int}/reviews", "groups", OfRun,
          Listed[ReviewRow], lambda a, w: reviews.list_some(a, w.run_id, **_at(w))),
        R("reviews show", "GET", "/reviews/{id:int}", "groups", One, ReviewRow,
          lambda a, w: reviews.show(a, w.id)),
        R("reviews set", "PUT", "/groups/{group_id:int}/review", "review", request.ReviewSet,
          ReviewRow, reviews.set_one),
        R("reviews propose", "POST", "/groups/{group_id:int}/proposals", "review",
          request.ReviewPropose, ProposalRow, reviews.propose, 201),
        R("studies list", "GET", "/studies", "studies", StudiesWanted, Listed[StudySummary],
          lambda a, w: _part(studies.list_all(a, w.dataset), w)),
        R("studies create", "POST", "/studies", "studies", StudyPlan, StudyShown, _create_study,
          201),
        R("studies show", "GET", "/studies/{id:int}", "studies", One, StudyShown,
          lambda a, w: studies.show(a, w.id)),
        R("studies change", "PATCH", "/studies/{id:int}", "studies",
          by_id(request.StudyChange, "study_id"), StudyChanged, _change_study),
        R("studies example", "POST", "/studies/{study_id:int}/examples", "studies",
          request.StudyExample, StudyChanged, studies.add_example, 201),
        R("studies judge", "POST", "/studies/{study_id:int}:judge", "studies", JudgeStart, Started,
          lambda a, w: studies.judge(a, w, started), 202),
        R("studies lease", "POST", "/studies/{study_id:int}/items:lease", "studies",
          request.ItemsLease, ItemsLeased, studies.lease_items),
        R("studies people", "GET", "/studies/{id:int}/people", "studies", One, Listed[JudgeRow],
          lambda a, w: studies.judges(a, w.id)),
        R("studies change_people", "POST", "/studies/{study_id:int}/people:change", "studies",
          request.JudgeChange, studies.JudgesChanged, studies.change_judges),
        R("studies recruit", "POST", "/studies/{study_id:int}:recruit", "studies",
          request.StudyRecruiting, studies.RecruitingLink, studies.recruit, 201),
        R("studies messages", "GET", "/studies/{id:int}/messages", "studies", One,
          Listed[SentRow], lambda a, w: studies.messages(a, w.id)),
        R("studies write", "POST", "/studies/{study_id:int}/messages", "studies",
          request.StudyMessage, SentRow, studies.write, 201),
        R("studies report", "GET", "/studies/{study_id:int}/report", "studies",
          request.StudyReport, Document, report.report),
        R("studies disagreements", "GET", "/studies/{study_id:int}/disagreements", "adjudicate",
          request.DisagreementList, disagreements.Disagreements, disagreements.disagreements),
        R("studies work", "GET", "/studies/{study_id:int}/work", "studies", request.WorkReport,
          Listed[WorkRow], studies.work),
        R("judgments create", "POST", "/studies/{study_id:int}/judgments", "studies",
          request.AnswersRecord, AnswersRecorded, studies.record_answers),
        R("judgments list", "GET", "/studies/{study_id:int}/judgments", "studies",
          JudgmentsWanted, Listed[ListedJudgment],
          lambda a, w: judgments.list_some(a, w.study_id, after=w.cursor, limit=w.limit)),
        R("judgments show", "GET", "/judgments/{id:int}", "studies", One, JudgmentShown,
          lambda a, w: judgments.show(a, w.id)),
        R("studies agreement", "GET", "/studies/{id:int}/agreement", "studies", One,
          figures.StudyFigures, lambda a, w: agreement.figures(a, w.id, JudgmentFilter())),
        R("studies consensus", "GET", "/studies/{id:int}/consensus", "studies", One,
          figures.StudyConsensus, lambda a, w: agreement.consensus(a, w.id)),
        R("releases list", "GET", "/releases", "export", OfDataset, Listed[releases.ReleaseRow],
          lambda a, w: _part(releases.list_all(a, w.dataset), w)),
        R("releases create", "POST", "/releases", "export", ReleaseWanted, Started, _release, 202),
        R("releases show", "GET", "/releases/{id:int}", "export", One, releases.ReleaseShown,
          lambda a, w: releases.show(a, w.id)),
        R("releases push", "POST", "/releases/{release_id:int}:push", "export", PushStart, Started,
          lambda a, w: releases.push(a, w, started), 202),
        R("trainings list", "GET", "/trainings", "train", OfDataset,
          Listed[trainings.TrainingRow],
          lambda a, w: trainings.list_some(a, w.dataset, **_at(w))),
        R("trainings create", "POST", "/trainings", "train", TrainStart, Started,
          lambda a, w: trainings.create(a, w, started), 202),
        R("trainings show", "GET", "/trainings/{id:int}", "train", One, trainings.TrainingShown,
          lambda a, w: trainings.show(a, w.id)),
        R("models list", "GET", "/models", "train", OfDataset, Listed[models.ModelRow],
          lambda a, w: models.list_some(a, w.dataset, **_at(w))),
        R("models show", "GET", "/models/{id:int}", "train", One, models.ModelShown,
          lambda a, w: models.show(a, w.id)),
        R("evaluations list", "GET", "/evaluations", "evaluate", EvaluationsWanted,
          Listed[evaluations.EvaluationRow],
          lambda a, w: evaluations.list_some(a, w.benchmark, **_at(w))),
        R("evaluations create", "POST", "/evaluations", "evaluate", EvaluationStart, Started,
          lambda a, w: evaluations.create(a, w, started), 202),
        R("evaluations compare", "GET", "/evaluations:compare", "evaluate", Comparison,
          evaluations.Compared, lambda a, w: evaluations.compare(a, w.base, w.others)),
        R("evaluations show", "GET", "/evaluations/{id:int}", "evaluate", One,
          evaluations.EvaluationShown, lambda a, w: evaluations.show(a, w.id)),
        R("jobs list", "GET", "/jobs", "jobs", JobsWanted, Listed[jobs.JobRow],
          lambda a, w: jobs.list_some(a, statuses=w.statuses, **_at(w))),
        R("jobs show", "GET", "/jobs/{id:int}", "jobs", One, jobs.JobShown,
          lambda a, w: jobs.show(a, w.id)),
        R("jobs log", "GET", "/jobs/{id:int}/log", "jobs", by_id(jobs.JobLog, "job_id"), Log,
          lambda a, w: Log(id=w.id, text=jobs.log(a, jobs.JobLog(job_id=w.id, lines=w.lines)))),
        R("jobs cancel", "POST", "/jobs/{id:int}:cancel", "jobs", One, jobs.JobChanged,
          lambda a, w: jobs.cancel(a, w.id)),
        R("jobs resume", "POST", "/jobs/{id:int}:resume", "jobs", One, jobs.JobChanged,
          lambda a, w: jobs.resume(a, w.id)),
        R("tokens list", "GET", "/tokens", "tokens", Paged, Listed[tokens.TokenRow],
          lambda a, w: _part(tokens.list_all(a, everybody=a.owns_store), w)),
        R("tokens show", "GET", "/tokens/{id:int}", "tokens", One, tokens.TokenRow,
          lambda a, w: tokens.show(a, w.id)),
        R("tokens revoke", "DELETE", "/tokens/{id:int}", "tokens", One, tokens.TokenRow,
          lambda a, w: tokens.revoke(a, w.id)),
        R("people list", "GET", "/people", "audit", Paged, Listed[people.PersonRow],
          lambda a, w: _part(people.list_all(a), w)),
        R("people show", "GET", "/people/{name}", "audit", Named, people.PersonRow,
          lambda a, w: people.show(a, w.name)),
        R("webhooks list", "GET", "/webhooks", "audit", Paged, Listed[webhooks.WebhookRow],
          lambda a, w: _part(webhooks.list_all(a), w)),
        R("webhooks show", "GET", "/webhooks/{id:int}", "audit", One, webhooks.WebhookRow,
          lambda a, w: webhooks.show(a, w.id)),
        R("webhooks deliveries", "GET", "/webhooks/{id:int}/deliveries", "audit",
          DeliveriesWanted, Listed[webhooks.DeliveryRow],
          lambda a, w: webhooks.deliveries(a, w.id, **_at(w))),
    )  # fmt: skip


@cache
def by_name() -> dict[str, Route]:
    """The routes by the name of their operation."""
    return {route.name: route for route in routes()}
