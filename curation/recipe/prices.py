"""Prices of models, from `prices.toml` in this folder and the user's own in INF_HOME."""

import json
import math
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from curation.recipe.recipe import Recipe
from db.errors import BadInput
from db.home import home

SHIPPED = Path(__file__).parent / "prices.toml"

BATCH_SHARE = 0.5  # of the price, in OpenAI's Batch API


@dataclass(frozen=True)
class Price:
    """USD per million tokens; reasoning tokens are output."""

    input: float
    output: float

    def batched(self) -> "Price":
        """The price of the same in a batch."""
        return Price(self.input * BATCH_SHARE, self.output * BATCH_SHARE)

    def usd(self, input_tokens: float, output_tokens: float) -> float:
        """The cost of these numbers of tokens."""
        return (input_tokens * self.input + output_tokens * self.output) / 1e6


FREE = Price(0.0, 0.0)


def load_prices() -> dict[str, Price]:
    """Prices by model; the user's table takes precedence. Raises BadInput for an invalid table."""
    prices: dict[str, Price] = {}
    for path in (SHIPPED, home() / "prices.toml"):
        if not path.is_file():
            continue
        try:
            tables = tomllib.loads(path.read_text(encoding="utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise BadInput(
                f"the price table {path} is no TOML ({error})",
                "correct it",
                code="price_table_invalid",
            ) from error
        for model, row in tables.items():
            prices[model] = _price(path, model, row)
    return prices


def _price(path: Path, model: str, row: Any) -> Price:
    """A model's price in its table. Raises BadInput."""
    usd = [row.get(name) if isinstance(row, dict) else None for name in ("input", "output")]
    given = [float(one) for one in usd if isinstance(one, int | float) and math.isfinite(one)]
    if len(given) < 2 or min(given) < 0:
        raise BadInput(
            f"the price of {model!r} in {path} is not input and output, each a number of USD per "
            f"million tokens and 0 or more",
            f"write\n[{json.dumps(model)}]\ninput = 0.0\noutput = 0.0",
            code="price_invalid",
        )
    return Price(*given)


def save_price(model: str, price: Price) -> None:
    """Add a model to the user's own table, whose other entries stay.

    Raises BadInput for a price below 0, or if the table has the model already.
    """
    for name, usd in (("input", price.input), ("output", price.output)):
        if not (math.isfinite(usd) and usd >= 0):
            raise BadInput(
                f"a price of {usd} USD per million {name} tokens",
                "give 0 or more",
                code="price_invalid",
            )
    path = home() / "prices.toml"
    if model in load_prices():
        raise BadInput(
            f"{model!r} has a price already", f"change it in {path}", code="price_exists"
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    known = path.read_text(encoding="utf-8") if path.is_file() else ""
    rows = f"[{json.dumps(model)}]\ninput = {price.input!r}\noutput = {price.output!r}\n"
    unfinished = path.with_suffix(".unfinished")
    unfinished.write_text(known + ("\n" if known else "") + rows, encoding="utf-8")
    unfinished.replace(path)


def how_to_price(model: str) -> str:
    """Instructions for adding an unknown price."""
    return (
        f"the price of {model!r} is unknown: write it into {home() / 'prices.toml'} as\n"
        f'["{model}"]\ninput = 0.0   # USD per million tokens\noutput = 0.0'
    )


def require_prices(recipe: Recipe, prices: dict[str, Price]) -> None:
    """Raise BadInput where the cost of a call has no upper bound: a budget could not hold."""
    for task, stage in recipe.stages.items():
        if stage.model not in prices:
            raise BadInput(how_to_price(stage.model), code="price_unknown")
        if not stage.parameters.get("max_output_tokens"):
            raise BadInput(
                "a budget requires a limit of output tokens",
                f"give one with `set={task}.max_output_tokens=NUMBER`",
                code="budget_needs_token_limit",
            )
