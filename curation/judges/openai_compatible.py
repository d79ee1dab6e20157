"""A language model as a judge of study items, on any OpenAI-compatible server.

InF-IR's pick is put as to the validator, a question of a study in the study's own words with its
answers. Every answer is journaled before it is parsed and never paid for twice: the same item in
the same order is answered from the journal.

A question about one passage is put with all of them in view (listwise), as people see them, or with
that passage alone (pointwise); the latter is another judge, `openai:MODEL:pointwise`. So is
`openai:MODEL:guidelines`, which reads a study's guidelines with their examples, as people do.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from sqlalchemy.orm import Session

from curation.judges.asking import IN_FLIGHT, Budget, Patience, ask_all
from curation.judges.judge import Choice, ItemView
from curation.providers.openai_server import OpenAIProvider
from curation.providers.provider import Provider, Request
from curation.providers.registry import PROVIDERS
from curation.recipe.answers import Unparsable, parse
from curation.recipe.completion import how_it_ended
from curation.recipe.prompt import FOLDER, Prompt
from curation.recipe.recipe import Recipe, load_recipe
from curation.recipe.tasks import ANSWERED_WITH
from curation.servers.addresses import server_urls
from curation.servers.connection import server_named
from db.errors import BadInput
from db.question import KINDS, Question
from db.run.calls import StoredCall
from db.servers.connections import ENVIRONMENT, SERVERS, get_connection
from db.servers.groups import find_group
from db.store.store import Store
from db.study.examples import PICK_TEXT
from db.values import AMBIGUOUS, NONE

POINTWISE, GUIDELINES, PROMPT_FILE = "pointwise", "guidelines", "judge_question.md"


class OpenAIJudge:
    """A judge on an OpenAI-compatible server."""

    kind = "model"
    provider = "openai"
    offline = False
    simulated = False
    at_once = 64

    def __init__(self, store: Store, name: str, connection: str = ENVIRONMENT) -> None:
        """`name`: MODEL, or MODEL:pointwise, which answers questions about single passages;
        behind either :guidelines, which needs a study's `guidelines`.

        `connection`: the server, as a run names it; its key is looked up when it is first asked.
        Raises NotFound for an unknown one, BadInput for one that is no server.
        """
        way = name.removesuffix(f":{GUIDELINES}")
        model = way.removesuffix(f":{POINTWISE}")
        self._is_pointwise = model != way
        self.guidelines: str | None = None if way == name else ""
        self.budget: Budget | None = None
        self.patience = Patience()
        self.kinds = tuple(kind for kind in KINDS if kind != "pick" or not self._is_pointwise)
        recipe = load_recipe(PROVIDERS.find(self.provider).recipe)
        with store.read() as session:
            self._connection, urls = _server(session, connection, recipe.endpoints)
            self._server_group = find_group(session, urls)
        stored = self._connection != ENVIRONMENT
        family = f"connection:{self._connection}" if stored else "openai"
        if not model:
            raise BadInput(
                f"{family}: no model is named", f"use {family}:MODEL", code="judge_model_missing"
            )
        self.name, self.model = f"{family}:{name}", model
        self._question_prompt = Prompt(
            PROMPT_FILE, (FOLDER / PROMPT_FILE).read_text(encoding="utf-8")
        )
        self._store = store
        stage = recipe.stages["validation"]
        stage = replace(stage, model=model, transport=stage.transport | {"answers_as": "one"})
        self._recipe: Recipe = replace(recipe, stages={"validation": stage})

    def choose(
        self, views: Sequence[ItemView], *, check: Callable[[], None] | None = None
    ) -> list[Choice]:
        """An answer for every view. Raises ProviderError if the server cannot be used."""
        requests = [self._request(view) for view in views]
        known, failed = ask_all(
            self._store, self._provider, requests, check, self.patience, self.budget
        )
        return [
            _read(known.get(request.key), failed.get(request.key, ""), view)
            for request, view in zip(requests, views, strict=True)
        ]

    def _request(self, view: ItemView) -> Request:
        stage = self._recipe.stages["validation"]
        question, passages, about = view.question, list(view.candidates), view.about
        if isinstance(about, int) and self._is_pointwise:
            passages, about = [passages[about]], 0
        inputs: dict[str, str | list[str]] = {
            "instruction": view.instruction,
            "query": view.query,
            "passages": passages,
        }
        if self.guidelines and not question.text:
            question = replace(question, text=PICK_TEXT)
        if question.text:
            inputs |= worded(question, about, self.guidelines or "")
        return Request(
            task="validation",
            provider=self.provider,
            model=self.model,
            parameters=stage.parameters,
            prompt=self._question_prompt if question.text else stage.prompt,
            inputs=inputs,
            scope={"server_group": self._server_group},
            gives=ANSWERED_WITH[question.kind],
            question=None if question.kind == "pick" else question,
        )

    def _provider(self) -> Provider:
        with self._store.read() as session:
            server = server_named(session, self._connection, self._recipe.endpoints)
        return OpenAIProvider.of_server(
            server,
            self._recipe,
            concurrency=IN_FLIGHT,
            with_budget=self.budget is not None,
            patience_seconds=self.patience.seconds,
            was_reached=self.patience.was_reached,
        )


def _server(
    session: Session, connection: str, endpoints: Sequence[str]
) -> tuple[str, Sequence[str]]:
    """A connection's name as it is stored, and its addresses."""
    if connection == ENVIRONMENT:
        return ENVIRONMENT, server_urls(endpoints)
    found = get_connection(session, connection)
    if found.kind not in SERVERS:
        raise BadInput(
            f"the connection {connection} is {found.kind}, not a model server",
            "choose the judge by its own name",
            code="judge_unknown",
        )
    return found.name, [found.url]


