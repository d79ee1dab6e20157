"""The estimate before a run: calls, tokens and USD per stage."""

from collections.abc import Callable
from typing import Any

import pytest
from curation_runs import add_dataset
from records_world import make_run
from sqlalchemy import select

from curation.recipe.prices import Price, load_prices
from curation.recipe.recipe import load_recipe
from curation.run.estimate import estimate_run, judging_prices
from db.store.store import Store
from db.tables import Item


def test_calls_tokens_and_usd_by_stage(store: Store) -> None:
    dataset_id = add_dataset(store, pairs=10)
    recipe = load_recipe("msmarco", ["validation.votes=3"])
    with store.read() as session:
        found = estimate_run(
            session, dataset_id, recipe, load_prices(), limit=4, concurrency=2, seconds_per_call=9
        )
    assert found.pairs == 4 and [stage.calls for stage in found.stages] == [4, 4, 4, 4, 4, 36]
    assert found.usd == pytest.approx(sum(stage.usd or 0 for stage in found.stages))
    validation = found.stages[-1]
    assert validation.output_tokens == 36 * 700
    assert validation.usd == pytest.approx(
        Price(1.10, 4.40).usd(validation.input_tokens, 36 * 700), rel=1e-3
    )
    assert found.hours == pytest.approx(56 * 9 / 2 / 3600)


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
