"""What a job's config names of the store and of the server, checked against what the actor may use.

The job's own process sees everything, so that this is the only place where a job is limited: when
it is launched, resumed and run again. Folders count, too: whoever may not see a release could name
its folder. Files and folders of the server, and code that comes with a model, are an admin's.
"""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.access.identity import Actor, TokenHolder
from curation.hub.request import is_folder
from curation.judges.registry import JUDGES
from curation.providers.registry import PROVIDERS
from curation.recipe.recipe import Recipe
from db.errors import NotFound, Refused
from db.home import from_stored, home
from db.jobs.jobs import is_elsewhere
from db.people.budgets import require_own as require_own_work
from db.people.budgets import take_budget
from db.servers.connections import ENVIRONMENT
from db.tables import Analysis, Checkpoint, Dataset, Job, Release, Run, Study
from db.values import DATASET_BENCHMARK as DATASET
from trainer.settings.settings import parse_settings

IDS: Mapping[str, Any] = {
    "run_id": Run,
    "run": Run,
    "runs": Run,
    "study_id": Study,
    "release_id": Release,
    "release": Release,
    "releases": Release,
    "checkpoint_id": Checkpoint,
    "onto": Analysis,
}
NAMES = ("dataset", "datasets", "against_datasets")
BENCHMARKS = ("benchmark", "ordinary")
FOLDERS = ("release", "releases", "published", "against", "texts")


def require_own(session: Session, actor: Actor, kind: str, config: Mapping[str, Any]) -> None:
    """Raise unless the actor, admitted to the session, may have a job of this kind and config.

    Raises NotFound and Refused as the two below; an admin may have any.
    """
    if actor.is_admin:
        return
    config = from_stored(config)  # as the job will read it
    require_no_files(actor, kind, config)
    require_places(session, config)
    if kind in ("import", "pull"):
        _require_own_dataset(session, str(config.get("name", "")).strip())
    if kind == "mine":
        for name in _values_of(config, ("name", "corpus")):
            _require(session, Dataset, Dataset.name == name, name)


def require_own_recipe(session: Session, actor: Actor, recipe: Recipe) -> None:
    """Raise Refused where someone other than an admin writes a recipe with addresses of servers,
    to which keys would be sent, or with models that are files of the server."""
    if actor.is_admin:
        return
    if recipe.endpoints:
        raise Refused(
            "only an admin can write a recipe with endpoints",
            "leave them out, and choose a connection where a run is started",
            code="admin_only",
        )
    require_places(session, {"models": recipe.models})


def uses_environment(session: Session, job: Job) -> bool:
    """Whether the job's server or key are those that variables name: of its run, its judge, its
    models, or the Hub."""
    from analysis.embed.server import PREFIX as EMBEDDED_BY_SERVER  # here: it loads numpy

    models = (*_values(job.config.get("models")), *_values(job.config.get("model")))
    if any(model.startswith(EMBEDDED_BY_SERVER) for model in models):
        return True
    if job.kind not in ("curate", "judge", "mine") or job.config.get("only"):
        return job.kind in ("push", "pull")
    if judge := job.config.get("judge"):
        kind, _, rest = judge.partition(":")
        is_stored = kind == "connection" and not rest.startswith(f"{ENVIRONMENT}:")
        return JUDGES.find(kind).paid and not is_stored
    run = session.get(Run, job.config.get("run_id") or 0)
    if run is None or PROVIDERS.find(run.provider).servers is None:
        return False
    named = run.server.get("connection", ENVIRONMENT)  # runs of before have none
    return bool(named == ENVIRONMENT)


def is_of_another_launch(session: Session, job: Job) -> bool:
    """Whether a cluster's job goes by variables that were left in another INF_HOME."""
    return is_elsewhere(job) and uses_environment(session, job)


def take_budget_of(session: Session, actor: Actor, job: Job, *, is_new: bool) -> None:
    """Count a job that costs money outside of a run on the budget of the token that launches or
    resumes it; work on a run is of the token that started the run. Raises Refused."""
    if actor.is_admin or not isinstance(actor, TokenHolder):
        return
    run_id, judge = job.config.get("run_id"), job.config.get("judge")
    run = session.get(Run, run_id) if run_id else None
    is_paid = run is not None and PROVIDERS.find(run.provider).paid
    if job.kind == "curate" and run is not None and is_paid:
        require_own_work(session, actor.token_id, run)
    if judge:
        is_paid = JUDGES.find(judge.partition(":")[0]).paid
    if job.kind == "judge" and is_paid:
        take_budget(session, actor.token_id, job, is_new=is_new)
    if job.kind == "mine" and is_paid:
        raise Refused(
            f"mining with the judge {judge} costs money and has no budget, which a token needs",
            "mine without a judge or with one of this machine, or have a person start it",
            code="mining_without_budget",
        )


def require_no_files(actor: Actor, kind: str, config: Mapping[str, Any]) -> None:
    """Raise Refused where a config names files of the server, or a model's own code, and the actor
    is no admin."""
    if not actor.is_admin and (what := OF_ADMINS.get(kind, _nothing)(config)):
        raise Refused(f"only an admin can {what}", "have an admin do it", code="admin_only")


