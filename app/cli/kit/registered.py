"""Options whose help comes from a registry of judges or providers."""

from collections.abc import Callable
from typing import Any

import click


class RegistryOption(click.Option):
    """An option whose help is `describe()`, called when help is shown: it imports plugins."""

    def __init__(self, *args: Any, describe: Callable[[], str], **attributes: Any) -> None:
        super().__init__(*args, **attributes)
        self._describe = describe

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        self.help = f"{self._describe()}."
        return super().get_help_record(ctx)
