"""Names of people: refused at every door that makes an account, and never those of machines."""

import threading
from collections.abc import Callable

import pytest
from leases import lease_items
from sqlalchemy import String, func, select, text, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import InstrumentedAttribute, Session
from study_world import make_world, sampled_study

from db.assignment.known_items import known_items
from db.errors import BadInput, InfError, NotFound, Refused
from db.events import list_events
from db.people.accounts import add_account, check_password, set_disabled, set_role
from db.people.invitations import accept_invitation, invite
from db.people.passwords import HashedPassword
from db.people.renaming import NAMING, delete_account, rename_account
from db.people.sign_ins import open_session, start_session
from db.review.reviews import approve_group
from db.store import schema
from db.store.revision import migrations, revisions_before
from db.store.store import Store
from db.study.adjudication import adjudicate, get_disputed
from db.study.judgments import get_or_create_judge, judgment_frame, record_judgment
from db.tables import (
    Account,
    AdjudicationView,
    Announcement,
    Assignment,
    Connection,
    Group,
    Item,
    ItemMessage,
    Job,
    Judge,
    Judgment,
    Member,
    OpenedGroup,
    PasswordLink,
    ProgramLease,
    RecipeVersion,
    Release,
    Review,
    StudyItem,
    Tour,
    VerdictVersion,
    Webhook,
    utc_now,
)
from db.tables.base import Base

HASHED = HashedPassword("not used")
MACHINES = (
    "adjudicator:cur",
    "simulated:1",
    "openai:gpt-4o-mini",
    "cli:root",
    "openai：gpt-4o-mini",
    "openai꞉gpt-4o-mini",  # a modifier letter that looks like one
)
ADMINS = ("local admin", "Local Admin", "LOCAL ADMlN", "lοcal admin", "local-admin", "Localadmin")
GONE = ("deleted person 1", "de1eted person 1", "Deleted-Person 1")
TWINS = ("ANN1", "Ann1", "annl", "аnn1", "ａｎｎ１")
UNSEEN = ("ann1\u2800", "ann1\u200b", "ann1\ufe0f", "ann1\u034f", "ann\u00a01")


def people(session: Session, *names: str) -> list[Account]:
    """An admin, and annotators of these names."""
    add_account(session, "root", HASHED, role="admin", actor="test")
    return [add_account(session, one, HASHED, role="annotator", actor="test") for one in names]


@pytest.mark.parametrize("name", (*MACHINES, *ADMINS, *TWINS, *UNSEEN, *GONE))
def test_an_invitation_makes_no_account_under_a_name_that_misleads(store: Store, name: str) -> None:
    with store.write() as session:
        people(session, "ann1")
        token = invite(session, role="annotator", days=1, actor="root")
        with pytest.raises((BadInput, Refused)) as refused:
            accept_invitation(session, token, name, HASHED)
        assert refused.value.code.startswith("account_")


@pytest.mark.parametrize(
    "name", ("Анна", "田中タロウ Ken", "김민수", "José", "ann@example.org", "o'Neil-2", "عائشة")
)
def test_names_of_one_script_are_for_everyone(store: Store, name: str) -> None:
    with store.write() as session:
        (account,) = people(session, f" {name} ")
        assert account.name == name


def legacy(session: Session, name: str) -> Account:
    """An account that an earlier version allowed."""
    account = Account(name=name, role="annotator")
    session.add(account)
    session.flush()
    return account


@pytest.mark.parametrize(
    ("name", "kind", "is_simulated"),
    [
        ("openai:gpt-4o-mini", "model", False),
        ("simulated:1", "person", True),
        ("adjudicator:cur", "adjudicator", False),
    ],
)
@pytest.mark.parametrize("person_comes_first", (True, False))
def test_a_person_with_a_machine_s_name_neither_ends_its_work_nor_answers_for_it(
    store: Store, name: str, kind: str, is_simulated: bool, person_comes_first: bool
) -> None:
    with store.write() as session:
        people(session)
        account = legacy(session, name)

        def person() -> Judge:
            return get_or_create_judge(session, name, kind="person", account_id=account.id)

        def machine() -> Judge:
            return get_or_create_judge(session, name, kind=kind, simulated=is_simulated)

        first, second = (person(), machine()) if person_comes_first else (machine(), person())
        assert first.id != second.id
        assert (person().account_id, machine().account_id) == (account.id, None)
        assert machine().name == name and person().name != name
        assert person().person == name


