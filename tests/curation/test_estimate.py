"""The estimate before a run: calls, tokens and USD per stage."""

from collections.abc import Callable
from typing import Any

import pytest
from curation_runs import add_dataset
from records_world import make_run
from sqlalchemy import select

from app.text.numbers import money
from curation.recipe.prices import Price, load_prices
from curation.recipe.recipe import load_recipe
from curation.recipe.tasks import tasks_of
from curation.run.estimate import SECONDS_PER_CALL, estimate_run, judging_prices
from db.corpus.datasets import get_dataset
from db.run.calls import add_calls
from db.shape import INF_IR
from db.store.store import Store
from db.tables import Item, utc_now

TASKS = tasks_of(INF_IR)


def test_calls_tokens_and_usd_by_stage(store: Store) -> None:
    dataset_id = add_dataset(store, pairs=10)
    recipe = load_recipe("msmarco", ["validation.votes=3"])
    with store.read() as session:
        found = estimate_run(session, dataset_id, recipe, load_prices(), limit=4, concurrency=2)
    assert found.pairs == 4 and [stage.calls for stage in found.stages] == [4, 4, 4, 4, 4, 36]
    assert found.usd == pytest.approx(sum(stage.usd or 0 for stage in found.stages))
    validation = found.stages[-1]
    assert validation.output_tokens == 36 * 700
    assert validation.usd == pytest.approx(
        Price(1.10, 4.40).usd(validation.input_tokens, 36 * 700), rel=1e-3
    )
    assert found.hours == pytest.approx(56 * SECONDS_PER_CALL / 2 / 3600)


def test_an_unknown_price_is_said_and_how_to_give_it(
    sqlite_store: Store, inf: Callable[..., Any]
) -> None:
    add_dataset(sqlite_store, pairs=10)
    words = ("curate", "--dataset", "small", "--provider", "openai", "--estimate", "--json")
    known, unknown = inf(*words).json, inf(*words, "--set", "model=mine").json
    assert known["usd"] > 0 and known["pairs"] == 10
    assert unknown["usd"] is None and "prices.toml" in unknown["reason"]


def test_judging_is_priced_by_the_length_of_the_items_before_anything_is_asked(
    store: Store,
) -> None:
    run_id = make_run(store)
    with store.write() as session:
        item = session.scalars(select(Item).order_by(Item.id)).first()
        assert item is not None
        found = judging_prices(session, run_id, ["gpt-4o", "gpt-4o-mini", "mine"])
        assert found["mine"] == (None, "the price of mine is unknown: write it into prices.toml")
        usd, reason = found["gpt-4o"]
        assert usd is not None and reason == ""
        # 1,000 answers of 700 tokens at 10 USD a million are 7 USD; the rest is what is sent
        assert 7.0 < usd < 14.0
        cheap = found["gpt-4o-mini"][0]
        assert cheap is not None and cheap < usd / 10
        item.query = "long " * 40_000
        session.flush()
        dearer = judging_prices(session, run_id, ["gpt-4o"])["gpt-4o"][0]
        assert dearer is not None and dearer > usd
        assert judging_prices(session, run_id + 1, ["gpt-4o"])["gpt-4o"][0] is None


def test_what_such_calls_took_so_far_stands_beside_the_estimate(store: Store) -> None:
    add_dataset(store, pairs=4)
    recipe = load_recipe("msmarco", ["model=small"])
    prices = {"small": Price(1.0, 4.0)}
    with store.write() as session:
        dataset_id = get_dataset(session, "small").id
        asked: dict[str, Any] = {"limit": None, "concurrency": 2}
        before = estimate_run(session, dataset_id, recipe, prices, **asked)
        rows = [
            {
                **dict.fromkeys(("prompt_sha256", "answer"), ""),
                **dict.fromkeys(("reasoning_tokens", "attempts"), 0),
                "key": f"{task}{number}",
                "task": task,
                "provider": "openai",
                "model": "small",
                "request": {},
                "finish_reason": "stop",
                "input_tokens": 100,
                "output_tokens": 10,
                "cost_usd": 0.001 * (1 + number),
                "latency_seconds": 4.0 + 2 * number,
                "created_at": utc_now(),
            }
            for task in TASKS
            for number in range(2)
        ]
        add_calls(session, rows)
        after = estimate_run(session, dataset_id, recipe, prices, **asked)
        other = estimate_run(session, dataset_id, recipe, prices, **asked, provider="offline")
    assert before.measured_usd is None and before.seconds_per_call == 2.0
    assert all(stage.measured is None for stage in (*before.stages, *other.stages))
    # calls of 4 and 6 s at 0.1 and 0.2 cents: 5 s and 0.15 cents; 4 pairs x 8 calls, 2 at once
    assert after.seconds_per_call == pytest.approx(5.0)
    assert after.hours == pytest.approx(4 * 8 * 5.0 / 2 / 3600)
    assert after.measured_usd == pytest.approx(4 * 8 * 0.0015)
    assert all(stage.measured and stage.measured.calls == 2 for stage in after.stages)
    assert after.usd == before.usd


@pytest.mark.parametrize(
    ("usd", "text"), [(0.0327, "3.27 cents"), (0.0, "0.00 cents"), (1234.5, "1,234.50 USD")]
)
def test_small_amounts_are_in_cents(usd: float, text: str) -> None:
    assert money(usd) == text
