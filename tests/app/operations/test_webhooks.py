"""Webhooks: signed, under one id however often, to allowed addresses, and nothing of a judgment."""

import zipfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from api_world import make_api_world
from app_pages import open_page, sign_in, words
from conftest import Ran
from hook_receiver import Receiver
from sqlalchemy import select, update
from standardwebhooks import Webhook as Specified
from standardwebhooks import WebhookVerificationError
from study_world import make_world

from app.access.identity import Actor, owner
from app.operations import connections, people
from app.operations.doors import courier, events, webhooks
from app.operations.doors.webhooks import WebhookAdd, WebhookEnable, WebhookSecret
from curation.servers import guard
from db.errors import BadInput, NotFound, ProviderError, Refused
from db.events import record_event
from db.people.rights import Rights
from db.servers.webhooks import DELAYS, MAX_ATTEMPTS
from db.store.backup import restore_backup, write_backup
from db.store.copying import copy_store
from db.store.store import Store, open_store
from db.tables import Event, Webhook, WebhookDelivery, utc_now
from db.values import RIGHTS

COMMAND = owner("cli:ada")
PASSWORD = "correct horse battery"


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as running:
        yield running


def add(receiver: Receiver, **given: Any) -> WebhookSecret:
    return webhooks.add(COMMAND, WebhookAdd.read({"url": receiver.url} | given))


def happened(store: Store, name: str = "run.finished", of: object = 1, **data: Any) -> int:
    with store.write() as session:
        record_event(session, "somebody", name, of, **data)
        session.commit()
        return session.scalars(select(Event.id).order_by(Event.id.desc())).first() or 0


def due_now(store: Store) -> None:
    """As if the time until every next attempt had passed."""
    with store.write() as session:
        session.execute(update(WebhookDelivery).values(next_attempt_at=utc_now()))
        session.commit()


def log_of(webhook_id: int) -> list[tuple[int, str, int, str]]:
    """(event, status, attempts, answer) of each delivery, oldest first."""
    found = webhooks.deliveries(COMMAND, webhook_id).data
    return [(row.event_id, row.status, row.attempts, row.answer) for row in reversed(found)]


NEEDING: dict[str, Callable[[Actor], Any]] = {
    "add": lambda actor: webhooks.add(actor, WebhookAdd(url="https://example.org/hook")),
    "list_all": webhooks.list_all,
    "show": lambda actor: webhooks.show(actor, 1),
    "deliveries": lambda actor: webhooks.deliveries(actor, 1),
    "test": lambda actor: webhooks.test(actor, 1),
    "enable": lambda actor: webhooks.enable(actor, WebhookEnable(id=1)),
    "remove": lambda actor: webhooks.remove(actor, 1),
}


@pytest.mark.parametrize("name", NEEDING)
def test_only_admins_have_webhooks(sqlite_store: Store, receiver: Receiver, name: str) -> None:
    add(receiver)
    with pytest.raises(Refused, match="requires admin"):
        NEEDING[name](Actor("cur", rights=Rights(everywhere=frozenset(RIGHTS))))
    assert receiver.got == [] and len(webhooks.list_all(COMMAND).data) == 1


def test_every_operation_on_webhooks_is_among_them() -> None:
    own = {name for name, each in vars(webhooks).items() if callable(each)}
    named = {name for name in own if getattr(webhooks, name).__module__ == webhooks.__name__}
    assert {name for name in named if name[0] != "_" and name[0].islower()} == NEEDING.keys()