def test_rules_of_blindness_hold_for_a_person_with_a_machine_s_name(store: Store) -> None:
    run_id = make_world(store, groups=6)
    with store.write() as session:
        people(session)
        study = sampled_study(session, run_id=run_id, items=4, overlap=2)
        name = "openai:gpt-4o-mini"
        account = legacy(session, name)
        get_or_create_judge(session, name, kind="model")
        judge = get_or_create_judge(session, name, kind="person", account_id=account.id)
        item = session.scalars(select(Item).join(StudyItem).limit(1)).one()
        pair_id = session.get_one(Group, item.group_id).pair_id
        assert pair_id not in known_items(session, study.id, judge.id).pairs
        approve_group(session, item.group_id, reviewed_by=name)
        assert pair_id in known_items(session, study.id, judge.id).pairs


def test_an_adjudicator_knows_what_they_decided_and_not_what_a_person_of_such_a_name_judged(
    store: Store,
) -> None:
    run_id = make_world(store, groups=6)
    with store.write() as session:
        cur = people(session, "cur")[0]
        study = sampled_study(session, run_id=run_id, items=4, overlap=2)
        other = legacy(session, "adjudicator:cur")
        judge = get_or_create_judge(session, "cur", kind="person", account_id=cur.id)
        twin = get_or_create_judge(session, other.name, kind="person", account_id=other.id)
        one, two = session.scalars(select(Item).join(StudyItem).order_by(Item.id).limit(2))
        decide(session, twin.id, one, study.id)
        assert known_items(session, study.id, judge.id).pairs == set()
        adjudicate(session, study.id, two.id, "none", by="cur")
        pair_id = session.get_one(Group, two.group_id).pair_id
        assert known_items(session, study.id, judge.id).pairs == {pair_id}


def decide(session: Session, judge_id: int, item: Item, study_id: int) -> Judgment:
    """A judgment of a judge on an item."""
    return record_judgment(
        session,
        judge_id=judge_id,
        item_id=item.id,
        choice="none",
        order_shown=[entry["label"] for entry in item.candidates],
        event_id=f"{judge_id}/{item.id}",
        study_id=study_id,
    )


def test_the_columns_that_name_people_are_all_of_the_tables() -> None:
    named = {f"{column.class_.__tablename__}.{column.key}" for column in NAMING}
    found = {
        f"{table.name}.{column.name}"
        for table in Base.metadata.tables.values()
        for column in table.columns
        if column.name.endswith("_by") or column.name in ("person", "actor")
    }
    assert found - named == {"event.actor"} and named <= found


def test_a_renamed_account_keeps_what_it_did_and_what_it_may_not_see(store: Store) -> None:
    run_id = make_world(store, groups=6)
    with store.write() as session:
        ann = people(session, "ann", "bob")[0]
        study = sampled_study(session, run_id=run_id, items=4, overlap=2)
        judge = get_or_create_judge(session, "ann", kind="person", account_id=ann.id)
        one, two, three = session.scalars(select(Item).join(StudyItem).order_by(Item.id).limit(3))
        decide(session, judge.id, one, study.id)
        adjudicate(session, study.id, two.id, "none", by="ann")
        approve_group(session, three.group_id, reviewed_by="ann", event_id="bulk:ann/1/2")
        before = known_items(session, study.id, judge.id)
        assert len(before.pairs) == 2  # adjudicated, and approved
        for taken in ("bob", "Bob", "openai:gpt-4o-mini", ""):
            with pytest.raises(InfError):
                rename_account(session, "ann", taken, actor="root")
        assert rename_account(session, "ann", "Ann", actor="root").name == "Ann"
        renamed = rename_account(session, "Ann", "Anna Li", actor="root")
        assert get_or_create_judge(session, renamed.name, kind="person", account_id=ann.id) is judge
        assert (judge.name, judge.person) == ("Anna Li", "Anna Li")
        assert known_items(session, study.id, judge.id) == before
        assert get_disputed(session, study.id, two.id).decided_by == "Anna Li"
        (review,) = session.scalars(select(Review))
        assert (review.reviewed_by, review.event_id) == ("Anna Li", "bulk:Anna Li/1/2")
        assert [row.judge for row in judgment_frame(session, study.id)] == ["Anna Li"]
        assert names_left(session, "ann") == []
        entries = [row for row in list_events(session)[0] if row.name == "account.rename"]
        assert [(row.actor, row.subject, row.data) for row in entries] == [
            ("root", "Ann", {"after": "Anna Li"}),
            ("root", "ann", {"after": "Ann"}),
        ]
        add_account(session, "ann", HASHED, role="annotator", actor="root")  # the name is free


