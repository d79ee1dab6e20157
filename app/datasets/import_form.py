"""The form that imports pairs and passages; bad rows are listed with file, line and reason.

Whatever cannot be used is shown at its field. Names of columns that a file has instead of ours are
proposed there, and filled in by a click.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from app.access.session_user import failures_shown, notify, signed_in_user
from app.kit.fields import Uploaded, draw_fields, field_of, values_of_form
from app.kit.frame.dataset import choose_dataset
from app.kit.page import draw_table
from app.operations import datasets
from app.text.numbers import counted
from app.text.plain import plain, sentence
from app.text.remedies import in_pages
from curation.importing.columns import COLUMNS, EXAMPLE, MissingColumns
from curation.importing.files import readable_formats
from curation.importing.imported import ImportPreview, PairsImported
from curation.importing.request import DatasetImport
from db.errors import BadInput, BadRow, BadRows, InfError
from db.home import temporary_folder

CHUNK_BYTES = 1 << 20
TYPES = ["jsonl", "json", "csv", "tsv", "txt", "xlsx", "parquet", "gz", "bz2", "xz"]
PREVIEWED = "datasets.preview_again"  # set by what fills in names of columns
PROPOSED, FILLED = "datasets.proposed", "datasets.filled"  # names of columns, by ours
COLUMN = "datasets.column_{}_{}"  # the field for a name, by file and our name
THEIRS, SEEN = "datasets.their_columns", "datasets.seen"  # of the files that were chosen
WANTED = "datasets.wanted"  # set by the click on Import until the import is done
LOOKED_AT = 30 << 20  # bytes of files that are looked at without being asked to
ABOUT = (
    "Pairs: `query` with `passage` (the text) or `passage_id`, and `query_id`; ids of absent "
    "columns are made from content. Passages: `passage_id`, `text`, `title`. JSONL, JSON, CSV, "
    "TSV, Excel or Parquet, text also compressed. Several files of pairs are read as a folder: "
    "shards, or MS MARCO's collection, queries and qrels. Importing twice adds nothing."
)


@contextmanager
def with_uploads(
    given: dict[str, Any], pairs: Sequence[Uploaded], passages: Uploaded | None
) -> Iterator[tuple[DatasetImport, Path | None]]:
    """The request with the uploads as files, and their folder; several of pairs are a folder.

    Without uploads it is as `given`: paths on the server. Raises BadInput without any pairs.
    """
    if given.get("pairs"):
        yield DatasetImport.read(given), None
        return
    if not pairs:
        raise BadInput("no pairs file", "choose one", code="pairs_file_missing")
    with temporary_folder("inf-import-") as folder:
        written = [_written(each, folder / "pairs") for each in pairs]
        files: dict[str, Any] = {"pairs": written[0] if len(written) == 1 else folder / "pairs"}
        if passages is not None:
            files["passages"] = _written(passages, folder / "passages")
        yield DatasetImport.read(given | files), folder


def _written(upload: Uploaded, folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / (Path(upload.name).name or "upload")
    with path.open("wb") as file:
        while chunk := upload.read(CHUNK_BYTES):
            file.write(chunk)
    return path


def draw_import_form() -> None:
    """Draw the form: files, name, source, licence; on submit, import with a progress bar.

    What a chosen file's columns are called is proposed at once, with the first rows as they would
    be imported.
    """
    if proposed := st.session_state.pop(PROPOSED, None):
        _use(proposed)
    user = signed_in_user()
    first, second = st.columns(2)  # before the form: what is chosen is looked at
    pairs = first.file_uploader("Pairs", TYPES, accept_multiple_files=True, key="datasets.files")
    passages = second.file_uploader("Passages (separate file)", TYPES, key="datasets.passage_file")
    is_new = _are_new([*pairs, *filter(None, [passages])])
    with st.form("datasets.import", border=False):
        _draw("name", placeholder="questions-2026")
        at_name = st.container()
        with st.container(horizontal=True):
            _draw("source")
            _draw("licence", placeholder="CC-BY-4.0")
        if user.is_admin:
            with st.container(horizontal=True):
                _draw("pairs", help="A file, a folder, or a pattern as /data/train-*.parquet.")
                _draw("passages", help=None)
        formats = readable_formats()
        _draw(
            "layout",
            options=list(formats),
            placeholder="Found by files and columns",
            format_func=lambda name: f"{name}: {formats[name]}",
            help="Of a published collection, where its files do not show it.",
        )
        at_files = st.container()
        _draw("skip_bad")
        named = (COLUMN.format(kind, ours) for kind, names in COLUMNS.items() for ours in names)
        is_mapped = any(map(st.session_state.get, named))
        with st.expander("Column names", expanded=is_mapped or THEIRS in st.session_state):
            columns, places = _draw_columns()
        at_columns = st.container()
        st.caption(ABOUT)
        with st.container(horizontal=True):
            previewed = st.form_submit_button("Preview", key="datasets.preview")
            st.form_submit_button(
                "Import",
                type="primary",
                key="datasets.submit",
                on_click=st.session_state.update,
                args=({WANTED: True},),
            )
    submitted = st.session_state.pop(WANTED, False)
    given = values_of_form(DatasetImport, key="datasets") | {"columns": columns}
    previewed = st.session_state.pop(PREVIEWED, False) or previewed or (is_new and not submitted)
    if not (previewed or submitted):
        return
    if submitted and not given["name"].strip():
        at_name.error("Enter a name for the dataset.", icon=":material/error:")
        return
    if not pairs and not given.get("pairs"):
        at_files.error("Choose a file of pairs.", icon=":material/error:")
        return
    preview: ImportPreview | None = None
    with at_files, failures_shown():
        try:
            with with_uploads(given, pairs, passages) as (request, uploads):
                if submitted:
                    _import(request, uploads)
                else:
                    preview = datasets.preview(user, request, uploads=uploads)
        except MissingColumns as missing:
            state, theirs = st.session_state, {each.kind: each.has for each in missing.lacking}
            if is_new or state.get(THEIRS) != theirs:  # the fields above take their options from it
                state[THEIRS], state[PREVIEWED] = theirs, True
                if is_new and not columns:
                    state[PROPOSED] = missing.guessed
                st.rerun()
            _draw_missing(at_columns, places, missing)
        except InfError as error:
            place = {"name": at_name, **places}.get(field_of(error) or "")
            if place is None:
                raise
            place.error(plain(sentence(in_pages(str(error)))), icon=":material/error:")
    if preview is not None:
        draw_preview(preview)


def _are_new(uploads: Sequence[Uploaded]) -> bool:
    """Whether these files were just chosen, and are small enough to be looked at at once."""
    found, state = tuple(each.file_id for each in uploads), st.session_state
    is_new = bool(found) and found != state.get(SEEN)
    state[SEEN] = found
    if is_new:  # what was found and filled in for other files
        state.pop(THEIRS, None)
        for key, theirs in state.pop(FILLED, {}).items():
            if state.get(key) == theirs:
                state[key] = None
    return is_new and sum(each.size for each in uploads) <= LOOKED_AT


def _draw(name: str, **more: Any) -> None:
    draw_fields(DatasetImport, [name], key="datasets", more={name: more})


def _draw_columns() -> tuple[dict[str, str], dict[str, DeltaGenerator]]:
    """One field for each of our columns of each file; the names that the files have instead, and
    the fields' places by the names of ours."""
    st.caption("Where a file names a column differently, choose or enter its name.")
    theirs = st.session_state.get(THEIRS, {})
    typed, places = dict[str, str](), dict[str, DeltaGenerator]()
    for kind, names in COLUMNS.items():
        for place, ours in zip(st.columns(len(names)), names, strict=True):
            places[f"{kind}.{ours}"] = place
            chosen = place.selectbox(
                f"{kind.capitalize()}: {ours}",
                theirs.get(kind, []),
                index=None,
                key=COLUMN.format(kind, ours),
                placeholder="as it is",
                accept_new_options=True,
            )
            typed[f"{kind}.{ours}"] = chosen or ""
    _draw("split", placeholder="train", width=220)
    return {given: theirs.strip() for given, theirs in typed.items() if theirs.strip()}, places


