"""The Evaluations page: base and trained models on held-out groups or a benchmark."""

from functools import partial
from uuid import uuid4

import streamlit as st

from app.access.session_user import action, notify, require_permission
from app.jobs_page.card import draw_last_failure, follow_job
from app.kit.choice import choose, take_from_url
from app.kit.fields import at_field, draw_wrong
from app.kit.page import draw_drawer, draw_empty, draw_hand_off, draw_heading
from app.models.comparison import draw_comparison, newest_of_each
from app.models.headline import draw_headline, too_easy
from app.models.records import draw_ordinary, draw_records, draw_trec_files
from app.models.result_table import draw_result_table
from app.models.scores import draw_scores
from app.models.verdict import verdict_sentences
from app.operations import evaluations as operations
from app.operations.acting import queued
from app.operations.evaluations import EvaluationOptions
from app.text.plain import plain
from app.text.remedies import in_pages
from db.errors import BadInput
from db.home import home
from db.requests import choices_of
from trainer.evaluate.request import EvaluationStart
from trainer.settings.table import DEFAULT_BASE_MODEL


@action
@at_field("evaluations.{}")
def start() -> None:
    """Queue the evaluation that the form describes."""
    user, state = require_permission(operations.RIGHT), st.session_state
    if not state["evaluations.models"]:
        raise BadInput("no model", "choose at least one", code="model_missing")
    typed = {
        name: (state[f"evaluations.{name}"] or "").strip() or None
        for name in ("benchmark", "ordinary", "pin")
    }
    release = state["evaluations.release"]
    if not typed["benchmark"] and release is None:
        raise BadInput(
            "no evaluation data: there is no release yet, so give a benchmark",
            "create a release on the Releases page, or enter a benchmark",
            code="evaluation_data_missing",
        )
    wanted = EvaluationStart.read(
        typed
        | {
            "models": list(state["evaluations.models"]),
            "release": None if typed["benchmark"] else str(release),
            "subset": state["evaluations.subset"],
            "bm25_language": state["evaluations.bm25_language"],
            "trec": str(home() / "trec" / uuid4().hex) if state["evaluations.trec"] else None,
        }
    )
    job_id = operations.create(user, wanted, queued)
    state["evaluations.job"] = job_id
    notify(f"The evaluation is queued as job {job_id}.")


def about(name: str) -> str:
    return in_pages(EvaluationStart.model_fields[name].description or "")


def draw_start(known: EvaluationOptions) -> None:
    names = {each.path: f"checkpoint {each.id} · {each.name}" for each in known.models}
    names[DEFAULT_BASE_MODEL] = DEFAULT_BASE_MODEL
    wanted = {str(each.id): [each.path] for each in known.models}
    take_from_url("evaluations.models", "checkpoint", wanted)
    # its own release: of another one, the held-out groups may have been in its training
    listed = [each for each in known.models if each.release_id in known.releases]
    of = {str(each.id): each.release_id for each in listed}
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
        draw_wrong("evaluations.models")
        labels = {number: f"release {number} · {name}" for number, name in known.releases.items()}
        first, second = st.columns(2)
        first.selectbox(
            "Held-out groups of",
            list[int | None](labels) or [None],
            format_func=lambda n: labels.get(n, "no release yet, give a benchmark"),
            key="evaluations.release",
        )
        with second:
            st.text_input(
                "Or a benchmark: folder or name",
                key="evaluations.benchmark",
                help=about("benchmark"),
            )
            draw_wrong("evaluations.benchmark")
        first, second = st.columns(2)  # a row each, so that a phone has them in order
        first.selectbox(
            "Tasks of the benchmark",
            [None, *choices_of(EvaluationStart, "subset")],
            format_func=lambda name: name or "all",
            key="evaluations.subset",
            help=about("subset"),
        )
        second.text_input("Pinned content (sha256)", key="evaluations.pin", help=about("pin"))
        first, second = st.columns(2)
        first.text_input(
            "Ordinary retrieval: folder or name", key="evaluations.ordinary", help=about("ordinary")
        )
        second.selectbox(
            "Language of BM25",
            [None, *choices_of(EvaluationStart, "bm25_language")],
            format_func=lambda language: language or "the benchmark's, or English",
            key="evaluations.bm25_language",
            help=about("bm25_language"),
        )
        first.checkbox(
            "Keep run and qrels files (TREC)",
            key="evaluations.trec",
            help="For download here afterwards: the ranking of every query.",
        )
        st.form_submit_button("Evaluate", type="primary", on_click=start, key="evaluations.submit")


user = require_permission(operations.RIGHT)
known = operations.options(user)
draw_heading(
    "Evaluations",
    "Retrieval quality, and how well models follow instructions: strict accuracy and instruction "
    "flip on held-out groups, p-MRR on benchmarks.",
    offline=any(each.offline for each in known.models),
)
if "evaluations.job" in st.session_state:
    follow_job(st.session_state["evaluations.job"], key="evaluations.follow")
draw_last_failure("evaluate", "evaluations.job")
if not known.benchmarks:
    draw_empty(
        "No evaluations yet.",
        "A checkpoint is compared with its base model on the groups held out of its training.",
        view="train" if not known.models else "",
        link="Train a checkpoint first",
        command="inf evaluations create --model MODEL_DIR --release DIR",
    )
else:
    chosen = choose(
        "Benchmark",
        known.benchmarks,
        key="evaluations.chosen",
        parameter="benchmark",
        ident=lambda name: name,
        name=lambda name: name,
    )
    evaluations = operations.of_benchmark(user, chosen)
    newest = newest_of_each(evaluations)
    bases = {each.id: each.base_model for each in known.models}
    requested = operations.requests(user, {each.job_id for each in newest if each.job_id})
    for sentence in verdict_sentences(newest, bases):
        st.markdown(plain(sentence))
    with st.container(horizontal=True):
        draw_hand_off("try_it", "Try the models on a query of your own")
    draw_comparison(evaluations, requested, bases)
    draw_ordinary(newest, partial(operations.ordinary, user))
    if sentence := too_easy(newest):
        st.warning(plain(sentence), icon=":material/warning:")
    with st.expander("Every measure with its interval"):
        draw_headline(newest)
        draw_scores(evaluations)
    draw_trec_files(newest, requested)
    draw_records(newest)
    draw_result_table(user)
is_new = not known.benchmarks or "checkpoint" in st.query_params
draw_drawer(
    "Evaluate",
    partial(draw_start, known),
    key="evaluations.new",
    field="evaluations.models",
    icon=":material/add:",
    is_open=is_new,
)