def test_an_event_comes_once_signed_as_the_specification_says(
    store: Store, receiver: Receiver
) -> None:
    run_id = make_world(store, 2, name="mine")
    happened(store, "run.paused", run_id)  # before it was added
    made = add(receiver)
    wanted = [happened(store, "run.finished", run_id) for _ in range(2)]
    courier.send_due()
    courier.send_due()
    found = receiver.wait_for(2)
    rows = events.list_after(COMMAND, wanted[0] - 1).data
    for got, row in zip(found, rows, strict=True):
        message = got.verified(made.secret or "")
        assert message["data"] == row.as_json() and got.event["id"] in wanted
        assert message["type"] == "run.finished" and message["timestamp"] == row.as_json()["at"]
        assert got.headers["content-type"] == "application/json"
    assert len({got.message_id for got in found}) == len(receiver.got) == 2
    with pytest.raises(WebhookVerificationError):
        Specified(webhooks.webhooks.new_secret()).verify(found[0].body, found[0].headers)
    assert log_of(made.id) == [(one, "delivered", 1, "HTTP 204") for one in wanted]


def test_nothing_blind_and_no_event_of_administration_leaves(
    store: Store, receiver: Receiver
) -> None:
    world = make_api_world(store)
    made = add(receiver, private=True)
    for name, of in (
        ("judgment.stored", ("study", world.mine.study)),
        ("review.approve", world.mine.group),
        ("sign-in.failed", "boss"),
        ("token.create", 1),
        ("member.rights", "mina"),
    ):
        happened(store, name, of, gold=True, role="positive", label="P+")
    one = happened(
        store, "study.closed", world.mine.study, gold=3, role="positive", key="sk-secret"
    )
    courier.send_due()
    (got,) = receiver.wait_for(1)
    assert got.event["id"] == one and set(got.event) == set(events.EventRow.model_fields)
    assert not {"gold", "positive", "sk-secret"} & set(got.body.replace('"', " ").split())
    assert len(receiver.got) == 1 and [row[0] for row in log_of(made.id)] == [one]


def test_an_endpoint_gets_the_events_that_it_wants(sqlite_store: Store, receiver: Receiver) -> None:
    run_id = make_world(sqlite_store, 2, name="mine")
    add(receiver, events=["run.failed"])
    happened(sqlite_store, "run.finished", run_id)
    wanted = happened(sqlite_store, "run.failed", run_id)
    courier.send_due()
    (got,) = receiver.wait_for(1)
    assert got.event["id"] == wanted
    with pytest.raises(BadInput, match=r"did you mean run\.finished"):
        WebhookAdd.read({"url": receiver.url, "events": ["run.finish"]})


def test_a_failed_delivery_is_sent_again_under_its_id_from_a_minute_to_a_day(
    store: Store, receiver: Receiver
) -> None:
    """Delays worked by hand: 1, 4, 16, 64, 256, 1024 minutes and a day, 10 % more or less."""
    run_id = make_world(store, 2, name="mine")
    made, receiver.status = add(receiver), 503
    one = happened(store, "run.finished", run_id)
    minutes = [1, 4, 16, 64, 256, 1024, 1440]
    for number, wanted in enumerate(minutes, 1):
        courier.send_due()
        courier.send_due()  # not due: nothing happens
        (row,) = webhooks.deliveries(COMMAND, made.id).data
        assert (row.attempts, row.status, row.answer) == (number, "pending", "HTTP 503")
        assert row.next_attempt_at is not None and row.attempted_at is not None
        waited = (row.next_attempt_at - row.attempted_at) / timedelta(minutes=1)
        assert 0.9 * wanted <= waited <= 1.1 * wanted + 0.1
        due_now(store)
    receiver.status = 200
    courier.send_due()
    assert log_of(made.id) == [(one, "delivered", len(minutes) + 1, "HTTP 200")]
    assert len({got.message_id for got in receiver.got}) == 1
    assert len(receiver.got) == len(minutes) + 1
    assert [delay / timedelta(minutes=1) for delay in DELAYS] == minutes


