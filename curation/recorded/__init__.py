"""Replaying what a language model wrote and judged: a provider and a judge that need no network."""

from typing import Final

NAME: Final = "recorded"
NOTE: Final = (
    "Written by a language model for the InF Studio demo and replayed from a recording. Writer and "
    "judges are the same kind of model without shared context, so their agreement is not agreement "
    "with people."
)
