"""A group of commands one of which runs where no command is named."""

import click


class OneByDefault(click.Group):
    """`inf review --group …` is `inf review one --group …`; the default is its attribute."""

    default = "one"

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and args[0] not in (*self.commands, *ctx.help_option_names):
            args = [self.default, *args]
        return super().parse_args(ctx, args)
