"""Limits of failed sign-ins: by person and address, by address, by person.

Whoever has signed in from an address before is known there: wrong passwords of others neither count
for them nor lock them out, so that one guesser in an office, or one from anywhere who knows a name,
stops nobody else. The address is that of the connection, or what a trusted proxy states
(INF_TRUSTED_PROXIES). Of an IPv6 address the network counts, as a person has all of it.
"""

import ipaddress
from datetime import timedelta

from sqlalchemy import Select, func, select
from sqlalchemy.orm import Session

from db.errors import Refused
from db.people.audit import record_audit
from db.tables import Account, AccountSession, Audit, utc_now

WINDOW = timedelta(minutes=15)
KNOWN_FOR = timedelta(days=90)
MAX_BY_NAME_AND_ADDRESS = 5
MAX_BY_ADDRESS = 30
MAX_BY_NAME = 100
FAILED = "sign-in.refused"


def place_of(address: str) -> str:
    """What of an address is limited: an IPv4 address, the /64 network of an IPv6 one."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(found, ipaddress.IPv6Address):
        if found.ipv4_mapped is not None:
            return str(found.ipv4_mapped)
        return str(ipaddress.ip_network((found, 64), strict=False))
    return str(found)


def limit_attempts(session: Session, name: str, place: str) -> None:
    """Raise Refused after too many failed attempts of this name, from this place, or both."""
    here = _failed().where(Audit.detail["address"].as_string() == place)
    by_both = session.scalar(here.where(Audit.actor == name)) or 0
    if by_both < MAX_BY_NAME_AND_ADDRESS:
        known = _known_at(place)
        if session.scalar(known.where(Account.name == name).limit(1)) is not None:
            return
        by_strangers = session.scalar(here.where(Audit.actor.not_in(known))) or 0
        by_name = session.scalar(_failed().where(Audit.actor == name)) or 0
        if by_strangers < MAX_BY_ADDRESS and by_name < MAX_BY_NAME:
            return
    raise Refused("too many failed attempts: wait a quarter of an hour and try again")


def record_failure(session: Session, name: str, place: str) -> None:
    """Record a failed attempt in the audit log. Does not commit."""
    record_audit(session, name, FAILED, address=place)


def _failed() -> Select[int]:
    return (
        select(func.count())
        .select_from(Audit)
        .where(Audit.action == FAILED, Audit.created_at > utc_now() - WINDOW)
    )


def _known_at(place: str) -> Select[str]:
    """The names of accounts that have signed in from a place."""
    return (
        select(Account.name)
        .join(AccountSession, AccountSession.account_id == Account.id)
        .where(AccountSession.address == place, AccountSession.created_at > utc_now() - KNOWN_FOR)
    )
