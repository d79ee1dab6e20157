"""What models cost, from `prices.toml` beside this file and the user's own in INF_HOME."""

import json
import math
import tomllib
from dataclasses import dataclass
from pathlib import Path

from db.errors import BadInput
from db.settings import home

SHIPPED = Path(__file__).parent / "prices.toml"

BATCH_SHARE = 0.5  # of the price, in OpenAI's Batch API


@dataclass(frozen=True)
class Price:
    """USD per million tokens; reasoning tokens are output."""

    input: float
    output: float

    def batched(self) -> "Price":
        """What the same costs in a batch."""
        return Price(self.input * BATCH_SHARE, self.output * BATCH_SHARE)

    def usd(self, input_tokens: float, output_tokens: float) -> float:
        """What so many tokens cost."""
        return (input_tokens * self.input + output_tokens * self.output) / 1e6


FREE = Price(0.0, 0.0)


def load_prices() -> dict[str, Price]:
    """Prices by model; the user's table comes first. Raises BadInput for a table that is wrong."""
    prices: dict[str, Price] = {}
    for path in (SHIPPED, home() / "prices.toml"):
        if not path.is_file():
            continue
        try:
            tables = tomllib.loads(path.read_text(encoding="utf-8"))
            for model, row in tables.items():
                prices[model] = Price(float(row["input"]), float(row["output"]))
        except (tomllib.TOMLDecodeError, KeyError, TypeError, ValueError) as error:
            raise BadInput(f"the price table {path} cannot be read: {error!r}") from error
    return prices


def save_price(model: str, price: Price) -> None:
    """Add a model to the user's own table, which keeps what else is in it.

    Raises BadInput for a price below 0, or where the table has the model already.
    """
    for name, usd in (("input", price.input), ("output", price.output)):
        if not (math.isfinite(usd) and usd >= 0):
            raise BadInput(f"a price of {usd} USD per million {name} tokens: give 0 or more")
    path = home() / "prices.toml"
    if model in load_prices():
        raise BadInput(f"{model!r} has a price already: change it in {path}")
    path.parent.mkdir(parents=True, exist_ok=True)
    known = path.read_text(encoding="utf-8") if path.is_file() else ""
    rows = f"[{json.dumps(model)}]\ninput = {price.input!r}\noutput = {price.output!r}\n"
    unfinished = path.with_suffix(".unfinished")
    unfinished.write_text(known + ("\n" if known else "") + rows, encoding="utf-8")
    unfinished.replace(path)


def how_to_price(model: str) -> str:
    """What to write where a price is unknown."""
    return (
        f"the price of {model!r} is unknown: write it into {home() / 'prices.toml'} as\n"
        f'["{model}"]\ninput = 0.0   # USD per million tokens\noutput = 0.0'
    )
