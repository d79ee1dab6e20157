"""`inf users`: accounts. Passwords are read from the terminal or stdin, never from argv."""

import sys
from collections.abc import Callable

import click

from app.cli.kit.password import ask_password
from app.cli.kit.report import Result, me, ready_store, reporting
from db.corpus.datasets import get_dataset
from db.errors import Refused
from db.people import accounts, invitations
from db.people.fields import FIELDS, AccountField, field_values, set_field, set_fields
from db.people.passwords import LINK_HOURS, create_password_link
from db.people.renaming import delete_account, rename_account
from db.people.rights import list_members, require_not_admin, set_rights
from db.tables import Account, Member
from db.values import ACCOUNT_ROLES, RIGHTS


@click.group()
def users() -> None:
    """Add, list, rename, disable and delete accounts; reset passwords."""


def _row(account: Account) -> Result:
    return {
        "name": account.name,
        "role": account.role,
        **field_values(account),
        "disabled": account.disabled,
        "name_problem": account.name_problem,
        "created_at": account.created_at.isoformat(),
    }


def _line(row: Result) -> str:
    disabled = "disabled" if row["disabled"] else ""
    texts = "  ".join(row[field.column] for field in FIELDS if row[field.column])
    remark = "rename it: such a name is refused today" if row["name_problem"] else ""
    return f"{row['name']:<30} {row['role']:<10} {disabled:<9} {texts} {remark}".rstrip()


def _field_options(command: Callable[..., None]) -> Callable[..., None]:
    """An option for each optional field of an account."""
    for field in reversed(FIELDS):
        command = click.option(f"--{field.column}", default="", help=field.help)(command)
    return command


@users.command()
@click.argument("name")
@click.option("--role", type=click.Choice(ACCOUNT_ROLES), default="annotator", show_default=True)
@_field_options
@click.option(
    "--dataset",
    "datasets",
    multiple=True,
    help="Give the role's rights on this dataset only; repeat for several. Default: everywhere.",
)
@click.option("--no-password", is_flag=True, help="Sign in through the provider only.")
@reporting(lambda result: f"added {result['name']} as {result['role']}")
def add(
    name: str, role: str, datasets: tuple[str, ...], no_password: bool, **fields: str
) -> Result:
    """Add an account; the password is prompted for or read from standard input."""
    if no_password and not fields["email"]:
        raise click.UsageError(
            "--no-password requires --email: otherwise the account could not sign in"
        )
    store = ready_store()
    password = None if no_password else ask_password()
    with store.write() as session:
        account = accounts.add_account(
            session,
            name,
            password,
            role=role,
            actor=me(),
            dataset_ids=[get_dataset(session, one).id for one in datasets] or None,
        )
        set_fields(session, account.name, fields, actor=me())
        session.commit()
        return _row(account)


def _field_command(field: AccountField) -> click.Command:
    """`inf users FIELD NAME TEXT`: the command that sets one optional field."""

    @click.command(field.column, help=f"Set this field of an account; '' removes it. {field.help}")
    @click.argument("name")
    @click.argument("text")
    @reporting(
        lambda result: f"{field.label} of {result['name']}: {result[field.column] or 'removed'}"
    )
    def command(name: str, text: str) -> Result:
        with ready_store().write() as session:
            account = set_field(session, name, field.column, text, actor=me())
            session.commit()
            return _row(account)

    return command


for _field in FIELDS:
    users.add_command(_field_command(_field))


@users.command("list")
@reporting(lambda result: "\n".join(map(_line, result["accounts"])) or "no accounts yet")
def list_() -> Result:
    """List accounts."""
    with ready_store().read() as session:
        return {"accounts": [_row(account) for account in accounts.list_accounts(session)]}


@users.command()
@click.argument("name")
@click.option("--enable", is_flag=True, help="Enable the account again.")
@reporting(lambda result: f"{result['name']} is {'disabled' if result['disabled'] else 'enabled'}")
def disable(name: str, enable: bool) -> Result:
    """Disable an account immediately, on every device."""
    store = ready_store()
    with store.write() as session:
        account = accounts.set_disabled(session, name, not enable, actor=me())
        session.commit()
        return _row(account)


@users.command()
@click.argument("name")
@click.argument("new_name")
@reporting(lambda result: f"{result['before']} is {result['name']} now")
def rename(name: str, new_name: str) -> Result:
    """Give an account another name, on everything that the person did; sessions go on."""
    with ready_store().write() as session:
        account = rename_account(session, name, new_name, actor=me())
        session.commit()
        return {"before": name, **_row(account)}


