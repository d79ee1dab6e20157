"""The Evaluations page: base and trained models on held-out groups or a benchmark."""

from functools import partial

import streamlit as st

from analysis.text.bm25 import LANGUAGES, NO_LANGUAGE
from app.jobs_page.card import follow_job
from app.kit.choice import choose, take_from_url
from app.kit.page import draw_drawer, draw_empty, draw_hand_off, draw_heading
from app.models import actions
from app.models.compared.measures import model_name
from app.models.comparison import draw_comparison, newest_of_each
from app.models.headline import draw_headline
from app.models.ordinary_table import draw_ordinary
from app.models.record_table import draw_records
from app.models.result_table import draw_result_table
from app.models.scores import draw_scores
from app.models.trec_download import draw_trec_files
from app.models.verdict import verdict_sentences
from app.text.plain import plain
from db.outcome.checkpoints import list_checkpoints
from db.outcome.evaluations import list_benchmarks, list_evaluations
from db.release.releases import list_releases
from db.store.store import open_store
from db.tables import Checkpoint
from trainer.settings.table import DEFAULT_BASE_MODEL
from trainer.suites.registry import DOWNLOAD_NAMES, LABELS, SUBSET_HELP, SUBSETS


def draw_start(checkpoints: list[Checkpoint]) -> None:
    names = {each.path: f"checkpoint {each.id} · {model_name(each.path)}" for each in checkpoints}
    names[DEFAULT_BASE_MODEL] = DEFAULT_BASE_MODEL
    wanted = {str(each.id): [each.path] for each in checkpoints}
    take_from_url("evaluations.models", "checkpoint", wanted)
    # its own release: of another one, the held-out groups may have been in its training
    listed = {each.id for each in releases}
    of = {str(each.id): each.release_id for each in checkpoints if each.release_id in listed}
    take_from_url("evaluations.release", "checkpoint", of)
    st.session_state.setdefault("evaluations.models", list(names)[:1])
    with st.form("evaluations.start", border=False):
        st.multiselect(
            "Models",
            list(names),
            format_func=lambda path: names.get(path, path),
            accept_new_options=True,
            key="evaluations.models",
            help="A single checkpoint is evaluated together with its base model. trec:FILE scores "
            "a TREC run file.",
        )
        labels = {each.id: f"release {each.id} · {each.name}" for each in releases}
        first, second = st.columns(2)
        first.selectbox(
            "Held-out groups of",
            list[int | None](labels) or [None],
            format_func=lambda n: labels.get(n, "no release yet, give a benchmark"),
            key="evaluations.release",
        )
        second.text_input(
            "Or a benchmark: folder or name",
            key="evaluations.benchmark",
            help=f"A server folder ({LABELS}), dataset:NAME for the queries and passages of a "
            f"dataset, or a name on the Hub: {DOWNLOAD_NAMES} or owner/name.",
        )
        first.selectbox(
            "Tasks of the benchmark",
            [None, *SUBSETS],
            format_func=lambda name: name or "all",
            key="evaluations.subset",
            help=f"{SUBSET_HELP}.",
        )
        second.text_input(
            "Pinned content (sha256)",
            key="evaluations.pin",
            help="Refuse to evaluate unless the benchmark's content has this sha256, as "
            "`inf evaluate pin` or an earlier evaluation shows it.",
        )
        first.text_input(
            "Ordinary retrieval: folder or name",
            key="evaluations.ordinary",
            help="A benchmark without instructions (any BEIR folder, or dataset:NAME), scored "
            "too: whether ordinary retrieval suffered.",
        )
        second.selectbox(
            "Language of BM25",
            [None, *LANGUAGES, NO_LANGUAGE],
            format_func=lambda language: language or "the benchmark's, or English",
            key="evaluations.bm25_language",
            help="Stemmer and stop words of BM25; none: neither. It also chooses the candidates of "
            "rerankers and of p-MRR on held-out groups.",
        )
        first.checkbox(
            "Keep run and qrels files (TREC)",
            key="evaluations.trec",
            help="For download here afterwards: every ranking, up to 1,000 documents per query.",
        )
        st.form_submit_button(
            "Evaluate", type="primary", on_click=actions.start, key="evaluations.submit"
        )


with open_store().read() as session:
    checkpoints = list_checkpoints(session)
    releases = list_releases(session)
    benchmarks = list_benchmarks(session)
draw_heading(
    "Evaluations",
    "Retrieval quality, and how well models follow instructions: strict accuracy and instruction "
    "flip on held-out groups, p-MRR on benchmarks.",
    offline=any((each.summary.get("release") or {}).get("offline") for each in checkpoints),
)
if "evaluations.job" in st.session_state:
    follow_job(st.session_state["evaluations.job"], key="evaluations.follow")
if not benchmarks:
    draw_empty(
        "No evaluations yet.",
        "A checkpoint is compared with its base model on the groups held out of its training.",
        view="train" if not checkpoints else "",
        link="Train a checkpoint first",
        command="inf evaluate --model MODEL_DIR --release DIR",
    )
else:
    chosen = choose(
        "Benchmark",
        benchmarks,
        key="evaluations.chosen",
        parameter="benchmark",
        ident=lambda name: name,
        name=lambda name: name,
    )
    with open_store().read() as session:
        evaluations = list_evaluations(session, benchmark=chosen)
    newest = newest_of_each(evaluations)
    for sentence in verdict_sentences(newest, actions.read_base_models()):
        st.markdown(plain(sentence))
    with st.container(horizontal=True):
        draw_hand_off("try_it", "Try the models on a query of your own")
    draw_headline(newest)
    draw_scores(evaluations)
    draw_ordinary(newest)
    draw_comparison(evaluations)
    draw_trec_files(newest)
    draw_records(newest)
    draw_result_table()
is_new = not benchmarks or "checkpoint" in st.query_params
draw_drawer(
    "Evaluate",
    partial(draw_start, checkpoints),
    key="evaluations.new",
    field="evaluations.models",
    icon=":material/add:",
    is_open=is_new,
)
