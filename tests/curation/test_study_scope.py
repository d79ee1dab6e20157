"""Agreement on chosen items is never shown as a measure of the run: on card, page, command line."""

from collections.abc import Callable
from pathlib import Path

import pytest
from app_pages import open_drawers, open_page, words
from conftest import Ran
from exporting import export
from made_study import make_study
from records_world import group_ids, make_run
from sqlalchemy import select

from curation.judging.about_run import extend_by_plan
from curation.judging.sampling import Sampling
from curation.judging.scope import describe_scope, of_filtered
from db.shape import INF_IR
from db.store.store import Store
from db.study.judgments import get_or_create_judge, record_judgment
from db.tables import StudyItem

IN_RUN = {"kept": 60, "dropped": 20}
NOT_OF_RUN = "not a measure of the run"


@pytest.mark.parametrize(
    ("settings", "verdicts", "of_run", "says"),
    [
        ({}, {"kept": 9, "dropped": 3}, True, "9 from kept and 3 from dropped"),
        ({"sampling": "random"}, {"kept": 9, "dropped": 3}, True, "at random from the whole run"),
        ({"sampling": "random"}, {"kept": 9}, False, "no item from the run's 20 dropped groups"),
        ({"sampling": "list"}, {"kept": 9, "dropped": 3}, False, "listed by hand"),
        ({"sampling": "disagreement"}, {"kept": 9, "dropped": 3}, False, "judges disagree on them"),
        (
            {"sampling": "stratified", "strata": ["scenario", "source"]},
            {"kept": 9, "dropped": 3},
            False,
            "Each source has the same weight",
        ),
        (
            {"sampling": "random", "additions": [{"items": 5}, {"items": 2}]},
            {"kept": 9, "dropped": 3},
            False,
            "7 of this study's items were added where they help an estimate most",
        ),
    ],
)
def test_only_a_sample_of_the_whole_run_speaks_for_it(
    settings: dict[str, object], verdicts: dict[str, int], of_run: bool, says: str
) -> None:
    scope = describe_scope(settings, verdicts, IN_RUN)
    assert scope.of_run is of_run and says in scope.sentence
    assert (NOT_OF_RUN in scope.sentence) is not of_run


def test_a_run_that_dropped_nothing_is_whole_without_dropped_items() -> None:
    assert describe_scope({"sampling": "random"}, {"kept": 9}, {"kept": 60}).of_run


def test_judgments_that_pass_a_filter_do_not_speak_for_the_run() -> None:
    scope = of_filtered(describe_scope({"sampling": "random"}, {"kept": 9}, {"kept": 60}))
    assert not scope.of_run
    assert "Only the judgments that pass the filters" in scope.sentence
    assert NOT_OF_RUN in scope.sentence and "from the whole run" not in scope.sentence


def judge_all(store: Store, study_id: int) -> None:
    """Two people judge every item; they differ on the first."""
    with store.write() as session:
        items = session.scalars(
            select(StudyItem.item_id)
            .where(StudyItem.study_id == study_id)
            .order_by(StudyItem.position)
        ).all()
        for number, name in enumerate(("ada", "charles")):
            judge = get_or_create_judge(session, f"{name} {study_id}", kind="person")
            for place, item_id in enumerate(items):
                record_judgment(
                    session,
                    judge_id=judge.id,
                    item_id=item_id,
                    choice=INF_IR.roles[(place + number * (place == 0)) % 3],
                    order_shown=list(INF_IR.roles),
                    event_id=f"{name} {study_id} {item_id}",
                    study_id=study_id,
                )
        session.commit()


def test_card_page_and_command_say_which_studies_speak_for_the_run(
    sqlite_store: Store, tmp_path: Path, inf: Callable[..., Ran]
) -> None:
    run_id = make_run(sqlite_store)
    kept = tuple(str(one) for one in group_ids(sqlite_store, run_id, "kept"))
    samplings = (
        Sampling(),
        Sampling("list", lines=kept),
        Sampling("disagreement", of_study=1),
    )
    for number, sampling in enumerate(samplings, start=1):
        items = {"stratified": 6, "disagreement": 1}.get(sampling.sample)
        make_study(sqlite_store, dataset="books", items=items, overlap=2, sampling=sampling)
        judge_all(sqlite_store, number)
    export(sqlite_store, tmp_path / "out")
    card = (tmp_path / "out" / "README.md").read_text()
    assert "kept and dropped groups alike" not in card
    told = {
        number: next(part for part in card.split("\n\n") if f"study {number} (" in part)
        for number in (1, 2, 3)
    }
    assert told[1].startswith("Agreement, study 1") and "4 from kept and 2 from dropped" in told[1]
    for number in (2, 3):
        assert told[number].startswith(f"Agreement on chosen items, study {number}")
        assert NOT_OF_RUN in told[number]
    page = open_page("agreement")
    for number, of_run in ((1, True), (2, False), (3, False)):
        shown = inf("analyze", "agreement", "--study", number, "--resamples", 0)
        assert (NOT_OF_RUN in shown.out) is not of_run, shown.out
        page.selectbox(key="agreement.study").select_index(3 - number).run()
        warned = "\n".join(str(each.value) for each in page.warning)
        assert (NOT_OF_RUN in warned) is not of_run
        assert ("from the whole run" in words(page)) is of_run


