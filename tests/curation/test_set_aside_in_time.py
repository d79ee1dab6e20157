"""At the real constants, in simulated time: a prompt that fails or hangs while others are answered
is set aside within a minute, and a slow answer is waited for."""

import asyncio
import heapq
import itertools
import json
import random
import re
import time
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any

import httpx2
import openai
import pytest
from waiting import SimulatedTime

from curation.providers.endpoints import Endpoint
from curation.providers.gate import Latencies
from curation.providers.openai_server import OpenAIProvider
from curation.providers.provider import Request, RowFailed, TryLater
from curation.recipe.prices import Price
from curation.recipe.recipe import load_recipe

# from a prompt to the tokens of its answer; 0: fails, THROTTLED: 429
Handle = Callable[[str], Awaitable[int]]
FOREVER = 1e9
THROTTLED = -1


class World:
    """A server in simulated time, and callers that retry as a run's worker does."""

    def __init__(
        self,
        handle: Handle,
        *,
        concurrency: int = 4,
        max_tokens: int | None = 160,
        timeout_seconds: float | None = None,
        endpoints: int = 1,
        tokens_per_minute: float | None = None,
    ) -> None:
        self.in_flight = self.max_in_flight = 0
        self.counted = list[tuple[float, int]]()  # tokens against the limit, by the server

        async def respond(sent: httpx2.Request) -> httpx2.Response:
            messages = json.loads(sent.content)["messages"]
            prompt = "\n".join(message["content"] for message in messages)
            of_group = not is_probe(prompt)
            self.in_flight += of_group
            self.max_in_flight = max(self.max_in_flight, self.in_flight)
            try:
                tokens = await handle(prompt)
            finally:
                self.in_flight -= of_group
            if tokens == THROTTLED:
                return httpx2.Response(429, json={"error": {"message": "too many of these"}})
            if not tokens:
                return httpx2.Response(500, json={"error": {"message": "it breaks"}})
            message = {"content": "Instruction: read about towers"}
            choice = {"index": 0, "message": message, "finish_reason": "stop"}
            usage = {"prompt_tokens": len(prompt) // 2, "completion_tokens": tokens}
            self.counted.append((time.monotonic(), len(prompt) // 2 + (max_tokens or 0)))
            return httpx2.Response(200, json={"choices": [choice], "usage": usage})

        client = openai.AsyncOpenAI(
            base_url="http://model/v1",
            api_key="none",
            max_retries=0,
            http_client=openai.DefaultAioHttpClient(transport=httpx2.MockTransport(respond)),
        )
        client._platform = "Linux"  # else a thread finds out, which has another clock
        self.provider = OpenAIProvider(
            [Endpoint(f"http://model{n}/v1", client, own_server=True) for n in range(endpoints)],
            concurrency=concurrency,
            prices={"small": Price(1.0, 2.0)},
            tokens_per_minute=tokens_per_minute,
            parks=True,
        )
        self.provider.patience_seconds = 600
        if timeout_seconds is not None:
            self.provider.timeouts["instruction_positive"] = timeout_seconds
        self.stage = load_recipe("msmarco", ["model=small"]).stages["instruction_positive"]
        self.max_tokens = max_tokens
        self.answered: dict[str, tuple[float, int]] = {}
        self.failed: dict[str, tuple[float, str]] = {}
        self.answered_at, self.failed_at = list[float](), list[float]()

    def request(self, text: str) -> Request:
        return Request(
            task="instruction_positive",
            provider="openai",
            model="small",
            parameters={"max_output_tokens": self.max_tokens} if self.max_tokens else {},
            prompt=self.stage.prompt,
            inputs={"document": text, "query_positive": text},
            gives="Instruction",
        )

    async def work(self, texts: list[str], places: int = 4) -> None:
        """Request answers to all, as a worker with so many places and lent ones: what is due for
        another attempt goes first, and holds no place meanwhile."""
        ready, parked, numbers = deque(texts), list[tuple[float, int, str]](), itertools.count()
        began: dict[str, float] = {}

        async def place() -> None:
            while len(self.answered) + len(self.failed) < len(texts):
                if parked and parked[0][0] <= time.monotonic():
                    text = heapq.heappop(parked)[2]
                elif ready:
                    text = ready.popleft()
                else:
                    await asyncio.sleep(0.1)
                    continue
                first = began.setdefault(text, time.monotonic())
                try:
                    answer = await self.provider.answer(self.request(text))
                except TryLater as later:
                    due = time.monotonic() + later.seconds
                    heapq.heappush(parked, (due, next(numbers), text))
                except RowFailed as failed:
                    self.failed_at.append(time.monotonic())
                    self.failed[text] = time.monotonic() - first, f"{failed.reason}: {failed}"
                else:
                    self.answered_at.append(time.monotonic())
                    self.answered[text] = time.monotonic() - first, answer.attempts

        async with asyncio.TaskGroup() as group:
            for _ in range(2 * places):
                group.create_task(place())
        self.lost_usd = self.provider.state().unanswered_usd
        await self.provider.close()


@pytest.fixture
def simulated(monkeypatch: pytest.MonkeyPatch) -> Callable[..., World]:
    """Work on texts in simulated time; how it went."""

    def run(handle: Handle, texts: list[str], **more: Any) -> World:
        with asyncio.Runner(loop_factory=SimulatedTime) as runner:
            loop = runner.get_loop()
            with monkeypatch.context() as patched:
                patched.setattr(time, "monotonic", loop.time)
                world = World(handle, **more)
                runner.run(world.work(texts))
        return world

    return run


def is_probe(prompt: str) -> bool:
    """A small one, or the start of an answer to a prompt whose beginning is new."""
    return prompt == "Reply with OK." or re.match(r"\([0-9a-f]+\) ", prompt) is not None


def texts(count: int, *bad: str, at: int = 20) -> list[str]:
    good = [f"good {number}" for number in range(count)]
    return [*good[:at], *bad, *good[at:]]


@pytest.mark.parametrize("seconds", [0.05, 5.0, 12.0, 14.0, 20.0, 25.0, 29.0])
def test_a_prompt_that_fails_while_others_are_answered_is_set_aside_within_a_minute(
    simulated: Callable[..., World], seconds: float
) -> None:
    async def handle(prompt: str) -> int:
        await asyncio.sleep(seconds if "bad" in prompt else 1.0)
        return 0 if "bad" in prompt else 30

    world = simulated(handle, texts(400, "bad"))
    after, why = world.failed["bad"]
    assert after < 60 and why.startswith("server_error: gave up after")
    assert len(world.answered) == 400


@pytest.mark.parametrize("seconds", [5.0, 14.0, 19.0, 25.0])
@pytest.mark.parametrize(("count", "endpoints"), [(5, 1), (2, 1), (1, 2), (1, 3)])
def test_of_several_prompts_or_at_several_endpoints_too(
    simulated: Callable[..., World], seconds: float, count: int, endpoints: int
) -> None:
    """One of a hundred prompts fails, with four in flight; each other endpoint fails it, too."""

    async def handle(prompt: str) -> int:
        await asyncio.sleep(seconds if "bad" in prompt else 1.0)
        return 0 if "bad" in prompt else 30

    bad = [f"bad {number}" for number in range(count)]
    world = simulated(handle, texts(500, *bad), endpoints=endpoints)
    assert world.failed.keys() == set(bad) and len(world.answered) == 500
    # four that take 25 s to fail hold all places so long: nothing else succeeds meanwhile
    held = 25 if count > 4 and seconds == 25.0 else 5
    assert max(after for after, _ in world.failed.values()) < 60 + held


@pytest.mark.parametrize("seconds", [14.0, 25.0])
def test_a_server_that_fails_slowly_under_load_drops_hardly_a_row(
    simulated: Callable[..., World], seconds: float
) -> None:
    """A third of all calls fail, whatever the prompt: two failures of a row prove nothing."""
    chance = random.Random(2)

    async def handle(prompt: str) -> int:
        fails = chance.random() < 0.3 and not is_probe(prompt)
        await asyncio.sleep(seconds if fails else 3.0)
        return 0 if fails else 30

    world = simulated(handle, texts(600))
    assert len(world.failed) <= 8, world.failed


@pytest.mark.parametrize("places", [4, 32])
def test_prompts_that_alone_are_throttled_are_set_aside_within_a_minute_and_slow_down_no_other(
    simulated: Callable[..., World], places: int
) -> None:
    """Five of them come first and hold all of four places."""

    def handle_with(bad: str) -> Handle:
        async def handle(prompt: str) -> int:
            if bad in prompt:
                await asyncio.sleep(0.05)
                return THROTTLED
            await asyncio.sleep(1.0)
            return 30

        return handle

    some, all_good = [f"bad {number}" for number in range(5)], "there is none"
    world = simulated(handle_with("bad"), texts(600, *some, at=0), concurrency=places)
    usual = simulated(handle_with(all_good), texts(600), concurrency=places)
    seconds, reasons = zip(*world.failed.values(), strict=True)
    assert len(reasons) == 5 and all("too many of these" in why for why in reasons)
    assert min(seconds) > 45 and max(seconds) < 60, seconds
    assert len(world.answered) == 600
    took, takes = (max(each.answered_at) - SimulatedTime.now for each in (world, usual))
    assert took < 1.1 * takes + 5, (took, takes)


def test_the_last_prompts_are_set_aside_that_alone_are_throttled(
    simulated: Callable[..., World],
) -> None:
    async def handle(prompt: str) -> int:
        await asyncio.sleep(1.0)
        return THROTTLED if "bad" in prompt else 30

    world = simulated(handle, texts(40, "bad 0", "bad 1", at=40))
    assert len(world.answered) == 40 and len(world.failed) == 2
    assert max(after for after, _ in world.failed.values()) < 120


@pytest.mark.long
@pytest.mark.parametrize(("window", "calls"), [(1.0, 2), (60.0, 60), (60.0, 200)])
def test_a_server_that_throttles_all_drops_no_prompt(
    simulated: Callable[..., World], window: float, calls: int
) -> None:
    """It takes so many calls in a window of time, of whatever prompt."""
    taken = deque[float]()

    async def handle(prompt: str) -> int:
        now = time.monotonic()
        while taken and taken[0] <= now - window:
            taken.popleft()
        if len(taken) >= calls:
            return THROTTLED
        taken.append(now)
        await asyncio.sleep(1.0)
        return 30

    world = simulated(handle, texts(600), concurrency=16)
    assert not world.failed and len(world.answered) == 600


@pytest.mark.long
def test_a_long_prompt_waits_for_its_part_of_a_minute(simulated: Callable[..., World]) -> None:
    """A limit of tokens a minute leaves room for short prompts when it has none for a long one."""
    taken = deque[tuple[float, int]]()

    async def handle(prompt: str) -> int:
        now, size = time.monotonic(), 3000 if "bad" in prompt else 100
        while taken and taken[0][0] <= now - 60:
            taken.popleft()
        if sum(of for _, of in taken) + size > 9000:
            return THROTTLED
        taken.append((now, size))
        await asyncio.sleep(1.0)
        return 30

    bad = [f"bad {number}" for number in range(3)]
    world = simulated(handle, texts(400, *bad))
    assert not world.failed and len(world.answered) == 403


@pytest.mark.long
@pytest.mark.parametrize("limit", [30_000, 120_000])
def test_a_limit_of_tokens_holds_by_what_the_server_counts(
    simulated: Callable[..., World], limit: int
) -> None:
    """It counts two bytes a token; four were estimated, and the limit exceeded by two thirds."""

    async def handle(prompt: str) -> int:
        await asyncio.sleep(1.0)
        return 30

    world = simulated(handle, texts(1500), tokens_per_minute=limit, concurrency=64)
    began, ended = world.counted[30][0], world.counted[-1][0]
    per_minute = sum(tokens for _, tokens in world.counted[31:]) / (ended - began) * 60
    assert per_minute == pytest.approx(limit, rel=0.02)


@pytest.mark.parametrize("max_tokens", [160, 2048, 8192])
@pytest.mark.parametrize("after", [400, 20], ids=["others go on", "it is the last one"])
@pytest.mark.parametrize("latency", [0.02, 1.0, 2.0])
def test_a_prompt_that_hangs_while_others_are_answered_is_set_aside_within_a_minute(
    simulated: Callable[..., World], latency: float, after: int, max_tokens: int
) -> None:
    """Two calls are cut, and count at their maximum price; where a limit of tokens leaves minutes,
    once the start of an answer hangs, too."""

    async def handle(prompt: str) -> int:
        await asyncio.sleep(FOREVER if "bad" in prompt else latency)
        return 30

    world = simulated(handle, texts(after, "bad"), max_tokens=max_tokens)
    seconds, why = world.failed["bad"]
    longest = 60 if latency <= 1 else 65  # a minute is for answers of about a second
    assert 40 < seconds < longest and "no answer in 2" in why, (seconds, why)
    assert len(world.answered) == after
    assert {attempts for _, attempts in world.answered.values()} == {1}
    lost = 2 * max_tokens * 2e-6
    assert lost < world.lost_usd < lost + 4 * 5000e-6


@pytest.mark.parametrize("latency", [0.2, 1.0, 2.0])
@pytest.mark.parametrize(("count", "lent"), [(4, 1), (5, 2)])
def test_prompts_that_hang_in_all_places_from_the_start_are_set_aside(
    simulated: Callable[..., World], count: int, lent: int, latency: float
) -> None:
    """A place is lent once the start of such a prompt hangs, too, while a small one is answered."""

    async def handle(prompt: str) -> int:
        await asyncio.sleep(FOREVER if "bad" in prompt else latency)
        return 30

    bad = [f"bad {number}" for number in range(count)]
    world = simulated(handle, texts(60, *bad, at=0))
    assert len(world.answered) == 60 and len(world.failed) == count
    assert {attempts for _, attempts in world.answered.values()} == {1}
    first = min(world.answered_at) - SimulatedTime.now
    assert 20 < first < 18 + 13 * lent
    assert max(world.failed_at) - SimulatedTime.now < (65 if count == 4 else 95)
    assert world.max_in_flight == 4 + lent


def test_prompts_whose_start_is_answered_hold_their_places_for_a_minute(
    simulated: Callable[..., World],
) -> None:
    """As those about which a model thinks for as long: none is lent before."""

    async def handle(prompt: str) -> int:
        await asyncio.sleep(FOREVER if "bad" in prompt and not is_probe(prompt) else 1.0)
        return 30

    world = simulated(handle, texts(60, *[f"bad {number}" for number in range(4)], at=0))
    assert 60 < min(world.answered_at) - SimulatedTime.now < 68
    assert len(world.answered) == 60 and len(world.failed) == 4


@pytest.mark.parametrize("max_tokens", [160, 8192, None])
def test_a_model_that_thinks_for_a_minute_before_each_answer_is_not_cut_and_lent_no_place(
    simulated: Callable[..., World], max_tokens: int | None
) -> None:
    """The small probe and the start of a prompt are answered at once, as by a local server."""

    async def handle(prompt: str) -> int:
        await asyncio.sleep(1.0 if is_probe(prompt) else 58.0)
        return 30

    world = simulated(handle, texts(40), max_tokens=max_tokens)
    assert not world.failed and {attempts for _, attempts in world.answered.values()} == {1}
    assert world.max_in_flight == 4


def test_long_prompts_that_a_server_reads_for_a_minute_are_not_cut(
    simulated: Callable[..., World],
) -> None:
    """A small prompt is answered, the start of theirs is not: one more is sent, nothing is cut."""

    async def handle(prompt: str) -> int:
        await asyncio.sleep(0.5 if prompt == "Reply with OK." else 70.0)
        return 30

    world = simulated(handle, texts(40))
    assert not world.failed and {attempts for _, attempts in world.answered.values()} == {1}


def test_a_server_that_thinks_for_long_is_waited_for(simulated: Callable[..., World]) -> None:
    """Most answers have 200 to 2,000 tokens at 20 a second; some think to the limit of 8,192."""
    chance = random.Random(0)

    async def handle(prompt: str) -> int:
        tokens = 8192 if "bad" in prompt else chance.randint(200, 2000)
        await asyncio.sleep(tokens / 20)
        return tokens

    bad = [f"bad {number}" for number in range(3)]
    world = simulated(handle, texts(200, *bad), max_tokens=8192)
    assert not world.failed and {attempts for _, attempts in world.answered.values()} == {1}
    assert world.answered["bad 0"][0] > 400


@pytest.mark.long
def test_answers_with_a_long_tail_are_waited_for(simulated: Callable[..., World]) -> None:
    chance = random.Random(1)

    async def handle(prompt: str) -> int:
        await asyncio.sleep(10 * chance.lognormvariate(0, 0.7))
        return 30

    world = simulated(handle, texts(1000))
    assert not world.failed and len(world.answered) == 1000
    assert sum(attempts - 1 for _, attempts in world.answered.values()) <= 2


def test_a_server_that_stalls_for_a_while_is_waited_for(simulated: Callable[..., World]) -> None:
    """Nothing is answered for two minutes, the small probe neither."""

    async def handle(prompt: str) -> int:
        await asyncio.sleep(1.0)
        now = time.monotonic() - SimulatedTime.now
        if 30 < now < 150:
            await asyncio.sleep(150 - now)
        return 30

    world = simulated(handle, texts(300))
    assert not world.failed and {attempts for _, attempts in world.answered.values()} == {1}


@pytest.mark.parametrize(("count", "seconds", "tokens"), [(5, 2.0, 150), (500, 3.0, 250)])
def test_an_answer_may_take_what_its_limit_of_tokens_takes_at_the_pace_of_the_others(
    count: int, seconds: float, tokens: int
) -> None:
    """8,192 tokens at 75 a second are 109 s, at 83 a second 98 s; 20 and 30 s were allowed."""
    latencies = Latencies()
    for _ in range(count):
        latencies.add(0.0, seconds, tokens)
    needed = 8192 * seconds / tokens
    assert latencies.allowed(8192) == pytest.approx(2 * needed) and needed > 98
    assert latencies.allowed(160) == 20


def test_without_a_limit_of_tokens_many_answers_say_how_long_one_may_take() -> None:
    latencies = Latencies()
    for number in range(100):
        assert latencies.allowed(None) == float("inf"), number
        latencies.add(0.0, 3.0, 30)
    assert latencies.allowed(None) == 30


@pytest.mark.parametrize("quick", [6, 400])
def test_the_first_model_that_thinks_to_its_limit_is_waited_for(
    simulated: Callable[..., World], quick: int
) -> None:
    async def handle(prompt: str) -> int:
        tokens = 16 if is_probe(prompt) else 8192 if "bad" in prompt else 150
        await asyncio.sleep(tokens / 75)
        return tokens

    bad = [f"bad {number}" for number in range(3)]
    world = simulated(handle, texts(quick, *bad, at=quick), max_tokens=8192)
    assert not world.failed and {attempts for _, attempts in world.answered.values()} == {1}


@pytest.mark.parametrize("max_tokens", [160, 8192, None])
@pytest.mark.parametrize(("concurrency", "seconds"), [(1, 30.0), (1, 300.0), (4, 30.0), (4, 50.0)])
def test_slow_answers_get_no_place_beyond_the_limit(
    simulated: Callable[..., World], concurrency: int, seconds: float, max_tokens: int | None
) -> None:
    async def handle(prompt: str) -> int:
        await asyncio.sleep(seconds)
        return 30

    world = simulated(handle, texts(12), concurrency=concurrency, max_tokens=max_tokens)
    assert world.max_in_flight == concurrency and not world.failed


def test_a_recipe_with_its_own_timeout_is_lent_no_place(simulated: Callable[..., World]) -> None:
    async def handle(prompt: str) -> int:
        await asyncio.sleep(200)
        return 30

    world = simulated(handle, texts(8), timeout_seconds=300.0)
    assert world.max_in_flight == 4 and not world.failed


def test_a_cached_answer_is_no_sign_that_the_server_answers_others(
    simulated: Callable[..., World],
) -> None:
    """For five minutes at a run's end it answers a small prompt, and those that it answered
    before."""
    seen = set[str]()

    async def handle(prompt: str) -> int:
        await asyncio.sleep(1.0)
        is_new = prompt not in seen and prompt != "Reply with OK."
        while is_new and 12 < time.monotonic() - SimulatedTime.now < 312:
            await asyncio.sleep(1.0)
        seen.add(prompt)
        return 30

    world = simulated(handle, texts(60))
    assert not world.failed and {attempts for _, attempts in world.answered.values()} == {1}


def test_a_server_that_refuses_what_is_new_gets_few_probes(
    simulated: Callable[..., World],
) -> None:
    """A proxy holds eight calls and refuses others for 90 s: one probe each 10 s, not eight a
    second."""
    refused: list[float] = []

    async def handle(prompt: str) -> int:
        if "bad" in prompt:
            await asyncio.sleep(FOREVER)
        await asyncio.sleep(1.0)
        now = time.monotonic() - SimulatedTime.now
        if 10 < now < 100:
            refused.append(now)
            return 0
        return 30

    bad = [f"bad {number}" for number in range(8)]
    world = simulated(handle, texts(20, *bad, at=20), concurrency=8)
    assert len(world.answered) == 20 and 3 <= len(refused) <= 9, refused
