"""The dataset is chosen once, in the frame: every page is about it, and every link keeps it."""

import re

import pytest
from app_pages import MAIN, card_data, cookies_of, open_page, send_cookies, words
from full_store import fill
from sqlalchemy import select
from sqlalchemy.orm import Session
from streamlit.testing.v1 import AppTest
from study_world import make_world, sampled_study

from app.kit.frame.dataset import OF_NO_DATASET
from app.kit.menu import APP, MENU
from db.outcome.analyses import list_analyses
from db.people.accounts import add_account
from db.people.rights import add_rights
from db.people.sign_ins import start_session
from db.store.store import Store
from db.tables import Account, Analysis, Checkpoint, Dataset, Release, Run

CHOICE = "frame.named_dataset"
OF_A_DATASET = [view.name for view in MENU if view.name not in OF_NO_DATASET]
REFUSAL = "There is no dataset 'nobody' that you may open on this page: choose one in the list"


@pytest.fixture
def two(sqlite_store: Store) -> Store:
    """The full store, whose dataset is `world`, and a later one, `another`, with a study."""
    fill(sqlite_store)
    run_id = make_world(sqlite_store, 5, name="another")
    with sqlite_store.write() as session:
        sampled_study(session, run_id=run_id, items=2, overlap=2, name="second study")
        session.commit()
    return sqlite_store


def choice_of(at: AppTest) -> str | None:
    """The dataset in the frame; None where it offers no choice."""
    found = [each for each in at.selectbox if each.key == CHOICE]
    return found[0].value if found else None


def options(at: AppTest, key: str) -> str:
    (found,) = (each for each in at.selectbox if each.key == key)
    return " ".join(found.options)


def drawn(at: AppTest) -> str:
    """All the text of a page: that of its choices and tables, too."""
    choices = [str(each.options) for each in (*at.selectbox, *at.multiselect)]
    return "\n".join([words(at), *choices, *(each.value.to_string() for each in at.dataframe)])


@pytest.mark.parametrize("page", OF_A_DATASET)
def test_every_page_about_a_dataset_shows_the_chosen_one_and_no_choice_of_its_own(
    two: Store, page: str
) -> None:
    at = open_page(page, dataset="world")
    assert choice_of(at) == "world"
    assert at.query_params["dataset"] in ("world", ["world"])
    own = (CHOICE, "datasets.mine.corpus")  # negatives may come from another dataset
    others = [each for each in at.selectbox if each.key not in own]
    assert [each.key for each in others if "another" in each.options] == []
    lists = [each for each in at.multiselect if "another" in str(each.value)]
    assert lists == []


@pytest.mark.parametrize("page", OF_NO_DATASET)
def test_a_page_about_no_dataset_offers_no_choice_and_keeps_it_in_the_url(
    two: Store, page: str
) -> None:
    at = open_page(page, dataset="world")
    assert choice_of(at) is None
    assert at.query_params["dataset"] in ("world", ["world"])


@pytest.mark.long
def test_runs_studies_releases_and_trainings_are_those_of_the_chosen_dataset(two: Store) -> None:
    for name, run, study in (("world", "run 1 ", "first study"), ("another", "run 2 ", "second")):
        for page, key in (("curate", "curate.run"), ("groups", "groups.run")):
            assert [one[:6] for one in open_page(page, dataset=name).selectbox(key).options] == [
                run
            ]
        for page, key in (("studies", "studies.chosen"), ("agreement", "agreement.study")):
            assert study in options(open_page(page, dataset=name), key)
        assert open_page("coverage", dataset=name).multiselect("coverage.datasets").value == [name]
    assert "world-1" in drawn(open_page("releases", dataset="world"))
    assert "world-1" not in drawn(open_page("releases", dataset="another"))
    assert "checkpoint-1" in drawn(open_page("train", dataset="world"))
    assert "checkpoint-1" not in drawn(open_page("train", dataset="another"))