def names_left(session: Session, name: str) -> list[str]:
    """The columns, but for the audit log's, in which a name still stands."""
    return [
        f"{table.name}.{column.name}"
        for table in Base.metadata.tables.values()
        for column in table.columns
        if isinstance(column.type, String) and table.name != "event"
        if session.execute(select(column).where(column == name)).first()
    ]


def test_a_deleted_account_leaves_its_judgments_under_a_pseudonym(store: Store) -> None:
    run_id = make_world(store, groups=6)
    with store.write() as session:
        people(session)
        token = invite(session, role="annotator", days=1, actor="root")
        eve = accept_invitation(session, token, "eve", HASHED)
        cookie = start_session(session, eve)
        study = sampled_study(session, run_id=run_id, items=4, overlap=2)
        judge = get_or_create_judge(session, "eve", kind="person", account_id=eve.id)
        (shown,) = lease_items(session, study.id, judge.id, 1)
        first = session.scalars(select(Assignment)).one()
        item = session.scalars(select(Item).join(StudyItem).where(Item.id != shown.item_id)).first()
        decide(session, judge.id, item, study.id)
        approve_group(session, item.group_id, reviewed_by="eve")
        pseudonym = delete_account(session, "eve", actor="root")
        session.commit()
    with store.write() as session:
        assert open_session(session, cookie) is None
        assert names_left(session, "eve") == []
        assert session.scalar(select(func.count()).select_from(Member)) == 0
        stored = session.get_one(Judge, judge.id)
        assert (stored.name, stored.account_id) == (pseudonym, None)
        assert [row.judge for row in judgment_frame(session, study.id)] == [pseudonym]
        assert session.scalars(select(Review.reviewed_by)).all() == [pseudonym]
        assert session.get_one(Assignment, first.id).state == "expired"
        (row,) = [row for row in list_events(session)[0] if row.name == "account.delete"]
        assert (row.subject, row.data) == ("eve", {"pseudonym": pseudonym})
        for again in (token, invite(session, role="annotator", days=1, actor="root")):
            if again == token:
                with pytest.raises(Refused, match="used already"):
                    accept_invitation(session, again, "eve", HASHED)
                continue
            later = accept_invitation(session, again, "eve", HASHED)  # another person
            own = get_or_create_judge(session, "eve", kind="person", account_id=later.id)
            assert own.id != judge.id
            assert known_items(session, study.id, own.id).pairs == set()


def test_the_last_admin_cannot_be_deleted(store: Store) -> None:
    with store.write() as session:
        people(session, "ann")
        with pytest.raises(Refused, match="last admin"):
            delete_account(session, "root", actor="root")
        add_account(session, "second", HASHED, role="admin", actor="root")
        delete_account(session, "root", actor="second")
        with pytest.raises(Refused, match="last admin"):
            delete_account(session, "second", actor="second")
        assert session.scalars(select(Account.name).order_by(Account.name)).all() == [
            "ann",
            "second",
        ]


