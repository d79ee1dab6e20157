"""The form that imports pairs and passages; bad rows are listed with file, line and reason."""

import streamlit as st

from app.access.session_user import current_user, failures_shown, notify
from app.datasets.actions import Sources, import_from_page, preview_from_page
from app.kit.frame.dataset import choose_dataset
from app.kit.page import draw_table
from app.text.numbers import counted
from app.text.plain import plain
from curation.importing.preview import ImportPreview
from db.errors import BadRow, BadRows

TYPES = ["jsonl", "json", "csv", "tsv", "xlsx", "parquet", "gz"]
MAPPED = ("query_id", "query", "passage_id", "passage", "text", "title")
COLUMNS = (
    "Pairs: `query` with `passage` (the text) or `passage_id`, and `query_id`; ids of absent "
    "columns are made from content. Passages: `passage_id`, `text`, `title`. JSONL, JSON, CSV, "
    "TSV, Excel or Parquet. Importing twice adds nothing."
)


def draw_import_form() -> None:
    """Draw the form: name, source, licence, files; on submit, import with a progress bar."""
    user = current_user()
    with st.form("datasets.import", border=False):
        name = st.text_input("Name", key="datasets.name", placeholder="questions-2026")
        first, second = st.columns(2)
        source = first.text_input("Source", key="datasets.source", help="Origin, e.g. a URL.")
        licence = second.text_input("Licence", key="datasets.licence", placeholder="CC-BY-4.0")
        first, second = st.columns(2)
        pairs = first.file_uploader("Pairs", TYPES, key="datasets.pairs")
        passages = second.file_uploader("Passages (separate file)", TYPES, key="datasets.passages")
        pairs_path = passages_path = ""
        if user is not None and user.is_admin:
            first, second = st.columns(2)
            pairs_path = first.text_input("Or: pairs on the server", key="datasets.pairs_path")
            passages_path = second.text_input(
                "Or: passages on the server", key="datasets.passages_path"
            )
        skip_bad = st.checkbox("Skip bad rows and import the rest", key="datasets.skip_bad")
        with st.expander("Column names"):
            columns = draw_columns()
        st.caption(COLUMNS)
        with st.container(horizontal=True):
            previewed = st.form_submit_button("Preview", key="datasets.preview")
            submitted = st.form_submit_button("Import", type="primary", key="datasets.submit")
    sources = Sources(pairs, passages, pairs_path or "", passages_path or "", columns)
    if previewed:
        with failures_shown():
            draw_preview(preview_from_page(sources, name=name or ""))
    if submitted:
        with failures_shown():
            _import(
                sources,
                name=name or "",
                source=source or "",
                licence=licence or "",
                skip_bad=skip_bad,
            )


def draw_columns() -> dict[str, str]:
    """One field for each of our columns; the names that the files have instead."""
    st.caption("Where a file names a column differently, enter its name.")
    fields = st.columns(3)
    typed = {
        ours: fields[number % 3].text_input(ours, key=f"datasets.column_{ours}")
        for number, ours in enumerate(MAPPED)
    }
    return {ours: theirs.strip() for ours, theirs in typed.items() if theirs and theirs.strip()}


def draw_preview(preview: ImportPreview) -> None:
    """What would be imported: the counts, the first rows, every row that would be refused."""
    pairs, passages = counted(preview.pairs, "pair"), counted(preview.passages, "passage")
    st.info(f"{pairs} and {passages} would be imported. Nothing was stored.")
    if preview.rows:
        draw_table(preview.rows)
    if preview.bad:
        st.warning(f"{counted(len(preview.bad), 'row')} would be refused:")
        _draw_bad(preview.bad)


def _import(sources: Sources, *, name: str, source: str, licence: str, skip_bad: bool) -> None:
    bar = st.progress(0.0, text="Checking rows")

    def draw(done: int, total: int) -> None:
        bar.progress(min(1.0, done / total) if total else 0.0, text=f"{done:,} rows")

    try:
        report = import_from_page(
            sources,
            name=name,
            source=source,
            licence=licence,
            skip_bad=skip_bad,
            progress=draw,
        )
    except BadRows as bad:
        st.error(
            plain(
                f"{counted(len(bad.rows), 'bad row')}: nothing was imported. Correct the file, or "
                "skip bad rows with the checkbox above."
            ),
            icon=":material/error:",
        )
        _draw_bad(bad.rows)
        return
    finally:
        bar.empty()
    count = report.imported
    pairs, passages = count.get("pairs", 0), count.get("passages", 0)
    notify(f"{name}: {counted(pairs, 'pair')} and {counted(passages, 'passage')} imported.")
    choose_dataset(name.strip())
    if report.skipped:
        st.warning(f"Skipped {counted(len(report.skipped), 'bad row')}:")
        _draw_bad(report.skipped)
    else:
        st.rerun()


def _draw_bad(rows: list[BadRow]) -> None:
    draw_table(
        [{"File": row.file, "Line": row.line, "Reason": row.reason} for row in rows[:500]],
    )
