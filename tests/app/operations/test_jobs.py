"""Jobs: whoever resumes one or runs it again is refused what a launch by them is refused."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from conftest import Ran
from records_world import make_run
from sqlalchemy import select
from study_world import sampled_study

from app.access.identity import Actor, owner
from app.jobs import launching, supervisors
from app.jobs.kinds import KINDS
from app.operations import jobs as operations
from app.operations import trainings
from app.operations.acting import queue
from db.errors import InfError, NotFound, Refused
from db.jobs import jobs
from db.people.rights import Rights
from db.store import settings
from db.store.scope import unscoped
from db.store.store import Store
from db.tables import Dataset, Job
from db.values import RIGHTS

ADA = owner("ada")
REFUSALS = {"admin_only", "not_visible", "no_right", "dataset_right_missing"}


@pytest.fixture
def server(sqlite_store: Store, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    """The store in a process that nobody owns, with a run of `books` and one of `films`."""
    monkeypatch.setenv("INF_DATABASE_URL", sqlite_store.url)
    monkeypatch.setattr(supervisors, "ensure_taken", lambda *_: None)  # what is queued stays so
    make_run(sqlite_store)
    make_run(sqlite_store, name="films")
    settings.owners_process(False)
    yield sqlite_store
    settings.owners_process(True)


def curator(store: Store, *, of: str | None = None) -> Actor:
    """Whoever has every right but an admin's, on everything or on one dataset."""
    held = frozenset(RIGHTS)
    if of is None:
        return Actor("eve", rights=Rights(everywhere=held))
    with unscoped(), store.read() as session:
        dataset_id = session.scalars(select(Dataset.id).where(Dataset.name == of)).one()
    return Actor("eve", rights=Rights(on_datasets={dataset_id: held}))


# What an admin had launched, and eve may see as her own: she was an admin then, or has their name.
OF_ADMINS: Mapping[str, tuple[str, dict[str, Any]]] = {
    "a folder to write to": ("export", {"runs": [1], "out": "/srv/out"}),
    "a folder beside that of releases": ("export", {"runs": [1], "out": "HOME/releases/../x"}),
    "a folder for a model": ("train", {"release": "1", "out": "/srv/out"}),
    "code of a model": ("train", {"release": "1", "settings": {"remote_code": "run"}}),
    "a file as a corpus": (
        "train",
        {"release": "1", "settings": {"mined_negatives": "2", "mined_corpus": "/srv/more.jsonl"}},
    ),
    "a folder as a guard": ("train", {"release": "1", "settings": {"guard": "/srv/beir"}}),
    "code of a scored model": (
        "evaluate",
        {"models": ["a/b"], "release": "1", "remote_code": True},
    ),
    "a benchmark's folder": ("evaluate", {"models": ["a/b"], "benchmark": "/srv/beir"}),
    "an ordinary folder": (
        "evaluate",
        {"models": ["a/b"], "release": "1", "ordinary": "/srv/beir"},
    ),
    "run files": ("evaluate", {"models": ["trec:/srv/run"], "release": "1"}),
    "judgments of the server": ("evaluate", {"models": ["a/b"], "release": "1", "qrels": "/q"}),
    "paraphrases": ("evaluate", {"models": ["a/b"], "release": "1", "paraphrases": "/p"}),
    "a folder of run files": ("evaluate", {"models": ["a/b"], "release": "1", "trec": "/srv/t"}),
    "files of pairs": ("import", {"name": "new", "pairs": "/srv/pairs.jsonl"}),
    "files of groups": ("import", {"name": "new", "groups": ["/srv/groups.jsonl"]}),
    "a file to mine into": ("mine", {"name": "books", "out": "/srv/mined.jsonl"}),
    "a folder to pull": ("pull", {"repo": "/srv/set", "name": "new"}),
    "texts of the server": ("embed", {"what": "near_duplicates", "texts": ["/etc/secret.jsonl"]}),
    "a corpus of the server": ("project", {"published": ["/etc/secret.jsonl"]}),
    "texts to compare with": (
        "embed",
        {"what": "contamination", "datasets": ["books"], "against": ["/etc/secret.jsonl"]},
    ),
    "a release by its folder": ("evaluate", {"models": ["a/b"], "release": "/srv/private"}),
    "a model by its folder": ("evaluate", {"models": ["/srv/model"], "release": "1"}),
    "a teacher by its folder": (
        "train",
        {"release": "1", "settings": {"teacher": "cross-encoder:/srv/model"}},
    ),
    "a backup": ("backup", {"path": "/srv/backup.zip"}),
    "a restore": ("restore", {"path": "/srv/backup.zip"}),
}


