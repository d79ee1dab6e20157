"""The Coverage page: the map of texts fills it; what is selected stands next to it."""

from collections.abc import Sequence
from functools import partial

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from analysis.figures.numbers import Cells
from analysis.found.texts import CoverageFound, Stored
from analysis.map.difference import VERDICTS
from analysis.map.printed_map import printed_map
from analysis.request import CoverageStart
from analysis.text.diversity_tables import COVERED_COLUMNS, compared_rows, share_rows
from app.access.session_user import signed_in_user
from app.corpora.form import draw_corpora
from app.corpora.map import actions
from app.corpora.map.bar import Drawn, draw_bar, draw_view, map_name
from app.corpora.map.canvas.card import draw_map_card, selected_rows
from app.corpora.map.points import (
    Searched,
    in_panels,
    picture_of,
    shown_points,
    stored_points,
    visible_rows,
)
from app.corpora.map.selection import draw_selection
from app.corpora.map.topics import draw_topics
from app.corpora.stored_analysis import draw_start_button, draw_started, origin_of
from app.kit.choice import take_many_from_url
from app.kit.fields import draw_fields
from app.kit.figure import Origin, draw_origin, draw_rows, frame_as_csv
from app.kit.frame.dataset import chosen_dataset
from app.kit.page import draw_empty, draw_heading, draw_labels
from app.operations import analyses
from app.operations.analyses import CorporaOptions
from app.text.numbers import counted
from app.text.plain import plain


def draw_new_map(
    options: CorporaOptions,
    found: Sequence[Stored[CoverageFound]],
) -> None:
    """The form and its button; `?runs=` and `?releases=` in the URL set what is compared."""
    by_id = {each.id: each for each in options.runs}
    take_many_from_url("coverage.runs", "runs", {str(run): run for run in by_id})
    folders = {str(each.id): each.path for each in options.releases}
    take_many_from_url("coverage.releases", "releases", folders)
    is_linked = bool(
        st.session_state.get("coverage.runs") or st.session_state.get("coverage.releases")
    )
    draw_corpora("coverage", options, is_preset=not is_linked)
    st.multiselect(
        "Runs",
        list(by_id),
        format_func=lambda run: f"run {run} · {by_id[run].dataset} · {by_id[run].recipe}",
        key="coverage.runs",
        placeholder="the latest of each dataset",
        help="Each is a corpus: two of them are compared as two layers.",
    )
    st.checkbox(
        "Also the pairs without a kept group",
        key="coverage.pairs",
        value=True,
        help="They show which regions are thin although there are pairs to grow more from.",
    )
    with st.container(horizontal=True, vertical_alignment="bottom"):
        _draw_projection(found)
    draw_start_button("coverage", "Draw map")


SEED = {
    "seed": {
        "width": 120,
        "help": "The same vectors and seed give the same map. Vectors from different batches may "
        "differ in their last bits and give another layout.",
    }
}


def _draw_projection(found: Sequence[Stored[CoverageFound]]) -> None:
    st.text_input(
        "Model",
        key="coverage.model",
        placeholder="all-MiniLM-L6-v2",
        width=260,
        help="A SentenceTransformer by name or path, or openai:MODEL for an embeddings server.",
    )
    draw_fields(CoverageStart, SEED, key="coverage", more=SEED)
    by_id = {each.id: each for each in found}
    st.selectbox(
        "Place on an existing map",
        [None, *by_id],
        format_func=lambda n: "fit a new map" if n is None else map_name(by_id[n]),
        key="coverage.onto",
        width=320,
        help="Places new texts among those of a stored map, whose points stay in place.",
    )


SHARE = st.column_config.NumberColumn(format="%.3f")


def draw_numbers(result: CoverageFound, origin: Origin) -> None:
    """Shares of equally many texts of two corpora; nothing for a single corpus."""
    if len(result.corpora) < 2 or not result.fields:
        return
    st.header("Covered and occupied shares", anchor=False)
    if not all("map" in row.model_fields_set for row in result.covered):
        st.caption("This map is older than the comparison at equal size: draw it again.")
        return
    rows = compared_rows(result.covered)
    shares = [
        f"{label}{end}" for label in COVERED_COLUMNS.values() for end in ("", " ±", ", own halves")
    ]
    draw_table(rows, tuple(shares), origin, key="coverage.covered")
    st.caption(
        "Equally many texts of both corpora: mean and standard deviation over random samples of at "
        "most half of the smaller one. Own halves: the same share when the "
        "corpus is compared with its other half, the value of two corpora that differ in nothing. "
        "Covered: texts whose neighbourhood (to their 5th nearest in their own corpus) holds a "
        "text of the other, in the embedding space. Map: cells of a 40 × 40 grid that hold one of "
        "the corpus, of those that hold any of the two. Hull: volume in the first three principal "
        "components."
    )
    with st.expander("Whole corpora (grow with the number of texts: no comparison)"):
        whole = share_rows(result.fields)
        draw_table(whole, ("Share of the map", "Share of the hull"), origin, key="coverage.shares")


