"""A language-model server for tests: the real protocol over a real socket, with seeded faults.

It answers our prompts like a fairly good model would, from the prompt's text alone: poisoned texts
carry code words, passages hold the code words they were asked for, the judge looks for them. Faults
are drawn from the seed and the prompt: passing ones (429, 500, cut, truncated body, silence) hit
only the first tries of a prompt, lasting ones (wrong form, refusal, no choice, wrong candidate)
every time.

As a program (`python tests/openai_server.py --latency 0.2`) it prints its address and serves until
it is ended: the benchmark's server.
"""

import argparse
import asyncio
import hashlib
import json
import random
import re
import threading
import time
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from aiohttp import web
from batch_server import Batches
from debris import Debris, all_debris

PASSING = ("429", "429_retry_after", "500", "cut_before", "cut_after", "truncated", "silence")
LASTING = (
    "wrong_form",
    "refusal",
    "no_choice",
    "wrong_candidate",
    "no_agreement",
    "no_character",
    "leak",
    "repeat",
    "more_lines",
    "chat_tail",
    "other_language",
    "much",
    "undecided",
    "debris",
)
SILENCE_SECONDS = 30.0
MODELS = ("small", "judge")
DEBRIS = tuple(all_debris())
GERMAN = "Der Turm des Dorfes ist in dem Jahr der Flut gebaut und er ist alt."


# what a request is answered, from the request, its body, its prompt and how often it came before
Reply = Callable[[web.Request, dict[str, Any], str, int], Awaitable[web.StreamResponse | None]]


