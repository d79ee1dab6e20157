"""A language model as a judge of study items, on any OpenAI-compatible server.

The prompt is the validator's. Every answer is journaled before it is parsed and never paid for
twice: the same item in the same order is answered from the journal.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace

from curation.judges.judge import Choice, ItemView
from curation.providers.openai_server import OpenAIProvider
from curation.providers.provider import Answer, Provider, Request, RowFailed, call_row
from curation.providers.registry import PROVIDERS
from curation.recipe.answers import Unparsable, parse
from curation.recipe.completion import how_it_ended
from curation.recipe.recipe import Recipe, load_recipe
from curation.servers.addresses import server_urls
from curation.servers.connection import environment_server
from db.errors import BadInput
from db.run.calls import StoredCall, add_calls, find_calls
from db.servers.groups import find_group
from db.store.store import Store
from db.values import AMBIGUOUS, NONE

IN_FLIGHT = 16


class OpenAIJudge:
    """A judge on an OpenAI-compatible server."""

    kind = "model"
    provider = "openai"
    offline = False
    simulated = False
    at_once = 64

    def __init__(self, store: Store, model: str) -> None:
        if not model:
            raise BadInput(
                "openai: no model is named", "use openai:MODEL", code="judge_model_missing"
            )
        self.name, self.model = f"openai:{model}", model
        self._store = store
        recipe = load_recipe(PROVIDERS.find(self.provider).recipe)
        with store.read() as session:
            self._server_group = find_group(session, server_urls(recipe.endpoints))
        stage = replace(recipe.stages["validation"], model=model)
        self._recipe: Recipe = replace(recipe, stages={"validation": stage})

    def choose(
        self, views: Sequence[ItemView], *, check: Callable[[], None] | None = None
    ) -> list[Choice]:
        """An answer for every view. Raises ProviderError if the server cannot be used."""
        requests = [self._request(view) for view in views]
        with self._store.read() as session:
            stored = find_calls(session, [key for request in requests for key in request.keys])
        known = {
            request.key: stored[key]
            for request in requests
            for key in reversed(request.keys)
            if key in stored
        }
        missing = {request.key: request for request in requests if request.key not in known}
        failed: dict[str, str] = {}
        if missing:
            asyncio.run(self._ask(list(missing.values()), known, failed, check))
        return [
            _read(known.get(request.key), failed.get(request.key, ""), len(view.candidates))
            for request, view in zip(requests, views, strict=True)
        ]

    def _request(self, view: ItemView) -> Request:
        stage = self._recipe.stages["validation"]
        return Request(
            task="validation",
            provider=self.provider,
            model=self.model,
            parameters=stage.parameters,
            prompt=stage.prompt,
            inputs={
                "instruction": view.instruction,
                "query": view.query,
                "passages": list(view.candidates),
            },
            scope={"server_group": self._server_group},
        )

    async def _ask(
        self,
        requests: Sequence[Request],
        known: dict[str, StoredCall],
        failed: dict[str, str],
        check: Callable[[], None] | None,
    ) -> None:
        provider: Provider = OpenAIProvider.of_server(
            environment_server(self._recipe.endpoints),
            self._recipe,
            concurrency=IN_FLIGHT,
            with_budget=False,
        )

        async def one(request: Request) -> None:
            if check is not None:
                check()
            try:
                answer = await provider.answer(request)
            except RowFailed as error:
                failed[request.key] = error.reason
            else:
                known.update(await asyncio.to_thread(self._journal, request, answer))

        try:
            await provider.check_models([self.model])
            async with asyncio.TaskGroup() as group:
                for request in requests:
                    group.create_task(one(request))
        except ExceptionGroup as several:
            raise several.exceptions[0] from several
        finally:
            await provider.close()

    def _journal(self, request: Request, answer: Answer) -> dict[str, StoredCall]:
        with self._store.write() as session:
            kept = add_calls(session, [call_row(request, answer)])
            session.commit()
        return kept


def _read(call: StoredCall | None, failed: str, candidates: int) -> Choice:
    """The choice of an answer; for an unusable one the reason is in `unusable`."""
    if call is None:
        return Choice(None, unusable=failed)
    detail = {"call_id": call.id}
    if how_it_ended(call.finish_reason) == "refused":
        return Choice(None, detail, unusable="refused")
    try:
        word = parse("validation", call.answer, candidates=candidates)
    except Unparsable as error:
        return Choice(None, detail, unusable=error.reason)
    if word in (NONE, AMBIGUOUS):
        return Choice(None, detail, ambiguous=word == AMBIGUOUS)
    return Choice(int(word) - 1, detail)
