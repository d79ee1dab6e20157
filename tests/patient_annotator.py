"""An annotator who takes breaks, keeps old tabs, changes answers and watches a clock, to find gold.

Works in the tests' process on what the pages call (`card_data`, `answers.list_some`, the groups'
outbox), so that hours pass at once: `pass_time` moves every stored time into the past. What is seen
of an item is a number or a text by channel; `auc_of` says how well a channel tells gold apart.
"""

import json
import re
import secrets
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from exchangeable_world import make_exchangeable_study
from sqlalchemy import event, select, update
from sqlalchemy.engine import Engine
from streamlit.runtime import context

from app.access.identity import COOKIE
from app.access.session_user import cookie_holder, signed_in_user
from app.groups.workbench import as_data
from app.judge.actions import card_data
from app.operations.judging import answers
from app.operations.judging.desk import Desk, on_desk
from db.people.accounts import add_account
from db.people.sign_ins import start_session
from db.review.queue import QueueFilter
from db.review.reviews import approve_group
from db.store.store import Store
from db.study.studies import get_study
from db.tables import Assignment, Item, StudyItem, utc_now

CHANGES = 10  # of one answer at once, for the clock
Value = float | str
Seen = dict[str, dict[str, Value]]  # channel → token of the item → what was seen


@dataclass
class Requests:
    """What was asked of the store, each list of parameters as one."""

    statements: list[str] = field(default_factory=list)
    seconds: float = 0.0


@contextmanager
def watched() -> Iterator[Requests]:
    """Statements and seconds of a piece of work."""
    found = Requests()

    def execute(_c: Any, _u: Any, statement: str, *_: Any) -> None:
        found.statements.append(re.sub(r"\((?:[?%(]\S*, )+\S*\)", "(...)", statement))

    event.listen(Engine, "before_cursor_execute", execute)
    started = time.perf_counter()
    try:
        yield found
    finally:
        found.seconds = time.perf_counter() - started
        event.remove(Engine, "before_cursor_execute", execute)


@dataclass
class World:
    """A study of which every other item is gold, and three annotators of it."""

    store: Store
    study_id: int
    run_id: int
    cookies: Mapping[str, str]
    patch: pytest.MonkeyPatch

    def gold_tokens(self) -> dict[str, bool]:
        """Whether the item of each token is gold."""
        with self.store.read() as session:
            rows = session.execute(
                select(Assignment.token, StudyItem.part)
                .join(
                    StudyItem,
                    (StudyItem.item_id == Assignment.item_id)
                    & (StudyItem.study_id == Assignment.study_id),
                )
                .where(Assignment.study_id == self.study_id)
            )
            return {token: part == "gold" for token, part in rows}

    def gold_groups(self) -> dict[int, bool]:
        """Whether the item of each group of the study is gold."""
        with self.store.read() as session:
            rows = session.execute(
                select(Item.group_id, StudyItem.part)
                .join(StudyItem, StudyItem.item_id == Item.id)
                .where(StudyItem.study_id == self.study_id)
            )
            return {group_id: part == "gold" for group_id, part in rows}

    def pass_time(self) -> None:
        """Every lease has expired, and nobody answered in the last hour."""
        hour = utc_now() - timedelta(hours=1)
        mine = update(Assignment).where(Assignment.study_id == self.study_id)
        with self.store.write() as session:
            session.execute(mine.values(created_at=hour - timedelta(hours=1)))
            session.execute(
                mine.where(Assignment.lease_until.is_not(None)).values(lease_until=hour)
            )
            session.execute(mine.where(Assignment.ended_at.is_not(None)).values(ended_at=hour))
            session.commit()


def make_world(
    store: Store, patch: pytest.MonkeyPatch, *, items: int, gold_action: str = "warn"
) -> World:
    """As many gold items as others, of groups that another person approved, as sampled ones are."""
    name = secrets.token_hex(4)
    study_id = make_exchangeable_study(store, name=name, items=items, gold=items)
    cookies = {}
    with store.write() as session:
        study = get_study(session, study_id)
        study.settings = {**study.settings, "gold_every": 1, "gold_action": gold_action}
        gold = select(Item.group_id).join(StudyItem, StudyItem.item_id == Item.id)
        of_gold = gold.where(StudyItem.study_id == study_id, StudyItem.part == "gold")
        for group_id in session.scalars(of_gold).all():
            approve_group(session, group_id, reviewed_by="rita")
        for person in ("ann", "bob", "cleo"):
            account = add_account(
                session, f"{person} {name}", "correct horse battery", role="annotator", actor="test"
            )
            cookies[person] = start_session(session, account)
        session.commit()
        run_id = study.run_id
    assert run_id is not None
    return World(store, study_id, run_id, cookies, patch)


