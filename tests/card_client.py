"""An annotator without a browser: a real session of the server over its WebSocket, doing what the
judging card's JavaScript does (app/kit/outbox_card.js): it decides on items leased ahead,
keeps each decision in an outbox until it is answered, and sends the outbox again after a cut.
"""

import asyncio
import json
import random
import time
import uuid
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import aiohttp
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from app.access.identity import COOKIE
from db.people.accounts import add_account
from db.people.rights import PRESETS, set_rights
from db.people.sign_ins import start_session
from db.store.store import Store
from db.tables import Account

CARD = "inf_judging_card"
ANSWER_SECONDS = 20.0
SENT_AT_ONCE = 200


def add_annotators(store: Store, count: int) -> list[tuple[str, str]]:
    """Accounts, each with its name and cookie."""
    found: list[tuple[str, str]] = []
    with store.write() as session:
        first = add_account(session, "annotator 1", uuid.uuid4().hex, role="annotator", actor="x")
        accounts = [first]
        for number in range(2, count + 1):  # the same hash: argon2 takes its time
            account = Account(
                name=f"annotator {number}", role="annotator", password_hash=first.password_hash
            )
            session.add(account)
            session.flush()
            set_rights(session, account, PRESETS["annotator"], actor="x")
            accounts.append(account)
        session.flush()
        found = [(account.name, start_session(session, account)) for account in accounts]
        session.commit()
    return found


def answers_to(item: dict[str, Any]) -> list[Any]:
    """What the card offers for an item."""
    question = item.get("question") or {"kind": "pick"}
    if question["kind"] == "pick":
        return [*range(len(item["candidates"])), None]
    named = {"yes_no": ["yes", "no"], "score": ["0", "0.25", "0.5", "0.75", "1"]}
    listed = named.get(question["kind"]) or [label for label, _ in question["labels"]]
    return [*listed, "ambiguous"]


@dataclass
class Decision:
    """What was decided, and on which text as it was shown (None: none of them)."""

    event: str
    token: str
    text: str | None
    answer: str | None = None  # "" stored, otherwise why it was refused