@users.command()
@click.argument("name")
@click.option("--yes", is_flag=True, help="Skip the confirmation.")
@reporting(lambda result: f"{result['deleted']} is deleted; what they did stays as {result['as']}")
def delete(name: str, yes: bool) -> Result:
    """Delete an account. What the person did stays, under a pseudonym.

    A terminal asks for confirmation; otherwise nothing is done without --yes.
    """
    store = ready_store()
    with store.read() as session:
        accounts.get_account(session, name)
    if not yes:
        if not sys.stdin.isatty():
            raise Refused(
                f"{name!r} would be deleted for good",
                "repeat the command with --yes",
                code="would_deleted_good",
            )
        click.confirm(f"delete the account {name!r} for good?", abort=True, err=True)
    with store.write() as session:
        pseudonym = delete_account(session, name, actor=me())
        session.commit()
    return {"deleted": name, "as": pseudonym}


@users.command()
@click.argument("name")
@click.argument("role", type=click.Choice(ACCOUNT_ROLES))
@reporting(lambda result: f"{result['name']} is {result['role']}")
def role(name: str, role: str) -> Result:
    """Change the role of an account."""
    store = ready_store()
    with store.write() as session:
        account = accounts.set_role(session, name, role, actor=me())
        session.commit()
        return _row(account)


@users.command()
@click.option("--role", type=click.Choice(ACCOUNT_ROLES), default="annotator", show_default=True)
@click.option("--days", default=7, show_default=True, help="Days until the link expires.")
@click.option("--study", "study_id", type=int, help="Add the new account to this study.")
@reporting(lambda result: f"send this path of the app to the invited person: {result['path']}")
def invite(role: str, days: int, study_id: int | None) -> Result:
    """Print a link with which one person can create an account; it is shown only once."""
    store = ready_store()
    with store.write() as session:
        token = invitations.invite(session, role=role, days=days, actor=me(), study_id=study_id)
        session.commit()
    return {"path": f"/invitation/{token}", "role": role, "days": days, "study_id": study_id}


def _rights_row(account: Account, member: Member) -> Result:
    return {
        "name": account.name,
        "right": member.right_held,
        "dataset_id": member.dataset_id,
        "study_id": member.study_id,
        "granted_by": member.granted_by,
    }


def _rights_line(row: Result) -> str:
    place = "everywhere"
    if row["study_id"] is not None:
        place = f"study {row['study_id']}"
    elif row["dataset_id"] is not None:
        place = f"dataset {row['dataset_id']}"
    return f"{row['name']:<30} {row['right']:<12} {place}"


@users.command("members")
@reporting(lambda result: "\n".join(map(_rights_line, result["members"])) or "no members")
def members_() -> Result:
    """List the rights of every account; an admin has all of them and is not listed."""
    with ready_store().read() as session:
        return {"members": [_rights_row(*each) for each in list_members(session)]}


@users.command("rights")
@click.argument("name")
@click.argument("rights", nargs=-1, type=click.Choice(RIGHTS))
@click.option("--dataset", help="On this dataset.")
@click.option("--study", "study_id", type=int, help="On this study.")
@reporting(lambda result: f"{result['name']}: {', '.join(result['rights']) or 'no right'} there")
def rights_(
    name: str, rights: tuple[str, ...], dataset: str | None, study_id: int | None
) -> Result:
    """Set exactly these rights of an account: on a dataset, on a study, or everywhere."""
    with ready_store().write() as session:
        account = accounts.get_account(session, name)
        require_not_admin(account)
        dataset_id = None if dataset is None else get_dataset(session, dataset).id
        set_rights(session, account, rights, actor=me(), dataset_id=dataset_id, study_id=study_id)
        session.commit()
    return {"name": name, "rights": sorted(rights), "dataset": dataset, "study_id": study_id}


def _reset_line(result: Result) -> str:
    if "path" in result:
        return f"send this path of the app to {result['name']}: {result['path']}"
    return f"{result['name']} has a new password and is signed out everywhere"


@users.command("reset-password")
@click.argument("name")
@click.option(
    "--link", is_flag=True, help="Print a link with which the person sets it once, in 24 hours."
)
@reporting(_reset_line)
def reset_password(name: str, link: bool) -> Result:
    """Set a new password and end the account's sessions."""
    store = ready_store()
    if link:
        with store.write() as session:
            account = accounts.get_account(session, name)
            token = create_password_link(session, account, actor=me())
            session.commit()
        return {"name": name, "path": f"/password/{token}", "hours": LINK_HOURS}
    password = ask_password()
    with store.write() as session:
        account = accounts.reset_password(session, name, password, actor=me())
        session.commit()
        return _row(account)
