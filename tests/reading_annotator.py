"""An annotator who keeps every byte that reaches them: HTTP answers with headers and cookies, and
the frames of the WebSocket, decoded from protobuf; and the time each answer took.

The judging card's data becomes one `Sighting` per item; what came from anywhere else is kept whole.
"""

import asyncio
import time
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import httpx
from card_client import ANSWER_SECONDS, CardClient
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

PAGES = ("home", "groups", "studies", "adjudicate", "agreement", "validators", "jobs")
PATHS = ("/", "/judge", "/review?run=1&group=1", "/health", "/_stcore/health", "/_stcore/metrics")


@dataclass
class Sighting:
    """An item as it first reached its judge: `item` and `frame` are the card's own data.

    `place` is among the new items of the frame, `number` in the order of the whole study, whose
    number of `items` annotators know; `before` is the frame before; `traffic` has the sizes and
    times of what came with it.
    """

    item: dict[str, Any]
    frame: dict[str, Any]
    before: dict[str, Any]
    place: int
    number: int
    items: int
    traffic: dict[str, float]


@dataclass
class ReadingAnnotator(CardClient):
    """A card client that reads everything. `elsewhere`: all bytes that are not the card's data.

    `items` of the study; `first`: how many items annotators before this one got.
    """

    items: int = 0
    first: int = 0
    sightings: list[Sighting] = field(default_factory=list)
    elsewhere: list[bytes] = field(default_factory=list)

    def sign_in(self, password: str) -> None:
        """Sign in by the form and fetch what a browser fetches; keeps headers, cookies, bodies."""
        with httpx.Client(base_url=self.url, follow_redirects=True, timeout=30) as client:
            form = {"name": self.name, "password": password, "next": "/judge"}
            answers = [client.get("/sign-in"), client.post("/sign-in", data=form)]
            answers += [client.get(path) for path in PATHS]
            for answer in answers:
                for one in (*answer.history, answer):
                    head = "\n".join(f"{name}: {value}" for name, value in one.headers.items())
                    self.elsewhere.append(f"{one.url}\n{head}\n".encode() + one.content)
            self.cookie = client.cookies["inf_session"]

    async def read_pages(self, *queries: str) -> None:
        """Open every page by its name, also those that the menu does not list."""
        wanted = [(page, "") for page in PAGES]
        wanted += [(page, query) for page in ("groups",) for query in queries]
        url = self.url.replace("http", "ws", 1) + "/_stcore/stream"
        async with aiohttp.ClientSession(cookies={"inf_session": self.cookie}) as session:
            for page, query in wanted:
                async with session.ws_connect(
                    url, protocols=("streamlit",), max_msg_size=0
                ) as socket:
                    message = BackMsg()
                    message.rerun_script.page_name = page
                    message.rerun_script.query_string = query
                    await socket.send_bytes(message.SerializeToString())
                    async with asyncio.timeout(ANSWER_SECONDS):
                        await self._read_page(socket)

    async def _read_page(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        while True:
            data = (await socket.receive()).data
            self.elsewhere.append(data)
            message = ForwardMsg()
            message.ParseFromString(data)
            if message.WhichOneof("type") == "script_finished":
                return

    async def judge(self, most: int) -> None:
        """Judge, all leased items at once, until `most` were answered or nothing is left."""
        url = self.url.replace("http", "ws", 1) + "/_stcore/stream"
        async with (
            aiohttp.ClientSession(cookies={"inf_session": self.cookie}) as session,
            session.ws_connect(url, protocols=("streamlit",), max_msg_size=0) as socket,
        ):
            await self._ask(socket, page=True)
            while len(self.decisions) < most and not self._data["finished"]:
                assert not self._data["message"], self._data["message"]
                await self._decide(0.0)
                await self._ask(socket)

    async def _ask(self, socket: aiohttp.ClientWebSocketResponse, *, page: bool = False) -> None:
        before, started = self._data, time.perf_counter()
        await socket.send_bytes(self._message(page=page).SerializeToString())
        traffic = {"messages": 0.0, "bytes": 0.0, "card_bytes": 0.0, "to_card": 0.0}
        is_drawn = False
        async with asyncio.timeout(ANSWER_SECONDS):
            while True:
                data = (await socket.receive()).data
                message = ForwardMsg()
                message.ParseFromString(data)
                traffic["messages"] += 1
                traffic["bytes"] += len(data)
                is_card = message.WhichOneof("type") == "delta" and self._read_card(message)
                if is_card:
                    is_drawn = True
                    card = message.delta.new_element.bidi_component
                    traffic["card_bytes"] = float(len(card.json))
                    traffic["to_card"] = time.perf_counter() - started
                    card.json = ""  # its bytes are read as sightings; the rest of the message here
                    self.elsewhere.append(message.SerializeToString())
                else:
                    self.elsewhere.append(data)
                if message.WhichOneof("type") == "script_finished" and is_drawn:
                    break
        traffic["seconds"] = time.perf_counter() - started
        self._see(before, traffic)

    def _see(self, before: dict[str, Any], traffic: dict[str, float]) -> None:
        known = {each.item["token"] for each in self.sightings}
        new = [item for item in self._items() if item["token"] not in known]
        for place, item in enumerate(new):
            number = self.first + len(self.sightings)
            self.sightings.append(
                Sighting(item, self._data, before, place, number, self.items, traffic)
            )