@dataclass
class CardClient:
    """One annotator of a study. `decisions` is what this person remembers having decided.

    `cuts` were made on purpose, `breaks` counts every connection that broke or was refused.
    """

    url: str
    study: int
    name: str
    cookie: str
    seed: int = 0
    decisions: list[Decision] = field(default_factory=list)
    answer_seconds: list[float] = field(default_factory=list)
    connections: int = 0
    cuts: int = 0
    breaks: int = 0
    finished: bool = False

    def __post_init__(self) -> None:
        self._chance = random.Random(self.seed)
        self._outbox: dict[str, dict[str, Any]] = {}
        self._decided: set[str] = set()
        self._by_event: dict[str, Decision] = {}
        self._data: dict[str, Any] = {}
        self._element = self._fragment = ""
        self._sent = 0
        self._start: asyncio.Barrier | None = None
        self._one_by_one = False

    async def work(
        self,
        *,
        cut_chance: float = 0.0,
        think_seconds: float = 0.0,
        one_by_one: bool = False,
        start: asyncio.Barrier | None = None,
    ) -> None:
        """Judge until nothing is left. `cut_chance`: of the connection being cut per sending;
        `one_by_one`: a sending for each decision; without, all leased items at once;
        `think_seconds`: the mean time before each decision, which is then sent by itself; `start`:
        waited for once the first page has been drawn."""
        self._start, self._one_by_one = start, one_by_one or think_seconds > 0
        while not self.finished:
            try:
                async with aiohttp.ClientSession(cookies={COOKIE: self.cookie}) as session:
                    await self._stay(session, cut_chance, think_seconds)
            except (aiohttp.ClientError, OSError, TimeoutError, ConnectionError):
                self.breaks += 1
                await asyncio.sleep(0.2 + self._chance.random())

    async def _stay(
        self, session: aiohttp.ClientSession, cut_chance: float, think_seconds: float
    ) -> None:
        url = self.url.replace("http", "ws", 1) + "/_stcore/stream"
        async with session.ws_connect(url, protocols=("streamlit",), max_msg_size=0) as socket:
            self.connections += 1
            await self._ask(socket, page=True)
            if self._start is not None:
                await self._start.wait()
                self._start = None
            while True:
                if self._data.get("message"):
                    raise RuntimeError(f"{self.name}: {self._data['message']}")
                await self._decide(think_seconds)
                if not self._outbox and self._data["finished"]:
                    self.finished = True
                    return
                if self._chance.random() < cut_chance:
                    await self._cut(socket)
                started = time.perf_counter()
                await self._ask(socket)
                self.answer_seconds.append(time.perf_counter() - started)

    async def _cut(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        """Send, and lose the connection before an answer can come: none, or a moment later."""
        self.cuts += 1
        await socket.send_bytes(self._message().SerializeToString())
        await asyncio.sleep(self._chance.choice((0.0, 0.0, 0.02, 0.1)))
        transport = socket._response.connection and socket._response.connection.transport
        if transport is not None:
            transport.abort()
        raise ConnectionError("cut")

    async def _decide(self, think_seconds: float) -> None:
        waiting = [item for item in self._items() if item["token"] not in self._decided]
        if think_seconds:
            await asyncio.sleep(self._chance.expovariate(1 / think_seconds))
        for item in waiting[:1] if self._one_by_one else waiting:
            self._decide_one(item)

    def _items(self) -> list[dict[str, Any]]:
        """The items of the last answer, each with its texts: those of a card come once."""
        items: list[dict[str, Any]] = []
        for item in self._data["items"]:
            items.append({**items[-1], **item} if item.get("same") else item)
        return items

    def _decide_one(self, item: dict[str, Any]) -> None:
        position = self._chance.choice(answers_to(item))
        now = datetime.now(UTC)
        event = uuid.uuid4().hex
        self._outbox[event] = {
            "event": event,
            "kind": "pick",
            "study": self.study,
            "token": item["token"],
            "position": position,
            "shown": (now - timedelta(seconds=2)).isoformat(),
            "decided": now.isoformat(),
            "note": "",
            "flagged": False,
            "change": False,
        }
        text = None
        if isinstance(position, str):  # what it is about is remembered as it was shown
            about = item.get("about")
            text = f"{position} {item['candidates'][about] if isinstance(about, int) else about}"
        elif position is not None:
            text = item["candidates"][position]
        self._by_event[event] = Decision(event, item["token"], text)
        self.decisions.append(self._by_event[event])
        self._decided.add(item["token"])

    def _message(self, *, page: bool = False) -> BackMsg:
        message = BackMsg()
        state = message.rerun_script
        state.query_string = f"study={self.study}"
        state.page_name = "judge"
        if not page:
            state.fragment_id = self._fragment
            self._sent += 1
            widget = state.widget_states.widgets.add()
            widget.id = self._element
            events = list(self._outbox.values())[:SENT_AT_ONCE]
            widget.json_value = json.dumps({"outbox": {"sent": self._sent, "events": events}})
        return message

    async def _ask(self, socket: aiohttp.ClientWebSocketResponse, *, page: bool = False) -> None:
        """Send, and read until the card has been drawn and the script has ended."""
        await socket.send_bytes(self._message(page=page).SerializeToString())
        is_drawn = False
        async with asyncio.timeout(ANSWER_SECONDS):
            while True:
                received = await socket.receive()
                if received.type is not aiohttp.WSMsgType.BINARY:
                    raise ConnectionError("the server is gone")
                message = ForwardMsg()
                message.ParseFromString(received.data)
                if message.WhichOneof("type") == "delta":
                    is_drawn |= self._read_card(message)
                elif message.WhichOneof("type") == "script_finished" and is_drawn:
                    return

    def _read_card(self, message: ForwardMsg) -> bool:
        element = message.delta.new_element
        if element.WhichOneof("type") != "bidi_component":
            return False
        card = element.bidi_component
        if card.component_name != CARD:
            return False
        self._element, self._fragment = card.id, message.delta.fragment_id
        self._data = json.loads(card.json)
        for event, answer in self._data["acknowledged"].items():
            if self._outbox.pop(event, None) is not None:
                self._by_event[event].answer = answer
        return True
