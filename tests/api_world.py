"""Two datasets with one of everything, tokens of several people, and the server's own stack."""

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest
from httpx import Response
from sqlalchemy import select
from starlette.applications import Starlette
from starlette.testclient import TestClient
from study_world import make_world, sampled_study

from app.access.identity import owner
from app.api.document import document
from app.operations import people
from app.operations.doors import tokens
from app.operations.doors.tokens import TokenCreate
from db.outcome.checkpoints import record_checkpoint
from db.people.rights import PRESETS
from db.store.store import Store, open_store
from db.study.judgments import get_or_create_judge, record_judgment
from db.tables import (
    Dataset,
    Evaluation,
    Group,
    Item,
    Job,
    Release,
    Review,
    Run,
    StudyItem,
    Webhook,
)
from db.values import RIGHTS, TOKEN_RIGHTS

PASSWORD = "correct horse battery"
COMMAND = owner("cli:ada")
API = "/api/v1"
OPERATIONS = [
    (method.upper(), path, operation)
    for path, methods in document()["paths"].items()
    for method, operation in methods.items()
]
NAMES = [operation["operationId"] for _, _, operation in OPERATIONS]
# Of what the id in a path is, by the path's first word.
PLACES = {
    "datasets": "dataset",
    "runs": "run",
    "groups": "group",
    "studies": "study",
    "releases": "release",
    "trainings": "training",
    "models": "model",
    "evaluations": "evaluation",
    "jobs": "job",
    "reviews": "review",
    "judgments": "judgment",
}
# Requests that are whole, by operation: `{name}` of the dataset, `{run}` its run, …
BODIES: dict[str, dict[str, Any]] = {
    "runs_estimate": {"dataset": "{name}", "provider": "offline", "limit": 2},
    "runs_create": {"dataset": "{name}", "provider": "offline", "limit": 2},
    "runs_change": {"concurrency": 2},
    "runs_retry": {"retry": "too_short"},
    "reviews_set": {"action": "approve"},
    "reviews_propose": {"action": "reject", "reason": "a leak"},
    "studies_create": {"dataset": "{name}", "run_id": "{run}", "items": 2, "overlap": 1},
    "studies_change": {"overlap": 3},
    "studies_judge": {"judge": "embedding"},
    "studies_lease": {"label": "length", "model": "0" * 64, "worker": "w"},
    "studies_change_people": {"action": "let_in", "judges": [1]},
    "studies_write": {"body": "mind the year"},
    "studies_example": {"item_id": 1},
    "studies_recruit": {
        "platform": "prolific",
        "complete": "DONE",
        "screened_out": "OUT",
        "people": 5,
    },
    "judgments_create": {"answers": []},
    "recipes_check": {"recipe": "msmarco"},
    "releases_create": {"runs": ["{run}"], "out": "{name}"},
    "releases_push": {"repo": "lab/mine", "dry_run": True},
    "trainings_create": {"release": "{release_named}"},
    "evaluations_create": {"models": ["lab/base"], "release": "{release_named}"},
}
# Lists, and what concerns nothing of a dataset: a stranger is given what is theirs, without it.
OF_NOTHING = (
    *("me_show", "recipes_list", "connections_list", "connections_test", "events_follow"),
    *("recipes_save", "recipes_check", "recipes_show", "recipes_versions", "recipes_diff"),
    *("connections_show", "tokens_revoke", "tokens_show"),
    *("people_list", "people_show", "webhooks_list", "webhooks_show", "webhooks_deliveries"),
)


@dataclass(frozen=True)
class Place:
    """A dataset with one of everything, by id."""

    name: str
    dataset: int
    run: int
    group: int
    study: int
    release: int
    job: int
    training: int
    model: int
    evaluation: int
    review: int
    judgment: int

    @property
    def release_named(self) -> str:
        """The release as trainings name it."""
        return str(self.release)


