"""The studies that the user sees, read once each time the page is drawn."""

from app.access.identity import SessionUser
from app.access.permissions import NEEDS
from app.access.scope import scope_kept, work_under
from db.store.scope import Scope
from db.store.store import open_store
from db.study.studies import StudySummary, list_studies


class SeenStudies:
    """The list of studies with their progress, which Home shows in several places.

    It takes the longest of Home's queries in a store with many studies, so that it is read once for
    all permissions under which the user sees the same. To be made anew each time Home is drawn.
    """

    def __init__(self, user: SessionUser) -> None:
        self.user = user
        self._found: dict[Scope | None, list[StudySummary]] = {}

    def under(self, permission: str, *statuses: str) -> list[StudySummary]:
        """The studies that the permission lets the user see, newest first; of all statuses if none
        is given, and none without the permission."""
        need = NEEDS[permission]
        if not need.is_met(self.user):
            return []
        scope = need.scope(self.user)
        if scope not in self._found:
            with scope_kept():
                work_under(self.user, permission)
                with open_store().read() as session:
                    self._found[scope] = list_studies(session)
        return [one for one in self._found[scope] if not statuses or one.status in statuses]
