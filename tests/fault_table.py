"""Every fault of a server that a run is tested with: the cases of a test and a page of the docs.

A row says what the server does, and how the run ends; the sentences of the documentation follow
from that. `python tests/fault_table.py` prints the page (`docs/reference/faults.md`).
"""

import asyncio
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from aiohttp import web

Tries = Literal["first", "every"]
Reach = Literal["pair", "all"]
Make = Callable[[dict[str, Any]], "Sent"]
SECONDS = 2.0  # the timeout of the rows that need one: far above an answer on a busy machine
ENDS = {
    "kept": ("keeps the group", "nothing is left to do"),
    "again": ("tries again; no group is lost", "nothing is left to do"),
    "dropped": (
        "drops the group as `{reason}` and goes on with the others",
        "nothing is left to do; the group stays dropped",
    ),
    "stops": (
        "stops: “{message}”; no group is lost",
        "goes on where it stopped; what was answered is not sent again",
    ),
}


@dataclass(frozen=True)
class Sent:
    """What goes out in place of a good answer.

    `raw`: these bytes on the connection, which is then cut, or left open (`hang`). `drip`: bytes
    per moment (10 ms).
    """

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    raw: bytes | None = None
    hang: bool = False
    drip: int = 0


@dataclass(frozen=True)
class Fault:
    """A row. `tries`: how often a request meets the fault; `reach`: the first pair's, or all.

    `after`: answers that are given before. `task`: the fault meets requests of this one alone.
    `form`: only requests with this response format. `ends`: a key of ENDS.
    """

    does: str
    make: Make
    ends: Literal["kept", "again", "dropped", "stops"]
    reason: str = ""
    message: str = ""
    tries: Tries = "every"
    reach: Reach = "pair"
    after: int = 0
    task: str = "instruction_positive"
    form: str = ""
    settings: tuple[str, ...] = ()
    environment: dict[str, str] = field(default_factory=dict)
    paid_twice: bool = False  # the server answered and the answer was lost on the way

    @property
    def run(self) -> str:
        """What the run does."""
        run = ENDS[self.ends][0].format(reason=self.reason, message=self.message)
        return f"{run}; the lost answer is paid again" if self.paid_twice else run

    @property
    def resume(self) -> str:
        """What a resume does."""
        return ENDS[self.ends][1]


def error(status: int, code: str = "", message: str = "out of order", **headers: str) -> Make:
    """An error in the protocol's form."""
    body = json.dumps({"error": {"message": message, "type": code, "param": None, "code": code}})
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda _: Sent(status, body.encode(), {"Content-Type": "application/json"} | sent)


def sent_on(status: int) -> Make:
    """A redirect, as a proxy's to where people sign in."""
    return lambda _: Sent(status, headers={"Location": "/sign-in"})


def encoded(charset: str) -> Make:
    """A good answer in an encoding that is not named."""
    return lambda good: Sent(body=in_windows_1252(good).decode("cp1252").encode(charset))


def body_of(change: Callable[[dict[str, Any]], Any]) -> Make:
    """A good answer, changed."""
    return lambda good: Sent(body=json.dumps(change(good)).encode())


def message_of(change: Callable[[dict[str, Any]], dict[str, Any]], finish: str = "stop") -> Make:
    """A good answer with another message; its text is in `content`."""

    def changed(good: dict[str, Any]) -> dict[str, Any]:
        choice = {"index": 0, "message": change(good["choices"][0]["message"])}
        return good | {"choices": [choice | {"finish_reason": finish}]}

    return body_of(changed)


def text_of(change: Callable[[str], Any]) -> Make:
    """A good answer with another content."""
    return message_of(lambda message: message | {"content": change(message["content"])})


def usage_of(usage: Any) -> Make:
    """A good answer with another usage."""
    return body_of(lambda good: good | {"usage": usage})


def verbatim(body: bytes, content_type: str = "application/json", status: int = 200) -> Make:
    """This body, whatever the answer."""
    return lambda _: Sent(status, body, {"Content-Type": content_type})