class Server:
    """A server in a thread of its own; `asked` counts what came in, by the prompt's sha256.

    Once `hold_after` answers were given, further ones wait until it is raised or None: whoever asks
    cannot come to its end before a test has done what it wants to do in the middle.
    """

    def __init__(
        self,
        *,
        latency_seconds: float = 0.0,
        faults: Mapping[str, float] | None = None,
        seed: int = 0,
        per_second: float | None = None,
        retry_after: float = 0.05,
        key: str | None = None,
        quota: int | None = None,
        models: tuple[str, ...] = MODELS,
        list_models: bool = True,
        usage: tuple[int, int] | None = None,
        reasoning_tokens: int | None = None,
        hits: int = 1,
        schema: str = "ignored",
    ) -> None:
        unknown = set(faults or {}) - {*PASSING, *LASTING}
        assert not unknown, f"no such faults: {unknown}"
        self.latency_seconds, self.faults, self.seed = latency_seconds, dict(faults or {}), seed
        self.per_second, self.retry_after, self.key = per_second, retry_after, key
        self.quota, self.models, self.list_models = quota, models, list_models
        self.usage, self.reasoning_tokens, self.hits = usage, reasoning_tokens, hits
        assert schema in ("ignored", "taken", "refused", "object")
        self.thinking_bytes = 0  # of reasoning before each answer, as local servers send it
        self.down: tuple[int, int, str] | None = None  # after N answers, with status and code
        self.cut_after: int | None = None  # after N answers every connection is cut
        self.poison: tuple[str, ...] = ()  # prompts that hold one of these always meet this error
        self.poison_error: tuple[int, str | None] = (500, None)  # status, parameter
        self.other_model: tuple[int, str] | None = None  # after N answers, reported by this name
        self.reply: Reply | None = None  # a test's own response to a request; None: as usual
        self.schema = schema
        self.signature = ""  # what stands at the end of every passage
        self.batches = Batches(self)
        self.asked: Counter[str] = Counter()
        self.answered: Counter[str] = Counter()
        self.tokens = 0  # as OpenAI counts them against a limit: prompts, and answers at most
        self.tasks: Counter[str] = Counter()
        self.statuses: Counter[str] = Counter()
        self.headers: list[dict[str, str]] = []
        self.bodies: list[dict[str, Any]] | deque[dict[str, Any]] = []
        self.in_flight = self.most_in_flight = 0
        self.hold_after: int | None = None
        self._window: list[float] = []
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def __enter__(self) -> "Server":
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()
        assert self._ready.wait(20), "the test server did not start"
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        runner = web.AppRunner(self.application(), access_log=None)
        self._loop.run_until_complete(runner.setup())
        site = web.TCPSite(runner, "127.0.0.1", self.port, backlog=4096)
        self._loop.run_until_complete(site.start())
        self.port = runner.addresses[0][1]
        self._ready.set()
        self._loop.run_forever()
        self._loop.run_until_complete(runner.cleanup())
        self._loop.close()

    def application(self) -> web.Application:
        """The routes, as an aiohttp application."""
        found = web.Application(client_max_size=64 << 20)
        found.router.add_get("/v1/models", self._models)
        found.router.add_post("/v1/chat/completions", self._complete)
        found.router.add_get("/counts", self._counts)
        found.router.add_get("/health", self._counts)
        found.router.add_post("/openai/deployments/{name}/chat/completions", self._azure)
        self.batches.add_routes(found)
        return found

    async def _models(self, request: web.Request) -> web.Response:
        if self._refused(request):
            return _error(401, "invalid_api_key", "Incorrect API key provided")
        if not self.list_models:
            return _error(404, "not_found", "no such route")
        listed = [{"id": name, "object": "model", "created": 0} for name in self.models]
        return web.json_response({"object": "list", "data": listed})

    async def _counts(self, request: web.Request) -> web.Response:
        """How many answers were given, how many to a prompt answered before, and their tokens."""
        answered = self.answered.total()
        repeated = answered - len(self.answered)
        return web.json_response(
            {"answered": answered, "repeated": repeated, "tokens": self.tokens}
        )

    async def _azure(self, request: web.Request) -> web.StreamResponse:
        """The same answers at Azure's addresses: a deployment in the path, its own key header."""
        if request.headers.get("api-key") != self.key or "api-version" not in request.query:
            return _error(401, "401", "Access denied due to invalid subscription key")
        body = await request.json()
        assert body["model"] == request.match_info["name"]
        self.key, key = None, self.key
        try:
            return await self._complete(request)
        finally:
            self.key = key

    def _refused(self, request: web.Request) -> bool:
        return self.key is not None and request.headers.get("Authorization") != f"Bearer {self.key}"

    async def _complete(self, request: web.Request) -> web.StreamResponse:
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            return await self._handle(request)
        finally:
            self.in_flight -= 1

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        if self._refused(request):
            return _error(401, "invalid_api_key", "Incorrect API key provided")
        body = await request.json()
        if self.models and body["model"] not in self.models:
            return _error(404, "model_not_found", f"The model {body['model']} does not exist")
        if self.quota is not None and sum(self.answered.values()) >= self.quota:
            return _error(429, "insufficient_quota", "You exceeded your current quota")
        prompt = "\n".join(_text_of(message["content"]) for message in body["messages"])
        identity = hashlib.sha256(prompt.encode()).hexdigest()
        tries = self.asked[identity]
        self.asked[identity] += 1
        self.bodies.append({key: value for key, value in body.items() if key != "messages"})
        if self.reply is not None:
            found = await self.reply(request, body, prompt, tries)
            if found is not None:
                return found
        if self.schema == "refused" and "response_format" in body:
            return _error(400, "invalid_request_error", "response_format json_schema is unknown")
        asked_form = body.get("response_format", {}).get("type")
        if self.schema == "object" and asked_form == "json_schema":
            return _error(422, "bad_request", "unknown variant")
        if self.down is not None and self.answered.total() >= self.down[0]:
            self.statuses["down"] += 1
            return _error(self.down[1], self.down[2], "out of order")
        if self.cut_after is not None and self.answered.total() >= self.cut_after:
            self.statuses["cut"] += 1
            _cut(request)
            return web.Response()
        if any(each in prompt for each in self.poison):
            status, param = self.poison_error
            return _error(status, "server_error", "this prompt breaks the server", param)
        limited = self._over_the_limit()
        fault = self._fault(identity, tries)
        self.statuses[fault or ("limited" if limited else "ok")] += 1
        if limited:
            return self._throttle(with_header=True)
        if fault in ("429", "429_retry_after"):
            return self._throttle(with_header=fault == "429_retry_after")
        if fault == "500":
            return _error(500, "server_error", "The server had an error")
        if fault == "silence":
            await self._be_silent(request)
        if fault == "cut_before":
            _cut(request)
            return web.Response()
        if self.latency_seconds:
            await asyncio.sleep(self.latency_seconds)
        while self.hold_after is not None and self.answered.total() >= self.hold_after:
            await asyncio.sleep(0.01)
            if request.transport is None or request.transport.is_closing():
                return web.Response()  # whoever asked is gone
        answer = self.completion(body, prompt, fault)
        self.answered[identity] += 1
        if fault in ("cut_after", "truncated"):
            return await self._broken(request, json.dumps(answer).encode(), fault)
        return web.json_response(answer)

    async def _be_silent(self, request: web.Request) -> None:
        """Nothing for a long time, or until who asked is gone."""
        until = time.monotonic() + SILENCE_SECONDS
        while time.monotonic() < until:
            await asyncio.sleep(0.05)
            if request.transport is None or request.transport.is_closing():
                return

    def _over_the_limit(self) -> bool:
        if self.per_second is None:
            return False
        now = time.monotonic()
        self._window = [moment for moment in self._window if moment > now - 1.0]
        if len(self._window) >= self.per_second:
            return True
        self._window.append(now)
        return False

    def _throttle(self, *, with_header: bool) -> web.Response:
        response = _error(429, "rate_limit_exceeded", "Rate limit reached")
        if with_header:
            response.headers["Retry-After"] = str(self.retry_after)
        return response

    def _fault(self, identity: str, tries: int) -> str | None:
        drawn = random.Random(f"{self.seed}/{identity}").random()
        for name, share in self.faults.items():
            if drawn < share:
                return name if name in LASTING or tries < self.hits else None
            drawn -= share
        return None

    async def _broken(self, request: web.Request, data: bytes, fault: str) -> web.StreamResponse:
        """Half of the answer: with its length (the connection is cut) or as if that were all."""
        half = data[: len(data) // 2]
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        response.content_length = len(data) if fault == "cut_after" else len(half)
        await response.prepare(request)
        await response.write(half)
        if fault == "cut_after":
            _cut(request)
        return response

    def completion(self, body: dict[str, Any], prompt: str, fault: str | None) -> dict[str, Any]:
        """The body of an answer."""
        task, text = answer_to(prompt)
        self.tasks[task] += 1
        finish, refusal, choices = "stop", None, True
        if fault == "wrong_form":
            text = "Certainly! Here is something that you did not ask for."
        elif fault == "refusal":
            text, refusal = "", "I cannot help with that."
        elif fault == "no_choice":
            choices = False
        elif fault == "wrong_candidate" and task == "validation":
            text = "Choice: 99"
        elif fault == "no_agreement" and task == "validation":
            text = "Choice: none"
        elif fault == "no_character":
            text += " \x00 \ud800"
        elif fault == "undecided" and task == "validation":
            text = "Choice: ambiguous"
        elif fault == "debris" and task != "validation":
            label, _, words = text.partition(": ")
            debris = _debris_for(prompt, label)
            text, finish = debris.answer(label, words), debris.finish
        elif fault is not None and task != "validation":
            text = _spoilt(fault, task, prompt, text)
        if task.startswith("passage"):
            text += self.signature
        if self.schema == "object" and "response_format" in body and fault is None:
            label, _, words = text.partition(": ")
            text = json.dumps({label.lower(): words})
        elif self.schema == "taken" and "response_format" in body and fault is None:
            text = _to_schema(body["response_format"], text)
        if self.thinking_bytes:
            filler = "Let me think about that. " * (self.thinking_bytes // 25 + 1)
            text = f"<think>\n{filler[: self.thinking_bytes]}\n</think>\n\n{text}"
        message = {"role": "assistant", "content": text or None, "refusal": refusal}
        sent, came = self.usage or (len(prompt) // 4, max(1, len(text) // 4))
        self.tokens += sent + (body.get("max_completion_tokens") or body.get("max_tokens") or came)
        return {
            "id": "chatcmpl-test",
            "object": "chat.completion",
            "created": 0,
            "model": self._reported(body["model"]),
            "choices": [{"index": 0, "message": message, "finish_reason": finish}]
            if choices
            else [],
            "usage": {
                "prompt_tokens": sent,
                "completion_tokens": came,
                "total_tokens": sent + came,
                **self._thoughts(),
            },
        }

    def _reported(self, model: str) -> str:
        if self.other_model is not None and self.answered.total() >= self.other_model[0]:
            return self.other_model[1]
        return model

    def _thoughts(self) -> dict[str, Any]:
        """How many of the tokens that came are said to be reasoning."""
        if self.reasoning_tokens is None:
            return {}
        return {"completion_tokens_details": {"reasoning_tokens": self.reasoning_tokens}}


def _debris_for(prompt: str, label: str) -> Debris:
    """A kind of debris for a text with this label, by the prompt."""
    fitting = [one for one in DEBRIS if label in one.only]
    return random.Random(prompt).choice(fitting)


def _spoilt(fault: str, task: str, prompt: str, text: str) -> str:
    """A text as a model writes it that does not quite do what it was asked."""
    label, _, words = text.partition(": ")
    given = {"instruction_negative": "Instruction", "query_negative": "Query"}
    written = {
        "leak": f"{words} Write to jane.doe@mail-server.org.",
        "repeat": _line(prompt, given[task]) if task in given else words,
        "more_lines": words if label == "Passage" else f"{words}\n\nNote: I made it harder.",
        "chat_tail": f"{words}\n\nLet me know if you need anything else!",
        "other_language": GERMAN if label == "Passage" else words,
        "much": " ".join([words] * 400),
    }
    return f"{label}: {written.get(fault, words)}"


def answer_to(prompt: str) -> tuple[str, str]:
    """The task of a prompt and what a fairly good model would say."""
    if "end with one line in exactly this form" in prompt:
        return "validation", f"Choice: {_choose(prompt)}"
    if asked := re.search(r"^(Answer|Grade|Score): <", prompt, re.M):
        return "check", f"{asked[1]}: {_fits(prompt)[asked[1]]}"
    if '"instruction_negatives"' in prompt:
        return "texts", json.dumps(_promptriever(prompt))
    if listed := re.search(r'^\{"(\w+)": \["<', prompt, re.M):
        texts = _promptriever(prompt)["instruction_negatives"]
        return "texts", json.dumps({listed[1]: texts[:2]})
    if keys := re.search(r"^Keys: (.+)$", prompt, re.M):
        return "texts", json.dumps(_of_keys(prompt, keys[1].split(", ")))
    told = re.search(r"is a solution in (.+), the task|below, written in (.+), is the one", prompt)
    where = f"In {told[1] or told[2]} " if told else ""  # the recipe for code
    query = _line(prompt, "Query")
    code = hashlib.sha256(f"{query}{_line(prompt, 'Variant')}".encode()).hexdigest()[:8]
    if "Passage: <your passage>" in prompt:
        topic = _line(prompt, "Instruction").split()[-1].strip(".")
        old = "Old query" in prompt
        words = f"It has been known since long that {query} matters, and {topic} above all."
        task = "passage_query_negative" if old else "passage_instruction_negative"
        return task, f"Passage: {words} Nobody who looked into it found anything else."
    if "Query: <your new query>" in prompt:
        return "query_negative", f"Query: what is known about mu{code}"
    if "Instruction: <your new instruction>" in prompt:
        return "instruction_negative", f"Instruction: {where}I only want to read about lambda{code}"
    document = re.split("Document:|Solution:", prompt, maxsplit=1)[-1].partition("\nQuery:")[0]
    word = max(re.findall(r"[^\W\d_]+", document), key=len, default="it")
    return "instruction_positive", f"Instruction: {where}I only want to read about {word}"


def _promptriever(prompt: str) -> dict[str, Any]:
    """A backup with the instruction's topic, and three negatives, of which some have it as well."""
    query, topic = _line(prompt, "Query"), _line(prompt, "Instruction").split()[-1].strip(".")
    code = hashlib.sha256(query.encode()).hexdigest()
    words = f"It has been known since long that {query} matters, and {{}} above all."
    negatives = [
        words.format(topic if int(code, 16) >> number & 1 else f"nu{code[:6]}") + f" No. {number}"
        for number in range(3)
    ]
    return {"backup": words.format(topic) + " So it is.", "instruction_negatives": negatives}


def _of_keys(prompt: str, keys: list[str]) -> dict[str, str]:
    """A passage for each key; the first fits the instruction for half of the queries only."""
    query, topic = _line(prompt, "Query"), _line(prompt, "Instruction").split()[-1].strip(".")
    fits = int(hashlib.sha256(query.encode()).hexdigest(), 16) % 2
    words = f"It has been known since long that {query} matters, and {{}} above all."
    return {key: words.format(topic if place or fits else key) for place, key in enumerate(keys)}


def _text_of(content: str | list[dict[str, Any]]) -> str:
    """What a message says, be it one text or a list of parts."""
    if isinstance(content, str):
        return content
    return "".join(part["text"] for part in content if part["type"] == "text")


def _to_schema(asked: dict[str, Any], text: str) -> str:
    """The labelled text as an object of the schema; what is an object already stays."""
    if text.startswith("{"):
        return text
    keys = asked["json_schema"]["schema"]["required"]
    value = text.partition(": ")[2]
    return json.dumps({key: value if key == keys[-1] else "Because." for key in keys})


def _choose(prompt: str) -> str:
    """The passage with the code words asked for; without any, the one with the topic."""
    query, topic = _line(prompt, "Query"), _line(prompt, "Instruction").split()[-1]
    passages = re.findall(r"^<passage (\d+)>\n(.*?)\n</passage \1>$", prompt, re.M | re.S)
    coded = re.search(r"\bmu[0-9a-f]{8}\b", query)
    wanted = coded.group() if coded else topic
    fitting = [
        number
        for number, text in passages
        if wanted in text and (coded or not re.search(r"\bmu[0-9a-f]{8}\b", text))
    ]
    if len(fitting) > 1:  # two passages for the altered query: the instruction tells them apart
        texts = dict(passages)
        fitting = [number for number in fitting if topic in texts[number]] or fitting
    return fitting[0] if len(fitting) == 1 else ("ambiguous" if fitting else "none")


def _fits(prompt: str) -> dict[str, str]:
    """What is said of a passage: it fits where it has the instruction's topic."""
    topic = (_line(prompt, "Instruction").split() or [""])[-1].strip(".")
    passage = prompt.rpartition("<passage>")[2].partition("</passage>")[0]
    fits = topic in passage
    if "Their instruction is strict" in prompt and "It has been known" not in passage:
        # so that now and then a backup takes the place of a pair's own passage
        fits = int(hashlib.sha256(passage.encode()).hexdigest(), 16) % 4 > 0
    return {
        "Answer": "yes" if fits else "no",
        "Grade": str(2 * fits),
        "Score": f"{0.2 + 0.7 * fits:.2f}",
    }


def _line(prompt: str, label: str) -> str:
    found = re.search(rf"^{label}: (?!<)(.*)$", prompt, re.M)
    return found.group(1).strip() if found else ""


def _error(status: int, code: str, message: str, param: str | None = None) -> web.Response:
    body = {"error": {"message": message, "type": code, "param": param, "code": code}}
    return web.json_response(body, status=status)


def _cut(request: web.Request) -> None:
    if request.transport is not None:
        request.transport.abort()


def main() -> None:
    """Serve until ended; the first line printed is the address."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--latency", type=float, default=0.0)
    parser.add_argument("--per-second", type=float)
    parser.add_argument("--thinking-bytes", type=int, default=0)
    parser.add_argument("--port", type=int, default=0)
    arguments = parser.parse_args()
    server = Server(latency_seconds=arguments.latency, per_second=arguments.per_second)
    server.port = arguments.port
    server.thinking_bytes = arguments.thinking_bytes
    server.bodies = deque(maxlen=1000)  # a benchmark sends a million
    with server:
        print(server.url, flush=True)  # noqa: T201 - the caller reads the address
        threading.Event().wait()


if __name__ == "__main__":
    main()