@dataclass
class Person:
    """One annotator of a world; `data` is the card's of their last request."""

    world: World
    name: str
    data: dict[str, Any] = field(default_factory=dict)
    answered: list[str] = field(default_factory=list)

    def ask(self, *events: dict[str, Any]) -> Requests:
        """Send events, or open the page."""
        self.sit_down()
        with watched() as found:
            self.data = card_data(self.world.study_id, events)
        return found

    def sit_down(self) -> None:
        """Requests are this person's from now on."""
        client = SimpleNamespace(cookies={COOKIE: self.world.cookies[self.name]})
        self.world.patch.setattr(context, "_get_client_context", lambda: client)

    def tokens(self) -> list[str]:
        """The items on the screen and behind it."""
        return [item["token"] for item in self.data["items"]]

    def event(self, token: str, **fields: Any) -> dict[str, Any]:
        """An answer, or what else the card sends of an item."""
        base = {"event": secrets.token_hex(8), "kind": "pick", "study": self.world.study_id}
        position = secrets.randbelow(5)
        return base | {"token": token, "position": position} | self._version() | fields

    def _version(self) -> dict[str, Any]:
        return {"guidelines": self.data["guidelines"]} if "guidelines" in self.data else {}

    def answer(self, token: str) -> Requests:
        """Answer one item."""
        self.answered.append(token)
        return self.ask(self.event(token))

    def finish(self, *, most: int = 10**6) -> None:
        """Answer one after the other, until that many were answered or nothing is left."""
        self.ask()
        while self.tokens() and most > 0:
            self.answer(self.tokens()[0])
            most -= 1


def come_back_late(world: World, breaks: int) -> Seen:
    """Open the page again and again, long breaks between, answer nothing; then answer all of it.

    Another annotator answers meanwhile, up to two thirds of the study.
    """
    ann, bob = Person(world, "ann"), Person(world, "bob")
    seen: Seen = defaultdict(dict)
    on_screen: list[str] = []
    for _ in range(breaks):
        ann.ask()
        on_screen += [token for token in ann.tokens() if token not in on_screen]
        world.pass_time()
        bob.ask()
    bob.finish(most=4 * breaks)
    for token in on_screen:
        entry = ann.event(token)
        with_clock = ann.ask(entry)
        seen["late: notice"][token] = ann.data["notices"].get(entry["event"], "")
        seen["late: answer"][token] = ann.data["acknowledged"][entry["event"]]
        seen["late: statements"][token] = len(with_clock.statements)
        seen["late: clock"][token] = with_clock.seconds
    there = _own_answers(ann)
    seen["late: in My answers"] = {token: there.get(token, "not there") for token in on_screen}
    return seen


def return_and_work(world: World, breaks: int) -> Seen:
    """Take breaks with items on the screen, then work through everything, with a clock."""
    ann, bob = Person(world, "ann"), Person(world, "bob")
    seen: Seen = defaultdict(dict)
    stream: list[str] = []
    held: set[str] = set()

    def look() -> None:
        stream.extend(token for token in ann.tokens() if token not in held)
        held.update(ann.tokens())

    for _ in range(breaks):
        ann.ask()
        look()
        world.pass_time()
        held.clear()
        bob.ask()
        bob.answer(bob.tokens()[0])
    first_seen = list(dict.fromkeys(stream))
    ann.ask()
    look()
    while ann.tokens():
        token, before = ann.tokens()[0], ann.data
        _note_reply(ann, "answer", token, before, ann.answer(token), seen)
        _press_on(ann, token, seen)
        look()
    for token in first_seen:
        at = stream.index(token)
        again = [n for n in range(at + 1, len(stream)) if stream[n] == token]
        seen["break: returns after"][token] = (again[0] if again else 10**4) - at
        seen["break: times seen"][token] = stream.count(token)
    seen["My answers: state"] = _own_answers(ann)
    return seen


def skip_everything(world: World, _breaks: int) -> Seen:
    """Answer one item, then skip whatever comes; what was skipped is left for the others."""
    cleo = Person(world, "cleo")
    seen: Seen = defaultdict(dict)
    cleo.finish(most=1)  # who works keeps leases, as everyone else does
    while cleo.tokens():
        token, before = cleo.tokens()[0], cleo.data
        asked = cleo.ask(cleo.event(token, kind="skip", reason="other"))
        seen["skip: answer"][token] = str(list(cleo.data["acknowledged"].values()))
        _note_reply(cleo, "skip", token, before, asked, seen)
    return seen


