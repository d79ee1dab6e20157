"""Datasets: list, show, browse, import from files and from the Hub; archive them and runs."""

from collections.abc import Callable, Iterable
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy.orm import Session

from app.access.identity import Actor, SessionUser, TokenHolder
from app.access.permissions import require
from app.jobs.places import dataset_of_others
from app.operations.acting import Launch, reading, writing
from curation.hub.request import DatasetPull, is_folder
from curation.importing.imported import ImportPreview
from curation.importing.request import DatasetImport
from curation.judges.registry import require_judge
from curation.mining.request import NegativesMine
from db.archive import archiving, purging
from db.archive.dependents import dependents
from db.archive.target import target_of
from db.corpus.browsing import PairView, list_pairs, list_passages
from db.corpus.datasets import find_dataset, get_dataset, list_datasets, summarise_dataset
from db.corpus.texts import pair_sources
from db.errors import BadRow, NotFound, Refused
from db.home import home
from db.modules import load
from db.people import accounts
from db.people.rights import add_rights, rights_of
from db.requests import Request, option
from db.rows import Listed, Row, SparseRow
from db.run.runs import run_ids
from db.store.scope import unscoped
from db.store.store import open_store
from db.tables import Account, Dataset, Passage, utc_now
from db.values import LOCAL_ADMIN, RIGHTS

RIGHT, IMPORT = "curate", "import"
# What imports a request in this process: (store, request, by, progress) -> report as JSON.
WORK = {
    "import": "curation.importing.job:import_as",
    "pull": "curation.hub.pull:pull_as",
    "mine": "curation.mining.mining:mine_as",
}
T = TypeVar("T")


class DatasetRow(Row):
    """A dataset with its counts; `generated`: passages that runs wrote, beyond `passages`."""

    id: int
    name: str
    pairs: int
    passages: int
    generated: int
    source: str
    licence: str
    created_at: datetime
    archived_at: datetime | None


class DatasetShown(DatasetRow):
    """A dataset with the sources of its pairs, the ids of its runs, and what depends on it."""

    sources: tuple[str, ...]
    runs: tuple[int, ...]
    dependents: tuple[str, ...]


class Archived(SparseRow):
    """A dataset (its name) or a run (its `run_id`), and whether it is hidden or deleted now."""

    archived: bool
    purged: bool
    dataset: str = ""
    run_id: int = 0


class Purged(Archived):
    """What was deleted for good: by whom, its rows by table, and the backup that was made first."""

    by: str
    rows: dict[str, int]
    backup: str
    content_sha256: str


class JudgmentsImport(Request):
    """Import annotations of another tool, a file of the server, as judgments of a study."""

    path: str = option(..., "An export of the tool.", names=(), metavar="FILE", path="file")
    study_id: int = option(..., "The study whose items were judged.", names=("--study",))
    question: str | None = option(None, "Of several questions: the one to import.")
    skip_bad: bool = option(False, "Skip bad rows and list them.")


class JudgmentsImported(Row):
    """An import of judgments into a study: what was new, of whom, and what was skipped or is no
    judgment, by reason."""

    study_id: int
    imported: int
    unchanged: int
    judges: tuple[str, ...]
    skipped: int
    bad_rows: tuple[BadRow, ...]
    question: str
    by_question: dict[str, int]
    not_judged: dict[str, int]
    notices: tuple[str, ...]


def list_all(actor: Actor, *, archived: bool = False) -> Listed[DatasetRow]:
    """List datasets by name, with their counts."""
    with reading(actor, RIGHT) as session:
        found = list_datasets(session, archived=archived)
    return Listed[DatasetRow].all([DatasetRow.of(each) for each in found])


def name_of(actor: Actor, dataset_id: int) -> str:
    """The name of the dataset of this id. Raises NotFound."""
    with reading(actor, RIGHT) as session:
        return _existing(session, dataset_id).name


def _existing(session: Session, dataset_id: int) -> Dataset:
    found = session.get(Dataset, dataset_id)
    if found is None:
        raise NotFound(
            f"no dataset {dataset_id}", "`datasets list` has all", code="dataset_unknown"
        )
    return found


def show(actor: Actor, name: str) -> DatasetShown:
    """Show one dataset: counts, runs, and what depends on it. Raises NotFound."""
    with reading(actor, RIGHT) as session:
        dataset = get_dataset(session, name)
        row = summarise_dataset(session, dataset)
        sources = tuple(pair_sources(session, dataset.id))
        runs = tuple(run_ids(session, dataset.id))
    return DatasetShown.of(
        row,
        sources=sources,
        runs=runs,
        dependents=depending(actor, dataset=name),
    )


