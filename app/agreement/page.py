"""The Agreement page: how much the judges of a study agree, people and models."""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, date
from typing import Any

import streamlit as st

from analysis.agreement.judgment_filter import JudgmentFilter, chosen_rows
from app.access.session_user import signed_in_user
from app.agreement import actions
from app.agreement.report import draw_report
from app.agreement.tabs import Results, draw_result_tabs
from app.agreement.verdict import draw_verdict
from app.jobs_page.card import follow_job
from app.kit.analysis_command import agreement_command
from app.kit.choice import choose
from app.kit.figure import Origin
from app.kit.frame.dataset import chosen_dataset
from app.kit.page import draw_command, draw_empty, draw_heading, draw_labels
from app.operations.judging import agreement, studies
from app.operations.judging.agreement import Judged, Seen
from app.text.numbers import counted
from app.text.plain import plain
from app.text.remedies import in_pages
from curation.judging.scope import of_filtered
from db.question import PICK
from db.requests import arguments_of
from db.study.items import ItemPlace
from db.study.judgments import JudgmentState
from db.study.studies import StudySummary

LEAD = (
    "Krippendorff's alpha of three people or more, Cohen's kappa of two, kappa of each model with "
    "the people: 0 is chance, 1 is perfect."
)

EVERY_SECONDS = 5.0


def follow(study_id: int, drawn: JudgmentState) -> None:
    """Look every few seconds; rerun the page once there are other judgments than `drawn`."""
    known: agreement.StateAsOf | None = None

    def poll() -> None:
        nonlocal known
        known = agreement.state_now(signed_in_user(), study_id, known)
        if known.state != drawn:
            st.rerun()
        st.caption(state_text(drawn))

    st.fragment(poll, run_every=EVERY_SECONDS)()


def state_text(state: JudgmentState) -> str:
    last = f", latest at {state.last_at:%Y-%m-%d %H:%M:%S} UTC" if state.last_at else ""
    return f"{counted(state.judgments, 'judgment')}{last} · updates while people judge"


def draw_question(places: Mapping[int, ItemPlace]) -> tuple[str, ...]:
    """The question whose answers are compared; nothing of a study that asks for a pick alone."""
    names = list(dict.fromkeys(place.question for place in places.values()))
    if names == [PICK.name] or not names:
        return ()
    chosen = st.segmented_control(
        "Question", names, default=names[0], key="agreement.question", required=True
    )
    return (chosen or names[0],)


def draw_filters(judged: Judged, questions: tuple[str, ...]) -> JudgmentFilter:
    """The chosen filter; a filter with only one possible value is not shown."""
    rows, places, labels = judged.rows, judged.places, judged.labels
    sources = sorted({place.source for place in places.values()})
    recipes = sorted({place.recipe for place in places.values()})
    judges = list(dict.fromkeys(row.judge for row in rows))
    days = [row.decided_at.astimezone(UTC).date() for row in rows]
    roles = list(labels)
    scenarios: Sequence[str] = roles
    if not questions and len(roles) > 1:
        scenarios = st.pills(
            "Roles",
            roles,
            selection_mode="multi",
            default=roles,
            format_func=labels.__getitem__,
            key="agreement.scenarios",
        )
    with st.container(horizontal=True, vertical_alignment="bottom"):
        chosen = {
            label: st.multiselect(
                label, values, key=f"agreement.{label.lower()}", placeholder="all", width=240
            )
            for label, values in (("Sources", sources), ("Recipes", recipes), ("Judges", judges))
            if len(values) > 1
        }
        since, until = _draw_days(days)
    return JudgmentFilter.read(
        {
            "scenarios": () if len(scenarios) == len(roles) else tuple(scenarios),
            "sources": tuple(chosen.get("Sources", ())),
            "recipes": tuple(chosen.get("Recipes", ())),
            "judges": tuple(chosen.get("Judges", ())),
            "since": since,
            "until": until,
            "questions": questions,
        }
    )