def _nothing(config: Mapping[str, Any]) -> str:
    return ""


def _of_training(config: Mapping[str, Any]) -> str:
    settings = parse_settings(config.get("settings") or {})
    if settings.remote_code != "refuse":
        return "run code that comes with a model"
    names = config.get("out") or settings.guard or settings.mined_corpus
    return "name files of the server" if names else ""


def _of_evaluation(config: Mapping[str, Any]) -> str:
    from trainer.trec.scoring import PREFIX as TREC  # here: it loads numpy

    named = _values_of(config, BENCHMARKS)
    if any(name and not name.startswith(DATASET) for name in named):
        return "evaluate on folders of the server"
    trec = config.get("trec")
    if (
        any(model.startswith(TREC) for model in _values(config.get("models")))
        or config.get("qrels")
        or config.get("paraphrases")
        or (trec and not _is_within("trec", trec))
    ):
        return "score run files of the server"
    return "run code that comes with a model" if config.get("remote_code") else ""


def _of_export(config: Mapping[str, Any]) -> str:
    is_own = _is_within("releases", str(config.get("out") or ""))
    return "" if is_own else "write to folders of the server"


def _of_import(config: Mapping[str, Any]) -> str:
    named = any(config.get(name) for name in ("pairs", "passages", "groups"))
    return "import files on the server" if named else ""


def _of_pull(config: Mapping[str, Any]) -> str:
    return "import folders of the server" if is_folder(str(config.get("repo", ""))) else ""


def _of_mining(config: Mapping[str, Any]) -> str:
    return "write files of the server" if config.get("out") else ""


# What a config of the kind names that is an admin's: what is refused, "" for nothing.
OF_ADMINS: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    "train": _of_training,
    "evaluate": _of_evaluation,
    "export": _of_export,
    "import": _of_import,
    "pull": _of_pull,
    "mine": _of_mining,
}


def _is_within(folder: str, path: str) -> bool:
    """Whether a path is inside of this folder of the store's own."""
    return (home() / folder).resolve() in Path(path).resolve().parents


def require_places(session: Session, config: Mapping[str, Any]) -> None:
    """Raise NotFound if a job's config names what the session does not see, or a folder or model of
    the server that is no release and no checkpoint of it."""
    for name, entity in IDS.items():
        for value in _values(config.get(name)):
            if value.isdecimal():
                _require(session, entity, entity.id == int(value), value)
    for name in (*_values_of(config, NAMES), *_benchmark_datasets(config)):
        _require(session, Dataset, Dataset.name == name, name)
    for value in _values_of(config, FOLDERS):
        if not value.isdecimal():
            _require_folder(session, value)
    settings = config.get("settings")
    models = [*_values(config.get("models")), *_values(config.get("model"))]
    if isinstance(settings, dict):
        chosen = parse_settings(settings)
        models += [chosen.base_model, chosen.teacher]
        for value, _ in chosen.extra_releases:
            if value.isdecimal():
                _require(session, Release, Release.id == int(value), value)
            else:
                _require_folder(session, value)
    for model in models:
        _require_model(session, model)


def _require_own_dataset(session: Session, name: str) -> None:
    """Raise Refused if a dataset of others has this name: it would be filled."""
    every = Dataset.__table__.c  # without the ORM: all of them, whoever sees them
    if (
        session.execute(select(every.id).where(every.name == name)).first() is not None
        and session.scalar(select(Dataset.id).where(Dataset.name == name)) is None
    ):
        raise dataset_of_others(name)


def dataset_of_others(name: str) -> Refused:
    """The refusal to import into a dataset that the actor may not curate."""
    return Refused(
        f"a dataset {name!r} exists, and you have no right to it",
        "choose another name",
        code="dataset_right_missing",
    )


def _require(session: Session, entity: Any, condition: Any, value: str) -> None:
    if session.scalar(select(entity.id).where(condition).limit(1)) is None:
        raise NotFound(
            f"no {entity.__tablename__} {value}, or you have no right to it",
            "choose one that is listed, or have an admin give you the right",
            code="not_visible",
        )


def _require_folder(session: Session, value: str) -> None:
    """Raise NotFound unless it is the folder of a visible release, or an uploaded corpus."""
    if not _is_within("corpora", value):
        _require(session, Release, Release.path == value, value)


def _require_model(session: Session, model: str) -> None:
    """Raise NotFound if it is a folder or file of the server, but no visible checkpoint."""
    for name in (model, model.partition(":")[2]):
        path = Path(name).expanduser()
        if name and (path.is_absolute() or name.startswith(".") or path.exists()):
            _require(session, Checkpoint, Checkpoint.path == name, name)


def _benchmark_datasets(config: Mapping[str, Any]) -> Iterator[str]:
    for value in _values_of(config, BENCHMARKS):
        if value.startswith(DATASET):
            yield value.removeprefix(DATASET)


def _values_of(config: Mapping[str, Any], names: tuple[str, ...]) -> Iterator[str]:
    for name in names:
        yield from _values(config.get(name))


def _values(value: Any) -> list[str]:
    if value is None or isinstance(value, dict):
        return []
    return [str(one) for one in value] if isinstance(value, list | tuple) else [str(value)]
