"""The bare loop that bench/curation.py measures next to the engine: the SDK with its aiohttp
transport, nothing stored, nothing tried again.

    .venv/bin/python bench/bare_loop.py URL IN_FLIGHT CALLS
"""

import asyncio
import sys
from pathlib import Path

from openai import AsyncOpenAI, DefaultAioHttpClient

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))


async def ask(url: str, in_flight: int, calls: int) -> None:
    """Send a number of requests, some at once."""
    from curation.recipe.prompt import FOLDER, messages, read_prompt
    from curation.recipe.tasks import tasks_of
    from db.shape import INF_IR

    task = "instruction_negative"
    prompt = read_prompt(task, tasks_of(INF_IR)[task], f"{task}.md", FOLDER)
    client = AsyncOpenAI(
        base_url=url, api_key="none", http_client=DefaultAioHttpClient(), max_retries=0
    )
    left = iter(range(calls))

    async def work() -> None:
        for number in left:
            inputs = {
                "document": f"document {number} " * 30,
                "query_positive": f"query {number}",
                "instruction_positive": f"instruction {number}",
            }
            await client.chat.completions.create(
                model="small",
                messages=messages(prompt, inputs),  # type: ignore[arg-type]
                temperature=1.0,
                max_tokens=160,
            )

    await asyncio.gather(*(work() for _ in range(in_flight)))
    await client.close()


if __name__ == "__main__":
    asyncio.run(ask(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
