"""`/metrics`: whom it answers, and that its counters are those of all workers, dead ones too."""

from collections.abc import Iterator
from datetime import timedelta

import pytest
from api_world import ApiWorld, make_api_world, new_token
from curation_runs import add_dataset, run_curation
from openai_server import Server
from prometheus_client.parser import text_string_to_metric_families
from sqlalchemy import update

from app.access import identity
from app.access.identity import owner
from app.operations.overview.metrics import figures
from db.people.sign_ins import start_session
from db.run.workers import Account as BudgetAccount
from db.run.workers import Figures, add_worker, beat_worker, end_workers, store_account
from db.store.scope import unscoped
from db.store.settings import owners_process
from db.store.store import Store
from db.tables import Account, AccountSession, utc_now

BEAT = {"in_flight": 2, "width": 4.0, "reused": 1, "failures": 3, "throttled": 0}


@pytest.fixture
def world(sqlite_store: Store) -> Iterator[ApiWorld]:
    made = make_api_world(sqlite_store)
    owners_process(False)
    yield made
    owners_process(True)


def read(text: bytes) -> dict[str, float]:
    """Every sample by its name and labels."""
    return {
        sample.name + "".join(f",{value}" for _, value in sorted(sample.labels.items())): float(
            sample.value
        )
        for family in text_string_to_metric_families(text.decode())
        for sample in family.samples
    }


def test_a_token_needs_the_right_watch_and_a_person_needs_to_be_an_admin(world: ApiWorld) -> None:
    watch = new_token("boss", rights=["watch"]).token
    audit = new_token("boss", rights=["audit"]).token
    for token, status in (
        (watch, 200),
        (audit, 403),
        (world.tokens["cora"], 403),
        ("inf_wrong", 401),
        ("", 401),
    ):
        found = world.client.get("/metrics", headers={"Authorization": f"Bearer {token}"})
        assert found.status_code == status, (token[:8], found.text)
    assert world.client.get("/metrics").status_code == 401
    for name, status in (("boss", 200), ("cora", 403)):
        with unscoped(), world.store.write() as session:
            account = session.query(Account).filter_by(name=name).one()
            cookie = start_session(session, account)
            session.commit()
        header = {"cookie": f"{identity.COOKIE}={cookie}"}
        assert world.client.get("/metrics", headers=header).status_code == status, name
    # a token that watches does nothing else
    asked = world.client.get("/api/v1/runs", headers={"Authorization": f"Bearer {watch}"})
    assert asked.status_code == 403


def test_counters_are_summed_over_workers_and_survive_their_death(
    world: ApiWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    with unscoped(), world.store.write() as session:
        for worker, made in (("one", 10), ("two", 32)):
            add_worker(session, world.mine.run, worker)
            done = Figures(
                input_tokens=2**31,
                output_tokens=7,
                claimed=4,
                errors={"cut": 1, "throttled": made},
                commits={"5": 1, "10": 3, "all": 3, "sum": 21},
            )
            beat_worker(session, worker, made=made, **BEAT, figures=done)
            store_account(session, worker, BudgetAccount(leased_usd=0.3, spent_usd=0.25))
        session.commit()
    before = read(figures(owner("ada")))
    assert before["inf_calls_total,made"] == 42 and before["inf_calls_total,reused"] == 2
    assert before["inf_tokens_total,input"] == 2**32
    assert before["inf_cost_usd_total"] == 0.5 and before["inf_claims_total"] == 8
    assert before["inf_errors_total,cut"] == 2 and before["inf_errors_total,throttled"] == 42
    assert before["inf_commit_seconds_bucket,0.01"] == 6
    assert before["inf_commit_seconds_count"] == 6 and before["inf_commit_seconds_sum"] == 0.042
    assert before["inf_workers"] == 2 and before["inf_calls_in_flight"] == 4
    later = utc_now() + timedelta(hours=1)  # of this machine alone
    monkeypatch.setattr("app.operations.overview.metrics.utc_now", lambda: later)
    assert read(figures(owner("ada")))["inf_workers"] == 2, "by the clock of the store"
    with unscoped(), world.store.write() as session:
        end_workers(session, ["one", "two"])
        session.commit()
    after = read(figures(owner("ada")))
    assert after["inf_workers"] == 0 and after["inf_calls_in_flight"] == 0
    counters = [name for name in before if "_total" in name or "_seconds" in name]
    assert {name: before[name] for name in counters} == {name: after[name] for name in counters}


def test_the_queue_and_people_online_are_those_of_now(world: ApiWorld) -> None:
    found = read(figures(owner("ada")))
    assert found["inf_jobs,curate,queued"] == 2 and found["inf_jobs,train,queued"] == 2
    with unscoped(), world.store.write() as session:
        for account in session.query(Account).filter(Account.name.in_(["boss", "cora"])):
            start_session(session, account)
            start_session(session, account)
        session.commit()
    assert read(figures(owner("ada")))["inf_people_online"] == 2
    with unscoped(), world.store.write() as session:
        session.execute(update(AccountSession).values(ended_at=utc_now()))
        session.commit()
    assert read(figures(owner("ada")))["inf_people_online"] == 0


def test_a_run_is_counted_as_its_server_saw_it(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("curation.providers.openai_server.BACKOFF_SECONDS", 0.01)
    monkeypatch.setattr("app.operations.overview.metrics.open_store", lambda: store)
    add_dataset(store, pairs=8)
    with Server(faults={"500": 0.1, "cut_before": 0.1}, seed=3, usage=(100, 10)) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        made = run_curation(
            store, provider="openai", dataset="small", settings=["model=small"], concurrency=4
        )["calls"]["made"]
    found = read(figures(owner("ada")))
    assert found["inf_calls_total,made"] == made > 0
    assert found["inf_tokens_total,input"] == 100 * made
    assert found["inf_tokens_total,output"] == 10 * made
    assert found["inf_claims_total"] == 8
    assert found["inf_commit_seconds_count"] == made
    assert found["inf_errors_total,server"] == server.statuses["500"] > 0
    assert found["inf_errors_total,cut"] > 0
