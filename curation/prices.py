"""What models cost, from `prices.toml` beside this file and the user's own in INF_HOME."""

import tomllib
from dataclasses import dataclass
from pathlib import Path

from db.errors import BadInput
from db.settings import home

SHIPPED = Path(__file__).parent / "prices.toml"


@dataclass(frozen=True)
class Price:
    """USD per million tokens; reasoning tokens are output."""

    input: float
    output: float

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


def how_to_price(model: str) -> str:
    """What to write where a price is unknown."""
    return (
        f"the price of {model!r} is unknown: write it into {home() / 'prices.toml'} as\n"
        f'["{model}"]\ninput = 0.0   # USD per million tokens\noutput = 0.0'
    )