def of_case(case: str) -> tuple[str, dict[str, Any]]:
    kind, config = OF_ADMINS[case]
    at = str(settings.home())
    return kind, {
        name: value.replace("HOME", at) if isinstance(value, str) else value
        for name, value in config.items()
    }


def ended(store: Store, kind: str, config: dict[str, Any], by: str = "eve") -> int:
    """A job that failed; its id."""
    with unscoped(), store.write() as session:
        job = jobs.enqueue_job(session, kind, config, started_by=by)
        job.status = "failed"
        session.commit()
        return job.id


DOORS: Mapping[str, Callable[[Store, Actor, str, dict[str, Any]], Any]] = {
    "launch": lambda store, actor, kind, config: launching.launch(store, kind, config, actor=actor),
    "queue": lambda store, actor, kind, config: queue(actor, kind, config),
    "resume": lambda store, actor, kind, config: operations.resume(
        actor, ended(store, kind, config)
    ),
    "again": lambda store, actor, kind, config: operations.run_again(
        actor, ended(store, kind, config)
    ),
}


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("case", OF_ADMINS)
def test_what_an_admin_named_of_the_server_is_nobody_else_s(
    server: Store, case: str, door: str
) -> None:
    kind, config = of_case(case)
    for eve in (curator(server), curator(server, of="books")):
        with pytest.raises((Refused, NotFound)) as refused:
            DOORS[door](server, eve, kind, config)
        assert refused.value.code in REFUSALS | {"restore_needs_command"}, refused.value
    with unscoped(), server.read() as session:
        assert {job.status for job in jobs.list_jobs(session)} <= {"failed"}


def test_every_kind_with_files_of_the_server_is_among_them_and_an_admin_s_goes_on(
    server: Store,
) -> None:
    kinds = {kind for kind, _ in OF_ADMINS.values()}
    assert kinds | {"curate", "judge", "study", "push"} == set(KINDS)
    for case in OF_ADMINS:
        kind, config = of_case(case)
        before = ended(server, kind, config)
        assert operations.resume(ADA, before).status == "queued"
        if kind != "restore":
            assert operations.run_again(ADA, before).id > before, case


def test_an_import_into_a_dataset_of_others_is_not_continued(server: Store) -> None:
    """Who may no longer curate `films` fills it neither by a new job nor by an old one."""
    eve = curator(server, of="books")
    pulled: dict[str, Any] = {"repo": "someone/set", "name": "films"}
    for door in ("launch", "resume", "again"):
        with pytest.raises((Refused, NotFound)) as refused:
            DOORS[door](server, eve, "pull", pulled)
        assert refused.value.code in REFUSALS
        DOORS[door](server, eve, "pull", pulled | {"name": "books"})
        DOORS[door](server, eve, "pull", pulled | {"name": f"new {door}"})


def test_negatives_are_mined_for_and_from_datasets_of_one_s_own(server: Store) -> None:
    eve = curator(server, of="books")
    own: dict[str, Any] = {"name": "books"}
    for door in ("launch", "resume", "again"):
        for elsewhere in ({"name": "films"}, own | {"corpus": "films"}):
            with pytest.raises(NotFound):
                DOORS[door](server, eve, "mine", elsewhere)
        DOORS[door](server, eve, "mine", own | {"corpus": "books"})


