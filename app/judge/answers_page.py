"""My answers: a judge's own answers in a study that is not closed, to look at and to change.

The browser receives what the card sent already: texts in the judge's own order, tokens, no roles.
"""

from collections.abc import Sequence
from functools import partial

import streamlit as st

from app.access.identity import SessionUser
from app.access.language import language_now, say
from app.access.session_user import cookie_holder, failures_shown, notify, signed_in_user
from app.kit.choice import choose, draw_pages, page_offset
from app.kit.language import draw_language_choice, draw_page_language
from app.kit.page import draw_empty
from app.operations.judging import answers, studies
from app.text.languages import error_text
from app.text.plain import plain
from app.text.texts import draw_text
from curation.judging.request import AnswerChange, JudgeMessage
from curation.rules.language import lang_of
from db.answers.own_answers import FILTERS, OwnAnswer
from db.assignment.threads import MAX_MESSAGE_CHARACTERS
from db.errors import InfError
from db.question import Shown
from db.study.studies import StudySummary

ROWS = 5
NAMED = ("several", "ambiguous", "yes", "no")
SCORES = ("0", "0.25", "0.5", "0.75", "1")  # as the card offers them


def change_answer(study_id: int, token: str) -> None:
    """Store the choice of the form as the new answer. Idempotent."""
    chosen = st.session_state[f"answers.choice_{token}"]
    try:
        wanted = AnswerChange(study_id=study_id, token=token, position=chosen)
        changed = answers.change(cookie_holder(), wanted)
        notify(say("answers.changed" if changed else "answers.same"))
    except InfError as error:
        notify(error_text(language_now(), error), kind="error")


def send_message(study_id: int, token: str, written: int) -> None:
    """Store the message of the form; `written`: how many the thread had."""
    body = str(st.session_state.get(f"answers.message_{token}_{written}") or "")
    try:
        wanted = JudgeMessage(study_id=study_id, token=token, body=body, written=written)
        answers.write(cookie_holder(), wanted)
    except InfError as error:
        notify(error_text(language_now(), error), kind="error")


def answer_text(answer: OwnAnswer) -> str:
    if answer.state in ("skipped", "leased", "expired"):
        return say("answers.skipped" if answer.state == "skipped" else "answers.not_answered")
    return place_text(answer, answer.position)


def place_text(answer: OwnAnswer, chosen: Shown) -> str:
    """What was, or may be, chosen: a passage by its place, or another answer."""
    if chosen is None:
        return say("card.none")
    if isinstance(chosen, int):
        return say("card.passage", number=chosen + 1)
    if chosen in NAMED:
        return say(f"card.{chosen}")
    meaning = answer.item.question.labels.get(chosen)
    return f"{chosen}: {meaning}" if meaning else chosen


def options_of(answer: OwnAnswer) -> list[Shown]:
    """What may be chosen instead, and what was."""
    question, places = answer.item.question, list(map(str, range(len(answer.item.candidates))))
    if question.kind == "pick":
        chosen = question.options(places)
        return [question.shown(places, option) for option in chosen]
    steps = SCORES if question.kind == "score" else ()
    given = () if answer.position is None else (str(answer.position),)
    return [*question.options((), (*steps, *given))]


def draw_state(answer: OwnAnswer) -> None:
    parts = [f"{say('answers.your_answer')}: {answer_text(answer)}"]
    if answer.decided_at is not None:
        parts.append(f"{answer.decided_at:%Y-%m-%d %H:%M} UTC")
    if answer.flagged:
        flag = say("card.flag")
        parts.append(f"{flag}: {say(f'reason.{answer.reason}')}" if answer.reason else flag)
    st.markdown(f"**{plain(' · '.join(parts))}**")
    if answer.state == "aside":
        st.caption(say("answers.late"))
    if answer.note:
        draw_text(answer.note, label=say("card.note"))


def draw_change(study_id: int, answer: OwnAnswer) -> None:
    if answer.judgment_id is None:
        return
    if not answer.may_change:
        st.caption(say("answers.fixed"))
        return
    token, options = answer.item.token, options_of(answer)
    with st.form(f"answers.form_{token}", border=False):
        st.radio(
            say("answers.your_answer"),
            options,
            options.index(answer.position),
            format_func=partial(place_text, answer),
            horizontal=True,
            label_visibility="collapsed",
            key=f"answers.choice_{token}",
        )
        st.form_submit_button(
            say("answers.change"),
            key=f"answers.change_{token}",
            on_click=change_answer,
            args=(study_id, token),
        )


def about_text(answer: OwnAnswer) -> str:
    """About which text the question is; "" for all of them."""
    about = answer.item.about
    if isinstance(about, int):
        return say("card.passage", number=about + 1)
    return "" if about is None else say(f"card.{about}")


def draw_thread(study_id: int, answer: OwnAnswer) -> None:
    token, written = answer.item.token, len(answer.thread)
    with st.expander(
        say("card.thread"), icon=":material/forum:", expanded=written > 0, key=f"answers.t_{token}"
    ):
        for message in answer.thread:
            draw_text(message.body, label=say("card.curator" if message.written_by else "card.you"))
        st.text_area(
            say("card.thread_box"),
            key=f"answers.message_{token}_{written}",
            max_chars=MAX_MESSAGE_CHARACTERS,
            height=70,
        )
        st.button(
            say("answers.send"),
            key=f"answers.send_{token}",
            on_click=send_message,
            args=(study_id, token, written),
        )


def draw_answer(study_id: int, answer: OwnAnswer) -> None:
    item = answer.item
    with st.container(border=True):
        draw_text(item.instruction, label=say("card.instruction"), lang=lang_of(item.instruction))
        draw_text(item.query, label=say("card.query"), lang=lang_of(item.query))
        for place, text in enumerate(item.candidates):
            draw_text(text, label=say("card.passage", number=place + 1), lang=lang_of(text))
        if item.question.text:
            draw_text(
                item.question.text, label=about_text(answer), lang=lang_of(item.question.text)
            )
        draw_state(answer)
        draw_change(study_id, answer)
        draw_thread(study_id, answer)


def draw_study(user: SessionUser, found: Sequence[StudySummary]) -> None:
    with st.container(horizontal=True, vertical_alignment="bottom"):
        study = choose(
            say("judge.study"),
            found,
            key="answers.study",
            parameter="study",
            ident=lambda study: study.id,
            name=lambda study: study.name,
            language=language_now(),
        )
        only = st.selectbox(
            say("answers.show"),
            FILTERS,
            format_func=lambda name: say(f"answers.{name}"),
            key="answers.only",
            width=200,
        )
        draw_language_choice("/answers")
    if replies := answers.count_replies(user, study.id):
        st.info(say("answers.replies", count=replies), icon=":material/forum:")
    start = page_offset("answers.page", ROWS)
    listed, total = answers.list_some(user, study.id, only or "all", start=start, count=ROWS)
    if not total:
        draw_empty(
            say("answers.none"), say("answers.none_then"), view="judge", link=say("judge.title")
        )
    for answer in listed:
        draw_answer(study.id, answer)
    draw_pages(total, key="answers.page", rows=ROWS)


st.title(say("answers.title"), anchor=False)
st.caption(say("answers.lead"))
draw_page_language()
with failures_shown(language_now()):
    user = signed_in_user()
    # answers of a closed one are its result
    found = studies.list_all(user, statuses=("open", "paused"), right="judge").data
    if found:
        draw_study(user, found)
    else:
        draw_empty(say("judge.no_study"), say("judge.no_study_then"))
        draw_language_choice("/answers")