def test_after_the_last_attempt_it_is_switched_off_and_nothing_is_lost(
    store: Store, receiver: Receiver
) -> None:
    run_id = make_world(store, 2, name="mine")
    made, receiver.status = add(receiver), 500
    first = happened(store, "run.finished", run_id)
    for _ in range(MAX_ATTEMPTS):
        courier.send_due()
        due_now(store)
    row = webhooks.show(COMMAND, made.id)
    assert row.status == "off" and "HTTP 500" in row.reason and "8 attempts" in row.reason
    (entry,) = [one for one in people.audit(COMMAND).data if one.name == "webhook.off"]
    assert "HTTP 500" in str(entry.data)
    second, tried = happened(store, "run.failed", run_id), len(receiver.got)
    courier.send_due()
    assert len(receiver.got) == tried == MAX_ATTEMPTS
    receiver.status = 204
    assert webhooks.enable(COMMAND, WebhookEnable(id=made.id)).secret is None
    courier.send_due()
    assert log_of(made.id) == [
        (first, "delivered", 1, "HTTP 204"),
        (second, "delivered", 1, "HTTP 204"),
    ]
    ids = {got.event["id"]: got.message_id for got in receiver.got}
    assert len({(got.event["id"], got.message_id) for got in receiver.got}) == len(ids) == 2


def test_what_waited_may_be_skipped_and_a_gone_endpoint_is_off_at_once(
    store: Store, receiver: Receiver
) -> None:
    run_id = make_world(store, 2, name="mine")
    made, receiver.status = add(receiver), 410
    first = happened(store, "run.finished", run_id)
    courier.send_due()
    assert webhooks.show(COMMAND, made.id).status == "off"
    happened(store, "run.failed", run_id)
    receiver.status = 204
    webhooks.enable(COMMAND, WebhookEnable(id=made.id, skip=True))
    courier.send_due()
    last = happened(store, "run.paused", run_id)
    courier.send_due()
    assert log_of(made.id) == [
        (first, "skipped", 1, "HTTP 410"),
        (last, "delivered", 1, "HTTP 204"),
    ]


def test_a_redirect_is_no_delivery_and_is_not_followed(
    sqlite_store: Store, receiver: Receiver
) -> None:
    run_id = make_world(sqlite_store, 2, name="mine")
    with Receiver() as inside:
        receiver.status, receiver.location = 307, inside.url
        made = add(receiver)
        happened(sqlite_store, "run.finished", run_id)
        courier.send_due()
        assert [row[1:] for row in log_of(made.id)] == [("pending", 1, "HTTP 307")]
        assert inside.got == [] and len(receiver.got) == 1