def at_once(
    store: Store, first: Callable[[Session], object], second: Callable[[Session], object]
) -> InfError | None:
    """Do both in two transactions that are open together; why the second one was refused."""
    refusals: list[InfError] = []

    def act() -> None:
        with store.write() as session:
            try:
                second(session)
                session.commit()
            except InfError as refusal:
                refusals.append(refusal)

    with store.write() as session:
        first(session)
        session.flush()
        other = threading.Thread(target=act)
        other.start()
        other.join(1)  # it waits for what this transaction holds, or goes past it
        session.commit()
    other.join(60)
    assert not other.is_alive()
    return refusals[0] if refusals else None


ENDINGS: dict[str, Callable[[Session, str], object]] = {
    "delete": lambda session, name: delete_account(session, name, actor="test"),
    "disable": lambda session, name: set_disabled(session, name, True, actor="test"),
    "demote": lambda session, name: set_role(session, name, "curator", actor="test"),
}


@pytest.mark.parametrize("ending", ENDINGS)
def test_two_admins_who_end_each_other_at_the_same_moment_leave_one(
    store: Store, ending: str
) -> None:
    with store.write() as session:
        people(session)
        add_account(session, "second", HASHED, role="admin", actor="root")
        session.commit()
    end = ENDINGS[ending]
    refusal = at_once(
        store, lambda session: end(session, "second"), lambda session: end(session, "root")
    )
    assert isinstance(refusal, Refused) and "last admin" in str(refusal)
    with store.read() as session:
        left = select(Account.name).where(Account.role == "admin", ~Account.disabled)
        assert session.scalars(left).all() == ["root"]


def test_an_account_that_another_admin_deletes_at_the_same_moment_is_not_found(
    store: Store,
) -> None:
    with store.write() as session:
        people(session)
        for name in ("second", "third"):
            add_account(session, name, HASHED, role="admin", actor="root")
        session.commit()

    def end(session: Session) -> object:
        return delete_account(session, "third", actor="test")

    assert isinstance(at_once(store, end, end), NotFound)


@pytest.mark.parametrize("is_new", [True, False])
@pytest.mark.parametrize("twin", ["zoe1", "ZOE1"])
def test_a_name_that_another_takes_at_the_same_moment_exists_already(
    store: Store, twin: str, is_new: bool
) -> None:
    with store.write() as session:
        people(session, "ann", "bob")
        session.commit()

    def take(session: Session) -> object:
        if is_new:
            return add_account(session, twin, HASHED, role="annotator", actor="test")
        return rename_account(session, "bob", twin, actor="root")

    refusal = at_once(
        store, lambda session: rename_account(session, "ann", "zoe1", actor="x"), take
    )
    assert isinstance(refusal, Refused)
    # SQLite's second writer waits, and then sees the first one's name
    seen = "account_exists" if twin == "zoe1" else "account_alike"
    assert refusal.code == (seen if store.is_sqlite else "account_exists")


@pytest.mark.parametrize("column", NAMING, ids=str)
def test_no_account_is_renamed_to_a_name_that_stands_for_what_another_person_did(
    store: Store, column: InstrumentedAttribute[str]
) -> None:
    run_id = make_world(store, groups=6)
    with store.write() as session:
        ann = people(session, "ann")[0]
        study = sampled_study(session, run_id=run_id, items=4, overlap=2, created_by="ann")
        item = session.scalars(select(Item).join(StudyItem)).first()
        assert item is not None
        approve_group(session, item.group_id, reviewed_by="ann")
        for row in (
            Release(
                dataset_id=study.dataset_id,
                name="one",
                content_sha256="x",
                path="x",
                format="jsonl",
                filter={},
                counts={},
                card="",
                offline=False,
            ),
            Tour(person="x"),
            Connection(name="lab", kind="offline"),
            RecipeVersion(name="mine", number=1, files={}, sha256=""),
            Webhook(url="https://hooks.example", events=[], after_event=0),
            VerdictVersion(run_id=study.run_id, number=2),
            OpenedGroup(group_id=item.group_id, opened_by="x", place="groups"),
            AdjudicationView(study_id=study.id, item_id=item.id, seen_by="x", order_shown=[]),
            Job(kind="curate", config={}),
            Announcement(study_id=study.id, body="x", written_by="x", for_all=True),
        ):
            session.add(row)
        judge = get_or_create_judge(session, "ann", kind="person", account_id=ann.id)
        session.add(
            ItemMessage(
                study_id=study.id, item_id=item.id, judge_id=judge.id, body="why?", event_id="x"
            )
        )
        session.add(
            ProgramLease(
                **{"study_id": study.id, "item_id": item.id, "judge_id": judge.id},
                **{"person": "x", "worker": "w", "order_shown": [], "lease_until": utc_now()},
            )
        )
        invite(session, role="annotator", days=1, actor="root")
        session.add(
            PasswordLink(
                account_id=ann.id, token_sha256="x", created_by="root", expires_at=utc_now()
            )
        )
        session.flush()
        changed = session.execute(update(column.class_).values({column: "imported"}))
        assert changed.rowcount  # type: ignore[attr-defined]
        with pytest.raises(Refused, match="imported") as refused:
            rename_account(session, "ann", "imported", actor="root")
        assert refused.value.code == "account_alike"
        assert ann.name == "ann" and judge.name == "ann"


