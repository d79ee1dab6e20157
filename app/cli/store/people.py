"""`inf people`: accounts. Passwords are read from the terminal or stdin, never from argv."""

import sys
from functools import partial

import click

from app.cli.kit.doors import Noun
from app.cli.kit.formerly import formerly
from app.cli.kit.options import request_options
from app.cli.kit.password import ask_secret
from app.cli.kit.report import Result, command_actor, lines, reporting
from app.operations import people as operations
from app.operations.people import Invitation, PersonAdd, PersonRow
from db.errors import Refused
from db.people.fields import FIELDS, AccountField
from db.people.passwords import LINK_HOURS
from db.rows import Row
from db.values import RIGHTS

people = Noun("people")
people.listed(
    operations.list_all,
    columns=(
        *("name", "role", ("state", lambda row: "disabled" if row["disabled"] else "enabled")),
        *((field.label.lower(), field.column) for field in FIELDS),
        ("remark", lambda row: "rename it: such a name is refused" * bool(row["name_problem"])),
    ),
    empty="no accounts yet",
    former=("accounts", {}),
)
people.door(operations.show, text=lambda result: lines(*result.items()))


@people.command()
@request_options(PersonAdd)
@reporting(lambda result: f"added {result['name']} as {result['role']}")
def add(request: PersonAdd) -> PersonRow:
    """Add an account; the password is prompted for or read from standard input."""
    actor, password = command_actor(), None if request.no_password else ask_secret()
    return operations.add(actor, request, password)


def _field_text(field: AccountField, result: Result) -> str:
    return f"{field.label} of {result['name']}: {result[field.column] or 'removed'}"


for _field in FIELDS:
    people.door(
        partial(operations.change_field, column=_field.column),
        name=_field.column,
        text=partial(_field_text, _field),
        about=f"Set the {_field.label.lower()} of an account; '' removes it. {_field.help}",
    )


people.door(
    operations.disable,
    click.option(
        *("--enable", "disabled"),
        flag_value=False,
        default=True,
        help="Enable the account again.",
    ),
    text=lambda result: f"{result['name']} is {'disabled' if result['disabled'] else 'enabled'}",
    about="Disable an account immediately, on every device.",
)
people.door(operations.rename, text=lambda result: f"{result['before']} is {result['name']} now")


@people.command()
@click.argument("name")
@click.option("--yes", is_flag=True, help="Skip the confirmation.")
@reporting(
    lambda result: f"{result['name']} is deleted; what they did stays as {result['pseudonym']}",
    former={"deleted": "name", "as": "pseudonym"},
)
def delete(name: str, yes: bool) -> Row:
    """Delete an account. What the person did stays, under a pseudonym.

    A terminal asks for confirmation; otherwise nothing is done without --yes.
    """
    actor = command_actor()
    operations.show(actor, name)
    if not yes:
        if not sys.stdin.isatty():
            raise Refused(
                f"{name!r} would be deleted for good",
                "repeat the command with --yes",
                code="deletion_needs_confirmation",
            )
        click.confirm(f"delete the account {name!r} for good?", abort=True, err=True)
    return operations.delete(actor, name)


people.door(
    operations.change_role,
    name="role",
    text=lambda result: f"{result['name']} is {result['role']}",
)


@people.command()
@request_options(Invitation)
@reporting(lambda result: f"send this path of the app to the invited person: {result['path']}")
def invite(request: Invitation) -> operations.InvitationLink:
    """Print a link with which one person can create an account; it is shown only once."""
    (path,) = operations.invite(command_actor(), request)
    return operations.InvitationLink.of(request, path=path)


def _place(row: Result) -> str:
    if row["study_id"] is not None:
        return f"study {row['study_id']}"
    return "everywhere" if row["dataset_id"] is None else f"dataset {row['dataset_id']}"


people.listed(
    operations.members,
    name="members",
    columns=("name", "right", ("on", _place), ("given by", "granted_by")),
    empty="no members",
    former=("members", {}),
)


people.door(
    operations.set_rights,
    click.argument("who", metavar="NAME"),
    click.argument("rights", nargs=-1, type=click.Choice(RIGHTS)),
    click.option("--dataset", help="On this dataset."),
    click.option("--study", "study_id", type=int, help="On this study."),
    name="rights",
    text=lambda result: f"{result['name']}: {', '.join(result['rights']) or 'no right'} there",
    about="Set exactly these rights of an account: on a dataset, on a study, or everywhere.",
)


def _reset_line(result: Result) -> str:
    if "path" in result:
        return f"send this path of the app to {result['name']}: {result['path']}"
    return f"{result['name']} has a new password and is signed out everywhere"


@people.command("reset-password")
@click.argument("name")
@click.option("--link", is_flag=True, help=f"Print a link to set it, once in {LINK_HOURS:g} hours.")
@reporting(_reset_line)
def reset_password(name: str, link: bool) -> Row:
    """Set a new password and end the account's sessions."""
    if link:
        return operations.password_link(command_actor(), name)
    return operations.reset_password(command_actor(), name, ask_secret())


users = formerly(people, "users", "people")