def pairs(
    actor: Actor, dataset_id: int, *, search: str = "", offset: int = 0, limit: int = 20
) -> Listed[PairView]:
    """Pairs in order of import, those with this text in the query. Raises NotFound."""
    with reading(actor, RIGHT) as session:
        _existing(session, dataset_id)
        found, total = list_pairs(session, dataset_id, search=search, offset=offset, limit=limit)
    return Listed[PairView].page(found, offset=offset, total=total)


def passages(
    actor: Actor, dataset_id: int, *, origin: str | None = None, search: str = "", offset: int = 0
) -> tuple[list[Passage], int]:
    """A page of passages with this text, and how many there are in all."""
    with reading(actor, RIGHT) as session:
        return list_passages(session, dataset_id, origin=origin, search=search, offset=offset)


def here(progress: Any) -> Launch[Any]:
    """Launch an import in this process: its row (`curation.importing.imported`) is returned;
    `progress` is called with (done, total)."""

    def launch(actor: Actor, kind: str, request: Request) -> Any:
        with unscoped():  # a dataset that the actor may not see was refused before
            result = load(WORK[kind])(open_store(), request, by=actor.name, progress=progress)
        return result

    return launch


def import_files(
    actor: Actor, request: DatasetImport, launch: Launch[T], *, uploads: Path | None = None
) -> T:
    """Import pairs and passages, or groups, from files; other files than in `uploads` are an
    admin's. Who made the dataset has their rights on it.

    Raises Refused, and as `curation.importing.importing.import_dataset`.
    """
    _require_files(actor, request, uploads)
    return _into(actor, "import", request.name, request, launch)


def preview(actor: Actor, request: DatasetImport, *, uploads: Path | None = None) -> ImportPreview:
    """What an import of pairs would do; stores nothing. Raises BadInput."""
    from analysis.files.storage import local_file  # here: they load what reads files
    from curation.importing.importing import preview_import

    _require_files(actor, request, uploads)
    _is_new(actor, request.name)  # else the messages would tell what another's dataset holds
    with unscoped():
        return preview_import(
            open_store(),
            name=request.name,
            pairs=local_file(request.pairs or ""),
            passages=None if request.passages is None else local_file(request.passages),
            **request.read_by,
        )


def import_judgments(actor: Actor, wanted: JudgmentsImport) -> JudgmentsImported:
    """Import annotations of another tool, a file of the server, as judgments of a study.

    Raises Refused for who is no admin, and as `import_judgments` of `curation.questions`.
    """
    from curation.questions.judgment_import import import_judgments as add  # here: loads readers

    require(actor, "server")
    with unscoped():
        report = add(
            open_store(),
            Path(wanted.path),
            study_id=wanted.study_id,
            question=wanted.question,
            skip_bad=wanted.skip_bad,
            by=actor.name,
        )
    judges, bad = sorted(report.judges), report.skipped
    return JudgmentsImported.of(report, judges=judges, skipped=len(bad), bad_rows=bad)


def pull(actor: Actor, request: DatasetPull, launch: Launch[T]) -> T:
    """Import a dataset of the Hub, or of a folder (an admin's).

    Raises Refused, and as `curation.hub.pull`.
    """
    require(actor, "server" if is_folder(request.repo) else IMPORT)
    return _into(actor, "pull", request.name, request, launch)


def mine(actor: Actor, request: NegativesMine, launch: Launch[T]) -> T:
    """Mine hard negatives of a dataset's pairs, for them or into a file of the server (an admin's).

    Raises Refused, NotFound, BadInput for a name of no judge, and as
    `curation.mining.mining.mine_as`.
    """
    with reading(actor, IMPORT if request.out is None else "server") as session:
        for name in filter(None, (request.name, request.corpus)):
            get_dataset(session, name)
    if request.judge:
        require_judge(request.judge)
    return launch(actor, "mine", request)


def _into(actor: Actor, kind: str, name: str, request: Request, launch: Launch[T]) -> T:
    is_new = _is_new(actor, name)
    result = launch(actor, kind, request)
    if is_new:
        _become_member(actor, name)
    return result


def _is_new(actor: Actor, name: str) -> bool:
    """Whether no dataset has this name. Raises Refused if the actor may not curate the one."""
    with reading(actor, IMPORT) as session:
        is_own = find_dataset(session, name) is not None
    with unscoped(), open_store().read() as session:
        exists = find_dataset(session, name) is not None
    if exists and not is_own:
        raise dataset_of_others(name)
    if not exists and isinstance(actor, TokenHolder) and actor.datasets is not None:
        raise Refused(
            "this token is limited to datasets, and there would be one more",
            "use a token of all your datasets",
            code="token_limited",
        )
    return not exists