def _draw_days(days: Sequence[date]) -> tuple[date | None, date | None]:
    """First and last day; None for the whole span, so that later days are included."""
    if not days or min(days) == max(days):
        return None, None
    found = st.date_input(
        "Judged (UTC days)",
        [],
        min_value=min(days),
        max_value=max(days),
        key="agreement.days",
        width=240,
        help="First and last day; empty: all.",
    )
    if not isinstance(found, tuple) or not found:
        return None, None
    return found[0], found[-1] if len(found) > 1 else None


def draw_small(study: StudySummary, seen: Seen) -> None:
    """Filters and figures, computed here."""
    judged = agreement.judged(user, study.id)
    judged_and_hidden = judged.hidden & {row.item_id for row in judged.rows}
    left_out = seen.reader.left_out & judged_and_hidden
    version = agreement.version(user, study.id, seen, with_run=True)
    top = st.container()
    questions = draw_question(judged.places)
    with st.expander("Filters", icon=":material/filter_alt:"):
        chosen = draw_filters(judged, questions)
    is_whole = chosen == JudgmentFilter(questions=questions)
    scope = judged.scope if is_whole else of_filtered(judged.scope)
    rows = chosen_rows(judged.rows, judged.places, chosen)
    rows = [row for row in rows if row.item_id not in left_out]
    figures = actions.figures(study.id, chosen, version, user)
    with top:
        follow(study.id, seen.state)
        if judged_and_hidden:
            number = len(judged_and_hidden)
            st.caption(
                f"You may still judge {counted(number, 'item')} of this study: until it is closed, "
                + (
                    "the figures leave them out."
                    if left_out
                    else "the figures count them, and the lists do not show them."
                )
            )
    if not rows:
        with top:
            draw_nothing(study, is_empty=not judged.rows, is_hidden=bool(left_out))
        return
    command = agreement_command(study.id, arguments_of(chosen))
    origin = Origin(
        f"{len(rows):,} judgments of study {study.id}, latest no. {seen.state.last_id}",
        seen.state.last_at,
        command,
    )
    has_estimates = study.run_id is not None and not left_out
    estimated = None
    if has_estimates:
        estimated = actions.about("estimates", study.id, version, user)
    with top:
        draw_verdict(
            figures["report"], estimated, scope, judged.circular, compared=is_compared(figures)
        )
        draw_figures(study, figures)
    draw_result_tabs(
        Results(
            study.id,
            figures,
            estimated,
            command,
            origin,
            rows=rows,
            roles=tuple(judged.labels),
            places=judged.places,
            hidden=judged.hidden,
            version=version,
        )
    )
    draw_downloads(study, figures, command)


def draw_large(study: StudySummary, seen: Seen) -> None:
    """The figures that a job stored, and the button that starts the next one."""
    stored = agreement.stored(user, study.id)
    figures = None if stored is None else stored.found.result
    is_current = figures is not None and figures["state"]["last_id"] == seen.state.last_id
    st.caption(
        f"{seen.state.judgments:,} judgments are too many for a page: a job computes the figures. "
        + (
            ""
            if stored is None
            else f"Shown: {stored.found.result['state']['judgments']:,} judgments, computed "
            f"{stored.found.created_at:%Y-%m-%d %H:%M} UTC"
            + (" from all of them." if is_current else "; there are newer ones.")
        )
    )
    if not is_current:
        st.button(
            "Compute" if stored is None else "Compute again",
            type="primary" if stored is None else "secondary",
            key="agreement.compute",
            on_click=actions.compute,
            args=(study.id,),
        )
    if f"agreement.job_{study.id}" in st.session_state:
        follow_job(st.session_state[f"agreement.job_{study.id}"], key="agreement.follow")
    command = agreement_command(study.id, [])
    if stored is None or figures is None:
        draw_empty(
            "No figures computed yet.",
            "Press Compute; the job takes seconds and goes on when you leave the page. Figures "
            "that another version stored are not shown.",
            command=command,
        )
        return
    judgments = figures["state"]["judgments"]
    origin = Origin(
        f"{judgments:,} judgments of study {study.id}, latest no. {figures['state']['last_id']}",
        stored.found.created_at,
        command,
    )
    draw_verdict(
        figures["report"],
        figures["about"],
        stored.scope,
        stored.circular,
        compared=is_compared(figures),
    )
    draw_figures(study, figures)
    draw_result_tabs(Results(study.id, figures, figures["about"], command, origin))
    draw_downloads(study, figures, command)


