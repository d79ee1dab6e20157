"""What could find the right passage of a run unread: style, shared parts, positions or words."""

import streamlit as st

from analysis.agreement.judge_profile import place_bias
from analysis.figures.means import share_of
from analysis.found.runs import LeakageReport, SharedParts
from app.access.identity import SessionUser
from app.curate import actions
from app.kit.figure import draw_rows
from app.kit.frame.links import page_link
from app.operations.overview import run
from app.text.numbers import counted
from app.text.plain import plain
from app.text.remedies import in_pages
from curation.judging.text_baseline import baseline_sentence
from curation.run.leakage import leakage_rows, leaking_sentence
from curation.run.shared_parts import WHERE, shared_sentence
from db.outcome.position_bias import MAX_JUDGMENTS, PlaceCount


def draw_leakage(report: LeakageReport | None, run_id: int, outdated: str) -> None:
    """The figures of a run's check and, above the limit, what they mean; nothing before it.

    outdated: why the report is, if it is.
    """
    if report is None:
        return
    st.header("Leakage", anchor=False)
    if outdated:
        st.info(plain(f"Outdated: {in_pages(outdated)}."), icon=":material/history:")
        st.button("Check again", key="curate.check_again", on_click=actions.check, args=(run_id,))
    if sentence := leaking_sentence(report):
        st.warning(plain(sentence), icon=":material/visibility:")
    rows = leakage_rows(report)
    number = st.column_config.NumberColumn(format="%.3f")
    typical = st.column_config.TextColumn(width=220)
    draw_rows(
        rows,
        None,
        key="curate.leakage",
        column_config={
            **dict.fromkeys(("AUC", "95 % from", "to"), number),
            "AUC of length alone": st.column_config.NumberColumn(
                "Length alone", format="%.3f", help="AUC of a text's length alone."
            ),
            **dict.fromkeys(("Typical of negatives", "Typical of positives"), typical),
        },
    )
    st.caption(
        "Over the kept groups. A classifier that sees one text alone, cross-validated with folds "
        "split by pair. 0.5 is chance; intervals include the variation of training."
    )
    _draw_features(report, run_id)


def _draw_features(report: LeakageReport, run_id: int) -> None:
    """Link from each typical text feature to the groups that contain it."""
    found = [each.features for each in report.comparisons.values()]
    features = dict.fromkeys(
        text.strip() for each in found for texts in each.values() for text in texts if text.strip()
    )
    if not features:
        return
    with st.expander("Groups with a typical feature"), st.container(horizontal=True):
        for text in features:
            page_link(
                "groups",
                plain(f"“{text}”"),
                parameters={"run": run_id, "search": text, "in": "passages"},
            )


def draw_shared_parts(report: SharedParts | None, run_id: int, *, unchecked: bool) -> None:
    """The shared parts of a run with their counts and examples, or that it was not checked."""
    if report is None and not unchecked:
        return
    st.header("Shared parts", anchor=False)
    if unchecked:
        st.info(
            "Shared parts and leakage are not checked: this run ended before the check existed, is "
            "not done, or another verdict version keeps other groups since.",
            icon=":material/content_copy:",
        )
        st.button("Check now", key="curate.check", on_click=actions.check, args=(run_id,))
    if report is None:
        return
    if sentence := shared_sentence(report):
        st.warning(plain(sentence), icon=":material/content_copy:")
        _draw_parts(report, run_id)
    elif report.reason:
        st.caption(plain(f"Not compared: {report.reason}."))
    else:
        st.caption("The generated texts share nothing that their sources lack.")
    st.caption(
        "Words, marks, beginnings, ends and lines that many generated texts have and the real "
        "queries and passages of the same pairs do not; and short texts that share no word with "
        "their pair but some with each other, as refusals do. A model learns such debris as a sign "
        "of negatives. Fisher's exact test, corrected for the number of features: a false alarm in "
        "at most one of 15 runs."
    )


def _draw_parts(report: SharedParts, run_id: int) -> None:
    rows = [
        {
            "Part": part.text,
            "Where": WHERE[part.where] or "anywhere",
            "Texts": sum(part.counts.values()),
            "By kind": ", ".join(f"{sign} {count:,}" for sign, count in part.counts.items()),
            "In sources": part.sources,
            "Example": part.examples[0].text,
        }
        for part in report.parts
    ]
    draw_rows(
        rows,
        None,
        key="curate.shared",
        column_config={
            "Part": st.column_config.TextColumn(width=260),
            "Texts": st.column_config.NumberColumn(width=70, help="Generated texts that have it."),
            "By kind": st.column_config.TextColumn(width=150),
            "In sources": st.column_config.NumberColumn(
                width=90, help="Queries and passages of the pairs that have it."
            ),
        },
    )
    groups = dict.fromkeys(
        example.group_id for part in report.parts for example in part.examples[:1]
    )
    with st.expander("Groups with a shared part"), st.container(horizontal=True):
        for group_id in groups:
            page_link("groups", f"group {group_id}", parameters={"run": run_id, "group": group_id})


SIGNIFICANCE = 0.01


def draw_place_bias(user: SessionUser, run_id: int) -> None:
    """Draw per position: how often the right passage was there, was chosen, and was found."""
    if not st.toggle("Position bias of the judge", key="curate.show_bias"):
        return
    places = run.positions(user, run_id)
    if not places:
        st.caption("No answers of the judge yet.")
        return
    draw_rows(
        [
            {
                "Position": each.place,
                "Right passage here": each.expected,
                "Chosen": each.chosen,
                "Found when here": found_text(each),
            }
            for each in places
        ],
        None,
        key="curate.place_bias",
    )
    st.caption(plain(bias_summary(places)))


def found_text(each: PlaceCount) -> str:
    """How often the passage is found at the position, with its interval over groups."""
    if each.accuracy is None:
        return ""
    return share_of(each.accuracy, each.groups, "group")


def draw_text_baseline(user: SessionUser, run_id: int) -> None:
    """How often the passage that shares most words with instruction and query is the right one."""
    if not st.toggle("Text baseline of the items", key="curate.show_baseline"):
        return
    found = run.baseline(user, run_id)
    if found is None:
        st.caption("No items yet.")
        return
    st.markdown(plain(baseline_sentence(found)))
    sample = f"A sample of {counted(found.groups, 'group')}. " if found.sampled else ""
    st.caption(
        f"{sample}Judges can agree that far without understanding a text: the card marks these "
        "words. Passages with as many shared words count for their part."
    )


def bias_summary(places: list[PlaceCount]) -> str:
    """The result of Pearson's chi-squared test for equal shares of the positions."""
    test = place_bias([(each.place, len(places)) for each in places for _ in range(each.chosen)])
    if test.p is None:
        result = f"No test: {test.reason}."
    elif test.p < SIGNIFICANCE:
        result = f"Positions are not chosen equally often (p = {test.p:.2g})."
    else:
        result = f"No evidence of position bias (p = {test.p:.2f})."
    counted = sum(each.expected for each in places)
    return f"{result} Based on {counted:,} answers (at most the newest {MAX_JUDGMENTS:,} items)."