def _become_member(actor: Actor, name: str) -> None:
    """Give who imported a new dataset, on it, the rights that they have on anything."""
    if not isinstance(actor, SessionUser) or actor.account_id is None:
        return
    if actor.rights.is_everywhere("curate"):
        return
    rights = [right for right in RIGHTS if actor.rights.anywhere(right)]
    with unscoped(), open_store().write() as session:
        if (dataset := find_dataset(session, name)) is None:  # its job has not begun
            return
        account = session.get_one(Account, actor.account_id)
        add_rights(session, account, rights, actor=actor.name, dataset_id=dataset.id)
        session.commit()


def _require_files(actor: Actor, request: DatasetImport, uploads: Path | None) -> None:
    require(actor, IMPORT)
    if not actor.is_admin and not all(_is_in(uploads, each) for each in _files(request)):
        raise Refused(
            "only an admin can import files on the server",
            "upload the files instead",
            code="admin_only",
        )


def _files(request: DatasetImport) -> Iterable[str]:
    return filter(None, (request.pairs, request.passages, *request.groups))


def _is_in(folder: Path | None, given: str) -> bool:
    return folder is not None and Path(given).resolve().is_relative_to(folder.resolve())


def archive(actor: Actor, *, dataset: str | None = None, run_id: int | None = None) -> Archived:
    """Hide it and make nothing new from it. Raises NotFound, and Refused for what others use."""
    with writing(actor, RIGHT) as session:
        archiving.archive(
            session, dataset=dataset, run_id=run_id, rights=actor.rights, actor=actor.name
        )
    return Archived(**_what(dataset, run_id), archived=True, purged=False)


def unarchive(actor: Actor, *, dataset: str | None = None, run_id: int | None = None) -> Archived:
    """Bring it back. Raises NotFound, Refused."""
    with writing(actor, RIGHT) as session:
        archiving.unarchive(
            session, dataset=dataset, run_id=run_id, rights=actor.rights, actor=actor.name
        )
    return Archived(**_what(dataset, run_id), archived=False, purged=False)


def purge(
    actor: Actor,
    *,
    dataset: str | None = None,
    run_id: int | None = None,
    backup: Path | None,
    progress: Callable[[int, int], None],
) -> Purged:
    """Delete it for good after a backup, by default in `$INF_HOME/backups`, named by its time.

    Returns who did it, the rows deleted and the backup. Raises as `db.archive.purging.purge`,
    which refuses whoever is no admin.
    """
    if backup is None:
        name = "dataset" if dataset is not None else f"run-{run_id}"
        made_at = f"{utc_now():%Y%m%dT%H%M%S}"
        backup = home() / "backups" / f"before-purge-of-{name}-{made_at}.zip"
    with unscoped():
        done = purging.purge(
            open_store(),
            dataset=dataset,
            run_id=run_id,
            rights=actor.rights,
            actor=actor.name,
            backup=backup.expanduser().absolute(),
            progress=progress,
        )
    return Purged(**_what(dataset, run_id), archived=False, purged=True, by=actor.name, **done)


def _what(dataset: str | None, run_id: int | None) -> dict[str, Any]:
    return {"run_id": run_id} if dataset is None else {"dataset": dataset}


def purging_admin(actor: Actor, name: str | None, password: Callable[[], str]) -> Actor:
    """The admin who purges, by their password where there are accounts; else the local admin.

    Raises Refused without a name, and for a wrong name or password.
    """
    require(actor, "accounts")
    with reading(actor, "accounts") as session:
        has_accounts = accounts.has_accounts(session)
    if not has_accounts:
        return Actor(f"{actor.name} ({LOCAL_ADMIN})", rights=actor.rights, via=actor.via)
    if name is None:
        raise Refused(
            "purging is for admins",
            "name yours with `admin=NAME`; its password is prompted for",
            code="admin_only",
        )
    given = password()
    with unscoped(), open_store().write() as session:
        account = accounts.check_password(session, name, given, address="command line")
        session.commit()
        if account is None:
            raise Refused(
                f"wrong name or password of {name!r}",
                "try again; another admin can set a new password with `people reset-password NAME`",
                code="credentials_wrong",
            )
        return Actor(account.name, rights=rights_of(session, account), via=actor.via)


def depending(actor: Actor, *, dataset: str) -> tuple[str, ...]:
    """What depends on it, so that it cannot be archived."""
    with reading(actor, RIGHT) as session:
        return tuple(dependents(session, target_of(session, dataset=dataset)))
