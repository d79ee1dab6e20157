"""The calls, tokens, cost and time of a run, estimated before it starts.

A token is counted as four characters. Answers are assumed to have their usual lengths: an
instruction and a query as people write them, a passage as long as P+, a judge's answer with its
reasoning; a model that thinks first is allowed THINKING_TOKENS for each. Every pair is assumed to
reach validation, so the estimate is high rather than low.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from sqlalchemy import exists, func, select
from sqlalchemy.orm import Session

from curation.providers.registry import PROVIDERS
from curation.recipe.prices import FREE, Price, load_prices
from curation.recipe.reasoning import is_reasoning_model
from curation.recipe.recipe import Recipe, load_recipe
from curation.recipe.tasks import GIVES, JUDGED, VALIDATION, Task
from db.run.new_items import in_order_of_roles
from db.run.runs import shapes_of
from db.tables import Call, Group, Item, Pair, Passage

CHARACTERS_PER_TOKEN = 4.0
USUAL_TOKENS = {"Instruction": 45.0, "Query": 15.0} | dict.fromkeys(JUDGED, 700.0)
THINKING_TOKENS = 1000.0  # paid as output; `reasoning_effort` and the task move it widely
LABEL_TOKENS = 3.0
ITEMS_READ = 200
SECONDS_PER_CALL = 2.0  # as long as no call of the task to the model is in the store
CALLS_READ = 1000  # the newest calls that a measurement averages


@dataclass(frozen=True)
class Measured:
    """What calls of a task to the same model really took, on average over `calls` of them."""

    calls: int
    seconds: float
    input_tokens: float
    output_tokens: float
    usd: float


@dataclass(frozen=True)
class StageEstimate:
    """The estimate of one task; `usd` is None if the model's price is unknown."""

    task: Task
    model: str
    calls: int
    input_tokens: int
    output_tokens: int
    usd: float | None
    measured: Measured | None = None


@dataclass(frozen=True)
class Estimate:
    """The estimate of a run; `hours` at the given calls in flight and `seconds_per_call`.

    `seconds_per_call` is the mean over the calls of the run: measured where a task has calls in
    the store, else SECONDS_PER_CALL. `measured_usd`: the cost at measured prices of a call, None
    unless all tasks have calls with a price.
    """

    pairs: int
    stages: list[StageEstimate]
    usd: float | None
    unpriced: list[str]
    hours: float
    seconds_per_call: float
    measured_usd: float | None


def prices_for(
    provider: str,
    recipe: Recipe,
    *,
    batch: bool = False,
    own: Mapping[str, Price] | None = None,
) -> dict[str, Price]:
    """Prices by model: those of the price table, half of that in a batch, or 0 where unpaid.

    `own`: a connection's, which take precedence.
    """
    if not PROVIDERS.find(provider).paid:
        return {stage.model: FREE for stage in recipe.stages.values()}
    found = load_prices() | dict(own or {})
    return {model: price.batched() for model, price in found.items()} if batch else found


def estimate_run(
    session: Session,
    dataset_id: int,
    recipe: Recipe,
    prices: dict[str, Price],
    *,
    limit: int | None,
    concurrency: int,
    provider: str = "openai",
) -> Estimate:
    """The estimate for the first `limit` pairs of a dataset; prices by model.

    Beside it stands what calls of the provider for the same tasks and models took in this store.
    """
    pairs, query_length, passage_length = session.execute(
        select(func.count(), func.avg(func.length(Pair.query)), func.avg(func.length(Passage.text)))
        .join(Passage, Passage.id == Pair.passage_id)
        .where(Pair.dataset_id == dataset_id)
    ).one()
    pairs = min(pairs, limit) if limit is not None else pairs
    by_field = {
        "query": float(query_length or 0) / CHARACTERS_PER_TOKEN,
        "instruction": USUAL_TOKENS["Instruction"],
        "passage": float(passage_length or 0) / CHARACTERS_PER_TOKEN,
    }
    lengths = {text.column: by_field[text.field] for text in recipe.shape.slots.values()}
    lengths |= by_field | {"document": by_field["passage"]}
    rules = recipe.validation
    candidates = len(recipe.shape.roles) + rules.distractors + rules.hard_distractors
    lengths["passages"] = candidates * (lengths["document"] + LABEL_TOKENS)
    stages = [_stage(task, recipe, prices, pairs, lengths, rules.votes) for task in recipe.stages]
    unpriced = sorted({stage.model for stage in stages if stage.usd is None})
    total = None if unpriced else sum(stage.usd or 0.0 for stage in stages)
    calls = sum(stage.calls for stage in stages)
    measured = [_measure(session, provider, stage.task, stage.model) for stage in stages]
    stages = [replace(stage, measured=one) for stage, one in zip(stages, measured, strict=True)]
    seconds = sum(
        stage.calls * (SECONDS_PER_CALL if stage.measured is None else stage.measured.seconds)
        for stage in stages
    )
    measured_usd = None
    if all(one is not None and one.usd > 0 for one in measured):
        measured_usd = sum(stage.calls * stage.measured.usd for stage in stages if stage.measured)
    return Estimate(
        pairs=pairs,
        stages=stages,
        usd=total,
        unpriced=unpriced,
        hours=seconds / concurrency / 3600,
        seconds_per_call=seconds / calls if calls else SECONDS_PER_CALL,
        measured_usd=measured_usd,
    )


