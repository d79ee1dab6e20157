"""`inf`: the entry point. Commands are imported when called, so that `inf --help` is fast."""

import errno
import os
import sys
from pathlib import Path

import click
from click.shell_completion import CompletionItem

from app.cli.commands import COMMANDS
from app.cli.kit.output import OutputFailed, checked_output, drop_output
from app.cli.start import INTERRUPTED, MESSAGE, ending_at_once, without_collection
from db.errors import BadInput, InfError
from db.extras import missing_extra
from db.home import full_disk, home
from db.modules import load
from db.store.secrets import load_secrets
from db.store.settings import owners_process

HELP = "`--help` shows what the command takes"
READ_ONLY = (errno.EROFS, errno.EACCES, errno.EPERM)


class LazyGroup(click.Group):
    """A group that imports a command only when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        with ending_at_once(), without_collection():
            command: click.Command = load(COMMANDS[cmd_name][0])
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.exceptions.NoSuchCommand as error:  # it knows none of ours to suggest
            raise click.exceptions.NoSuchCommand(
                error.command_name, possibilities=COMMANDS, ctx=ctx
            ) from error

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, COMMANDS[name][1]) for name in sorted(COMMANDS)])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """The commands that begin so, from the table: a key press must not import them all."""
        found = [
            CompletionItem(name, help=COMMANDS[name][1])
            for name in sorted(COMMANDS)
            if name.startswith(incomplete)
        ]
        return [*found, *click.Command.shell_complete(self, ctx, incomplete)]


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="inf-studio", prog_name="inf")
def inf() -> None:
    """InF Studio: trustworthy instruction-following retrieval data, and models trained on it.

    INF_DATABASE_URL names the store (default: .inf/inf.db in the current folder).
    """


def main(arguments: list[str] | None = None) -> None:
    """Run the command line.

    Exit status: 0 done, 1 failed, 2 wrong arguments, 3 paused, 130 interrupted.
    """
    # nothing of ours plugs into pydantic, whose search through all packages costs a start 20 ms
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    given = sys.argv[1:] if arguments is None else arguments
    try:
        with checked_output():
            code = _run(given)
    except OutputFailed as failed:
        drop_output()
        click.echo(f"Error: {failed}", err=True)
        code = 1
    except KeyboardInterrupt:  # outside of the command itself
        click.echo(f"\n{MESSAGE}", err=True)
        code = INTERRUPTED
    sys.exit(code)


def _run(given: list[str]) -> int:
    """Run a command and report its error; returns the exit status. Raises OutputFailed."""
    try:
        load_secrets()
        owners_process(True)  # whoever runs a command owns the store's files or its password
        code = inf.main(args=given, prog_name="inf", standalone_mode=False)
    except OutputFailed:
        raise
    except click.exceptions.Abort as error:
        if isinstance(error.__cause__, KeyboardInterrupt):
            click.echo(MESSAGE, err=True)
            return INTERRUPTED
        click.echo("Aborted.", err=True)
        return 1
    except click.ClickException as error:
        if "--json" in given:
            cause = error.__cause__
            wrong = BadInput(error.format_message(), HELP, code="arguments_invalid")
            _print_json(cause if isinstance(cause, InfError) else wrong, wrong.message)
        else:
            error.show()
        return error.exit_code
    except Exception as error:
        if (reason := _reason(error)) is None:
            if "--json" not in given:
                raise
            import traceback  # here, as JSON: `inf --help` needs neither

            traceback.print_exc()
            what = f"unexpected {type(error).__name__}: {error}"
            reason = InfError(what, "please report it with stderr", code="unexpected")
        if "--json" in given:
            _print_json(reason, str(reason))
        else:
            click.echo(f"Error: {reason}", err=True)
        return 1
    return code if isinstance(code, int) else 0


def _print_json(error: InfError, text: str) -> None:
    """Print an error in its parts; `error` is the text of message and remedy of before."""
    import json

    from app.text.remedies import in_commands  # here: `inf --help` needs no words of errors

    apart = {"message": in_commands(error.message), "code": error.code}
    remedy = in_commands(error.remedy) or HELP * (error.code == "request_invalid")
    click.echo(json.dumps({**error.details, **apart, "remedy": remedy, "error": text}))


def _reason(error: Exception) -> InfError | None:
    """Why a command ended; None for what nobody expected."""
    if isinstance(error, InfError):  # from load_secrets; `reporting` handles those of commands
        return error
    if full := full_disk(error):  # of a file of the command's own
        return full
    place = error.filename if isinstance(error, OSError) and error.errno in READ_ONLY else None
    if isinstance(place, str) and Path(place).is_relative_to(home()):
        reason = f"{place} cannot be written ({getattr(error, 'strerror', error)})"
        remedy = "set INF_HOME to a folder that this account can write"
        return InfError(reason, remedy, code="home_not_writable")
    return missing_extra(error)  # of a command whose own module needs it


if __name__ == "__main__":
    main()