def test_a_release_and_uploads_of_one_s_own_are_run_again(server: Store) -> None:
    eve = curator(server, of="books")
    corpus = settings.home() / "corpora" / "0123" / "texts.jsonl"
    for kind, config in (
        ("export", {"runs": [1], "out": str(settings.home() / "releases" / "one")}),
        ("embed", {"what": "near_duplicates", "published": [str(corpus)]}),
        ("project", {"datasets": ["books"]}),
        ("curate", {"run_id": 1}),
        ("judge", {"run_id": 1, "judge": "simulated:1"}),
        ("study", {"dataset": "books", "items": 3, "overlap": 1}),
    ):
        before = ended(server, kind, config)
        assert operations.resume(eve, before).status == "queued"
        again = operations.run_again(eve, before)
        with unscoped(), server.read() as session:
            new = session.get_one(Job, again.id)
            assert (new.kind, new.started_by, new.status) == (kind, "eve", "queued")
            assert new.config.items() >= config.items(), kind


def test_a_training_that_cannot_fit_is_not_run_again(
    server: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = ended(server, "train", {"release": "1"})
    monkeypatch.setattr(trainings, "available_bytes", lambda: 1e6)
    with pytest.raises(Refused) as refused:
        operations.run_again(ADA, before)
    assert refused.value.code == "model_too_large"


def test_what_is_gone_is_not_run_again(server: Store) -> None:
    for kind, config in (
        ("curate", {"run_id": 99}),
        ("judge", {"study_id": 99, "judge": "simulated:1"}),
        ("study", {"what": "agreement", "study": 99, "reader": None}),
        ("study", {"dataset": "gone", "items": 3, "overlap": 1}),
        ("push", {"release_id": 99, "repo": "a/b"}),
        ("export", {"datasets": ["gone"], "out": "/srv/out"}),
    ):
        with pytest.raises(InfError) as refused:
            operations.run_again(ADA, ended(server, kind, config))
        assert refused.value.code and isinstance(refused.value, NotFound), kind


def test_a_file_that_is_run_again_is_where_it_was(server: Store, tmp_path: Path) -> None:
    file = tmp_path / "pairs.jsonl"
    before = ended(server, "import", {"name": "new", "pairs": str(file)})
    again = operations.run_again(ADA, before)
    assert operations.show(ADA, again.id).config["pairs"] == str(file)


PAIRS = {"query": "Frage"}
# Configs of the commands and pages before requests were models, as they stand in stores of then.
OLD: Mapping[str, tuple[str, dict[str, Any]]] = {
    "a worker": ("curate", {"run_id": 1, "concurrency": 4, "joins": True}),
    "a check": ("curate", {"run_id": 1, "only": "leakage"}),
    "edits": ("judge", {"run_id": 1}),
    "a judge": ("judge", {"run_id": 1, "judge": "simulated:1"}),
    "diversity": (
        "embed",
        {"datasets": ["books"], "published": [], "run": 1, "groups": "kept", "model": None}
        | {"sample": None, "repeats": 5, "seed": 0},
    ),
    "duplicates": ("embed", {"datasets": ["books"], "run": None, "what": "near_duplicates"}),
    "overlaps": (
        "embed",
        {"datasets": ["books"], "what": "contamination", "against": [], "run": None}
        | {"paraphrase_threshold": 1.2, "against_datasets": ["films"]},
    ),
    "a map": (
        "project",
        {"datasets": ["books"], "run": 1, "seed": 0, "onto": None, "fit": None, "pairs": False},
    ),
    "a training": ("train", {"release": "1", "out": "/data/out", "settings": {"epochs": "1"}}),
    "an evaluation": (
        "evaluate",
        {"models": ["bm25"], "release": "1", "benchmark": None, "subset": None, "template": None}
        | {"query_prefix": "", "passage_prefix": "", "with_base": True, "remote_code": False},
    ),
    "an export": (
        "export",
        {"dataset": "books", "run_id": 1, "out": "/data/release", "format": "jsonl"},
    ),
    "a push": ("push", {"checkpoint_id": 1, "repo": "a/b", "public": False, "dry_run": True}),
    "a backup": ("backup", {"path": "/data/backup.zip"}),
    "a restore": ("restore", {"path": "/data/backup.zip", "replace": True}),
    "an import": (
        "import",
        {"name": "new", "pairs": "/data/p.jsonl", "columns": PAIRS, "skip_bad": False},
    ),
    "a pull": (
        "pull",
        {"repo": "a/b", "name": "new", "revision": None, "licence": "", "skip_bad": False}
        | {"wanted": {"layout": None, "columns": {}, "split": None, "limit": 3, "negatives": True}},
    ),
    "a mining": ("mine", {"name": "books", "out": None, "by": ["bm25"], "count": 2}),
    "a study": (
        "study",
        {"dataset": "books", "items": 3, "overlap": 1, "seed": 0, "guidelines": None}
        | {"sampling": {"sample": "random", "strata": [], "only": "", "lines": []}},
    ),
    "agreement": ("study", {"what": "agreement", "study": 1, "reader": None}),
}


def test_jobs_of_before_are_read_resumed_and_run_again(server: Store) -> None:
    assert {kind for kind, _ in OLD.values()} == set(KINDS)
    with unscoped(), server.write() as session:
        sampled_study(session, run_id=1, items=3, overlap=1)
        session.commit()
    for what, (kind, config) in OLD.items():
        failed, done = ended(server, kind, config), ended(server, kind, config)
        with unscoped(), server.write() as session:
            session.get_one(Job, done).status = "done"
            session.commit()
        assert operations.show(ADA, failed).config == config, what
        assert operations.resume(ADA, failed).status == "queued", what
        with unscoped(), server.read() as session:  # as its process will read it
            assert session.get_one(Job, failed).config == config, what
        if kind != "restore":
            again = operations.show(ADA, operations.run_again(ADA, done).id)
            assert (again.kind, again.status) == (kind, "queued"), what
            assert operations.request_of(again.kind, again.config).config() == again.config, what


@pytest.mark.parametrize(
    ("status", "result", "code"),
    [
        ("done", {"kept": 1}, 0),
        ("done", {"paused": True, "reason": "the budget is used up"}, 3),
        ("failed", None, 1),
        ("cancelled", None, 1),
        ("lost", None, 1),
    ],
)
def test_a_command_ends_as_its_job_on_a_cluster_did(
    store: Store,
    inf: Callable[..., Ran],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    status: str,
    result: dict[str, Any] | None,
    code: int,
) -> None:
    """0 done, 3 paused, 1 for every other end: as before commands were made of operations."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("INF_DATABASE_URL", store.url)
    with unscoped():
        run_id = make_run(store)
    assert run_id == 1

    def launch(store: Store, kind: str, config: dict[str, Any], **_: Any) -> int:
        with store.write() as session:
            job = Job(
                kind=kind,
                config=config,
                launcher="http://127.0.0.1:9",
                status=status,
                result=result,
                error="what went wrong",
                stop_requested=True,  # a lost one is not tried again
            )
            session.add(job)
            session.commit()
            return job.id

    def take(*_: object, **__: object) -> None:
        """What a launch would check of a release, which is none here."""

    monkeypatch.setattr(launching, "launch", launch)
    monkeypatch.setattr(trainings, "_check", take)
    training = ("trainings", "create", "--release", 1, "--out", "model")
    for words in (
        training,
        (*training, "--workers", 2),
        ("analyze", "leakage", "--run", 1),
        ("store", "backup", "copy.db"),
    ):
        ended = inf(*words, "--launcher", "ray", "--address", "http://127.0.0.1:9", "--json")
        assert ended.code == code, ended.out + ended.err
        assert ended.json.get("paused", False) == (code == 3)
        assert code != 1 or "what went wrong" in ended.json["error"]