def test_after_the_planners_additions_and_under_a_filter_no_kappa_is_of_the_run(
    sqlite_store: Store, tmp_path: Path, inf: Callable[..., Ran]
) -> None:
    run_id = make_run(sqlite_store, kept=24, dropped=12)
    make_study(sqlite_store, dataset="books", items=18, overlap=2, sampling=Sampling())
    judge_all(sqlite_store, 1)
    whole = inf("analyze", "agreement", "--study", 1, "--resamples", 0, "--json").json["scope"]
    assert whole["of_run"]
    filters = ("--judge", "ada 1", "--judge", "charles 1")
    for one in (filters, ("--role", "positive"), ("--since", "2020-01-01")):
        told = inf("analyze", "agreement", "--study", 1, "--resamples", 0, "--json", *one)
        assert not told.json["scope"]["of_run"]
        assert "pass the filters" in told.json["scope"]["sentence"]
    page = open_page("agreement")
    assert not page.warning
    roles = next(one for one in page.get("button_group") if one.key == "agreement.scenarios")
    roles.set_value(["positive", "query_negative"]).run()
    assert any("pass the filters" in str(each.value) for each in page.warning)
    assert "on these chosen items" in words(page) and "from the whole run" not in words(page)
    with sqlite_store.write() as session:
        extend_by_plan(session, 1, target="precision", reach=None, items=3)
        session.commit()
    told = inf("analyze", "agreement", "--study", 1, "--resamples", 0)
    added = "added where they help an estimate most"
    assert added in told.out and NOT_OF_RUN in told.out
    assert any(added in str(each.value) for each in open_page("agreement").warning)
    export(sqlite_store, tmp_path / "out")
    card = (tmp_path / "out" / "README.md").read_text()
    assert added in card and "Agreement on chosen items, study 1" in card
    shown = inf("analyze", "validators", "--dataset", "books", "--run", run_id, "--study", 1).out
    assert added in shown and "no kappa with people is shown" in shown


def test_a_random_sample_of_kept_groups_is_of_those_alone_on_card_and_page(
    sqlite_store: Store, tmp_path: Path
) -> None:
    make_run(sqlite_store, kept=18, dropped=6)
    sampling = Sampling("random", only="kept")
    make_study(sqlite_store, dataset="books", items=12, overlap=2, sampling=sampling)
    judge_all(sqlite_store, 1)
    export(sqlite_store, tmp_path / "out")
    card = (tmp_path / "out" / "README.md").read_text()
    warned = "\n".join(str(each.value) for each in open_page("agreement").warning)
    for shown in (card, warned):
        assert "no item from the run's 6 dropped groups" in shown.replace("\\", "")
        assert NOT_OF_RUN in shown
    assert "Agreement on chosen items, study 1" in card
    assert "95 % intervals from 10,000 posterior draws" in card


def test_validators_have_a_kappa_only_from_a_study_that_samples_the_run(
    sqlite_store: Store, inf: Callable[..., Ran]
) -> None:
    run_id = make_run(sqlite_store, kept=12, dropped=6)
    kept = tuple(str(one) for one in group_ids(sqlite_store, run_id, "kept"))
    for number, sampling in enumerate((Sampling(), Sampling("list", lines=kept)), start=1):
        items = 12 if sampling.sample == "stratified" else None
        make_study(sqlite_store, dataset="books", items=items, overlap=2, sampling=sampling)
        judge_all(sqlite_store, number)
    page = open_drawers(open_page("validators"), "validators.prices_drawer")
    for number, of_run in ((1, True), (2, False)):
        told = inf("analyze", "validators", "--dataset", "books", "--study", number, "--json")
        assert all(("human_kappa" in row) is of_run for row in told.json["validators"])
        shown = inf("analyze", "validators", "--dataset", "books", "--study", number).out
        assert (NOT_OF_RUN in shown) is not of_run
        page.selectbox(key="validators.study").select_index(2 - number).run()
        assert not page.exception
        warned = "\n".join(str(each.value) for each in page.warning)
        assert (NOT_OF_RUN in warned) is not of_run
        prices = next(f.value for f in page.dataframe if "Kappa with people" in f.value)
        assert prices["Kappa with people"].notna().all() == of_run