def worded(question: Question, about: int | str | None, guidelines: str = "") -> dict[str, str]:
    """A question as the prompt has it: what it is about, its text, its answers, the last line;
    `guidelines` stand behind the answers, away from the texts that are judged."""
    label = ANSWERED_WITH[question.kind]
    undecided = "Say ambiguous where it cannot be decided."
    if question.kind == "pick":
        lines = [
            "- Name exactly one number where one passage is clearly the best.",
            "- Say none where no passage fits.",
            "- Say ambiguous where two or more fit equally well.",
        ]
        form = "number, none or ambiguous"
    elif question.kind == "score":
        lines = ["- Give a number from 0 to 1, such as 0.85.", f"- {undecided}"]
        form = "number from 0 to 1, or ambiguous"
    else:
        meanings = [f"- {one}: {meaning}" for one, meaning in question.labels.items()]
        lines = [*(meanings or ["- Say yes or no."]), f"- {undecided}"]
        form = f"{', '.join(question.answers)} or ambiguous"
    if guidelines:
        lines += ["", "The guidelines of the people who answer it, with their examples:", ""]
        lines.append(f"<guidelines>\n{guidelines.strip()}\n</guidelines>")
    place = f"passage {about + 1}" if isinstance(about, int) else f"the {about}" if about else ""
    return {
        "about": place or "everything above",
        "question": question.text,
        "answers": "\n".join(lines),
        "form": f"{label}: <{form}>",
    }


def _read(call: StoredCall | None, failed: str, view: ItemView) -> Choice:
    """The choice of an answer; for an unusable one the reason is in `unusable`."""
    if call is None:
        return Choice(None, unusable=failed)
    detail = {"call_id": call.id}
    if how_it_ended(call.finish_reason) == "refused":
        return Choice(None, detail, unusable="refused")
    kind = view.question.kind
    is_pick = kind == "pick"
    try:
        word = parse(
            "validation",
            call.answer,
            gives=ANSWERED_WITH[kind],
            candidates=len(view.candidates),
            question=None if is_pick else view.question,
        )
    except Unparsable as error:
        return Choice(None, detail, unusable=error.reason)
    if not is_pick:
        return Choice(None, detail, answer=word)
    if word in (NONE, AMBIGUOUS):
        return Choice(None, detail, ambiguous=word == AMBIGUOUS)
    return Choice(int(word) - 1, detail)