def test_home_counts_and_rates_the_chosen_dataset_alone(two: Store) -> None:
    world, another = (words(open_page("home", dataset=name)) for name in ("world", "another"))
    assert "30 pairs in world" in world and "1 checkpoint" in world
    assert "5 pairs in another" in another and "0 checkpoints" in another
    assert "0 groups reviewed" in another and "2 groups reviewed" in world


def test_a_new_choice_changes_the_page_and_forgets_what_else_the_url_named(two: Store) -> None:
    at = open_page("groups", dataset="world", run="1", verdict="dropped")
    at.selectbox(CHOICE).select("another").run()
    assert [each.value for each in at.selectbox if each.label == "Run"] == ["2"]
    assert set(at.query_params) == {"dataset"}
    assert card_data(at)["rows"]


def test_what_the_url_names_decides_and_the_url_is_corrected(two: Store) -> None:
    for page, parameters in (
        ("groups", {"run": "1"}),
        ("groups", {"group": "1"}),
        ("agreement", {"study": "1"}),
        ("releases", {"release": "1"}),
    ):
        at = open_page(page, dataset="another", **parameters)
        assert choice_of(at) == "world", parameters
        assert at.query_params["dataset"] in ("world", ["world"])
    # none that exists: the parameter holds
    assert choice_of(open_page("groups", dataset="world", run="99999999999999")) == "world"


def test_a_release_of_several_datasets_is_shown_under_each(two: Store) -> None:
    with two.write() as session:
        session.execute(
            Release.__table__.metadata.tables["release_run"].insert(),
            [{"release_id": 1, "run_id": 1}, {"release_id": 1, "run_id": 2}],
        )
        session.commit()
    for name in ("world", "another"):
        at = open_page("releases", dataset=name, release="1")
        assert choice_of(at) == name
        assert "world-1" in drawn(at)


def test_an_analysis_shows_under_each_of_its_datasets_and_one_of_files_everywhere(
    two: Store,
) -> None:
    corpora = [{"corpus": "x", "run_id": None, "offline": False}]
    with two.write() as session:
        world = session.scalars(select(Dataset.id).where(Dataset.name == "world")).one()
        for sha, config, dataset_id in (
            ("files", {"datasets": [], "published": ["/a"]}, None),
            ("world", {"datasets": ["world"]}, world),
            ("both", {"datasets": ["world", "another"]}, None),
        ):
            session.add(
                Analysis(
                    kind="near_duplicates",
                    inputs_sha256=sha,
                    config=config,
                    result={"corpora": corpora},
                    dataset_id=dataset_id,
                )
            )
        session.commit()
    with two.read() as session:
        ids = dict(session.execute(select(Dataset.name, Dataset.id)).all())

        def shas(name: str) -> list[str]:
            found = list_analyses(session, "near_duplicates", dataset_id=ids[name])
            return sorted(each.inputs_sha256 for each in found)

        assert shas("world") == ["both", "files", "world"]
        assert shas("another") == ["both", "files"]


@pytest.mark.parametrize("page", ["home", "groups", "try_it"])
def test_an_unknown_dataset_ends_in_a_sentence_and_draws_nothing_else(
    two: Store, page: str
) -> None:
    at = open_page(page, dataset="nobody")
    (error,) = (each.value for each in at.error)
    assert REFUSAL in error.replace("\\", "")
    assert len(at.title) == 1 and not at.caption and not at.dataframe and not at.button
    at.selectbox(CHOICE).select("world").run()
    assert not at.error and at.caption


