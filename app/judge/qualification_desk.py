"""Qualification before a study, on the plain page: an example, the answer, and an explanation."""

from collections.abc import Callable

import streamlit as st

from app.judge import actions
from app.text.plain import plain
from app.text.texts import draw_text
from db.assignment.qualification import Feedback, QualificationState
from db.assignment.shown_items import ShownItem

Draw = Callable[[ShownItem], None]


def needs_qualification(study_id: int) -> bool:
    """Whether the user still has examples to answer or feedback to read before the study."""
    state, _ = actions.qualification_of(study_id)
    return not state.passed or actions.feedback_to_show(study_id) is not None


def draw_qualification(study_id: int, draw_question: Draw) -> None:
    """The feedback on the last example, or the next example."""
    state, example = actions.qualification_of(study_id)
    feedback = actions.feedback_to_show(study_id)
    _draw_state(state)
    if feedback is not None:
        _draw_feedback(feedback, state, draw_question)
    elif example is not None:
        _draw_example(example, draw_question)


def _draw_state(state: QualificationState) -> None:
    text = (
        f"Qualification, round {state.round + 1}: {state.answered} of {state.total} examples · "
        f"{state.pass_mark:.0%} correct required"
    )
    st.progress(state.answered / state.total if state.total else 1.0, text=text)


def _draw_example(example: ShownItem, draw_question: Draw) -> None:
    draw_question(example)
    for position, text in enumerate(example.candidates):
        with st.container(border=True):
            left, right = st.columns([1, 11], vertical_alignment="center")
            left.button(
                f"{position + 1}",
                key=f"judge.example_{example.token}_{position}",
                on_click=actions.answer_example,
                args=(example.study_id, example.token, position),
                width="stretch",
            )
            with right:
                draw_text(text)
    st.button(
        "None of them",
        key=f"judge.example_none_{example.token}",
        on_click=actions.answer_example,
        args=(example.study_id, example.token, None),
    )


def _answer_text(position: int | None) -> str:
    return "none of them" if position is None else f"passage {position + 1}"


def _draw_feedback(feedback: Feedback, state: QualificationState, draw_question: Draw) -> None:
    text = f"You chose {_answer_text(feedback.chosen)}."
    if feedback.is_right:
        st.success(f"Correct. {text}", icon=":material/check_circle:")
    else:
        st.warning(
            f"{text} The correct answer is {_answer_text(feedback.right)}.",
            icon=":material/school:",
        )
    st.markdown(plain(feedback.explanation))
    if state.passed:
        st.success("You passed the qualification.", icon=":material/done_all:")
    elif state.answered == 0:
        st.warning(
            "This round was below the pass mark. A new round starts.", icon=":material/replay:"
        )
    st.button(
        "Continue", key="judge.feedback_read", type="primary", on_click=actions.forget_feedback
    )
    draw_question(feedback.item)
    for position, text in enumerate(feedback.item.candidates):
        with st.container(border=True):
            label = f"{position + 1}" + (" · correct" if position == feedback.right else "")
            draw_text(text, label=label)
