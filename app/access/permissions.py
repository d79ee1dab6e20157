"""The rights that each permission requires; checked where data is written, not only in the menu."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

from sqlalchemy.orm import Session

from app.access.identity import Actor
from db.errors import Refused
from db.events import VIA
from db.store.scope import INFO, Scope
from db.values import RIGHTS, STUDY_RIGHTS, TOKEN_RIGHTS

A = TypeVar("A", bound=Actor)


@dataclass(frozen=True)
class Need:
    """What a permission requires: an admin, or one of these rights, or (`needs_all`) all of them.

    Datasets and studies on which the user has them are what the action sees.
    """

    rights: tuple[str, ...]
    what: str
    needs_all: bool = False

    @property
    def required(self) -> str:
        """Which rights those are, as a message and the table of rights say it."""
        words = (" and " if self.needs_all else " or ").join(self.rights)
        return (
            f"admin, or a token of one with {words}"
            if self.rights and set(self.rights) <= set(TOKEN_RIGHTS)
            else words or "admin"
        )

    def is_met(self, user: Actor) -> bool:
        """Whether the user has what is required on anything."""
        if user.rights.is_admin or not self.rights:
            return user.rights.is_admin
        scope = self.scope(user)
        return scope is None or bool(scope.datasets or scope.studies)

    def scope(self, user: Actor) -> Scope | None:
        """What the user may see and change with this permission; None for everything."""
        if user.rights.is_admin:
            return None
        found = [user.rights.datasets(right) for right in self.rights]
        limited = [one for one in found if one is not None]
        is_everywhere = not limited if self.needs_all else len(limited) < len(found)
        if self.rights and is_everywhere:
            return None
        datasets = (
            frozenset.intersection(*limited) if self.needs_all else frozenset().union(*limited)
        )
        own = [right for right in self.rights if right in STUDY_RIGHTS and not self.needs_all]
        studies = frozenset(one for right in own for one in user.rights.studies(right))
        through = frozenset(user.rights.dataset_of[one] for one in studies)
        is_by_study = set(self.rights) <= set(STUDY_RIGHTS) and bool(datasets or studies)
        return Scope(user.name, datasets, studies, through, with_groups=not is_by_study)


ADMIN = ()
NEEDS: Mapping[str, Need] = {
    "accounts": Need(ADMIN, "manage accounts and members, make backups"),
    "connections": Need(ADMIN, "make connections to model servers, and give them their keys"),
    "webhooks": Need(ADMIN, "have other servers sent events (webhooks)"),
    "audit": Need(("audit",), "read accounts, endpoints and the audit log"),
    "watch": Need(("watch",), "read the figures of the server for monitoring (`/metrics`)"),
    "server": Need(ADMIN, "use folders and files of the server, run a model's own code"),
    "curate": Need(("curate",), "see and start runs, read and open groups"),
    "import": Need(("curate",), "import pairs and passages"),
    "upload": Need(("curate",), "upload files"),
    "analyze": Need(("curate",), "diversity, coverage, overlaps"),
    "studies": Need(("curate",), "create and manage studies, agreement, judging by models"),
    "show_verdicts": Need(("curate",), "show a run's verdicts to reviewers"),
    "groups": Need(("curate", "review"), "list the groups of runs; blind without curate"),
    "review": Need(("review",), "approve, reject or edit single groups"),
    "review_many": Need(("curate", "review"), "review all groups of a filter", needs_all=True),
    "judge": Need(("judge",), "judge items of open studies"),
    "adjudicate": Need(("adjudicate",), "decide disputed items, reveal roles"),
    "train": Need(("train",), "train on releases"),
    "evaluate": Need(("train",), "evaluate models"),
    "try": Need(("train",), "try a model"),
    "export": Need(("release",), "make, download and push releases"),
    "jobs": Need(("curate", "train", "release"), "see jobs; each kind as its own permission"),
    "tokens": Need(("curate", "train", "release"), "create, list and revoke own tokens"),
    "any": Need((*RIGHTS, *TOKEN_RIGHTS), "open the home page"),
}


def signed_in(user: A | None) -> A:
    """The user. Raises Refused where nobody is signed in."""
    if user is None:
        raise Refused("you are signed out", "sign in again", code="signed_out")
    return user


def require(user: A | None, permission: str) -> A:
    """The user if they have the permission on anything. Raises Refused.

    On what they have it is the scope of the sessions opened afterwards (`app.access.scope`).
    """
    need, user = NEEDS[permission], signed_in(user)
    if not need.is_met(user):
        raise Refused(
            f"{user.name} lacks a right: this requires {need.required}",
            "ask an admin for it",
            code="no_right",
            name=user.name,
            required=need.required,
        )
    return user


def admit(session: Session, actor: Actor, permission: str) -> Actor:
    """The actor with the rights of now, the session limited to what they let them see.

    In the transaction that writes: a right that was withdrawn a moment ago is none. Its events say
    through which door it came. Raises Refused.
    """
    now = require(actor.now(session), permission)
    session.info[INFO] = NEEDS[permission].scope(now)
    session.info[VIA] = actor.via
    return now