def _measure(session: Session, provider: str, task: Task, model: str) -> Measured | None:
    newest = (
        select(Call)
        .where(Call.provider == provider, Call.task == task, Call.model == model)
        .order_by(Call.id.desc())
        .limit(CALLS_READ)
        .subquery()
    )
    row = session.execute(
        select(
            func.count(),
            func.avg(newest.c.latency_seconds),
            func.avg(newest.c.input_tokens),
            func.avg(newest.c.output_tokens),
            func.coalesce(func.avg(func.nullif(newest.c.cost_usd, 0.0)), 0.0),  # of priced calls
        )
    ).one()
    return Measured(row[0], *(float(value) for value in row[1:])) if row[0] else None


def _stage(
    task: Task,
    recipe: Recipe,
    prices: dict[str, Price],
    pairs: int,
    lengths: dict[str, float],
    votes: int,
) -> StageEstimate:
    stage, described = recipe.stages[task], recipe.tasks[task]
    per_group = {check.task: check.answers for check in recipe.checks}
    per_group[VALIDATION] = len(recipe.shape.roles) * votes
    calls = pairs * per_group.get(task, 1)
    prompt_tokens = len(stage.prompt.text) / CHARACTERS_PER_TOKEN
    sent = prompt_tokens + sum(lengths.get(name, 0.0) for name in described.inputs)
    if described.texts:
        received = sum(
            len(text.names)
            * (lengths["document"] if text.is_passage else USUAL_TOKENS[GIVES[text.field]])
            for text in described.texts
        )
    else:
        received = USUAL_TOKENS[described.gives]
    if is_reasoning_model(stage.model) and described.gives not in JUDGED:  # that has its own
        received += THINKING_TOKENS
    limit = stage.parameters.get("max_output_tokens")
    received = min(received, limit) if limit else received
    price = prices.get(stage.model)
    return StageEstimate(
        task=task,
        model=stage.model,
        calls=calls,
        input_tokens=round(calls * sent),
        output_tokens=round(calls * received),
        usd=None if price is None else price.usd(calls * sent, calls * received),
    )


def judging_prices(
    session: Session, run_id: int, models: Iterable[str]
) -> dict[str, tuple[float | None, str]]:
    """USD per 1,000 of the run's items by model, or None and the reason.

    The tokens of an item are the validator's prompt, instruction, query and all candidate passages
    at four characters each, averaged over at most `ITEMS_READ` items; the answer has its usual
    length.
    """
    wanted, prices = sorted(set(models)), load_prices()
    nothing = (None, f"run {run_id} has no items to estimate lengths from")
    if (shape := shapes_of(session, [run_id]).get(run_id)) is None:
        return dict.fromkeys(wanted, nothing)
    items = session.execute(
        select(Item.instruction, Item.query, Item.candidates)
        # in the items' order from the run's first group on: a join would be sorted whole
        .where(
            Item.group_id
            >= select(func.min(Group.id)).where(Group.run_id == run_id).scalar_subquery(),
            exists().where(Group.id == Item.group_id, Group.run_id == run_id),
        )
        .order_by(Item.group_id, *in_order_of_roles(shape))
        .limit(ITEMS_READ)
    ).all()
    if not items:
        return dict.fromkeys(wanted, nothing)
    ids = {entry["passage_id"] for _, _, candidates in items for entry in candidates}
    rows = session.execute(
        select(Passage.id, func.length(Passage.text).label("characters")).where(Passage.id.in_(ids))
    )
    lengths: dict[int, int] = {row.id: row.characters for row in rows}
    characters = sum(
        len(instruction) + len(query) + sum(lengths.get(each["passage_id"], 0) for each in listed)
        for instruction, query, listed in items
    ) / len(items)
    labels = LABEL_TOKENS * sum(len(listed) for _, _, listed in items) / len(items)
    stage = load_recipe(PROVIDERS.find("openai").recipe).stages["validation"]
    sent = (characters + len(stage.prompt.text)) / CHARACTERS_PER_TOKEN + labels
    limit = stage.parameters.get("max_output_tokens")
    received = min(USUAL_TOKENS["Choice"], limit) if limit else USUAL_TOKENS["Choice"]
    return {
        model: (1000 * prices[model].usd(sent, received), "")
        if model in prices
        else (None, f"the price of {model} is unknown: write it into prices.toml")
        for model in wanted
    }
