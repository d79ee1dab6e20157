"""Compare two runs over the pairs both finished: settings, funnels, drops, changed outcomes."""

import streamlit as st

from app.access.identity import SessionUser
from app.groups.run_label import run_name
from app.kit.choice import draw_pages, page_offset
from app.kit.figure import draw_rows
from app.kit.frame.links import page_link
from app.operations.overview.run import compare
from app.text.numbers import counted
from app.text.texts import draw_text
from db.run.runs import STAGES, Funnel, RunSummary


def draw_comparison(user: SessionUser, run: RunSummary, others: list[RunSummary]) -> None:
    """Draw the choice of another run of the same dataset and the comparison."""
    by_id = {each.id: each for each in others}
    if not by_id:
        return
    with st.expander("Compare with another run", icon=":material/compare_arrows:"):
        chosen = st.selectbox(
            "Run",
            [None, *by_id],
            format_func=lambda n: "Choose a run" if n is None else run_name(by_id[n]),
            key="curate.compare",
            label_visibility="collapsed",
        )
        if chosen is not None:
            _draw_both(user, run, by_id[chosen])


def _draw_both(user: SessionUser, first: RunSummary, second: RunSummary) -> None:
    funnels, shared, changed, settings = compare(
        user, first.id, second.id, offset=page_offset("curate.changed"), limit=20
    )
    names = tuple(f"Run {each.id}" for each in (first, second))
    _draw_settings(settings, names)
    if not shared:
        st.caption("The runs have no finished pairs in common.")
        return
    differing = sum(count for (one, other), count in shared.items() if one != other)
    st.markdown(
        f"**{counted(sum(shared.values()), 'pair')}** finished by both: "
        f"{shared.get(('kept', 'kept'), 0):,} kept by both, "
        f"{shared.get(('kept', 'dropped'), 0):,} by run {first.id} only, "
        f"{shared.get(('dropped', 'kept'), 0):,} by run {second.id} only, "
        f"{shared.get(('dropped', 'dropped'), 0):,} dropped by both."
    )
    draw_rows(
        [dict(zip(("", *names), row, strict=True)) for row in _rows(funnels)],
        None,
        key="curate.compared",
        height="content",
    )
    st.caption(
        "Over these pairs only. Whole runs: "
        + ", ".join(
            f"run {run.id} kept {run.kept:,} of {counted(run.pairs, 'pair')} for "
            f"\\${run.spent_usd:,.4f}"
            for run in (first, second)
        )
        + "."
    )
    for each in changed:
        with st.container(border=True):
            draw_text(each.query)
            with st.container(horizontal=True):
                for run, group, ended in (
                    (first.id, each.first_group, each.first),
                    (second.id, each.second_group, each.second),
                ):
                    page_link(
                        "groups",
                        f"run {run}: {ended.replace('_', ' ')}",
                        parameters={"run": run, "group": group},
                    )
    draw_pages(differing, key="curate.changed")


def _draw_settings(settings: list[tuple[str, str, str]], names: tuple[str, ...]) -> None:
    """Every setting that differs, so that a difference of the outcomes has a cause."""
    if not settings:
        st.caption("No setting differs.")
        return
    draw_rows(
        [dict(zip(("Setting", *names), row, strict=True)) for row in settings],
        None,
        key="curate.settings_compared",
    )


def _rows(funnels: tuple[Funnel, Funnel]) -> list[tuple[str, str, str]]:
    """The comparison as (label, first run, second run), formatted."""

    def line(name: str, counts: list[int]) -> tuple[str, str, str]:
        shown = [_share(count, found) for count, found in zip(counts, funnels, strict=True)]
        return (name, shown[0], shown[1])

    rows = [
        line(f"Reached {stage}", [found.reached[stage] for found in funnels]) for stage in STAGES
    ]
    rows.append(line("Kept", [found.kept for found in funnels]))
    reasons = dict.fromkeys([*funnels[0].dropped, *funnels[1].dropped])
    rows += [
        line(
            f"Dropped: {reason.replace('_', ' ')}",
            [found.dropped.get(reason, 0) for found in funnels],
        )
        for reason in reasons
    ]
    return rows


def _share(count: int, found: Funnel) -> str:
    return f"{count:,} ({count / found.pairs:.1%})" if found.pairs else f"{count:,}"
