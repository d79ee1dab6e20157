"""What Home shows of the actor's own work: items to judge or judged, and what waits for them."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.access.identity import Actor, SessionUser
from app.access.permissions import NEEDS
from app.operations.acting import reading, record_read, writing
from app.operations.judging.card import judge_of
from db.answers.finishing import OwnChoice, own_choices
from db.assignment.hidden import hidden_pair
from db.assignment.members import may_be_given_items
from db.assignment.progress import own_progress
from db.assignment.threads import list_threads
from db.jobs import jobs
from db.outcome import overview as counted
from db.outcome.overview import Overview
from db.run.runs import shape_of
from db.shape import Shape
from db.store.scope import Scope, unscoped
from db.store.store import open_store
from db.study.blind_adjudication import ids_to_adjudicate
from db.study.judgments import of_person
from db.study.rules import rules_of
from db.study.studies import StudySummary, get_study, list_studies
from db.tables import Dataset, Group, Judge, Pair

DEMO: Final = "demo"  # the dataset of `inf demo`
EXAMPLES: Final = {"en": "demo-016a", "de": "demo-264a", "es": "demo-283a"}  # in no study of it
MAX_STUDIES: Final = 3
MAX_PLACES: Final = 5_000  # of a study of which the work is counted


class OwnItems(NamedTuple):
    """A study that closes with its last answer, and the user's part in it."""

    study_id: int
    name: str
    left: int
    done: int
    choices: list[OwnChoice]
    shape: Shape | None


class Waiting(NamedTuple):
    """Something that waits for the user: how many of what, and the page where it is done."""

    number: int
    one: str
    many: str
    view: str
    study_id: int
    study: str


class SeenStudies:
    """The list of studies with their progress, which Home shows in several places.

    It takes the longest of Home's queries in a store with many studies, so that it is read once for
    all permissions under which the user sees the same. To be made anew each time Home is drawn.
    """

    def __init__(self, actor: Actor) -> None:
        self.actor = actor
        self._found: dict[Scope | None, list[StudySummary]] = {}

    def under(self, permission: str, *statuses: str) -> list[StudySummary]:
        """The studies that the permission lets the user see, newest first; of all statuses if none
        is given, and none without the permission."""
        need = NEEDS[permission]
        if not need.is_met(self.actor):
            return []
        scope = need.scope(self.actor)
        if scope not in self._found:
            with reading(self.actor, permission) as session:
                self._found[scope] = list_studies(session)
        return [one for one in self._found[scope] if not statuses or one.status in statuses]


def overview(actor: Actor, dataset_id: int | None) -> tuple[Overview, list[int]]:
    """What a dataset holds, or everything, and the newest jobs that are queued or running."""
    with reading(actor, "jobs") as session:
        live = jobs.list_jobs(session, statuses=("running", "queued"), limit=3)
        return counted.overview(session, dataset_id), [job.id for job in live]


def own_items(actor: SessionUser, seen: SeenStudies, language: str = "") -> OwnItems | None:
    """The newest such study in which the user has something to do or to see, of those in the
    language if there are any; None if none."""
    if not NEEDS["judge"].is_met(actor):
        return None
    studies = seen.under("judge", "open", "closed")
    with writing(actor, "judge") as session:
        judge_id = judge_of(session, actor).id
    with reading(actor, "judge") as session:
        return _newest(session, judge_id, studies, language)


def _newest(
    session: Session, judge_id: int, studies: Sequence[StudySummary], language: str
) -> OwnItems | None:
    found = ((each, get_study(session, each.id)) for each in studies)
    own = [(each, of) for each, of in found if rules_of(of).closes_when_done]
    own.sort(key=lambda pair: pair[1].settings.get("language") != language)  # stable: newest first
    for study, of in own:
        progress = own_progress(session, study.id, judge_id)
        is_given = study.status == "open" and may_be_given_items(session, study.id, judge_id)
        left = progress.left if is_given else 0
        choices = own_choices(session, study.id, judge_id)
        if left or choices:
            shape = None if of.run_id is None else shape_of(session, of.run_id)
            return OwnItems(study.id, study.name, left, progress.done, choices, shape)
    return None


def waiting(actor: SessionUser, seen: SeenStudies) -> list[Waiting]:
    """The user's work in the newest studies: items to judge, disputed items, judges' messages.

    Of larger studies nothing is counted, as that takes longer than Home may.
    """
    found: list[Waiting] = []
    for permission, read in (
        ("judge", _items_to_judge),
        ("adjudicate", _disputed),
        ("studies", _messages),
    ):
        if NEEDS[permission].is_met(actor):
            studies = seen.under(permission, "open", "paused")[:MAX_STUDIES]
            small = [study for study in studies if study.places <= MAX_PLACES]
            with reading(actor, permission) as session:
                found += read(session, actor, small)
    return found


def _items_to_judge(
    session: Session, user: SessionUser, studies: Sequence[StudySummary]
) -> list[Waiting]:
    found: list[Waiting] = []
    judge_id = session.scalar(select(Judge.id).where(of_person(user.name)))
    if judge_id is None:  # `own_items` makes it
        return found
    for study in studies:
        own = rules_of(get_study(session, study.id)).closes_when_done  # has a card of its own
        if study.status != "open" or own or not may_be_given_items(session, study.id, judge_id):
            continue
        left = own_progress(session, study.id, judge_id).left
        found.append(
            Waiting(left, "item to judge", "items to judge", "judge", study.id, study.name)
        )
    return [each for each in found if each.number]


def _disputed(
    session: Session, user: SessionUser, studies: Sequence[StudySummary]
) -> list[Waiting]:
    found = [
        (study, len(ids_to_adjudicate(session, study.id, user.name, open_only=True)))
        for study in studies
    ]
    return [
        Waiting(count, "disputed item", "disputed items", "adjudicate", study.id, study.name)
        for study, count in found
        if count
    ]


def _messages(session: Session, _: SessionUser, studies: Sequence[StudySummary]) -> list[Waiting]:
    found = [
        (study, sum(each.unread for each in list_threads(session, study.id))) for study in studies
    ]
    return [
        Waiting(count, "unread message", "unread messages", "studies", study.id, study.name)
        for study, count in found
        if count
    ]


def may_show_example(actor: Actor, external_id: str) -> bool:
    """Whether the example group of this pair is not hidden from the actor; where the store has it,
    they read it now: `db.assignment.hidden`."""
    groups = (
        select(Group.id)
        .join(Pair, Pair.id == Group.pair_id)
        .join(Dataset, Dataset.id == Pair.dataset_id)
        .where(Dataset.name == DEMO, Pair.external_id == external_id)
    )
    # hidden by a study of any dataset, whatever this page's permission shows
    with unscoped(), open_store().read() as session:
        hidden = groups.where(hidden_pair(session, actor.name, Group.pair_id))
        if session.scalars(hidden.limit(1)).first() is not None:
            return False
        found = list(session.scalars(groups))
    record_read(found, actor)
    return True
