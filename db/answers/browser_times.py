"""Times that a browser reports, held against the server's: its clock may be wrong, or forged.

People are paid by these times and judged by them as too fast, so none may lie where nothing can
have happened: an item is shown after it was leased, and decided before its answer is received.
"""

from datetime import datetime, timedelta


def times_within(
    shown_at: datetime | None, decided_at: datetime | None, *, leased_at: datetime, now: datetime
) -> tuple[datetime | None, datetime]:
    """When an item was shown and decided, both from `leased_at` to `now`.

    Times outside come from a wrong clock, whose seconds are right all the same: the interval is
    moved to end now, and cut where it would begin before the lease. Without `decided_at` it is
    now; without `shown_at` that stays unknown.
    """
    leased_at = min(leased_at, now)
    ended = now if decided_at is None else decided_at
    if shown_at is None:
        return None, ended if leased_at <= ended <= now else now
    if leased_at <= shown_at <= ended <= now:
        return shown_at, ended
    length = max(ended - shown_at, timedelta(0))
    # cut first: 1970 to 8999 cannot be subtracted from now
    return now - min(length, now - leased_at), now
