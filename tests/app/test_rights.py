"""Every permission × role × membership, on two datasets, with the store's own functions."""

import ast
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import rights_table
from app_pages import (
    MAIN,
    cookies_of,
    open_page,
    page_path,
    redraw_fragments,
    send_cookies,
    words,
)
from full_store import fill
from leases import lease_items
from sqlalchemy import delete, func, select, update
from sqlalchemy.exc import IntegrityError, NoResultFound
from sqlalchemy.orm import Session, aliased
from streamlit.testing.v1 import AppTest
from study_world import make_world, sampled_study

from app.access.identity import COOKIE, SessionUser
from app.access.permissions import NEEDS, require
from app.jobs.places import require_own, require_places
from app.kit.menu import APP, MENU, views_for
from app.operations.judging.desk import store_reviews
from db.assignment.reassigning import reassign
from db.errors import BadInput, InfError, NotFound, Refused
from db.home import home
from db.jobs.jobs import request_stop
from db.people.accounts import add_account, get_account, set_role
from db.people.invitations import accept_invitation, invite
from db.people.rights import PRESETS, Rights, add_rights, list_members, rights_of, set_rights
from db.people.sign_ins import start_session
from db.release.releases import get_release
from db.review.queue import show_verdicts
from db.review.reviews import reject_group
from db.run.group_detail import get_group
from db.run.progress import list_runs
from db.run.runs import stop_run
from db.store import schema, scope
from db.store.store import Store, open_store
from db.study.blind_adjudication import ids_to_adjudicate
from db.study.judgments import get_or_create_judge
from db.study.studies import list_studies, set_status
from db.tables import Account, Dataset, Group, Job, Member, Pair, Passage, Release, Run, Study
from db.values import RIGHTS, STUDY_RIGHTS

PASSWORD = "correct horse battery"
# By hand, not from the code: which rights each permission takes; "and": all of them.
TAKES: dict[str, set[str]] = {
    "accounts": {"admin"},
    "connections": {"admin"},
    "webhooks": {"admin"},
    "audit": {"admin"},
    "watch": {"admin"},
    "server": {"admin"},
    "curate": {"curate"},
    "import": {"curate"},
    "upload": {"curate"},
    "analyze": {"curate"},
    "studies": {"curate"},
    "show_verdicts": {"curate"},
    "groups": {"curate", "review"},
    "review": {"review"},
    "review_many": {"and", "curate", "review"},
    "judge": {"judge"},
    "adjudicate": {"adjudicate"},
    "train": {"train"},
    "evaluate": {"train"},
    "try": {"train"},
    "export": {"release"},
    "jobs": {"curate", "train", "release"},
    "tokens": {"curate", "train", "release"},
    "any": set(RIGHTS),
}
HELD: dict[str, set[str]] = {
    "annotator": {"judge", "review"},
    "curator": {"judge", "review", "adjudicate", "curate", "train", "release"},
    **{f"only {right}": {right} for right in RIGHTS},
}


@dataclass(frozen=True)
class Place:
    """A dataset with one of everything, by id."""

    name: str
    dataset: int
    run: int
    group: int
    study: int
    other_study: int
    release: int
    job: int


@dataclass(frozen=True)
class World:
    """Two datasets; rights are on the first, or on its first study."""

    store: Store
    mine: Place
    other: Place