def whole(good: dict[str, Any]) -> bytes:
    """A good answer with its headers, as it goes over the wire."""
    data = json.dumps(good).encode()
    head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(data)}"
    return head.encode() + b"\r\n\r\n" + data


def events(good: dict[str, Any], *, done: bool = True, part: float = 1.0) -> Sent:
    """A good answer as a stream of server-sent events, or its first part."""
    text = good["choices"][0]["message"]["content"]
    pieces = [text[at : at + 7] for at in range(0, len(text), 7)]
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    deltas += [{"content": piece} for piece in pieces]
    sent = [{"choices": [{"index": 0, "delta": one, "finish_reason": None}]} for one in deltas]
    sent += [{"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}]
    sent += [{"choices": [], "model": good["model"], "usage": good["usage"]}]
    lines = [": keep-alive", *(f"data: {json.dumps(one)}" for one in sent)]
    lines = lines[: int(len(lines) * part)]
    if done and part == 1.0:
        lines.append("data: [DONE]")
    body = "\n\n".join([*lines, ""]).encode()
    return Sent(body=body, headers={"Content-Type": "text/event-stream"})


def with_more(good: dict[str, Any], more: str) -> dict[str, Any]:
    """A good answer with another text in its thinking, which is kept."""
    choice = good["choices"][0]
    message = choice["message"] | {"reasoning_content": f"one{more}two"}
    return good | {"choices": [choice | {"message": message}]}


def in_windows_1252(good: dict[str, Any]) -> bytes:
    """A good answer with letters and quotes in that encoding, which is no UTF-8."""
    changed = with_more(good, "d\u00e9j\u00e0 \u201cvu\u201d")
    return json.dumps(changed, ensure_ascii=False).encode("cp1252")


def as_json(text: str) -> str:
    """A labelled text as the object that the schema names."""
    label, _, rest = text.partition(": ")
    return json.dumps({label.lower(): rest})


def exhausted(good: dict[str, Any]) -> Sent:
    """A good answer that ends for want of the server's resources."""
    return message_of(lambda message: message, finish="insufficient_system_resource")(good)


def parts(text: str) -> list[dict[str, Any]]:
    """A text as two parts, with a part of thinking before them."""
    half = len(text) // 2
    thinking = {"type": "thinking", "thinking": [{"type": "text", "text": "Instruction: a draft"}]}
    return [
        thinking,
        {"type": "text", "text": text[:half]},
        {"type": "text", "text": text[half:]},
    ]


HTML = b"<html><body><h1>502 Bad Gateway</h1></body></html>"
SIGN_IN = (
    b"<!doctype html><title>Sign in to Example</title>"
    b"<form method=post><input name=user><input type=password name=pass></form>"
)
LITELLM = (
    b'{"error": {"message": "Authentication Error, Invalid proxy server token passed", '
    b'"type": "auth_error", "param": "None", "code": "400"}}'
)
RETRY = {"INF_MAX_RETRY_AFTER_SECONDS": "0.02"}
TIMEOUT = (f"timeout_seconds={SECONDS}",)
JSON = ("output=json",)
PAST = "Wed, 21 Oct 2015 07:28:00 GMT"
FUTURE = "Wed, 21 Oct 2037 07:28:00 GMT"
SILENT = "has given no answer"
QUOTA = "quota is spent"
KEY = "refuses the key"
ELSEWHERE = "sends requests on to another address"


def again(does: str, make: Make, **more: Any) -> Fault:
    """A fault that passes: the next attempt is answered."""
    return Fault(does, make, "again", tries="first", **more)


def stops(does: str, make: Make, message: str, **more: Any) -> Fault:
    """A fault of the whole server, which lasts."""
    return Fault(does, make, "stops", message=message, reach="all", after=3, **more)


def dropped(does: str, make: Make, reason: str, **more: Any) -> Fault:
    """A fault of one pair's requests, which lasts."""
    return Fault(does, make, "dropped", reason=reason, **more)


def kept(does: str, make: Make, **more: Any) -> Fault:
    """An odd answer that is read all the same."""
    return Fault(does, make, "kept", **more)


STATUSES = (
    again("answers 408 once", error(408)),
    again("answers 409 once", error(409)),
    again("answers 425 once (too early)", error(425)),
    again("answers 429 once, without Retry-After", error(429, "rate_limit_exceeded")),
    again("answers 429 once, Retry-After in seconds", error(429, Retry_After="0.02")),
    again("answers 429 once, retry-after-ms", error(429, retry_after_ms="20")),
    again("answers 429 once, Retry-After a date in the past", error(429, Retry_After=PAST)),
    again(
        "answers 429 once, Retry-After a date in years (capped at ten minutes)",
        error(429, Retry_After=FUTURE),
        environment=RETRY,
    ),
    again(
        "answers 429 once, Retry-After a day (capped at ten minutes)",
        error(429, Retry_After="86400"),
        environment=RETRY,
    ),
    again("answers 429 once, Retry-After “soon”", error(429, Retry_After="soon")),
    again("answers 429 once, Retry-After negative", error(429, Retry_After="-5")),
    again("answers 500 once", error(500)),
    again("answers 502 once, with an HTML page", verbatim(HTML, "text/html", 502)),
    again("answers 503 once", error(503)),
    again("answers 503 once, Retry-After in seconds", error(503, Retry_After="0.02")),
    again(
        "answers 503 once, Retry-After absurd (capped)",
        error(503, Retry_After="1e9"),
        environment=RETRY,
    ),
    again("answers 503 once, Retry-After as a date that is past", error(503, Retry_After=PAST)),
    again(
        "answers 503 once, Retry-After as a date far away (capped)",
        error(503, Retry_After=FUTURE),
        environment=RETRY,
    ),
    again("answers 500 once, Retry-After in seconds", error(500, Retry_After="0.02")),
    again("answers 408 once, Retry-After in seconds", error(408, Retry_After="0.02")),
    *(
        again(f"answers {status} once, Retry-After in seconds", error(status, Retry_After="0.02"))
        for status in (409, 502, 504, 529)
    ),
    *(
        again(
            f"answers {status} once, Retry-After absurd (capped)",
            error(status, Retry_After="1e9"),
            environment=RETRY,
        )
        for status in (408, 500, 529)
    ),
    again("answers 529 once, Retry-After as a date that is past", error(529, Retry_After=PAST)),
    again("answers 504 once", error(504)),
    again("answers 529 once (overloaded)", error(529)),
    stops("answers 401 from then on", error(401, "invalid_api_key"), KEY),
    stops("answers 402 from then on", error(402), QUOTA),
    stops("answers 403 from then on", error(403), KEY),
    stops("answers 404 from then on (model unloaded)", error(404), "does not know the model"),
    stops("answers 408 from then on", error(408), SILENT),
    stops("answers 409 from then on", error(409), SILENT),
    stops("answers 429 from then on", error(429), SILENT),
    stops("answers 429 `insufficient_quota`", error(429, "insufficient_quota"), QUOTA),
    stops("answers 500 from then on", error(500), SILENT),
    stops("answers 502 with HTML from then on", verbatim(HTML, "text/html", 502), SILENT),
    stops("answers 503 from then on", error(503), SILENT),
    stops("sends requests on to a sign-in page (302)", sent_on(302), ELSEWHERE),
    stops("sends requests on to another address (307)", sent_on(307), ELSEWHERE),
    stops("answers 529 from then on", error(529), SILENT),
    stops(
        "answers 400 for a parameter",
        lambda _: Sent(
            400, b'{"error": {"message": "no", "param": "top_k"}}', {"Content-Type": "text/json"}
        ),
        "refuses the parameter 'top_k'",
    ),
    stops(
        "answers 400 for a proxy's key (LiteLLM's `auth_error`)",
        lambda _: Sent(400, LITELLM, {"Content-Type": "application/json"}),
        KEY,
    ),
    stops("answers 400 to every request, without a reason", error(400), "refuses every request"),
    stops("answers 400 `budget_exceeded` (a proxy's)", error(400, "budget_exceeded"), QUOTA),
    dropped("answers 500 to one pair, always", error(500), "server_error"),
    dropped("answers 400 to one pair", error(400), "request_refused"),
    dropped("answers 422 to one pair", error(422), "request_refused"),
    dropped("answers 413 to one pair", error(413), "too_long_for_model"),
    dropped(
        "answers 400 `context_length_exceeded`",
        error(400, "context_length_exceeded"),
        "too_long_for_model",
    ),
    dropped(
        "answers 400 “maximum context length is 8192 tokens”",
        error(400, "", "This model's maximum context length is 8192 tokens"),
        "too_long_for_model",
    ),
    dropped("answers 400 `content_filter`", error(400, "content_filter"), "refused"),
)

WIRE = (
    again("cuts the connection before the headers", lambda _: Sent(raw=b"")),
    again("cuts the connection in the headers", lambda _: Sent(raw=b"HTTP/1.1 200 OK\r\nConte")),
    again(
        "cuts the connection in the body",
        lambda good: Sent(raw=whole(good)[:-40]),
        paid_twice=True,
    ),
    again("answers something that is no HTTP", lambda _: Sent(raw=b"220 mail ready\r\n\r\n")),
    again("accepts and never answers, once", lambda _: Sent(raw=b"", hang=True), settings=TIMEOUT),
    again(
        "sends the headers and no body, once",
        lambda good: Sent(raw=whole(good).partition(b"{")[0], hang=True),
        settings=TIMEOUT,
        paid_twice=True,
    ),
    again(
        "drips a byte at a time past the timeout, once",
        lambda good: Sent(raw=whole(good), drip=1),
        settings=TIMEOUT,
        paid_twice=True,
    ),
    kept("drips, and ends within the timeout", lambda good: Sent(raw=whole(good), drip=60)),
    stops("cuts every connection", lambda _: Sent(raw=b""), SILENT),
    dropped("cuts one pair's connections, always", lambda _: Sent(raw=b""), "server_error"),
    again("answers 200 with an empty body, once", verbatim(b"")),
    again("answers 200 with a proxy's HTML page, once", verbatim(HTML, "text/html")),
    again("answers truncated JSON, once", lambda good: Sent(body=json.dumps(good).encode()[:-30])),
    again("answers with a list, once", verbatim(b"[]")),
    again("answers with a number, once", verbatim(b"3")),
    again("answers with a JSON string, once", verbatim(b'"busy"')),
    again("answers with null, once", verbatim(b"null")),
    again("answers 200 with an error object, once", verbatim(b'{"error": {"message": "busy"}}')),
    again(
        "answers in Latin-1 where UTF-8 is named, once",
        verbatim('{"choices": "d\u00e9j\u00e0 vu"}'.encode("latin-1")),
    ),
    again("answers in UTF-16 where UTF-8 is named, once", verbatim('{"a": 1}'.encode("utf-16"))),
    stops("answers 200 with HTML from then on", verbatim(HTML, "text/html"), SILENT),
    stops(
        "answers 200 with a page to sign in",
        verbatim(SIGN_IN, "text/html"),
        "a page to sign in .'Sign in to Example'.",
    ),
    stops("answers with an empty body from then on", verbatim(b""), SILENT),
    kept("answers a stream of events, unasked", lambda good: events(good)),
    kept("answers a stream of events without `[DONE]`", lambda good: events(good, done=False)),
    again(
        "answers a stream of events that breaks off, once",
        lambda good: events(good, part=0.5),
        paid_twice=True,
    ),
    kept(
        "sends comments before the body (`: PROCESSING`)",
        lambda good: Sent(body=b": PROCESSING\n\n" * 3 + json.dumps(good).encode()),
    ),
    kept(
        "answers in Windows-1252, undeclared",
        lambda good: Sent(body=in_windows_1252(good)),
    ),
    kept("answers in UTF-16, undeclared, with a mark", encoded("utf-16")),
    kept("answers in UTF-16, undeclared, without a mark", encoded("utf-16-le")),
    again("answers bytes that are no text, once", verbatim(b"\xff\x00\x81"), paid_twice=True),
    kept(
        "answers with raw line breaks in its JSON",
        lambda good: Sent(body=json.dumps(with_more(good, "\n")).replace("\\n", "\n").encode()),
    ),
    kept(
        "answers JSON as text/plain",
        lambda good: Sent(body=json.dumps(good).encode(), headers={"Content-Type": "text/plain"}),
    ),
    kept(
        "answers without a content type",
        lambda good: Sent(raw=whole(good).replace(b"Content-Type: application/json\r\n", b"")),
    ),
)

SHAPES = (
    kept("answers a list of parts with thinking", text_of(parts)),
    kept("answers JSON where text was requested", text_of(as_json)),
    kept("answers JSON in a code fence", text_of(lambda text: f"```json\n{as_json(text)}\n```")),
    kept(
        "answers in `<think>` tags and text", text_of(lambda t: f"<think>Instruction: x</think>{t}")
    ),
    kept(
        "sends the reasoning in a field of its own",
        message_of(lambda message: message | {"reasoning_content": "Instruction: a draft"}),
    ),
    kept(
        "answers by a tool call",
        message_of(
            lambda message: {
                "content": None,
                "tool_calls": [{"function": {"arguments": as_json(message["content"])}}],
            },
            finish="tool_calls",
        ),
    ),
    kept(
        "answers in the older completions protocol",
        body_of(
            lambda good: good | {"choices": [{"text": good["choices"][0]["message"]["content"]}]}
        ),
    ),
    kept(
        "answers with two choices (the first is taken)",
        body_of(lambda good: good | {"choices": good["choices"] * 2}),
    ),
    kept(
        "sends no finish reason",
        body_of(lambda good: good | {"choices": [{"message": good["choices"][0]["message"]}]}),
    ),
    kept(
        "answers with the legacy `function_call`",
        message_of(
            lambda message: {
                "content": None,
                "function_call": {"name": "reply", "arguments": as_json(message["content"])},
            },
            finish="function_call",
        ),
    ),
    kept(
        "answers by two equal tool calls",
        message_of(
            lambda message: {
                "content": None,
                "tool_calls": [{"function": {"arguments": as_json(message["content"])}}] * 2,
            },
            finish="tool_calls",
        ),
    ),
    dropped(
        "answers by two tool calls that differ",
        message_of(
            lambda message: {
                "content": None,
                "tool_calls": [
                    {"function": {"arguments": as_json(text)}}
                    for text in (message["content"], "Instruction: another one")
                ],
            },
            finish="tool_calls",
        ),
        "empty",
    ),
    *(
        dropped(
            f"ends with the reason `{reason}`",
            message_of(lambda message: message, finish=reason),
            "cut_off",
        )
        for reason in ("MAX_TOKENS", "model_length")
    ),
    again("ends with `insufficient_system_resource`, once", exhausted, paid_twice=True),
    dropped("ends with it for one pair, always", exhausted, "server_error"),
    stops("ends with it from then on", exhausted, SILENT),
    dropped("answers with no choice", body_of(lambda good: good | {"choices": []}), "empty"),
    dropped("answers with content null", text_of(lambda _: None), "empty"),
    dropped("answers with an empty content", text_of(lambda _: "  \n"), "empty"),
    dropped("begins to think and never ends", text_of(lambda t: f"<think>{t}"), "unparsable"),
    dropped("answers with an object as content", text_of(lambda _: {"a": 1}), "unparsable"),
    dropped("answers something else", text_of(lambda _: "Certainly!"), "unparsable"),
    dropped(
        "ends with “Let me know if you need anything else!”",
        text_of(lambda text: f"{text}\n\nLet me know if you need anything else!"),
        "leftover",
        task="passage_instruction_negative",
    ),
    dropped(
        "refuses in the field `refusal`",
        message_of(lambda _: {"content": None, "refusal": "I cannot help with that."}),
        "refused",
    ),
    dropped(
        "stops for its content filter",
        message_of(lambda message: message, finish="content_filter"),
        "refused",
    ),
    dropped(
        "stops at the token limit", message_of(lambda message: message, finish="length"), "cut_off"
    ),
    dropped(
        "answers with 10 MB of text",
        text_of(lambda text: f"{text} " + "word " * 2_000_000),
        "too_long",
    ),
    dropped("answers with a NUL", text_of(lambda text: f"{text}\x00"), "unparsable"),
    dropped(
        "answers with half a character (a lone surrogate)",
        text_of(lambda text: f"{text}\ud800"),
        "unparsable",
    ),
    dropped(
        "judges by a number that was not shown",
        text_of(lambda _: "Choice: 99"),
        "unknown_candidate",
        task="validation",
    ),
    dropped("judges “none”", text_of(lambda _: "Choice: none"), "judge_none", task="validation"),
    kept(
        "judges in fullwidth digits",
        text_of(lambda text: text.translate({48 + n: 0xFF10 + n for n in range(10)})),
        task="validation",
    ),
    kept("reports no usage", body_of(lambda good: {k: v for k, v in good.items() if k != "usage"})),
    kept("reports usage as null", usage_of(None)),
    kept("reports usage as text", usage_of("many")),
    kept("reports tokens as strings", usage_of({"prompt_tokens": "12", "completion_tokens": "7"})),
    kept("reports tokens as floats", usage_of({"prompt_tokens": 12.0, "completion_tokens": 7.5})),
    kept("reports negative tokens", usage_of({"prompt_tokens": -1, "completion_tokens": -7})),
    kept("reports 10^30 tokens", usage_of({"prompt_tokens": 10**30, "completion_tokens": 10**30})),
    kept("refuses the JSON schema with 400", error(400), form="json_schema", settings=JSON),
    kept("refuses the JSON schema with 422", error(422), form="json_schema", settings=JSON),
    *(
        kept(f"refuses the JSON schema with {code}", error(code), form="json_schema", settings=JSON)
        for code in (403, 404, 409, 413, 415)
    ),
    kept("refuses any response format with 404", error(404), form="any", settings=JSON),
    kept("refuses any response format with 400", error(400), form="any", settings=JSON),
    stops(
        "comes back as another model",
        body_of(lambda good: good | {"model": "tiny-chat"}),
        "load small again and resume the run",
    ),
)

FAULTS: tuple[Fault, ...] = (*STATUSES, *WIRE, *SHAPES)
SECTIONS = (
    ("HTTP statuses", STATUSES),
    ("The connection and the body", WIRE),
    ("The shape of the answer", SHAPES),
)


async def send(request: web.Request, sent: Sent) -> web.StreamResponse:
    """Send what a fault sends."""
    if sent.raw is None:
        response = web.Response(status=sent.status, body=sent.body, headers=sent.headers)
        if "Content-Type" not in sent.headers:
            response.headers["Content-Type"] = "application/json"
        return response
    transport = request.transport
    assert transport is not None
    step = sent.drip or len(sent.raw) or 1
    for start in range(0, len(sent.raw), step):
        if transport.is_closing():
            break
        transport.write(sent.raw[start : start + step])
        await asyncio.sleep(0.01 if sent.drip else 0)
    while sent.hang and not transport.is_closing():
        await asyncio.sleep(0.02)
    transport.close()
    return web.Response()


def page() -> str:
    """The page of the documentation."""
    lines = [
        "# Faults of a server",
        "",
        "After this page you can say what a run does when a server fails, and what a resume costs.",
        "",
        f"What a curation run does when its server misbehaves: {len(FAULTS)} faults, each of which",
        "is a case of `tests/curation/test_faults.py`. This page is printed by",
        "`python tests/fault_table.py`.",
        "",
        "“From then on” faults begin in the middle of a run; “once” means the first attempt of a",
        "request. An answer that reached the run is stored before it is read, so that no resume",
        "pays for it again.",
    ]
    for title, rows in SECTIONS:
        lines += ["", f"## {title}", "", "| The server | The run | A resume |", "|---|---|---|"]
        lines += [f"| {row.does} | {row.run} | {row.resume} |" for row in rows]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    sys.stdout.write(page())
