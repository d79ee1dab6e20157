"""Limits of failed sign-ins: by person and address, by address, by person.

A browser in which a person signed in keeps the token of that session in a cookie of its own, after
it ended, too. Attempts with it for that person are counted by themselves: wrong passwords of others
never lock it out, whatever their address.

Whoever has signed in from an address before is known there: wrong passwords of others neither count
for them nor lock them out. In a new browser, five wrong passwords that others sent from the same
address for the person's name do, for a quarter of an hour. The address is that of the connection,
or what a trusted proxy states (INF_TRUSTED_PROXIES). Of an IPv6 address the network counts, as a
person has all of it.
"""

import ipaddress
from datetime import timedelta

from sqlalchemy import Select, func, select
from sqlalchemy.orm import Session

from db.errors import Refused
from db.events import record_event
from db.people.sign_ins import token_sha256
from db.tables import Account, AccountSession, Event, utc_now

WINDOW = timedelta(minutes=15)
KNOWN_FOR = timedelta(days=90)
MAX_BY_NAME_AND_ADDRESS = 5
MAX_BY_ADDRESS = 30
MAX_BY_NAME = 100
FAILED = "sign-in.refused"
TOO_MANY = "too many failed attempts"


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


def device_of(session: Session, name: str, token: str) -> str:
    """What attempts of a person in a browser where they signed in count for; "" in any other."""
    if not token:
        return ""
    found = session.scalar(
        select(AccountSession.id)
        .join(Account, Account.id == AccountSession.account_id)
        .where(
            Account.name == name,
            AccountSession.token_sha256 == token_sha256(token),
            AccountSession.created_at > utc_now() - KNOWN_FOR,
        )
    )
    return "" if found is None else str(found)


def limit_attempts(session: Session, name: str, place: str, device: str = "") -> None:
    """Raise Refused after too many failed attempts of this name, from this place, or both.

    With a device of the person's (`device_of`) only those that were made with it count.
    """
    if device:
        with_it = _failed().where(Event.actor == name, Event.data["device"].as_string() == device)
        if (session.scalar(with_it) or 0) < MAX_BY_NAME_AND_ADDRESS:
            return
        raise Refused(TOO_MANY, "wait a quarter of an hour and try again", code="too_many")
    here = _failed().where(Event.data["address"].as_string() == place)
    by_both = session.scalar(here.where(Event.actor == name)) or 0
    if by_both < MAX_BY_NAME_AND_ADDRESS:
        known = _known_at(place)
        if session.scalar(known.where(Account.name == name).limit(1)) is not None:
            return
        by_strangers = session.scalar(here.where(Event.actor.not_in(known))) or 0
        by_name = session.scalar(_failed().where(Event.actor == name)) or 0
        if by_strangers < MAX_BY_ADDRESS and by_name < MAX_BY_NAME:
            return
    raise Refused(TOO_MANY, "wait a quarter of an hour and try again", code="too_many")


def record_failure(session: Session, name: str, place: str, device: str = "") -> None:
    """Record a failed attempt in the audit log. Does not commit."""
    record_event(session, name, FAILED, address=place, **({"device": device} if device else {}))


def _failed() -> Select[int]:
    return (
        select(func.count())
        .select_from(Event)
        .where(Event.name == FAILED, Event.at > utc_now() - WINDOW)
    )


def _known_at(place: str) -> Select[str]:
    """The names of accounts that have signed in from a place."""
    return (
        select(Account.name)
        .join(AccountSession, AccountSession.account_id == Account.id)
        .where(AccountSession.address == place, AccountSession.created_at > utc_now() - KNOWN_FOR)
    )