def test_an_address_is_checked_when_it_is_given_and_at_each_socket(
    sqlite_store: Store, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = make_world(sqlite_store, 2, name="mine")
    for url in ("https://169.254.169.254/latest", "https://[::ffff:a9fe:a9fe]/x"):
        with pytest.raises(ProviderError) as caught:
            webhooks.add(COMMAND, WebhookAdd(url=url, private=True))
        assert caught.value.code == "server_address_metadata"
    people.add(COMMAND, people.PersonAdd(name="root", role="admin"), PASSWORD)
    admin = owner("root", via="page")
    for private, error in ((True, Refused), (False, ProviderError)):
        with pytest.raises(error) as refused:
            webhooks.add(admin, WebhookAdd(url=receiver.url, private=private))
        assert refused.value.code in ("private_network_needs_owner", "server_address_private")
        assert "webhooks add" in refused.value.remedy
    # a public name while it is checked, which is this machine's when it is connected to
    public = f"https://rebound.example:{receiver.url.rpartition(':')[2]}"
    monkeypatch.setattr(guard, "addresses_of", lambda _: ["93.184.216.34"])
    made = webhooks.add(admin, WebhookAdd(url=public))
    with sqlite_store.write() as session:
        session.get_one(Webhook, made.id).url = receiver.url
        session.commit()
    happened(sqlite_store, "run.finished", run_id)
    courier.send_due()
    ((_, status, _, answer),) = log_of(made.id)
    assert status == "pending" and "private network" in answer and receiver.got == []


@pytest.mark.parametrize(
    ("url", "code"),
    [
        ("http://example.org/hook", "webhook_url"),
        ("https://user:pass@example.org/hook", "server_address_invalid"),
        ("https://example.org/hook?key=1", "server_address_invalid"),
        ("ftp://example.org/hook", "server_address_invalid"),
        (f"https://example.org/{'a' * 500}", "webhook_url"),
    ],
)
def test_an_unusable_address_is_refused(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch, url: str, code: str
) -> None:
    monkeypatch.setattr(guard, "addresses_of", lambda _: ["93.184.216.34"])
    with pytest.raises(BadInput) as caught:
        webhooks.add(COMMAND, WebhookAdd(url=url))
    assert caught.value.code == code
    kept = webhooks.add(COMMAND, WebhookAdd(url="https://example.org/hook/"))
    assert kept.url == "https://example.org/hook/"


def test_its_secret_is_in_no_backup_nor_copy_and_those_send_nothing(
    sqlite_store: Store, receiver: Receiver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A copy that sent, too, would send the same event under another id."""
    run_id = make_world(sqlite_store, 2, name="mine")
    made = add(receiver)
    happened(sqlite_store, "run.finished", run_id)
    with sqlite_store.read() as session:
        sealed = session.get_one(Webhook, made.id).sealed_secret or ""
        assert made.secret and made.secret not in sealed
    path = tmp_path / "backup.zip"
    write_backup(sqlite_store, path)
    with zipfile.ZipFile(path) as backup:
        held = b"".join(backup.read(name) for name in backup.namelist())
    assert receiver.url.encode() in held
    assert sealed.encode() not in held and made.secret.encode() not in held
    with monkeypatch.context() as at:
        at.setenv("INF_DATABASE_URL", f"sqlite:///{tmp_path / 'copy.db'}")
        copy_store(sqlite_store, open_store())
        courier.send_due()
        (row,) = webhooks.list_all(COMMAND).data
        assert row.problem is not None and "webhooks enable" in row.problem
    restore_backup(sqlite_store, path, replace=True)
    courier.send_due()
    assert receiver.got == []
    again = webhooks.enable(COMMAND, WebhookEnable(id=made.id))
    assert again.secret not in (None, made.secret)
    courier.send_due()
    assert receiver.wait_for(1)[0].verified(again.secret or "")["type"] == "run.finished"


def test_a_test_is_sent_once_and_is_not_in_the_log(sqlite_store: Store, receiver: Receiver) -> None:
    made = add(receiver)
    found = webhooks.test(COMMAND, made.id)
    assert found.ok and found.answer == "HTTP 204"
    receiver.status = 500
    assert not webhooks.test(COMMAND, made.id).ok
    first, second = receiver.wait_for(2)
    assert first.verified(made.secret or "")["type"] == "webhook.test"
    assert first.message_id == found.message_id != second.message_id
    courier.send_due()
    assert len(receiver.got) == 2 and log_of(made.id) == []
    assert webhooks.show(COMMAND, made.id).status == "on"


def test_a_hanging_endpoint_holds_up_no_other(
    store: Store, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(courier, "TIMEOUT_SECONDS", 1.0)
    run_id = make_world(store, 2, name="mine")
    with Receiver(hangs=True) as stuck:
        hanging, quick = add(stuck), add(receiver)
        for _ in range(3):
            happened(store, "run.finished", run_id)
        courier.send_due()
        assert [row[1] for row in log_of(quick.id)] == ["delivered"] * 3
        assert [row[1:] for row in log_of(hanging.id)] == [
            ("pending", 1, "no answer in 1 s"),
            ("pending", 0, ""),
            ("pending", 0, ""),
        ]


def test_two_senders_of_one_store_begin_each_delivery_once(
    store: Store, receiver: Receiver
) -> None:
    run_id = make_world(store, 2, name="mine")
    made = add(receiver)
    wanted = [happened(store, "run.finished", run_id) for _ in range(12)]
    with ThreadPoolExecutor(4) as pool:
        while any(row[1] == "pending" for row in log_of(made.id)) or not log_of(made.id):
            for done in [pool.submit(courier.send_due) for _ in range(4)]:
                done.result()
    assert sorted(got.event["id"] for got in receiver.got) == wanted
    assert [row[0] for row in log_of(made.id)] == wanted
    assert {row[1:] for row in log_of(made.id)} == {("delivered", 1, "HTTP 204")}


def test_a_removed_endpoint_is_sent_nothing_more(store: Store, receiver: Receiver) -> None:
    run_id = make_world(store, 2, name="mine")
    made = add(receiver)
    happened(store, "run.finished", run_id)
    webhooks.remove(COMMAND, made.id)
    courier.send_due()
    assert receiver.got == []
    with pytest.raises(NotFound):
        webhooks.show(COMMAND, made.id)
    with store.read() as session:
        assert session.scalars(select(WebhookDelivery)).all() == []


def test_a_connection_s_remedies_are_its_own(sqlite_store: Store) -> None:
    people.add(COMMAND, people.PersonAdd(name="root", role="admin"), PASSWORD)
    wanted = connections.ConnectionAdd(name="lab", url="http://127.0.0.1:1/v1", private=True)
    with pytest.raises(Refused) as caught:
        connections.add(owner("root", via="page"), wanted)
    assert "connections add" in caught.value.remedy


def test_an_admin_adds_tries_enables_and_removes_one_on_the_page(
    sqlite_store: Store, receiver: Receiver
) -> None:
    run_id = make_world(sqlite_store, 2, name="mine")
    at = open_page("tokens")
    at.text_input(key="webhooks.url").set_value(receiver.url)
    at.multiselect(key="webhooks.events").set_value(["run.finished"])
    at.button(key="FormSubmitter:webhooks.add-Add webhook").click().run()
    assert not at.exception and not at.error, at.error
    secret = next(each.value for each in at.code if each.value.startswith("whsec_"))
    (row,) = webhooks.list_all(COMMAND).data
    at.button(key=f"webhooks.test-{row.id}").click().run()
    assert receiver.wait_for(1)[0].verified(secret)["type"] == "webhook.test"
    assert secret not in f"{words(at)} {[each.value for each in at.code]}"
    receiver.status = 410
    happened(sqlite_store, "run.finished", run_id)
    courier.send_due()
    at = at.run()
    assert any("HTTP 410" in each.value for each in at.warning)
    at.button(key=f"webhooks.enable-{row.id}-True").click().run()
    assert webhooks.show(COMMAND, row.id).status == "on"
    assert "skipped" in at.dataframe[-1].value.to_string()
    at.button(key=f"webhooks.remove-do-{row.id}").click().run()
    assert webhooks.list_all(COMMAND).data == ()


def test_who_is_no_admin_sees_no_webhook_on_the_page(
    sqlite_store: Store, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(receiver)
    for role, sees in (("admin", True), ("curator", False)):
        sign_in(sqlite_store, monkeypatch, role)
        at = open_page("tokens")
        assert (receiver.url.rpartition(":")[2] in words(at)) == sees


def test_the_commands_add_list_test_and_remove(
    sqlite_store: Store, receiver: Receiver, inf: Callable[..., Ran]
) -> None:
    run_id = make_world(sqlite_store, 2, name="mine")
    made = inf("webhooks", "add", receiver.url, "--event", "run.finished", "--json")
    assert made.code == 0, made.err
    number, secret = str(made.json["id"]), made.json["secret"]
    assert secret.startswith("whsec_") and made.json["events"] == ["run.finished"]
    assert "HTTP 204" in inf("webhooks", "test", number).out
    happened(sqlite_store, "run.finished", run_id)
    assert inf("jobs", "work", "--idle-seconds", "0").code == 0
    assert receiver.wait_for(2)[1].verified(secret)["data"]["noun_id"] == str(run_id)
    listed = inf("webhooks", "list")
    assert (
        receiver.url in listed.out
        and secret not in listed.out + inf("webhooks", "show", number).out
    )
    assert "delivered" in inf("webhooks", "deliveries", number).out
    assert inf("webhooks", "enable", number).code == 0
    assert inf("webhooks", "remove", number).code == 0
    assert inf("webhooks", "show", number).code == 1