@pytest.fixture(scope="module")
def world(sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    path = tmp_path_factory.mktemp("rights") / "inf.db"
    path.write_bytes(sqlite_template.read_bytes())
    store = open_store(f"sqlite:///{path}")
    yield World(store, make_place(store, "mine"), make_place(store, "other"))
    store.close()


def make_place(store: Store, name: str) -> Place:
    run_id = make_world(store, 6, name=name)
    with store.write() as session:
        run = session.get_one(Run, run_id)
        run.status = "running"
        studies = [
            sampled_study(
                session, run_id=run_id, items=3, overlap=2, seed=seed, name=f"{name} {seed}"
            )
            for seed in (1, 2)
        ]
        release = Release(
            dataset_id=run.dataset_id,
            name=name,
            content_sha256="0" * 64,
            path=f"/releases/{name}",
            format="jsonl",
            filter={},
            counts={},
            card="",
            offline=True,
        )
        job = Job(kind="curate", config={"run_id": run_id}, started_by="root")
        session.add_all([release, job])
        session.flush()
        group = session.scalars(select(Group.id).where(Group.run_id == run_id)).first()
        assert group is not None
        place = Place(
            name,
            run.dataset_id,
            run_id,
            group,
            studies[0].id,
            studies[1].id,
            release.id,
            job.id,
        )
        session.commit()
        return place


def review(session: Session, place: Place) -> None:
    entry = {"event": f"e{place.group}", "run": place.run, "group": place.group, "kind": "approve"}
    answers, _ = store_reviews(session, "somebody", [entry], blind=False, run_id=place.run)
    if (error := answers[f"e{place.group}"]) is not None:
        raise error


def judge(session: Session, place: Place) -> None:
    judge_id = get_or_create_judge(session, "somebody", kind="person").id
    assert lease_items(session, place.study, judge_id, 1)


WRITES: dict[str, Callable[[Session, Place], Any]] = {
    "curate": lambda session, place: stop_run(session, place.run),
    "import": lambda session, place: require_places(session, {"dataset": place.name}),
    "analyze": lambda session, place: require_places(session, {"datasets": [place.name]}),
    "studies": lambda session, place: set_status(session, place.study, "paused"),
    "show_verdicts": lambda session, place: show_verdicts(session, place.run, True, actor="x"),
    "groups": lambda session, place: get_group(session, place.group),
    "review": review,
    "review_many": lambda session, place: reject_group(
        session, place.group, reason="x", reviewed_by="somebody"
    ),
    "judge": judge,
    "adjudicate": lambda session, place: ids_to_adjudicate(
        session, place.study, "somebody", open_only=True, include_agreed=False
    ),
    "train": lambda session, place: get_release(session, place.release),
    "evaluate": lambda session, place: require_places(session, {"release": str(place.release)}),
    "try": lambda session, place: get_release(session, place.release),
    "export": lambda session, place: require_places(session, {"run_id": place.run}),
    "jobs": lambda session, place: request_stop(session, place.job),
}
WITHOUT_PLACE = {"accounts", "connections", "webhooks", "audit", "server", "upload"} | {
    *("tokens", "any", "watch")
}


def rights_in(world: World, role: str, membership: str) -> Rights:
    held = frozenset(HELD.get(role, ()))
    if role == "admin":
        return Rights(is_admin=True)
    if membership == "everywhere":
        return Rights(everywhere=held)
    if membership == "on a dataset":
        return Rights(on_datasets={world.mine.dataset: held})
    if membership == "on a study":
        return Rights(
            on_studies={world.mine.study: held & {"judge", "adjudicate"}},
            dataset_of={world.mine.study: world.mine.dataset},
        )
    return Rights()


def expected(permission: str, role: str, membership: str) -> str:
    """What a permission reaches, said a second time."""
    if role == "admin":
        return "everything"
    held = HELD[role] & {"judge", "adjudicate"} if membership == "on a study" else HELD[role]
    takes = TAKES[permission]
    meets = takes - {"and"} <= held if "and" in takes else bool(takes & held)
    if membership == "nowhere" or not meets:
        return "–"
    return {
        "everywhere": "everything",
        "on a dataset": "the dataset",
        "on a study": "the study",
    }[membership]


@contextmanager
def seen_by(found: scope.Scope | None) -> Iterator[None]:
    """Sessions of the store as a page opens them."""
    with scope.limited_to(found):
        yield


ROLES = ("admin", *HELD)
MEMBERSHIPS = ("everywhere", "on a dataset", "on a study", "nowhere")


def test_the_tables_of_this_test_name_every_permission_role_and_right() -> None:
    assert set(TAKES) == set(NEEDS)
    assert set(WRITES) | WITHOUT_PLACE == set(NEEDS)
    assert set(HELD) == set(rights_table.ROLES)
    assert {role: set(rights) for role, rights in PRESETS.items() if rights} == {
        "annotator": HELD["annotator"],
        "curator": HELD["curator"],
    }


@pytest.mark.parametrize("permission", TAKES)
def test_every_role_and_membership_reaches_what_it_should_and_nothing_else(
    world: World, permission: str
) -> None:
    for role in ROLES:
        for membership in MEMBERSHIPS:
            walk(world, permission, role, membership)


def walk(world: World, permission: str, role: str, membership: str) -> None:
    case = f"{permission}, {role}, {membership}"
    user = SessionUser("somebody", role, 1, rights=rights_in(world, role, membership))
    reach = expected(permission, role, membership)
    if reach == "–":
        with pytest.raises(Refused):
            require(user, permission)
            pytest.fail(case)
    else:
        assert require(user, permission) is user, case
    found = NEEDS[permission].scope(user)
    assert (found is None) is (reach == "everything"), case
    with seen_by(found):
        check_sight(world, reach, case, permission)
        if permission in WRITES:
            for place in (world.mine, world.other):
                is_allowed = reach == "everything" or (place is world.mine and reach != "–")
                check_write(world.store, permission, place, is_allowed, case)


def check_sight(world: World, reach: str, case: str, permission: str) -> None:
    """The datasets, studies, releases and groups that a session sees."""
    mine, other = world.mine, world.other
    whole = {"everything": {mine, other}, "the dataset": {mine}}.get(reach, set())
    studies = {one for place in whole for one in (place.study, place.other_study)}
    by_study = reach == "the study"
    with world.store.read() as session:
        assert set(session.scalars(select(Dataset.id))) == {
            one.dataset for one in (whole | {mine} if by_study else whole)
        }, case
        assert set(session.scalars(select(Study.id))) == ({mine.study} if by_study else studies), (
            case
        )
        assert {one.id for one in list_studies(session)} == (
            {mine.study} if by_study else studies
        ), case
        assert set(session.scalars(select(Release.id))) == {one.release for one in whole}, case
        if permission not in ("judge", "adjudicate"):
            runs = {one.run for one in whole}
            assert set(session.scalars(select(Group.run_id))) == runs, case


def check_write(store: Store, permission: str, place: Place, is_allowed: bool, case: str) -> None:
    with store.write() as session:
        try:
            WRITES[permission](session, place)
        except (InfError, NoResultFound) as error:
            assert not is_allowed, f"{case}, {place.name}: {error}"
        else:
            assert is_allowed, f"{case}, {place.name}: it was done"


def test_the_table_in_the_documents_says_the_same() -> None:
    for permission, role, membership, reach in rights_table.cells():
        if role == "admin":
            assert reach == "everything"
        else:
            assert reach == expected(permission, role, membership), (permission, role, membership)
    page = rights_table.as_markdown()
    assert all(f"| `{permission}` |" in page for permission in NEEDS)


def test_no_form_of_a_query_sees_or_changes_what_is_another_s(world: World) -> None:
    mine, other = world.mine, world.other
    found = scope.Scope("somebody", frozenset({mine.dataset}))
    with seen_by(found), world.store.write() as session:
        alias = aliased(Run)
        inner = select(Run.id).subquery()
        cte = select(Run.id).cte()
        assert session.get(Run, other.run) is None
        assert session.scalars(select(alias.id)).all() == [mine.run]
        assert session.scalar(select(func.count()).select_from(Run)) == 1
        assert session.scalar(select(func.count()).select_from(inner)) == 1
        assert session.execute(select(cte.c.id)).all() == [(mine.run,)]
        of_run = select(Dataset.id).where(Dataset.id.in_(select(Run.dataset_id)))
        assert session.scalars(of_run).all() == [mine.dataset]
        joined = select(Pair.dataset_id).join(Run, Run.dataset_id == Pair.dataset_id).distinct()
        assert session.scalars(joined).all() == [mine.dataset]
        assert session.scalars(select(Passage.dataset_id).distinct()).all() == [mine.dataset]
        change = update(Run).where(Run.id == other.run).values(seed=9).returning(Run.id)
        assert session.scalars(change).all() == []
        removal = delete(Release).where(Release.id == other.release).returning(Release.id)
        assert session.scalars(removal).all() == []
        own = session.get_one(Study, mine.study)
        session.expire(own)
        assert own.name == "mine 1"
        assert [one.id for one in list_runs(session)] == [mine.run]


def test_jobs_of_others_are_seen_with_their_run_and_own_jobs_always(world: World) -> None:
    mine, other = world.mine, world.other
    with world.store.write() as session:
        own = Job(kind="train", config={"release": "1"}, started_by="somebody")
        foreign = Job(kind="train", config={"release": "1"}, started_by="root")
        session.add_all([own, foreign])
        session.flush()
        session.info[scope.INFO] = scope.Scope("somebody", frozenset({mine.dataset}))
        assert set(session.scalars(select(Job.id))) == {mine.job, own.id}
        assert other.job not in session.scalars(select(Job.id)).all()


@pytest.mark.parametrize(
    "config",
    [
        {"dataset": "other"},
        {"datasets": ["mine", "other"]},
        {"against_datasets": ["other"]},
        {"run_id": "other.run"},
        {"study_id": "other.study"},
        {"release": "other.release"},
        {"release_id": "other.release"},
        {"checkpoint_id": 77},
        {"datasets": ["mine"], "onto": 99},
        {"benchmark": "dataset:other"},
        {"ordinary": "dataset:other"},
        {"release": "/releases/other"},
        {"published": ["/releases/mine", "/releases/other"]},
        {"against": ["/etc/passwd"]},
        {"release": "1", "settings": {"more_releases": "2*0.5"}},
        {"release": "1", "settings": {"more_releases": "/releases/other"}},
        {"release": "1", "settings": {"base_model": "/checkpoints/other"}},
        {"models": ["sentence-transformers/all-MiniLM-L6-v2", "cross-encoder:/checkpoints/other"]},
        {"models": ["../checkpoints/other"]},
    ],
)
def test_a_job_that_names_what_its_starter_may_not_see_is_refused(
    world: World, config: dict[str, Any]
) -> None:
    named = {
        name: getattr(world.other, value.split(".")[1]) if "other." in str(value) else value
        for name, value in config.items()
    }
    found = scope.Scope("somebody", frozenset({world.mine.dataset}))
    with seen_by(found), world.store.read() as session:
        require_places(session, {"datasets": ["mine"], "release": str(world.mine.release)})
        require_places(session, {"release": "/releases/mine", "models": ["a/b"], "run": {"a": 1}})
        require_places(session, {"settings": {"more_releases": "1*0.5, /releases/mine"}})
        with pytest.raises(NotFound):
            require_places(session, named)


@pytest.mark.parametrize(
    ("kind", "config"),
    [
        ("evaluate", {"models": ["$INF_HOME/checkpoints/other"]}),
        ("train", {"release": "1", "settings": {"base_model": "$INF_HOME/checkpoints/other"}}),
        ("pull", {"repo": "$INF_HOME/releases/other", "name": "new"}),
    ],
)
def test_a_path_in_the_stores_own_writing_is_checked_as_the_job_will_read_it(
    world: World, kind: str, config: dict[str, Any]
) -> None:
    """The store writes $INF_HOME/ for its folder, and expands it when a job reads its config."""
    (home() / "releases" / "other").mkdir(parents=True)
    found = scope.Scope("somebody", frozenset({world.mine.dataset}))
    person = SessionUser("somebody")
    with seen_by(found), world.store.read() as session:
        with pytest.raises((NotFound, Refused)) as refused:
            require_own(session, person, kind, config)
        assert refused.value.code in ("not_visible", "admin_only")


EXEMPT = {
    # asks for the operation that it is made of, which is checked where it is made
    "app/kit/acting.py": {"act"},
    # they change nothing of the store, or call one that requires a permission
    "app/training/actions.py": {"apply_preset"},
    "app/groups/actions.py": {"revalidate"},
}


def test_every_action_requires_a_permission_of_the_table_before_anything_else() -> None:
    named: set[str] = set()
    nouns = "|".join(each.stem for each in (APP / "operations").rglob("*.py"))
    for path in sorted(APP.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "require_permission":
                (first,) = node.args
                if isinstance(first, ast.Constant):
                    named.add(str(first.value))
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "acting":
                made_of = ast.unparse(node.args[0])
                assert re.fullmatch(rf"(?:operations|{nouns})\.\w+", made_of), (path, made_of)
            if not isinstance(node, ast.FunctionDef):
                continue
            if not any(getattr(one, "id", "") == "action" for one in node.decorator_list):
                continue
            name = str(path.relative_to(APP.parent))
            # or it is an operation's, which checks the right itself (tests/app/operations)
            code = ast.unparse(node)
            calls = re.search(r"\brequire_permission\(", code) or (
                "signed_in_user()" in code and re.search(rf"\b(?:{nouns})\.\w+\(", code)
            )
            assert calls or node.name in EXEMPT.get(name, ()), f"{name}: {node.name}"
    assert named <= set(NEEDS), named - set(NEEDS)


def test_everybody_s_menu_has_the_pages_of_their_rights() -> None:
    for role, held in HELD.items():
        user = SessionUser("somebody", role, 1, rights=rights_table.rights_by(role, "on a dataset"))
        assert {view.name for view in views_for(user)} == {"home"} | {
            view.name
            for view in MENU
            if view.name != "home"
            and TAKES[view.permission] & held
            and TAKES[view.permission] - {"and"} <= held | TAKES[view.permission] - {"and"}
        }


def test_new_accounts_have_the_preset_where_it_was_given(store: Store) -> None:
    with store.write() as session:
        dataset = Dataset(name="a")
        session.add(dataset)
        session.flush()
        add_account(session, "root", PASSWORD, role="admin", actor="test")
        ann = add_account(session, "ann", PASSWORD, role="annotator", actor="test")
        bob = add_account(
            session, "bob", PASSWORD, role="curator", actor="test", dataset_ids=[dataset.id]
        )
        assert rights_of(session, ann).everywhere == {"judge", "review"}
        assert rights_of(session, bob).everywhere == frozenset()
        assert rights_of(session, bob).on_datasets == {dataset.id: frozenset(RIGHTS)}
        set_role(session, "ann", "curator", actor="root")
        assert rights_of(session, ann).everywhere == set(RIGHTS)
        set_role(session, "ann", "annotator", actor="root")
        assert rights_of(session, ann).everywhere == {"judge", "review"}
        assert rights_of(session, get_account(session, "root")).is_admin


def test_rights_are_set_added_and_refused_where_there_are_none(store: Store) -> None:
    run_id = make_world(store, 4)
    with store.write() as session:
        study = sampled_study(session, run_id=run_id, items=3, overlap=1)
        ann = add_account(session, "ann", PASSWORD, role="annotator", actor="test")
        set_rights(session, ann, [], actor="root")
        set_rights(session, ann, ["judge", "adjudicate"], actor="root", study_id=study.id)
        add_rights(session, ann, ["train"], actor="root", dataset_id=study.dataset_id)
        add_rights(session, ann, ["train", "review"], actor="root", dataset_id=study.dataset_id)
        found = rights_of(session, ann)
        assert found.on_studies == {study.id: frozenset({"judge", "adjudicate"})}
        assert found.on_datasets == {study.dataset_id: frozenset({"train", "review"})}
        assert found.dataset_of == {study.id: study.dataset_id}
        assert len(list_members(session)) == 4
        for rights, place in (
            (["own"], {}),
            (["train"], {"study_id": study.id}),
            (["judge"], {"study_id": study.id, "dataset_id": study.dataset_id}),
            (["judge"], {"dataset_id": 10**6}),
            (["judge"], {"study_id": 10**6}),
        ):
            with pytest.raises(BadInput):
                set_rights(session, ann, rights, actor="root", **place)


@pytest.mark.parametrize(
    "row",
    [
        {"right_held": "own"},
        {"right_held": "train", "study_id": 1},
        {"right_held": "judge", "study_id": 1, "dataset_id": 1},
    ],
)
def test_the_store_refuses_impossible_rights(store: Store, row: dict[str, Any]) -> None:
    run_id = make_world(store, 4)
    with store.write() as session:
        sampled_study(session, run_id=run_id, items=3, overlap=1)
        ann = add_account(session, "ann", PASSWORD, role="annotator", actor="test")
        session.add(Member(account_id=ann.id, **row))
        with pytest.raises(IntegrityError):
            session.flush()


def test_who_is_invited_into_a_study_sees_that_study_alone(store: Store) -> None:
    run_id = make_world(store, 4)
    with store.write() as session:
        study = sampled_study(session, run_id=run_id, items=3, overlap=1)
        add_account(session, "root", PASSWORD, role="admin", actor="test")
        tokens = [
            invite(session, role="annotator", days=1, actor="root", study_id=study.id),
            invite(session, role="annotator", days=1, actor="root"),
        ]
        eve = accept_invitation(session, tokens[0], "eve", PASSWORD)
        assert rights_of(session, eve) == Rights(
            on_studies={study.id: frozenset({"judge"})}, dataset_of={study.id: study.dataset_id}
        )
        fay = accept_invitation(session, tokens[1], "fay", PASSWORD)
        assert rights_of(session, fay).everywhere == {"judge", "review"}


def test_items_go_only_to_people_who_may_judge_them(sqlite_store: Store) -> None:
    run_id = make_world(sqlite_store, 4)
    with sqlite_store.write() as session:
        study = sampled_study(session, run_id=run_id, items=3, overlap=1)
        people = []
        for name in ("ann", "bob"):
            account = add_account(session, name, PASSWORD, role="annotator", actor="test")
            judge = get_or_create_judge(session, name, kind="person", account_id=account.id)
            people.append((account, judge.id))
        (_, giver), (bob, receiver) = people
        lease_items(session, study.id, giver, 1)
        set_rights(session, bob, [], actor="root")
        with pytest.raises(Refused, match="no right to judge"):
            reassign(session, study.id, giver, receiver)
        set_rights(session, bob, ["judge"], actor="root", study_id=study.id)
        assert reassign(session, study.id, giver, receiver).moved == 1


def test_accounts_of_earlier_stores_keep_what_they_could_do(tmp_path: Path) -> None:
    store = Store(f"sqlite:///{tmp_path / 'old.db'}")
    schema.upgrade(store, "0012")
    with store.engine.begin() as connection:
        for role in ("annotator", "curator", "admin"):
            connection.exec_driver_sql(
                "INSERT INTO account (name, role, disabled, created_at) "
                f"VALUES ('{role}', '{role}', 0, '2026-01-01')"
            )
    schema.upgrade(store)
    with store.read() as session:
        found = {
            one.name: rights_of(session, one) for one in session.scalars(select(Account)).all()
        }
        assert found["annotator"] == Rights(everywhere=frozenset({"judge", "review"}))
        assert found["curator"] == Rights(everywhere=frozenset(RIGHTS))
        assert found["admin"].is_admin
        assert {member.created_at.year for _, member in list_members(session)} != {2000}
    store.close()


def member_of(
    store: Store, monkeypatch: pytest.MonkeyPatch, rights: tuple[str, ...], **place: int
) -> None:
    """Sign in as somebody with these rights on one place only."""
    with store.write() as session:
        ann = add_account(session, "ann", PASSWORD, role="annotator", actor="test")
        set_rights(session, ann, [], actor="root")
        set_rights(session, ann, rights, actor="root", **place)
        cookies = {COOKIE: start_session(session, ann)}
        session.commit()
    send_cookies(monkeypatch, cookies)


@pytest.mark.parametrize("rights", [RIGHTS, ("train",), ("release",)], ids="+".join)
def test_every_page_of_a_member_of_one_dataset_draws_and_shows_nothing_of_another(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch, rights: tuple[str, ...]
) -> None:
    fill(sqlite_store)
    make_place(sqlite_store, "secret-dataset")
    with sqlite_store.read() as session:
        dataset_id = session.scalars(select(Dataset.id).where(Dataset.name == "world")).one()
    member_of(sqlite_store, monkeypatch, rights, dataset_id=dataset_id)
    at = open_page("home")
    user = SessionUser("ann", "", 1, rights=Rights(on_datasets={dataset_id: frozenset(rights)}))
    for view in views_for(user):
        if view.name != "home":
            at = at.switch_page(page_path(view.name)).run()
        assert not at.exception and not at.error, (view.name, at.exception, at.error)
        shown = words(at) + " ".join(str(option) for box in at.selectbox for option in box.options)
        assert "secret-dataset" not in shown, view.name


def test_a_right_held_everywhere_widens_neither_home_nor_what_a_page_draws_again_by_itself(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine, other = make_place(sqlite_store, "mine"), make_place(sqlite_store, "other")
    member_of(sqlite_store, monkeypatch, ("curate",), dataset_id=mine.dataset)
    with sqlite_store.write() as session:
        set_rights(session, get_account(session, "ann"), ["judge", "review"], actor="root")
        session.commit()
    at = open_page("home")
    assert "in mine" in words(at) and f"Job {other.job}" not in words(at)
    at = at.switch_page(page_path("jobs")).run()
    assert list(at.dataframe[0].value["id"]) == [mine.job]
    redraw_fragments(at, monkeypatch)
    assert list(at.dataframe[0].value["id"]) == [mine.job]
    with sqlite_store.write() as session:
        set_rights(session, get_account(session, "ann"), [], actor="root", dataset_id=mine.dataset)
        session.commit()
    redraw_fragments(at, monkeypatch)
    assert not at.dataframe and "lacks a right" in at.error[0].value


def test_a_member_of_a_study_judges_it_and_reaches_no_other_page(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine, other = make_place(sqlite_store, "mine"), make_place(sqlite_store, "other")
    member_of(sqlite_store, monkeypatch, ("judge",), study_id=mine.study)
    at = open_page("judge", study=str(other.study))
    assert not at.error and not at.exception
    (box,) = [one for one in at.selectbox if one.key == "judge.study"] or [None]
    assert box is None or box.options == ["mine 1"]
    for view in MENU:
        if view.name not in ("home", "judge", "answers"):
            with pytest.raises(ValueError, match="Could not find a navigation page"):
                at.switch_page(page_path(view.name))


def test_the_members_page_gives_and_takes_rights(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = make_place(sqlite_store, "mine")
    with sqlite_store.write() as session:
        bob = add_account(session, "bob", PASSWORD, role="annotator", actor="test")
        session.commit()
    send_cookies(monkeypatch, cookies_of(sqlite_store, "admin"))
    at = open_page("members", person=str(bob.id))
    at.selectbox(key="members.name").set_value("bob")
    at.selectbox(key="members.place").set_value((place.dataset, None))
    at.multiselect(key="members.rights").set_value(["train"])
    at.button[0].click().run()
    assert not at.error and not at.exception
    with sqlite_store.read() as session:
        found = rights_of(session, session.get_one(Account, bob.id))
    assert found.on_datasets == {place.dataset: frozenset({"train"})}
    (everywhere,) = [one for one in at.get("button_group") if "everywhere" in str(one.proto.label)]
    everywhere.set_value(["review"]).run()
    with sqlite_store.read() as session:
        assert rights_of(session, session.get_one(Account, bob.id)).everywhere == {"review"}
    said = dict(zip(at.table[0].value["Person"], at.table[0].value["Rights"], strict=True))
    assert said["a admin"] == "every right everywhere"
    assert "review" in said["bob"] and "mine\\: train" in said["bob"]


def test_signed_out_a_page_s_sessions_see_nothing(sqlite_store: Store) -> None:
    make_place(sqlite_store, "mine")
    with seen_by(scope.Scope("", frozenset())), sqlite_store.read() as session:
        for table in (Dataset, Run, Study, Group, Release, Job, Pair, Passage):
            assert session.scalars(select(table.id)).all() == []


def test_the_entry_script_works_without_rights(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    member_of(sqlite_store, monkeypatch, ())
    at = AppTest.from_file(str(MAIN), default_timeout=180).run()
    assert not at.exception
    assert STUDY_RIGHTS == ("judge", "adjudicate")