def test_who_may_not_see_a_dataset_reads_the_same_as_of_one_that_does_not_exist(
    two: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    cookies_of(two, "admin")
    member_of(two, monkeypatch, "another", "curate")
    refused, unknown = (open_page("groups", dataset=name) for name in ("world", "nobody"))
    assert refused.error[0].value.replace("world", "nobody") == unknown.error[0].value
    assert options(refused, CHOICE) == options(unknown, CHOICE) == "another"
    # another's row in the address does not lead there either
    at = open_page("groups", run="1", group="1")
    assert [each.value for each in at.selectbox if each.label == "Run"] == ["2"]
    assert "world" not in drawn(at)


def test_one_dataset_is_no_choice_and_needs_no_parameter(
    two: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    cookies_of(two, "admin")
    member_of(two, monkeypatch, "world", "curate")
    for page in ("home", "groups", "coverage"):
        at = open_page(page)
        assert choice_of(at) is None and "dataset" not in at.query_params
    assert at.multiselect("coverage.datasets").value == ["world"]


def test_who_only_judges_is_offered_no_dataset(two: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    cookies_of(two, "admin")
    with two.write() as session:
        account = new_account(session, "judy")
        for name in ("world", "another"):
            number = session.scalars(select(Dataset.id).where(Dataset.name == name)).one()
            add_rights(session, account, ["judge"], actor="test", dataset_id=number)
        send_cookies(monkeypatch, {"inf_session": start_session(session, account)})
        session.commit()
    for page in ("home", "judge", "answers"):
        assert choice_of(open_page(page)) is None


def test_an_empty_store_offers_no_choice_and_any_name_ends_in_a_sentence(
    sqlite_store: Store,
) -> None:
    assert choice_of(open_page("home")) is None
    assert "is no dataset 'nobody'" in open_page("datasets", dataset="nobody").error[0].value


@pytest.mark.parametrize("page", ["home", "curate", "jobs"])
def test_every_link_of_the_frame_and_of_the_page_keeps_the_dataset(two: Store, page: str) -> None:
    at = open_page(page, dataset="world")
    links = [
        each.proto for part in (at.main, at.sidebar) for each in part if each.type == "page_link"
    ]
    assert len(links) >= 8
    for link in links:
        assert re.search(r"(^|&)dataset=", link.query_string), link.label


def test_links_are_drawn_in_one_place_so_that_none_forgets_the_dataset() -> None:
    own = re.compile(r"st\.(sidebar\.)?(page_link|switch_page)\b|\.page_link\(")
    found = [
        path.relative_to(APP).as_posix()
        for path in APP.rglob("*.py")
        if own.search(path.read_text()) and path.name != "links.py"
    ]
    assert found == []


def test_the_choice_before_holds_where_the_url_names_none(two: Store) -> None:
    at = AppTest.from_file(str(MAIN), default_timeout=180)
    at.run()
    assert choice_of(at) == "another"  # worked on last
    at.selectbox(CHOICE).select("world").run()
    del at.query_params["dataset"]
    at.run()
    assert choice_of(at) == "world"


def test_checkpoints_and_trainings_of_no_release_show_under_every_dataset(two: Store) -> None:
    with two.write() as session:
        session.add(Checkpoint(path="/out/free", base_model="b", config={}, summary={}))
        session.commit()
    for name in ("world", "another"):
        assert "free" in drawn(open_page("train", dataset=name))


def test_an_archived_dataset_is_not_offered(two: Store) -> None:
    with two.write() as session:
        one = session.scalars(select(Dataset).where(Dataset.name == "another")).one()
        one.archived_at = one.created_at
        session.commit()
    assert choice_of(open_page("home")) is None
    assert "another" in open_page("home", dataset="another").error[0].value


def new_account(session: Session, name: str) -> Account:
    """An account without any right."""
    return add_account(
        session, name, "correct horse battery", role="annotator", actor="test", dataset_ids=[]
    )


def member_of(store: Store, monkeypatch: pytest.MonkeyPatch, name: str, *rights: str) -> None:
    """Sign in as somebody who has these rights on this dataset alone."""
    with store.write() as session:
        number = session.scalars(select(Dataset.id).where(Dataset.name == name)).one()
        account = new_account(session, "mara")
        add_rights(session, account, rights, actor="test", dataset_id=number)
        send_cookies(monkeypatch, {"inf_session": start_session(session, account)})
        session.commit()


def test_the_default_is_the_dataset_of_the_newest_run_or_import(two: Store) -> None:
    with two.write() as session:
        run = session.scalars(select(Run).where(Run.id == 1)).one()
        later = session.scalars(select(Run).where(Run.id == 2)).one()
        run.created_at, later.created_at = later.created_at, run.created_at
        session.commit()
    assert choice_of(open_page("home")) == "world"