def _draw_missing(
    place: DeltaGenerator,
    places: Mapping[str, DeltaGenerator],
    missing: MissingColumns,
) -> None:
    """The columns that files lack, at the fields that can name them, with what is proposed."""
    for each in missing.lacking:
        for names in each.missing:
            ours = names.strip("`").partition("`")[0]
            places[f"{each.kind}.{ours}"].error(plain(f"{each.file} has no column {names}."))
    with place:
        if missing.guessed:
            named = ", ".join(f"`{ours}` ← `{theirs}`" for ours, theirs in missing.guessed.items())
            with st.container(horizontal=True, vertical_alignment="center"):
                st.markdown(f"Proposed by names and contents: {plain(named)}", width="content")
                st.form_submit_button(
                    "Use these names",
                    key="datasets.use_columns",
                    icon=":material/check:",
                    on_click=_use,
                    args=(missing.guessed,),
                )
        st.caption("Or choose the file's names above. The shortest file that would do:")
        st.code(EXAMPLE, language=None)


def _use(proposed: dict[str, str]) -> None:
    state, filled = st.session_state, dict[str, str]()
    for name, theirs in proposed.items():
        kind, _, ours = name.rpartition(".")
        filled[COLUMN.format(kind or "pairs", ours)] = theirs
    state.update(filled | {FILLED: filled, PREVIEWED: True})


