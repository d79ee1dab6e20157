"""Actions of the Releases page: queue an export or a push."""

import re
from collections.abc import Sequence
from typing import Any

import streamlit as st

from app.access.session_user import action, require_permission
from app.jobs.actions import launch_job
from curation.release.preview import ReleasePreview, preview_release
from curation.run.shared_parts import shared_sentence, stored_shared_parts
from db.corpus.datasets import get_dataset
from db.corpus.texts import pair_languages, pair_sources
from db.errors import BadInput, Refused
from db.release.choice import REVIEWS, Choice, ChosenCount, count_by_kind
from db.release.diff import DiffRow, diff_releases
from db.run.runs import RunSummary
from db.store.settings import home
from db.store.store import open_store
from db.study.studies import list_studies
from db.tables import Release

SAFE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,80}")


def read_filter_options(
    runs: Sequence[RunSummary],
) -> tuple[list[str], list[str], dict[int, str]]:
    """Sources and languages of the runs' datasets, and the names of a single run's studies by
    id."""
    datasets = list(dict.fromkeys(run.dataset_id for run in runs))
    with open_store().read() as session:
        studies = list_studies(session, dataset_id=datasets[0]) if len(runs) == 1 else []
        sources = [name for each in datasets for name in pair_sources(session, each)]
        languages = [name for each in datasets for name in pair_languages(session, each)]
        return (
            list(dict.fromkeys(sources)),
            list(dict.fromkeys(languages)),
            {each.id: each.name for each in studies if each.run_id == runs[0].id},
        )


def read_counts(runs: Sequence[RunSummary], config: dict[str, Any]) -> list[ChosenCount]:
    """How many groups of each kind the config selects, before duplicates are left out."""
    with open_store().read() as session:
        return [
            count
            for run in runs
            for count in count_by_kind(
                session, choice_of(config, run.id), get_dataset(session, run.dataset).source
            )
        ]


def read_shared_parts(runs: Sequence[RunSummary]) -> dict[int, str]:
    """What the texts of each run share and their sources lack; runs without that are left out."""
    with open_store().read() as session:
        found = {run.id: shared_sentence(stored_shared_parts(session, run.id)) for run in runs}
    return {run_id: sentence for run_id, sentence in found.items() if sentence}


def read_preview(config: dict[str, Any]) -> ReleasePreview:
    """First rows, splits, card and licence conflicts of such a release. Raises InfError."""
    with open_store().read() as session:
        return preview_release(session, config)


def read_diff(before: Release, after: Release) -> list[DiffRow]:
    """What changed from one release to another, group by group."""
    with open_store().read() as session:
        return diff_releases(session, before, after)


def config_of_form(runs: Sequence[tuple[int, str]]) -> dict[str, Any]:
    """The config of the export job that the form describes; runs: (id, dataset)."""
    state = st.session_state
    name = (state.get("releases.name") or "").strip()
    run_id, dataset = runs[0]
    several = {"runs": [each for each, _ in runs]} if len(runs) > 1 else {}
    return several | {
        "dataset": dataset,
        "run_id": run_id,
        "out": str(home() / "releases" / (name or "release")),
        "format": state.get("releases.format") or "parquet",
        "reviews": state.get("releases.reviews") or REVIEWS[0],
        "include_dropped": bool(state.get("releases.include_dropped")),
        "sources": list(state.get("releases.sources") or ()),
        "languages": list(state.get("releases.languages") or ()),
        "study_id": None if several else state.get("releases.study"),
        "balance": "source" if state.get("releases.balance") else "none",
        "leave_out_contaminated": bool(state.get("releases.leave_out_contaminated")),
        "split_by": state.get("releases.split_by") or "train",
        "held_out": float(state.get("releases.held_out") or 0.0),
        "views": list(state.get("releases.views") or ()),
        "accept_licences": bool(state.get("releases.accept_licences")),
        "name": name,
    }


def choice_of(config: dict[str, Any], run_id: int) -> Choice:
    """The groups that a config selects of a run, before overlaps are excluded and sources
    balanced."""
    return Choice(
        run_id,
        config["reviews"],
        config["include_dropped"],
        sources=tuple(config["sources"]),
        languages=tuple(config["languages"]),
        study_id=config["study_id"],
    )


@action
def start(runs: Sequence[tuple[int, str]]) -> None:
    """Queue the export that the form describes, into the releases folder."""
    state = st.session_state
    require_permission("export")
    config = config_of_form(runs)
    name = config["name"]
    if not SAFE.fullmatch(name):
        raise BadInput(
            f"release name {name!r}: use letters, digits, `.`, `_` and `-`, starting with a letter "
            "or digit; it is also the folder name"
        )
    if (home() / "releases" / name).exists():
        raise Refused(
            f"release {name!r} already exists and releases are immutable: choose another name"
        )
    state["releases.job"] = launch_job("export", config, what=f"Release {name}")
    st.query_params.pop("release", None)
    state.pop("releases.chosen", None)


@action
def push(release_id: int, dry_run: bool) -> None:
    """Queue the push that the form describes, or only its comparison with the Hub."""
    state = st.session_state
    require_permission("export")
    repo = (state.get("releases.repo") or "").strip()
    if repo.count("/") != 1 or not all(repo.split("/")):
        raise BadInput(f"repository {repo!r}: give it as USER/NAME")
    way = state.get("releases.push_way")
    branch = (state.get("releases.branch") or "").strip()
    if way == "branch" and not branch:
        raise BadInput("no branch given: enter its name, for example v2")
    config = {
        "release_id": release_id,
        "checkpoint_id": None,
        "repo": repo,
        "public": bool(state.get("releases.public")),
        "dry_run": dry_run,
        "pull_request": way == "pull request",
        "branch": branch if way == "branch" else None,
        "replace": way == "replace",
    }
    what = f"Comparing with {repo}" if dry_run else f"The push to {repo}"
    state["releases.push_job"] = launch_job("push", config, what=what)
