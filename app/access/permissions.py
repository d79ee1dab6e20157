"""The role that each permission requires; checked where data is written, not only in the menu."""

from app.access.identity import SessionUser
from db.errors import Refused

REQUIRED_ROLE = {
    "accounts": "admin",
    "audit": "admin",
    "curate": "curator",
    "evaluate": "curator",
    "export": "curator",
    "import": "curator",
    "jobs": "curator",
    "judge": "annotator",
    "review": "annotator",
    "review_many": "curator",
    "show_verdicts": "curator",
    "studies": "curator",
    "train": "curator",
    "try": "curator",
    "upload": "curator",
    "analyze": "curator",
}


def require(user: SessionUser | None, permission: str) -> SessionUser:
    """The user if their role has the permission. Raises Refused."""
    needed = REQUIRED_ROLE[permission]
    if user is None:
        raise Refused("you are signed out: sign in again")
    if not user.may(needed):
        raise Refused(f"{user.name} is {user.role}; this requires the role {needed}")
    return user
