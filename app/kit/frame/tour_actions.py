"""What the tour reads and stores of the session user."""

import logging

import streamlit as st
from sqlalchemy.exc import OperationalError

from app.access.session_user import action, require_permission
from db.people import tours
from db.store.store import open_store

log = logging.getLogger("inf.app")
ENDED_ON = "tour.ended_on"  # the page on which the tour ended, until another one is opened


def is_on_tour(person: str) -> bool:
    """Whether the person is to see the tour; the first time, it is recorded that they do."""
    with open_store().read() as session:
        state = tours.tour_of(session, person)
    if state == "new":
        try:
            with open_store().write() as session:
                tours.begin_tour(session, person)
                session.commit()
        except OperationalError as error:  # a locked store must not refuse who only reads
            log.warning("the first showing of a tour was not recorded: %s", error)
    return state != "over"


@action
def end_tour(page: str) -> None:
    """Finish or skip the tour on this page."""
    user = require_permission("jobs")
    with open_store().write() as session:
        tours.end_tour(session, user.name)
        session.commit()
    st.session_state[ENDED_ON] = page


@action
def restart_tour() -> None:
    """Take the tour again."""
    user = require_permission("jobs")
    with open_store().write() as session:
        tours.restart_tour(session, user.name)
        session.commit()
