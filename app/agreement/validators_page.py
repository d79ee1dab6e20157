"""The Validators page: price, agreement and kept groups of each model judge."""

import shlex
from collections.abc import Sequence
from typing import Any

import streamlit as st

from analysis.agreement.flagged import flag_note
from app.access.session_user import signed_in_user
from app.agreement.actions import read_report
from app.agreement.validators import draw_validators, validators_sentence
from app.groups.run_label import run_name
from app.kit.choice import choose
from app.kit.figure import Origin
from app.kit.frame.dataset import chosen_dataset
from app.kit.page import draw_empty, draw_heading
from app.operations.judging import agreement, studies
from app.text.plain import plain
from db.run.runs import RunSummary
from db.study.studies import StudySummary

LEAD = (
    "Choose the model that filters groups: agreement with people against price, and the groups "
    "that a model or a vote would keep. Computed from stored judgments and the price table, "
    "without calls."
)


def draw_choice(run: RunSummary, studies: Sequence[StudySummary]) -> None:
    by_id = {study.id: study for study in studies}
    verdict = st.container()
    settings = st.expander("Study and voters", icon=":material/tune:")
    study_id = settings.selectbox(
        "People of study",
        list(by_id),
        format_func=lambda n: f"study {n} · {by_id[n].name}",
        key="validators.study",
        placeholder="no study of this run",
        disabled=not by_id,
    )
    about = agreement.judges(user, run.id, study_id)
    scope = about.scope
    answers, people = agreement.answers(user, run.id), dict[str, Any]()
    # only of a sample of the run: kappa on chosen items would rank the models by those
    if study_id is not None and scope is not None and scope.of_run:
        report = read_report(user, study_id, agreement.seen(user, study_id))
        if report is None:
            verdict.info(
                plain(
                    f"Study {study_id} is large: compute its figures on the Agreement page, then "
                    "the models' kappa with people shows here."
                ),
                icon=":material/hourglass_empty:",
            )
        people = {} if report is None else report["human_model"]
        if note := flag_note(list(people.values())):
            verdict.caption(plain(f"Kappa with people: {note}"))

    def choice_of(voters: Sequence[str]) -> dict[str, Any]:
        return agreement.filtered(answers, about, people, voters)

    judges = [row["judge"] for row in choice_of([])["validators"]]
    if not judges:
        draw_empty(
            "No model has judged items of this run.",
            "Its validator does, and so does any model that judges a study of the run.",
            view="studies",
            link="Studies",
            command=f"inf studies judge {study_id or 'ID'} --judge openai:MODEL",
        )
        return
    voters = settings.multiselect(
        "Voters",
        judges,
        key="validators.voters",
        placeholder="every judge that answered a complete group",
        help="Two or more. A group counts if all of them answered the same items.",
    )
    if study_id is not None and scope is not None and not scope.of_run:
        verdict.warning(
            plain(
                f"No kappa with people is shown from study {study_id}, “{by_id[study_id].name}”. "
                f"{scope.sentence} Choose a sampled study under “Study and voters”."
            ),
            icon=":material/filter_alt:",
        )
    command = ["inf", "analyze", "validators", "--dataset", run.dataset, "--run", str(run.id)]
    command += [] if study_id is None else ["--study", str(study_id)]
    command += [word for voter in voters for word in ("--judge", voter)]
    origin = Origin(
        f"{answers.answers:,} answers to run {run.id}, latest no. {answers.newest}",
        answers.last_at,
        shlex.join([*command, "--json"]),
    )
    report = choice_of(voters)
    verdict.markdown(plain(validators_sentence(report)))
    draw_validators(report, origin)


dataset, user = chosen_dataset(), signed_in_user()
runs = [] if dataset is None else studies.runs_to_sample(user, dataset.id)
place = st.container()
chosen = None
if runs:
    chosen = choose(
        "Run", runs, key="validators.run", parameter="run", ident=lambda run: run.id, name=run_name
    )
with place:
    draw_heading("Validators", LEAD, offline=chosen is not None and chosen.offline)
if chosen is None:
    draw_empty(
        "No run with finished groups yet.",
        "Validators judge the groups of a curation run.",
        view="curate",
        link="Curate",
        command="inf runs create NAME --provider offline",
    )
else:
    listed = studies.list_all(user, chosen.dataset).data
    draw_choice(chosen, [study for study in listed if study.run_id == chosen.id])