def make_place(store: Store, name: str) -> Place:
    run_id = make_world(store, 6, name=name)
    with store.write() as session:
        dataset_id = session.get_one(Run, run_id).dataset_id
        study = sampled_study(session, run_id=run_id, items=3, overlap=2, name=f"{name} study")
        release = Release(
            dataset_id=dataset_id,
            name=name,
            content_sha256="0" * 64,
            path=f"/releases/{name}",
            format="jsonl",
            filter={"run_id": run_id},
            counts={"groups": 4},
            card="a card",
            offline=True,
        )
        job = Job(kind="curate", config={"run_id": run_id}, started_by="root")
        starter = "mina" if name == "mine" else "boss"
        training = Job(kind="train", config={"release": name}, started_by=starter)
        session.add_all([release, job, training])
        session.flush()
        model = record_checkpoint(
            session,
            job_id=training.id,
            base_model="base",
            config={"release": name},
            path=f"/models/{name}",
            summary={},
            release_id=release.id,
        )
        evaluation = Evaluation(
            model=f"model of {name}",
            checkpoint_id=model.id,
            benchmark="held-out",
            metrics={"ndcg@10": 0.5},
            job_id=training.id,
        )
        session.add(evaluation)
        session.flush()
        of_run = select(Group.id).where(Group.run_id == run_id).order_by(Group.id)
        group = session.scalars(of_run).first()
        sampled = select(Item.group_id).join(StudyItem).where(StudyItem.study_id == study.id)
        free = session.scalars(of_run.where(Group.id.not_in(sampled))).all()[-1]  # hidden from none
        review = Review(group_id=free, action="approve", reviewed_by="boss")
        session.add(review)
        item = session.scalars(select(Item).where(Item.group_id == free)).first()
        assert group is not None and item is not None
        judge = get_or_create_judge(session, f"judge of {name}", kind="model", model="small")
        labels = [one["label"] for one in item.candidates]
        judgment = record_judgment(
            session,
            **{"judge_id": judge.id, "item_id": item.id, "run_id": run_id, "choice": labels[0]},
            order_shown=labels,
            event_id=f"of {name}",
        )
        session.flush()
        place = Place(
            *(name, dataset_id, run_id, group, study.id, release.id, job.id),
            *(training.id, model.id, evaluation.id, review.id, judgment.id),
        )
        session.commit()
    return place


def server_client() -> TestClient:
    """A client of the server's routes behind its middleware; Streamlit's own is not there."""
    from app.server import web

    web._loaded_api.cache_clear()  # limits are of a process, and ids of tokens of a store
    app = Starlette(routes=list(web.OWN_ROUTES), middleware=list(web.MIDDLEWARE))
    return TestClient(app, base_url="http://localhost", raise_server_exceptions=False)


@dataclass(frozen=True)
class ApiWorld:
    """The store, its two places, and a token of each person by name."""

    store: Store
    mine: Place
    other: Place
    tokens: Mapping[str, str]

    @cached_property
    def client(self) -> TestClient:
        """A client of the server."""
        return server_client()

    def ask(self, person: str | None, method: str, path: str, **given: Any) -> Response:
        """A request with the token of a person."""
        headers = dict(given.pop("headers", {}))
        if person is not None:
            headers["Authorization"] = f"Bearer {self.tokens[person]}"
        return self.client.request(method, f"{API}{path}", headers=headers, **given)


def new_token(person: str, **given: Any) -> tokens.TokenCreated:
    wanted = {"name": "test", "rights": [*RIGHTS], "person": person} | given
    return tokens.create(COMMAND, TokenCreate.read(wanted))


def make_api_world(store: Store) -> ApiWorld:
    """boss: admin. cora: a curator everywhere. mina: a curator of `mine`. ann: an annotator there.
    lim: cora's token, limited to `mine`. One endpoint."""
    mine, other = make_place(store, "mine"), make_place(store, "other")
    with store.write() as session:
        session.add(Webhook(url="https://hooks.example.org/inf", events=[], after_event=10**6))
        session.commit()
    for name, role, on in (
        ("boss", "admin", ()),
        ("cora", "curator", ()),
        ("mina", "curator", ("mine",)),
        ("ann", "annotator", ("mine",)),
    ):
        people.add(COMMAND, people.PersonAdd(name=name, role=role, datasets=on), PASSWORD)
    held = {
        name: new_token(name, rights=[*rights]).token
        for name, rights in (
            ("boss", (*RIGHTS, *TOKEN_RIGHTS)),
            ("cora", RIGHTS),
            ("mina", RIGHTS),
            ("ann", PRESETS["annotator"]),
        )
    }
    held["lim"] = new_token("cora", datasets=["mine"]).token
    return ApiWorld(store, mine, other, held)


def name_of_dataset(store: Store, dataset_id: int) -> str:
    with store.read() as session:
        return session.get_one(Dataset, dataset_id).name


def filled(value: Any, place: Place) -> Any:
    if isinstance(value, dict):
        return {key: filled(inner, place) for key, inner in value.items()}
    if isinstance(value, list):
        return [filled(inner, place) for inner in value]
    if isinstance(value, str) and value.startswith("{"):
        return getattr(place, value[1:-1])
    return value


def rows(world: ApiWorld) -> tuple[int, ...]:
    """How many rows each table has, but for those of repeated requests."""
    path = world.store.url.removeprefix("sqlite:///")
    with sqlite3.connect(path) as connection:
        names = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        return tuple(
            connection.execute(f'SELECT count(*) FROM "{name}"').fetchone()[0] for (name,) in names
        )


@contextmanager
def world_in(folder: Path, template: Path) -> Iterator[ApiWorld]:
    """The world in a store of this folder, a copy of a template, that is INF_HOME meanwhile."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("INF_HOME", str(folder))
        patch.setenv("INF_DATABASE_URL", f"sqlite:///{folder / 'inf.db'}")
        (folder / "inf.db").write_bytes(template.read_bytes())
        store = open_store()
        yield make_api_world(store)
        store.close()