def draw_table(rows: list[Cells], shares: tuple[str, ...], origin: Origin, *, key: str) -> None:
    """Shares with three digits; the column of reasons only if one is given."""
    columns = dict.fromkeys(shares, SHARE)
    if not any(row["Reason if undefined"] for row in rows):
        columns["Reason if undefined"] = None  # type: ignore[assignment]
    draw_rows(rows, origin, key=key, column_config=columns)


LEAD = "A map that places texts of similar meaning close together (UMAP of embeddings)."


def named_hash(result: CoverageFound) -> str:
    """The content of the embedding model's weights, in brackets; empty where it is unknown."""
    sha256 = result.model_sha256
    return f" (weights sha256 {sha256[:12]})" if sha256 else ""


def draw_map(found: Stored[CoverageFound], bar: DeltaGenerator) -> None:
    """The map, the selection or the topics next to it, and its figures below."""
    points = stored_points(user, found.id)
    st.session_state["coverage.points"] = len(points)
    visible = visible_rows(points)
    shown, kept = shown_points(points, found.id, visible)
    by_language, panels = in_panels(shown, kept, points, found.id)
    with bar:
        drawn = draw_view(found, points, len(panels))
    if shown.empty:
        draw_filtered(len(kept), int(visible.sum()), len(points))
        st.caption("No texts left on the map.")
        return
    if drawn.by_language:
        shown = by_language
    else:
        panels = []
    key = f"coverage.card{found.id}.{st.session_state.get('coverage.drawing', 0)}"
    origin = origin_of(found)
    source = Searched(found.result.corpora, found.config.get("published") or ())
    with st.container(key="coverage-body"):
        left, right = st.columns([3.2, 1])
        with left, st.container(key="coverage.map"):
            payload = picture_of(
                shown,
                kept,
                found.id,
                drawn.colour,
                contours=drawn.contours,
                layers=drawn.layers,
                panels=panels,
            )
            draw_map_card(payload, shown, source, key=key)
            draw_origin(
                lambda: frame_as_csv(shown),
                origin,
                key="coverage.points_drawn",
                picture=partial(printed_map, shown, drawn.colour),
            )
        rows = selected_rows(shown, source, key=key)
        with right, st.container(key="coverage-side"):
            draw_labels(offline=any(corpus.offline for corpus in found.result.corpora))
            draw_filtered(len(kept), int(visible.sum()), len(points))
            if len(rows):
                draw_selection(points, [kept[row] for row in rows], origin, found.id)
            else:
                draw_topics(shown, drawn.corpora, origin, key=key)
    draw_about(found, drawn)
    draw_numbers(found.result, origin)


def draw_filtered(kept: int, visible: int, points: int) -> None:
    """How many texts are not drawn, and the way back to all."""
    if visible < points:
        st.caption(
            f"{counted(points - visible, 'text')} not shown: of groups that you may judge in "
            "a study that is not closed."
        )
    if kept < visible:
        with st.container(horizontal=True, vertical_alignment="center"):
            st.caption(f"Showing {kept:,} of {visible:,} texts.", width="content")
            st.button("Show all", key="coverage.all", on_click=actions.show_all, type="tertiary")


def draw_about(found: Stored[CoverageFound], drawn: Drawn) -> None:
    """What the map is of, and its warnings."""
    if circular := analyses.about_map(user, found.result):
        st.warning(plain(circular), icon=":material/sync_problem:")
    difference = ""
    if drawn.layers == VERDICTS:
        difference = " · coloured ground: the share kept; a line surrounds where it differs"
    elif drawn.layers:
        difference = " · coloured ground: one layer is denser than the other"
    if drawn.layers:
        difference += " by more than in any of 19 shuffles of the groups"
    apart = " · distances between panels mean nothing" * drawn.by_language
    st.caption(
        f"{found.result.points:,} texts, {found.result.different:,} distinct · model "
        f"{found.result.model}{named_hash(found.result)} · seed "
        f"{found.result.seed} · every text is drawn: with more than 4,000 in view, texts on "
        "one pixel share it in their mean colour, more opaque with more texts · a selection "
        f"contains all texts inside it that the legend shows{difference}{apart}"
    )


dataset, user = chosen_dataset(), signed_in_user()
number = None if dataset is None else dataset.id
options = analyses.options(user, with_runs=True)
found = analyses.stored(user, CoverageFound, number)


def new_map() -> None:
    """The form of a new map."""
    draw_new_map(options, found)


if found:
    chosen, bar = draw_bar(found, new_map)
    draw_started("coverage")
    draw_map(chosen, bar)
else:
    draw_heading("Coverage", LEAD)
    if dataset is not None:
        new_map()
        draw_started("coverage")
        draw_empty(
            "No map yet.",
            "Choose datasets or releases above and press Draw map; several share one map.",
            command=f"inf analyze coverage --dataset {dataset.name}",
        )
    else:
        draw_empty(
            "No dataset yet.",
            "A map shows the groups that a curation run kept, the pairs of a dataset without a "
            "run, releases, and files in published formats.",
            view="datasets",
            link="Datasets",
            command="inf datasets import NAME --pairs FILE",
        )
