"""What a session of the store sees: everything, or one person's datasets, runs and studies.

The filter is in the session, not in its queries: every SELECT, UPDATE and DELETE of these tables
gets it, so that a query that forgot about rights finds nothing of others.

It is closed: a session that is opened without an actor raises NoActor. Pages say it by
the permission they are drawn under (`app.access.scope`), operations by their actor
(`app.operations.acting`), processes of the store's owner once for all (`owners_process`:
commands, jobs, tests), and what looks up rights by `unscoped`.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Integer,
    Select,
    Table,
    and_,
    event,
    literal_column,
    or_,
    select,
)
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.orm import ORMExecuteState, Session, with_loader_criteria
from sqlalchemy.sql.base import ExecutableOption
from sqlalchemy.sql.functions import FunctionElement

from db.store.settings import is_owners_process
from db.tables import (
    Analysis,
    Announcement,
    Checkpoint,
    Dataset,
    Evaluation,
    Group,
    Guideline,
    ItemMessage,
    Job,
    Pair,
    Passage,
    Release,
    ReleaseRun,
    Run,
    Study,
    StudyItem,
)

INFO = "scope"


@dataclass(frozen=True)
class Scope:
    """What a person sees: all of `datasets`, and the `studies`, with what `through` datasets need.

    `with_groups`: whether groups and texts are limited to `datasets`, too. Not where people judge
    or adjudicate: there items are reached through the study alone, and what keeps judges blind (who
    opened, reviewed, adjudicated what) must be found on every dataset.
    """

    person: str
    datasets: frozenset[int]
    studies: frozenset[int] = frozenset()
    through: frozenset[int] = frozenset()
    with_groups: bool = True

    @cached_property
    def options(self) -> tuple[ExecutableOption, ...]:
        """The criteria as options of a statement."""
        return tuple(
            with_loader_criteria(table, condition, include_aliases=True)
            for table, condition in self._criteria()
        )

    def _criteria(self) -> Iterator[tuple[type[Any], ColumnElement[bool]]]:
        ids, seen = sorted(self.datasets), sorted(self.datasets | self.through)
        own_jobs = _ids(Job).where(_column(Job, "started_by") == self.person)
        # of several runs: a release is seen where all its datasets are
        hidden = _column(ReleaseRun, "run_id").in_(
            _ids(Run).where(_column(Run, "dataset_id").not_in(ids))
        )
        with_hidden = select(_column(ReleaseRun, "release_id")).where(hidden)
        releases = _ids(Release).where(
            _column(Release, "dataset_id").in_(ids), _column(Release, "id").not_in(with_hidden)
        )
        runs = _ids(Run).where(_column(Run, "dataset_id").in_(seen))
        own = sorted(self.studies)
        studies = _ids(Study).where(
            or_(_column(Study, "dataset_id").in_(ids), _column(Study, "id").in_(own))
        )
        checkpoints = _ids(Checkpoint).where(
            or_(
                _column(Checkpoint, "release_id").in_(releases),
                _column(Checkpoint, "job_id").in_(own_jobs),
            )
        )
        yield Dataset, Dataset.id.in_(seen)
        yield Run, Run.dataset_id.in_(seen)
        yield Study, or_(Study.dataset_id.in_(ids), Study.id.in_(own))
        yield StudyItem, StudyItem.study_id.in_(studies)
        yield Guideline, Guideline.study_id.in_(studies)
        yield ItemMessage, ItemMessage.study_id.in_(studies)
        yield Announcement, Announcement.study_id.in_(studies)
        yield Release, and_(Release.dataset_id.in_(ids), Release.id.not_in(with_hidden))
        yield Checkpoint, or_(Checkpoint.release_id.in_(releases), Checkpoint.job_id.in_(own_jobs))
        yield (
            Evaluation,
            or_(Evaluation.checkpoint_id.in_(checkpoints), Evaluation.job_id.in_(own_jobs)),
        )
        yield Analysis, or_(Analysis.dataset_id.in_(ids), Analysis.job_id.in_(own_jobs))
        config = _column(Job, "config")
        of_places = _ids(Job).where(
            or_(
                _ConfigNumber(config, "run_id").in_(runs),
                and_(  # of several runs: whoever started it, and who sees every dataset
                    _ConfigNumber(config, "runs[0]").in_(runs),
                    _ConfigNumber(config, "runs[1]").is_(None),
                ),
                _ConfigNumber(config, "study_id").in_(studies),
            )
        )
        yield Job, or_(Job.started_by == self.person, Job.id.in_(of_places))
        if self.with_groups:
            whole = _ids(Run).where(_column(Run, "dataset_id").in_(ids))
            yield Group, Group.run_id.in_(whole)
            yield Pair, Pair.dataset_id.in_(ids)
            yield Passage, Passage.dataset_id.in_(ids)


class NoActor(RuntimeError):
    """A session was opened without an actor: a fault of the program, not of a person."""


_pages: Callable[[], tuple[Scope | None] | None] = lambda: None  # noqa: E731
_said: ContextVar[tuple[Scope | None] | None] = ContextVar("scope_said", default=None)


def scope_pages_by(pages: Callable[[], tuple[Scope | None] | None]) -> None:
    """Let sessions of a page have the scope that this returns as `(scope,)`; None: no page."""
    global _pages
    _pages = pages


def current_scope() -> Scope | None:
    """The scope of a session that is opened now; None for everything. Raises NoActor."""
    found = _said.get() or _pages()
    if found is None and not is_owners_process():
        raise NoActor(
            "a session was opened without an actor: open it in an operation, or say `unscoped()`"
        )
    return None if found is None else found[0]


@contextmanager
def limited_to(scope: Scope | None) -> Iterator[None]:
    """Sessions opened within see this; None for everything."""
    token = _said.set((scope,))
    try:
        yield
    finally:
        _said.reset(token)


@contextmanager
def unscoped() -> Iterator[None]:
    """Sessions opened within see everything: to look up rights, and after a check of them."""
    with limited_to(None):
        yield


class _ConfigNumber(FunctionElement[int]):
    """An integer of a job's config.

    SQLAlchemy's own `config[name].as_integer()` warns when the statement around it is cloned, as
    criteria are: the type of its bound parameter cannot be compared.
    """

    type = Integer()
    name = "config_number"
    inherit_cache = True

    def __init__(self, config: ColumnElement[Any], key: str) -> None:
        super().__init__(config, literal_column(f"'{key}'"))


@compiles(_ConfigNumber, "sqlite")
def _on_sqlite(element: _ConfigNumber, compiler: Any, **more: Any) -> str:
    config, key = (compiler.process(one, **more) for one in element.clauses)
    return f"CAST(json_extract({config}, '$.' || {key}) AS INTEGER)"


@compiles(_ConfigNumber, "postgresql")
def _on_postgresql(element: _ConfigNumber, compiler: Any, **more: Any) -> str:
    config, key = (compiler.process(one, **more) for one in element.clauses)
    return (
        f"CAST(jsonb_path_query_first({config}, ('$.' || {key})::jsonpath) #>> '{{}}' AS INTEGER)"
    )


def _ids(entity: type[Any]) -> Select[int]:
    """The ids of a table: on the table itself, which the criteria do not reach again."""
    return select(_column(entity, "id"))


def _column(entity: type[Any], name: str) -> ColumnElement[Any]:
    table = entity.__table__
    assert isinstance(table, Table)
    column: ColumnElement[Any] = table.c[name]
    return column


@event.listens_for(Session, "do_orm_execute")
def _limit(state: ORMExecuteState) -> None:
    scope = state.session.info.get(INFO)
    if scope is None or state.is_column_load or state.is_relationship_load:
        return
    if state.is_select or state.is_update or state.is_delete:
        state.statement = state.statement.options(*scope.options)