def _note_reply(
    person: Person, kind: str, token: str, before: dict[str, Any], asked: Requests, seen: Seen
) -> None:
    """What the reply to an answer or a skip shows."""
    total = [data["done"] + data["left"] for data in (before, person.data)]
    seen[f"{kind}: change of the total"][token] = total[1] - total[0]
    seen[f"{kind}: statements"][token] = len(asked.statements)
    seen[f"{kind}: clock"][token] = asked.seconds
    seen[f"{kind}: bytes"][token] = len(json.dumps(person.data))


def _press_on(ann: Person, token: str, seen: Seen) -> None:
    """A second tab, a message, and many changes of the answer just given."""
    for name, fields in (
        ("second tab", {}),
        ("message", {"kind": "message", "body": "why?"}),
    ):
        entry = ann.event(token, **fields)
        asked = ann.ask(entry)
        seen[f"{name}: answer"][token] = ann.data["acknowledged"][entry["event"]]
        seen[f"{name}: statements"][token] = len(asked.statements)
        seen[f"{name}: clock"][token] = asked.seconds
    changes = [ann.event(token, change=True) for _ in range(CHANGES)]
    asked = ann.ask(*changes)
    seen["change: answer"][token] = str(sorted(set(ann.data["acknowledged"].values())))
    seen["change: statements"][token] = len(asked.statements)
    seen["change: clock"][token] = asked.seconds


def _own_answers(person: Person) -> dict[str, Value]:
    """What the page My answers shows of each answer, by token."""
    person.sit_down()
    found, _ = answers.list_some(cookie_holder(), person.world.study_id, count=200)
    return {one.item.token: f"{one.state} {one.may_change}" for one in found}


def undo_everything(world: World) -> dict[str, dict[int, Value]]:
    """Ask the workbench to undo the review of every group of the run, as who may review."""
    ann = Person(world, "ann")
    ann.sit_down()
    seen: dict[str, dict[int, Value]] = defaultdict(dict)
    forms: dict[str, dict[str, Any]] = {
        "undo": {"kind": "undo", "seen": 1},
        "undo of an event": {"kind": "undo", "after": "abc"},
        "approve": {"kind": "approve", "seen": None},
        "approve after an event": {"kind": "approve", "after": "abc"},
    }
    groups = list(world.gold_groups())
    for name, fields in forms.items():
        sent = {
            secrets.token_hex(8): {"run": world.run_id, "group": group_id, **fields}
            for group_id in groups
        }
        desk = Desk(QueueFilter(run_id=world.run_id))
        outbox = {"events": [{"event": event_id, **entry} for event_id, entry in sent.items()]}
        data = as_data(on_desk(signed_in_user(), desk, outbox), desk, "ann")
        for event_id, group_id in zip(sent, groups, strict=True):
            answer = data["acknowledged"][event_id]
            seen[f"review: {name}"][group_id] = re.sub(r"\d+", "#", answer)
    return seen


def auc_of(values: Sequence[Value], gold: Sequence[bool]) -> float:
    """How well a channel tells gold apart, either way round: 0.5 is chance, 1 always.

    Numbers are compared as they are. A text counts as the share of gold among the same texts in the
    other half of the items: what an annotator who knows some gold would learn.
    """
    y = np.array(gold, dtype=bool)
    numbers = isinstance(values[0], float | int)
    x = np.array(values, dtype=float) if numbers else _share_of_gold(list(map(str, values)), y)
    _, place, count = np.unique(x, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(count) - (count - 1) / 2)[place]
    positive = int(y.sum())
    above = ranks[y].sum() - positive * (positive + 1) / 2
    return float(above / (positive * (len(y) - positive)))


def _share_of_gold(texts: list[str], y: np.ndarray) -> np.ndarray:
    """For each text, whether gold is more frequent (1) or rarer (-1) with it in the other half."""
    half, known, scores = np.arange(len(y)) % 2 == 0, np.array(texts), np.zeros(len(y))
    for one in (half, ~half):
        for text in set(texts):
            there = (known == text) & ~one
            if there.any():
                scores[(known == text) & one] = np.sign(y[there].mean() - y[~one].mean())
    return scores
