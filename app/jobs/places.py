"""What a job's config names of the store, checked against what the session user may see.

The job's own process sees everything, so that this is the only place where a job is limited.
Folders count, too: whoever may not see a release could name its folder.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from db.errors import NotFound
from db.store.scope import INFO
from db.store.settings import home
from db.tables import Analysis, Checkpoint, Dataset, Release, Run, Study
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


def require_places(session: Session, config: Mapping[str, Any]) -> None:
    """Raise NotFound if a job's config names what the session does not see; see all, pass all."""
    if session.info.get(INFO) is None:
        return
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


def _require(session: Session, entity: Any, condition: Any, value: str) -> None:
    if session.scalar(select(entity.id).where(condition).limit(1)) is None:
        raise NotFound(
            f"no {entity.__tablename__} {value}, or you have no right to it",
            "choose one that is listed, or have an admin give you the right",
            code="not_visible",
        )


def _require_folder(session: Session, value: str) -> None:
    """Raise NotFound unless it is the folder of a visible release, or an uploaded corpus."""
    uploaded = (home() / "corpora").resolve()
    if not Path(value).resolve().is_relative_to(uploaded):
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
