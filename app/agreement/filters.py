"""The filters of the Agreement page: role, source, recipe, judge, date."""

from collections.abc import Mapping, Sequence
from datetime import UTC, date

import streamlit as st

from analysis.agreement.judgment_filter import JudgmentFilter
from db.scenarios import LABELS, SCENARIOS
from db.study.items import ItemPlace
from db.study.judgments import JudgmentRow


def draw_filters(rows: Sequence[JudgmentRow], places: Mapping[int, ItemPlace]) -> JudgmentFilter:
    """The chosen filter; a filter with only one possible value is not shown."""
    sources = sorted({place.source for place in places.values()})
    recipes = sorted({place.recipe for place in places.values()})
    judges = list(dict.fromkeys(row.judge for row in rows))
    days = [row.decided_at.astimezone(UTC).date() for row in rows]
    scenarios = st.pills(
        "Roles",
        SCENARIOS,
        selection_mode="multi",
        default=list(SCENARIOS),
        format_func=LABELS.__getitem__,
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
    return JudgmentFilter(
        scenarios=() if len(scenarios) == len(SCENARIOS) else tuple(scenarios),
        sources=tuple(chosen.get("Sources", ())),
        recipes=tuple(chosen.get("Recipes", ())),
        judges=tuple(chosen.get("Judges", ())),
        since=since,
        until=until,
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
