"""What each role may do; asked where data is written, not only where a menu is drawn."""

from app.access.identity import Visitor
from db.errors import Refused

NEEDS = {
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
    "analyze": "curator",
}


def require(visitor: Visitor | None, deed: str) -> Visitor:
    """The visitor, when their role allows the deed. Raises Refused."""
    needed = NEEDS[deed]
    if visitor is None:
        raise Refused("you are signed out: sign in again")
    if not visitor.may(needed):
        raise Refused(f"{visitor.name} is {visitor.role}; this needs the role {needed}")
    return visitor
