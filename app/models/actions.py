"""Actions of the Evaluations page: read stored scores, queue an evaluation."""

from collections.abc import Collection, Sequence
from typing import Any
from uuid import uuid4

import streamlit as st

from app.access.session_user import action, require_permission
from app.jobs_page.actions import launch_job
from app.models.compared.ordinary import is_ordinary
from app.models.independence import circular_sentences
from db.errors import BadInput, Refused
from db.jobs import jobs
from db.outcome.checkpoints import list_checkpoints
from db.outcome.evaluations import Scored, get_evaluation, newest_scores, records_of
from db.store.settings import home
from db.store.store import open_store
from db.tables import Evaluation
from db.values import DATASET_BENCHMARK as DATASET
from trainer.trec.scoring import PREFIX as TREC


def read_newest_scores() -> list[Scored]:
    """The newest scores of every model on every benchmark."""
    with open_store().read() as session:
        return newest_scores(session)


def read_circular(scores: Sequence[Scored]) -> list[str]:
    """Which of the scores are circular, a sentence per benchmark."""
    with open_store().read() as session:
        return circular_sentences(session, scores)


def read_records(scores: Sequence[Scored]) -> dict[int, dict[str, Any]]:
    """The records of these scores' evaluations, by evaluation id."""
    with open_store().read() as session:
        return records_of(
            session, [each.evaluation_id for each in scores if each.evaluation_id is not None]
        )


def read_evaluations(scores: Sequence[Scored]) -> list[Evaluation]:
    """The evaluations of these scores, with their values by query."""
    with open_store().read() as session:
        return [
            get_evaluation(session, each.evaluation_id)
            for each in scores
            if each.evaluation_id is not None
        ]


def read_ordinary(models: Collection[str]) -> list[Evaluation]:
    """The newest evaluation of each of the models on every benchmark without instructions."""
    with open_store().read() as session:
        found = [
            get_evaluation(session, each.evaluation_id)
            for each in newest_scores(session)
            if each.evaluation_id is not None and each.model in models
        ]
    return [each for each in found if is_ordinary(each)]


def read_base_models() -> dict[int, str]:
    """The base model of every checkpoint, by the checkpoint's id."""
    with open_store().read() as session:
        return {each.id: each.base_model for each in list_checkpoints(session)}


def read_job_config(job_id: int) -> dict[str, Any]:
    """The config of the job that made an evaluation."""
    with open_store().read() as session:
        return jobs.get_job(session, job_id).config


@action
def start() -> None:
    """Queue the evaluation that the form describes."""
    state = st.session_state
    user = require_permission("evaluate")
    models = list(state["evaluations.models"])
    if not models:
        raise BadInput("no model", "choose at least one", code="no_model")
    benchmark = (state["evaluations.benchmark"] or "").strip()
    if benchmark and not benchmark.startswith(DATASET) and not user.is_admin:
        raise Refused(
            "only an admin can evaluate on folders of the server", code="only_admin_can_evaluate"
        )
    if any(model.startswith(TREC) for model in models) and not user.is_admin:
        raise Refused(
            "only an admin can score run files of the server", code="only_admin_can_score"
        )
    subset = state["evaluations.subset"]
    if subset and not benchmark:
        raise BadInput(
            "tasks need a benchmark", "give its folder or name", code="tasks_need_benchmark"
        )
    release = state["evaluations.release"]
    if not benchmark and release is None:
        raise BadInput(
            "no evaluation data: there is no release yet, so give a benchmark",
            code="no_evaluation_data_no",
        )
    ordinary = (state["evaluations.ordinary"] or "").strip()
    if ordinary and not ordinary.startswith(DATASET) and not user.is_admin:
        raise Refused(
            "only an admin can evaluate on folders of the server", code="only_admin_can_evaluate"
        )
    config = {
        "models": models,
        "release": None if benchmark else str(release),
        "benchmark": benchmark or None,
        "subset": subset,
        "template": None,
        "query_prefix": "",
        "passage_prefix": "",
        "with_base": True,
        "ordinary": ordinary or None,
        "pin": (state["evaluations.pin"] or "").strip() or None,
        "bm25_language": state["evaluations.bm25_language"],
        "trec": str(home() / "trec" / uuid4().hex) if state["evaluations.trec"] else None,
    }
    state["evaluations.job"] = launch_job("evaluate", config, what="The evaluation")