def test_no_account_is_renamed_to_the_name_that_a_judge_of_another_person_is_shown_under(
    store: Store,
) -> None:
    with store.write() as session:
        _, bob = people(session, "ann", "bob")
        other = get_or_create_judge(session, "bob", kind="person", account_id=bob.id)
        other.name = "anna (person)"
        session.flush()
        with pytest.raises(Refused, match="anna"):
            rename_account(session, "ann", "anna", actor="root")


@pytest.mark.parametrize(
    ("name", "typed"),
    [
        ("Ann Lee", "  Ann   Lee "),
        ("Jos\u00e9", "Jose\u0301"),
        ("ann  lee", "ann  lee"),  # of an earlier version
    ],
)
def test_one_signs_in_by_the_name_as_it_is_typed(store: Store, name: str, typed: str) -> None:
    password = "correct horse battery"
    with store.write() as session:
        account = add_account(session, "first", password, role="admin", actor="test")
        account.name = name
        session.flush()
        found = check_password(session, typed, password)
        assert found is account
        assert check_password(session, typed + "x", password) is None


def test_the_database_refuses_a_second_name_of_the_same_key(store: Store) -> None:
    with store.write() as session:
        people(session, "ann1")
        for twin in ("ANN1", "аnn1"):
            with pytest.raises(IntegrityError), session.begin_nested():
                session.add(Account(name=twin, role="annotator"))
                session.flush()


def test_accounts_of_an_earlier_version_keep_their_names(store: Store) -> None:
    names = ["ann1", "ANN1", "аnn1", "local admin", "openai:gpt-4o-mini", "adjudicator:cur"]
    (migration,) = migrations().glob("versions/*_keys_of_names.py")
    schema.downgrade(store, revisions_before()[migration.name.split("_")[0]])
    with store.engine.begin() as connection:
        for name in names:
            connection.execute(
                text(
                    "INSERT INTO account (name, role, disabled, created_at) "
                    "VALUES (:name, 'annotator', FALSE, CURRENT_TIMESTAMP)"
                ),
                {"name": name},
            )
    schema.upgrade(store)
    schema.require_current(store)
    with store.write() as session:
        accounts = {each.name: each for each in session.scalars(select(Account))}
        assert {name: accounts[name].name_problem for name in names} == {
            "ann1": None,
            "ANN1": "alike",
            "аnn1": "scripts",
            "local admin": "reserved",
            "openai:gpt-4o-mini": "reserved",
            "adjudicator:cur": "reserved",
        }
        for name in names:
            judge = get_or_create_judge(session, name, kind="person", account_id=accounts[name].id)
            assert judge.person == name
        for number, twin in enumerate(names):
            rename_account(session, twin, f"person number {number}a", actor="root")
        assert names_left(session, "ANN1") == []
        assert all(each.name_problem is None for each in accounts.values())
        with pytest.raises(IntegrityError):
            session.add(Account(name="PERSON NUMBER 0a", role="annotator"))
            session.flush()
