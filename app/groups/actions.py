"""Actions of the Groups page: many reviews, validation, verdicts shown, opening hidden groups."""

import secrets

import streamlit as st

from app.access.session_user import action, notify, signed_in_user
from app.kit.acting import acting
from app.operations import groups
from app.operations.judging import reviews
from app.text.numbers import counted
from curation.judging.request import ReviewMany

LAST_BULK = "groups.last_bulk"


revalidate = acting(
    reviews.validate, lambda job: f"Validation of the edits is queued as job {job}."
)


show_verdicts = acting(reviews.verdicts, takes=("run_id",), held={"shown": "review.verdicts_{0}"})


@action
def review_many(wanted: ReviewMany) -> None:
    """Approve or reject every group that matches the filter, if their number was confirmed."""
    wanted = wanted.model_copy(update={"mark": secrets.token_hex(8)})
    done = reviews.bulk(signed_in_user(), wanted).groups
    st.session_state[LAST_BULK] = (wanted.run_id, wanted.mark, done)
    notify(f"{counted(done, 'group')} {'approved' if wanted.action == 'approve' else 'rejected'}.")


@action
def undo_many(run_id: int, mark: str) -> None:
    """Undo those reviews of a bulk that are still current."""
    undone = reviews.undo_bulk(signed_in_user(), run_id, mark)
    st.session_state.pop(LAST_BULK, None)
    notify(f"{counted(undone, 'review')} undone.")


open_hidden = acting(  # for the user, who has read what this means
    groups.open_hidden,
    lambda opened: (
        f"{counted(opened, 'group')} opened. You will not be given items of them to judge."
    ),
)