def draw_preview(preview: ImportPreview) -> None:
    """What would be imported: the counts, the first rows, every row that would be refused."""
    pairs, passages = counted(preview.pairs, "pair"), counted(preview.passages, "passage")
    st.info(f"{pairs} and {passages} would be imported. Nothing was stored.")
    for notice in preview.notices:
        st.warning(plain(f"{notice}."), icon=":material/translate:")
    if preview.preview:
        draw_table(list(preview.preview))
    if preview.bad_rows:
        st.warning(f"{counted(len(preview.bad_rows), 'row')} would be refused:")
        _draw_bad(preview.bad_rows)


def _import(request: DatasetImport, uploads: Path | None) -> None:
    bar = st.progress(0.0, text="Checking rows")

    def draw(done: int, total: int) -> None:
        bar.progress(min(1.0, done / total) if total else 0.0, text=f"{done:,} rows")

    state = st.session_state
    state[WANTED] = True  # a file that arrives meanwhile runs the page anew: it begins again
    try:
        report: PairsImported = datasets.import_files(
            signed_in_user(), request, datasets.here(draw), uploads=uploads
        )
    except Exception as error:  # which that rerun is not
        state[WANTED] = False
        if not isinstance(error, BadRows):
            raise
        st.error(
            plain(
                f"{counted(len(error.rows), 'bad row')}: nothing was imported. Correct the file, "
                "or skip bad rows with the checkbox."
            ),
            icon=":material/error:",
        )
        _draw_bad(error.rows)
        return
    finally:
        bar.empty()
    state[WANTED] = False
    pairs = counted(report.imported, "pair")
    passages = counted(report.imported_passages, "passage")
    done = f"{request.name}: {pairs} and {passages} imported."
    notify(" ".join([done, *(f"Note: {notice}." for notice in report.notices)]))
    choose_dataset(request.name)
    if report.skipped:
        st.warning(f"Skipped {counted(report.skipped, 'bad row')}:")
        _draw_bad(report.bad_rows)
    else:
        st.rerun()


def _draw_bad(rows: Sequence[BadRow]) -> None:
    draw_table([{"File": row.file, "Line": row.line, "Reason": row.reason} for row in rows[:500]])