def is_compared(figures: Mapping[str, Any]) -> bool:
    """Whether any item has two judges."""
    pairs = figures["report"]["pairs_counted"]
    return bool(pairs["with_enough_items"] + pairs["with_fewer"])


def draw_figures(study: StudySummary, figures: dict[str, Any]) -> None:
    """The headline figures, or that nothing can be compared yet."""
    with labels:
        draw_labels(
            offline=any(judge["offline"] for judge in figures["report"]["judges"]),
            simulated=figures["report"]["simulated"],
        )
    if is_compared(figures):
        draw_report(figures["report"])
    else:
        judges = figures["report"]["judges"]
        if judges and all(judge["kind"] == "model" for judge in judges):
            did = (f"{each['judge']} answered {counted(each['items'], 'item')}" for each in judges)
            st.info(plain(f"{', '.join(did)}; {how_to_join(study)}."))
        draw_empty(
            "No item has judgments of two judges yet.",
            "Agreement compares judges on the same items: have another person judge them, or "
            "start a model judge on the Studies page.",
            view="judge",
            link="Judge",
            command=f"inf studies judge {study.id} --judge offline:embedding",
        )


def how_to_join(study: StudySummary) -> str:
    """That no person judged, and how people do."""
    return in_pages(agreement.JOINING[agreement.joining(study.status == "open")])


def draw_nothing(study: StudySummary, *, is_empty: bool, is_hidden: bool) -> None:
    """Why there is no judgment to show."""
    if is_hidden:
        draw_empty(
            "Every judged item is hidden from you.",
            "You judge in this study: figures over its items would show whether your answers are "
            "right. Close the study, or remove a filter.",
            view="studies",
            link="Studies",
        )
        return
    joining = how_to_join(study)
    draw_empty(
        "No judgments in this study yet." if is_empty else "No judgment matches these filters.",
        f"{joining[0].upper()}{joining[1:]}. Model judges are started on the Studies page."
        if is_empty
        else "Remove a filter.",
        view="judge",
        link="Judge",
        command=f"inf studies judge {study.id} --judge offline:embedding",
    )


def draw_downloads(study: StudySummary, figures: Mapping[str, Any], command: str) -> None:
    """The report as JSON, and the command that prints the same."""
    st.download_button(
        "Download as JSON",
        json.dumps({"study_id": study.id, **figures["report"]}, ensure_ascii=False),
        file_name=f"agreement-study-{study.id}.json",
        key="agreement.download",
        on_click="ignore",
    )
    draw_command(command)


dataset, user = chosen_dataset(), signed_in_user()
labels = draw_heading("Agreement", LEAD)
found = [] if dataset is None else studies.list_all(user, dataset.name).data
if not found:
    draw_empty(
        "No study yet.",
        "Agreement is computed over the items of a study that several judges answered.",
        view="studies",
        link="Create a study",
        command="inf studies create NAME --items 50 --overlap 3",
    )
    st.stop()
shown = {study.id: study for study in found}
chosen_study = choose(
    "Study",
    found,
    key="agreement.study",
    parameter="study",
    ident=lambda study: study.id,
    name=lambda study: f"study {study.id} · {study.name} · {study.dataset}",
    default=lambda: shown[agreement.study_to_show(user, list(shown))],
)
now = agreement.seen(user, chosen_study.id)
draw = draw_large if now.is_large else draw_small
draw(chosen_study, now)
