"""A finished run decided again by other rules: its verdict versions, and two of them compared."""

import streamlit as st

from app.access.identity import SessionUser
from app.curate import actions
from app.kit.choice import draw_pages, page_offset
from app.kit.figure import draw_rows
from app.kit.frame.links import page_link
from app.operations import runs
from app.operations.runs import Changes
from app.text.numbers import counted
from app.text.plain import plain
from app.text.texts import draw_text
from curation.recipe.drop_reasons import reason_text
from db.run.runs import RunSummary
from db.run.versions import FIRST, KEPT, VersionComparison, VersionRow

LABELS = {
    "number": "Version",
    "settings": "Rules instead of the recipe's",
    "kept": "Kept",
    "dropped": "Dropped",
    "created_by": "By",
    "created_at": "At",
    "current": "In use",
    "releases": "Releases",
}
HINT = "checks.answers.expected.P+=>= 0.7\nvalidation.agree=3\nfilters.max_passage_words=300"
PAGE = runs.EXAMPLES


def draw_versions(user: SessionUser, run: RunSummary) -> None:
    """Draw the versions of a finished run, the form that decides again, and a comparison."""
    if run.status != "done":
        return
    box = st.expander(
        "Verdict versions: decide again by other rules",
        icon=":material/rule:",
        key="curate.versions_box",
        on_change="rerun",
    )
    if not box.open:
        return
    with box:
        listed = runs.list_versions(user, run.id).data
        draw_rows(
            [row.as_json() for row in listed],
            None,
            key="curate.versions",
            labels=LABELS,
            column_config={
                "dropped": {"type_config": {"type": "json"}},
                "created_at": st.column_config.DatetimeColumn(format="YYYY-MM-DD HH:mm"),
            },
        )
        _draw_form(run)
        if len(listed) > 1:
            _draw_use(run, listed)
            _draw_comparison(user, run, listed)


def _draw_form(run: RunSummary) -> None:
    st.text_area(
        "Rules, one per line: place=value",
        key=f"curate.rules-{run.id}",
        placeholder=HINT,
        help="In place of the recipe's. Stored answers of the run's judges are decided again: "
        "nothing is requested, and reviews stay with their groups.",
    )
    with st.container(horizontal=True, vertical_alignment="center"):
        st.button(
            "Preview",
            key="curate.rules_preview",
            on_click=actions.decide,
            args=(run.id,),
            kwargs={"preview": True},
        )
        st.button(
            "Decide again",
            type="primary",
            key="curate.rules_decide",
            on_click=actions.decide,
            args=(run.id,),
            help="Stores a version, which the run then uses; the versions before stay.",
        )
    found = st.session_state.get(actions.DECIDED)
    if found is not None and found.run_id == run.id:
        if found.version is None:
            st.markdown(f"**Preview** of {plain(', '.join(found.settings))}")
            names = "Now", "As decided"
        else:
            st.markdown(f"**Version {found.version}** by {plain(', '.join(found.settings))}")
            names = "Before", f"Version {found.version}"
        st.caption(f"Decided in {found.seconds:.1f} s.")
        _draw_changes(found, names, key="curate.decided")


def _draw_use(run: RunSummary, listed: tuple[VersionRow, ...]) -> None:
    with st.container(horizontal=True, vertical_alignment="bottom"):
        others = [row.number for row in listed if not row.current]
        st.selectbox(
            "Another version",
            others,
            key=f"curate.version-{run.id}",
            format_func=lambda number: f"version {number}",
            width=180,
        )
        use = ("Use it", "use_version", actions.use_version)
        remove = ("Delete it", "remove_version", actions.remove_version)
        for (label, key, act), hint in (
            (use, "The run's groups get its verdicts."),
            (remove, "Not one that a release is made of."),
        ):
            st.button(
                label,
                key=f"curate.{key}",
                on_click=act,
                args=(run.id,),
                help=hint,
            )


def _draw_comparison(user: SessionUser, run: RunSummary, listed: tuple[VersionRow, ...]) -> None:
    st.markdown("**Compare two versions**")
    numbers = [row.number for row in listed]
    with st.container(horizontal=True):
        first, second = (
            st.selectbox(
                label,
                numbers,
                index=numbers.index(default),
                key=f"curate.compare_{label.lower()}-{run.id}",
                width=180,
            )
            for label, default in (("First", FIRST), ("Second", run.verdict_version))
        )
    if first == second:
        st.caption("Choose two versions.")
        return
    key = f"curate.versions_changed-{run.id}-{first}-{second}"
    found = runs.compare_versions(
        user,
        VersionComparison(run_id=run.id, first=first, second=second),
        limit=PAGE,
        offset=page_offset(key, PAGE),
    )
    _draw_changes(found, (f"Version {first}", f"Version {second}"), key="curate.versions_compared")
    for each in found.groups.data:
        with st.container(border=True):
            draw_text(each.query)
            ends = (each.first, each.first_detail), (each.second, each.second_detail)
            for number, (ended, detail) in zip((first, second), ends, strict=True):
                text = f"version {number}: {_ending(ended)}" + (f" ({detail})" if detail else "")
                st.caption(plain(text))
            for one in each.texts:
                shown = f"{_ending(one.first)} → {_ending(one.second)}"
                st.caption(plain(f"{one.name}: {shown}"))
            page_link("groups", "Open", parameters={"run": run.id, "group": each.id})
    draw_pages(found.groups.total, key=key, rows=PAGE)


def _draw_changes(found: Changes, names: tuple[str, str], *, key: str) -> None:
    """What both keep, what one keeps, and the drop reasons that changed, of groups and of texts."""
    every = found.kept_in_both + found.only_in_first + found.only_in_second + found.in_neither
    st.markdown(
        f"Of **{counted(every, 'group')}**: {found.kept_in_both:,} kept in both, "
        f"{found.only_in_first:,} only in the first, {found.only_in_second:,} only in the second, "
        f"{found.in_neither:,} dropped in both."
    )
    shown = False
    for what, rows in (("groups", found.changes), ("texts", found.texts)):
        if changed := [each.as_json() for each in rows if each.first != each.second]:
            labels = {"first": names[0], "second": names[1], what: what.capitalize()}
            draw_rows(changed, None, key=key if what == "groups" else f"{key}_texts", labels=labels)
            shown = True
    if not shown:
        st.caption("No group ends otherwise.")


def _ending(name: str) -> str:
    return name if name == KEPT else reason_text(name)
