"""What a page shows of groups in full is recorded: a later study does not give it to its reader."""

import pytest
from app_pages import open_page, sign_in
from sqlalchemy import select
from study_world import make_world, sampled_study

from app.judge.actions import card_data
from db.store.store import Store
from db.study.judgments import get_or_create_judge
from db.tables import Account, Group, Item, OpenedGroup, StudyItem


@pytest.mark.parametrize("role", ["curator", "annotator"])
def test_who_read_a_group_before_the_study_is_not_given_its_items(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch, role: str
) -> None:
    run_id = make_world(sqlite_store, 9)
    sign_in(sqlite_store, monkeypatch, role)
    open_page("groups", run=str(run_id))
    with sqlite_store.write() as session:
        read = set(session.scalars(select(OpenedGroup.group_id)))
        assert len(read) == 3  # the first and what is sent ahead
        places = set(session.execute(select(OpenedGroup.opened_by, OpenedGroup.place)).all())
        assert places == {(f"a {role}", "read")}
        account = session.scalars(select(Account)).one()
        get_or_create_judge(session, account.name, kind="person", account_id=account.id)
        study = sampled_study(session, run_id=run_id, items=9, overlap=1)
        session.commit()
        of_group = (
            select(Item.group_id)
            .join(StudyItem, StudyItem.item_id == Item.id)
            .where(StudyItem.study_id == study.id)
        )
        assert read < set(session.scalars(of_group)) == set(session.scalars(select(Group.id)))
    data = card_data(study.id, [])
    assert data["left"] == 9 - len(read)
