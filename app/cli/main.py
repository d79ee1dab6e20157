"""`inf`: the entry point. Commands are imported when called, so that `inf --help` is fast."""

import json
import os
import sys
import traceback

import click

from db.errors import InfError
from db.extras import missing_extra
from db.modules import load
from db.store.secrets import load_secrets

COMMANDS = {
    "analyze": ("app.cli.analyze.command:analyze", "Measure agreement, diversity and coverage."),
    "backup": ("app.cli.store.backup:backup", "Write the whole store to one file."),
    "convert": (
        "app.cli.data.convert:convert",
        "Convert published collections for import.",
    ),
    "curate": ("app.cli.curate:curate", "Generate groups from pairs and validate them."),
    "db": ("app.cli.store.db:db", "Create or upgrade the store."),
    "demo": ("app.cli.demo:demo", "Run every step on the demo set, then open the app."),
    "evaluate": (
        "app.cli.evaluate.command:evaluate",
        "Score models on held-out groups or a benchmark, and compare them.",
    ),
    "export": ("app.cli.data.export:export", "Create a release: files and a dataset card."),
    "gpu-check": ("app.cli.gpu_check:gpu_check", "Check and measure training on this machine."),
    "hub": ("app.cli.data.hub:hub", "Push to and pull from the Hugging Face Hub."),
    "import": ("app.cli.data.import_:import_", "Read pairs and passages into a dataset."),
    "jobs": ("app.cli.store.jobs:jobs", "List, follow, cancel and resume jobs."),
    "releases": (
        "app.cli.data.releases:releases",
        "List and compare releases.",
    ),
    "restore": ("app.cli.store.backup:restore", "Restore a backup into an empty store."),
    "review": ("app.cli.review.command:review", "Approve, reject or edit groups, one or in bulk."),
    "serve": ("app.cli.serve:serve", "Open the app."),
    "study": ("app.cli.study.command:study", "Create studies and run model judges on them."),
    "train": ("app.cli.train:train", "Fine-tune an embedding model on a release."),
    "tune": ("app.cli.tune:tune", "Search training settings over several trainings."),
    "upgrade": (
        "app.cli.store.upgrade:upgrade",
        "Copy, migrate and check the store; --back undoes it.",
    ),
    "users": ("app.cli.store.users:users", "Manage accounts: add, list, disable, reset password."),
}


class LazyGroup(click.Group):
    """A group that imports a command only when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = load(COMMANDS[cmd_name][0])
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, COMMANDS[name][1]) for name in sorted(COMMANDS)])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="inf-studio", prog_name="inf")
def inf() -> None:
    """InF Studio: trustworthy instruction-following retrieval data, and models trained on it.

    INF_DATABASE_URL names the store (default: .inf/inf.db in the current folder).
    """


def main(arguments: list[str] | None = None) -> None:
    """Run the command line. Exit status: 0 done, 1 failed, 2 wrong arguments, 3 paused."""
    given = sys.argv[1:] if arguments is None else arguments
    try:
        load_secrets()
        code = inf.main(args=given, prog_name="inf", standalone_mode=False)
    except click.exceptions.Abort:
        click.echo("Aborted.", err=True)
        code = 1
    except click.ClickException as error:
        if "--json" in given:
            details = getattr(error, "details", {})
            click.echo(json.dumps({"error": error.format_message(), **details}))
        else:
            error.show()
        code = error.exit_code
    except InfError as error:  # from load_secrets; `reporting` handles those of commands
        click.echo(
            json.dumps({"error": str(error)}) if "--json" in given else f"Error: {error}",
            err="--json" not in given,
        )
        code = 1
    except BrokenPipeError:  # the reader of our output closed the pipe (`inf … | head`)
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 1
    except Exception as error:
        if missing := missing_extra(error):  # of a command whose own module needs it
            click.echo(
                json.dumps({"error": missing}) if "--json" in given else f"Error: {missing}",
                err="--json" not in given,
            )
            sys.exit(1)
        if "--json" not in given:
            raise
        traceback.print_exc()
        message = f"unexpected {type(error).__name__}: {error}; please report it with stderr"
        click.echo(json.dumps({"error": message}))
        code = 1
    sys.exit(code if isinstance(code, int) else 0)


if __name__ == "__main__":
    main()
