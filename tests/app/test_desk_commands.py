"""The desk of a study: by command, by route and on the page it is the same."""

from collections.abc import Callable

import pytest
from app_pages import open_page, people_of, select_people, sign_in, words
from conftest import Ran
from desk_world import make_team

from app.access.identity import owner
from app.api.routes import by_name
from app.operations.judging import studies
from curation.judging.request import JudgeChange, StudyMessage
from db.errors import BadInput, NotFound
from db.store.store import Store


@pytest.fixture
def team(sqlite_store: Store, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setenv("INF_DATABASE_URL", sqlite_store.url)
    return make_team(sqlite_store, people=5, items=20, overlap=2)


def rows(study_id: int) -> dict[str, dict[str, object]]:
    return {row["name"]: row for row in studies.judges(owner("cora"), study_id).as_json()["data"]}


def test_several_people_get_a_quota_or_nobody_does(team: int, inf: Callable[..., Ran]) -> None:
    both = ("--set", "ada", "--set", "cem", "--quota", 12, "--due", "2026-12-04")
    done = inf("studies", "people", team, *both, "--json")
    assert done.json["message"] == "ada, cem: Set for 2 judges."
    assert {name for name, row in rows(team).items() if row["quota"] == 12} == {"ada", "cem"}
    assert inf("studies", "people", team, "--unset", "ada", "--json").code == 0
    assert (rows(team)["ada"]["quota"], rows(team)["ada"]["due_on"]) == (None, None)
    wanted = JudgeChange(study_id=team, action="pause", judges=("ada", "zoe"), reason="x")
    with pytest.raises(NotFound, match="zoe"):
        studies.change_judges(owner("cora"), wanted)
    assert {row["state"] for row in rows(team).values()} == {"active"}


def test_options_that_do_not_go_together_are_refused(team: int, inf: Callable[..., Ran]) -> None:
    for given in (
        ("--set", "ada"),
        ("--quota", 3),
        ("--set", "ada", "--pause", "ben", "--reason", "x", "--quota", 3),
        ("--set", "ada", "--due", "soon"),
    ):
        assert inf("studies", "people", team, *given).code == 2, given
    for wrong in ({"action": "set"}, {"action": "pause", "quota": 2}, {"action": "give"}):
        with pytest.raises(BadInput):
            JudgeChange.read({"study_id": team, "judges": ["ada"], **wrong})


def test_messages_are_the_same_by_command_route_and_page(
    team: int, inf: Callable[..., Ran]
) -> None:
    assert inf("studies", "write", team, "Hello $x$ **all**", "--json").json["to"] == []
    assert inf("studies", "write", team, "You two", "--to", "ada", "--to", "ben").code == 0
    route = by_name()["studies messages"]
    listed = route.call(owner("cora"), route.request.read({"id": team})).as_json()
    assert inf("studies", "messages", team, "--json").json["data"] == listed["data"]
    assert [(one["body"], one["to"]) for one in listed["data"]] == [
        ("You two", ["ada", "ben"]),
        ("Hello $x$ **all**", []),
    ]
    drawn = [each.value for each in open_page("studies").dataframe if "body" in each.value]
    assert list(drawn[0]["body"]) == ["You two", "Hello $x$ **all**"]


@pytest.mark.long
def test_the_table_filters_and_acts_on_those_who_were_selected(team: int) -> None:
    page = open_page("studies")
    everyone = [row["name"] for row in people_of(page)]
    page.text_input("studies.people_name").set_value("A").run()
    assert [row["name"] for row in people_of(page)] == [n for n in everyone if "a" in n]
    select_people(page, team, "dora")
    page.segmented_control("studies.doing").set_value("Quota and due date").run()
    page.number_input("studies.quota").set_value(7).run()
    page.button("studies.do").click().run()
    assert not page.exception
    assert {name for name, row in rows(team).items() if row["quota"] == 7} == {"dora"}
    page.text_input("studies.people_name").set_value("").run()
    assert "selected" not in words(page)  # other rows: nobody is
    select_people(page, team, "ben", "cem")
    page.segmented_control("studies.doing").set_value("Write").run()
    page.text_area("studies.message").set_value("Please mind the year.").run()
    page.button("studies.do").click().run()
    (sent,) = studies.messages(owner("cora"), team).data
    assert sent.to == ("ben", "cem")


def test_the_desk_shows_who_needs_something(team: int) -> None:
    page = open_page("studies")
    assert "1 late" in words(page) and "2 with new messages" in words(page)
    page.selectbox("studies.people_shown").select("late").run()
    assert [row["name"] for row in people_of(page)] == ["ben"]


def test_a_judge_reads_messages_above_the_card_until_they_say_so(
    team: int, sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    sign_in(sqlite_store, monkeypatch, "annotator")
    open_page("judge", study=str(team))  # who joins reads what is for everyone
    mine = {"study_id": team, "judges": ("a annotator",), "action": "set", "quota": 3}
    studies.change_judges(owner("cora"), JudgeChange.read(mine | {"due_on": "2026-12-04"}))
    studies.write(owner("cora"), StudyMessage(study_id=team, body="mind the $year$"))
    studies.write(owner("cora"), StudyMessage(study_id=team, body="not for you", to=("ada",)))
    page = open_page("judge", study=str(team))
    assert "mind the $year$" in words(page) and "not for you" not in words(page)
    assert "3 items for you" in words(page) and "until 2026-12-04" in words(page)
    page.button(f"judge.message_read_{team}").click().run()
    assert not page.exception
    assert f"judge.message_read_{team}" not in [each.key for each in page.button]
    assert [one.read for one in studies.messages(owner("cora"), team).data] == [0, 1]
