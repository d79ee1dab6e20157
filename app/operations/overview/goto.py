"""Where a person may go by a name or a number: what the box behind Ctrl-K lists."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from sqlalchemy import ColumnElement, func, or_, select
from sqlalchemy.orm import InstrumentedAttribute, Session

from app.access.identity import Actor
from app.access.permissions import NEEDS
from app.operations.acting import reading
from app.operations.overview.frame import MAX_DIGITS
from db.rows import Row
from db.tables import Dataset, Group, Recipe, Release, Run, Study
from db.tables.objects import values_of

EACH: Final = 5  # rows of a kind
MAX_TEXT: Final = 80


class Place(Row):
    """A row of the store and the page that shows it: `parameters` of its address."""

    kind: str
    label: str
    view: str
    parameters: dict[str, str]


Named = InstrumentedAttribute[str] | ColumnElement[str]
Read = Callable[[Session, str, int | None], list[Place]]


def places(actor: Actor, typed: str) -> list[Place]:
    """Datasets, runs, studies, releases and a group with this text in their name or this number,
    the newest first; of each kind what the actor may open. A run is named by its recipe, provider,
    connection, models and dataset.

    `run 12`, `studies` and `release v2` are of that kind alone.
    """
    text = typed.strip()[:MAX_TEXT]
    first, _, rest = text.partition(" ")
    chosen = next((kind for kind, words in WORDS.items() if first.casefold() in words), None)
    if chosen is not None:
        text = rest.strip()
    digits = text.removeprefix("#")
    number = int(digits) if digits.isdecimal() and len(digits) <= MAX_DIGITS else None
    found: list[Place] = []
    for kind, permission, read in KINDS:
        is_listed = bool(text) if chosen is None else kind == chosen
        if is_listed and NEEDS[permission].is_met(actor):
            with reading(actor, permission) as session:
                found += read(session, text, number)
    return found


def _named(
    name: Named, ident: InstrumentedAttribute[int], text: str, number: Any
) -> ColumnElement[bool]:
    named = name.icontains(text, autoescape=True)
    return named if number is None else or_(ident == number, named)


def _datasets(session: Session, text: str, number: int | None) -> list[Place]:
    query = select(Dataset.name).where(
        Dataset.archived_at.is_(None), _named(Dataset.name, Dataset.id, text, number)
    )
    return [
        Place(kind="Dataset", label=name, view="datasets", parameters={"dataset": name})
        for name in session.scalars(
            query.order_by((Dataset.id == number).desc(), Dataset.id.desc()).limit(EACH)
        )
    ]


def _of(
    kind: str,
    table: Any,
    view: str,
    name: Named,
    *others: Named,
) -> Read:
    """Rows of a table by what names them, in their dataset; no run that lists hide."""

    def read(session: Session, text: str, number: int | None) -> list[Place]:
        query = (
            select(table.id, name, Dataset.name)
            .select_from(table)
            .join(Dataset, Dataset.id == table.dataset_id)
            .where(Dataset.archived_at.is_(None), *_shown(table))
            .where(or_(*(_named(each, table.id, text, number) for each in (name, *others))))
            .order_by((table.id == number).desc(), table.id.desc())
            .limit(EACH)
        )
        return [
            Place(
                kind=kind,
                label=f"{ident} · {named} · {dataset}",
                view=view,
                parameters={"dataset": dataset, kind.lower(): str(ident)},
            )
            for ident, named, dataset in session.execute(query)
        ]

    return read


def _shown(table: Any) -> list[ColumnElement[bool]]:
    """Nothing for what cannot be archived by itself."""
    return [Run.archived_at.is_(None)] if table is Run else []


def _group(session: Session, text: str, number: int | None) -> list[Place]:
    if number is None:
        return []
    query = (
        select(Group.id, Group.run_id)
        .join(Run, Run.id == Group.run_id)
        .join(Dataset, Dataset.id == Run.dataset_id)
        .where(Group.id == number, Dataset.archived_at.is_(None))
    )
    return [
        Place(
            kind="Group",
            label=f"{ident} · of run {run_id}",
            view="groups",
            parameters={"run": str(run_id), "group": str(ident)},
        )
        for ident, run_id in session.execute(query)
    ]


RECIPE: Final = select(Recipe.name).where(Recipe.id == Run.recipe_id).scalar_subquery()


OF_TASK: Final = values_of(Run.models)
RUN: Final[Sequence[Named]] = (
    RECIPE + " · " + Run.provider,
    Dataset.name,
    Run.server["connection"].as_string(),
    select(func.aggregate_strings(OF_TASK.c.value["model"].as_string(), " ")).scalar_subquery(),
)
KINDS: Final[Sequence[tuple[str, str, Read]]] = (
    ("Run", "curate", _of("Run", Run, "curate", *RUN)),
    ("Dataset", "curate", _datasets),
    ("Study", "studies", _of("Study", Study, "studies", Study.name)),
    ("Release", "export", _of("Release", Release, "releases", Release.name)),
    ("Group", "groups", _group),
)
WORDS: Final[Mapping[str, Sequence[str]]] = {
    "Dataset": ("dataset", "datasets"),
    "Run": ("run", "runs"),
    "Study": ("study", "studies"),
    "Release": ("release", "releases"),
    "Group": ("group", "groups"),
}
