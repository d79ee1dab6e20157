"""Connections: model servers as runs name them; their keys go in and never come out."""

import math
from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, ConfigDict
from sqlalchemy.orm import Session

from app.access.identity import Actor, TokenHolder
from app.access.permissions import require
from app.operations.acting import reading, writing
from curation.recipe import prices as price_table
from curation.recipe.prices import Price
from curation.servers.addresses import checked_url
from curation.servers.connection import PROVIDER_OF_KIND, environment_server, server_named
from curation.servers.guard import is_private, require_reachable
from db.errors import BadInput, InfError, Refused
from db.events import record_event
from db.people.accounts import has_accounts
from db.people.budgets import without_budget
from db.requests import Request, option
from db.rows import Listed, Row
from db.servers.connections import (
    ENVIRONMENT,
    SERVERS,
    add_connection,
    get_connection,
    key_of,
    list_connections,
    remove_connection,
    set_key,
)
from db.tables import Connection, utc_now

RIGHT = "connections"
USE = "curate"
PRICES = option(
    {},
    "USD per million tokens in and out of a model, besides prices.toml; repeatable.",
    names=("--price",),
    metavar="MODEL=IN/OUT",
)


def save_price(actor: Actor, model: str, price: Price) -> None:
    """Add a model's price to prices.toml. Raises as `curation.recipe.prices.save_price`."""
    with writing(actor, USE) as session:
        price_table.save_price(model, price)
        record_event(session, actor.name, "price.save", model, **vars(price))


def _are_prices(given: Mapping[str, str]) -> Mapping[str, str]:
    read_prices({model: text for model, text in given.items() if text})
    return given


Prices = Annotated[Mapping[str, str], AfterValidator(_are_prices)]


class ConnectionAdd(Request):
    """A model server: its address and the name of the secret that holds its key."""

    model_config = ConfigDict(str_strip_whitespace=True)
    name: str = option(..., "What runs call it.", names=(), metavar="NAME")
    kind: Literal["openai", "azure", "compatible", "offline", "recorded"] = option(
        "compatible",
        "What it speaks; compatible: any server of OpenAI's protocol (vLLM, llama.cpp, a gateway).",
    )
    url: str = option("", "Its address with its /v1; of Azure the resource's.", metavar="URL")
    secret: str = option(
        "",
        "The name of the environment variable, or of the entry of secrets.toml, with the key.",
        metavar="VAR",
    )
    api_version: str = option("", "Azure: the API version.", metavar="VERSION")
    private: bool = option(
        False, "It may be in a private network; on a server with accounts its owner's command only."
    )
    prices: Prices = PRICES


class ConnectionChange(Request):
    """What is changed of a connection; its address stays, since runs name it."""

    name: str = option(..., "The connection.", names=(), metavar="NAME")
    secret: str | None = option(
        None, "The name of another secret with the key; '': no key.", metavar="VAR"
    )
    private: bool | None = option(
        None, "Whether it may be in a private network.", names=("--private/--public",)
    )
    prices: Prices = option(
        {},
        "USD per million tokens in and out of a model, empty to forget them; repeatable.",
        names=("--price",),
        metavar="MODEL=IN/OUT",
    )


class Tested(Row):
    """What the last test of a connection found; None: unknown."""

    at: datetime
    models: tuple[str, ...]
    model: str
    answered_as: str
    seconds: float
    supports_schema: bool | None
    supports_reasoning: bool | None
    supports_batch: bool | None


class ConnectionRow(Row):
    """A connection. `secret` is a name, or `typed`; `id` is None for that of the environment.

    `problem`: why it cannot be used from here now.
    """

    id: int | None
    name: str
    kind: str
    url: str | None
    api_version: str | None
    secret: str | None
    private: bool
    prices: dict[str, dict[str, float]]
    tested: Tested | None
    problem: str | None
    created_by: str | None
    created_at: datetime | None

    @property
    def provider(self) -> str:
        """The provider of its runs."""
        return PROVIDER_OF_KIND[self.kind]


def read_prices(given: Mapping[str, str]) -> dict[str, dict[str, float]]:
    """`{model: "0.15/0.6"}` as numbers of USD per million tokens. Raises BadInput."""
    found = {}
    for model, text in given.items():
        try:
            values = [float(part) for part in text.split("/")]
        except ValueError:
            values = []
        if len(values) != 2 or not all(math.isfinite(each) and each >= 0 for each in values):
            raise BadInput(
                f"the price of {model} is {text!r}",
                "give USD per million tokens in and out, as 0.15/0.6",
                code="request_invalid",
                field="prices",
            )
        found[model] = {"input": values[0], "output": values[1]}
    return found


def add(actor: Actor, wanted: ConnectionAdd, key: str = "") -> ConnectionRow:
    """Add a connection; a `key` is encrypted and not shown again.

    Raises Refused, BadInput, and ProviderError for an address that it may not have.
    """
    require(actor, RIGHT)
    has_url = wanted.kind in SERVERS
    if has_url != bool(wanted.url):
        raise BadInput(
            f"a connection of kind {wanted.kind} {'needs an' if has_url else 'has no'} address",
            "give `url=`" if has_url else "omit `url=`",
            code="connection_url_missing" if has_url else "connection_without_url",
        )
    url = checked_url(wanted.url) if has_url else ""
    private = has_url and may_be_private(actor, url, wanted.private)
    with writing(actor, RIGHT) as session:
        found = add_connection(
            session,
            name=wanted.name,
            kind=wanted.kind,
            url=url,
            api_version=wanted.api_version,
            secret=wanted.secret,
            key=key.strip(),
            private=private,
            prices=read_prices(wanted.prices),
            created_by=actor.name,
        )
        facts = {"kind": found.kind, "url": found.url, "secret": found.secret, "private": private}
        record_event(
            session, actor.name, "connection.add", found.id, connection=found.name, **facts
        )
        return _row(found)


def change(actor: Actor, wanted: ConnectionChange, key: str = "") -> ConnectionRow:
    """Change the key, the prices or the reach of a connection. Raises as `add`, and NotFound."""
    with reading(actor, RIGHT) as session:
        url = _stored(session, wanted.name).url
    private = wanted.private
    if private:
        may_be_private(actor, url, private)
    with writing(actor, RIGHT) as session:
        found = _stored(session, wanted.name)
        if key or wanted.secret is not None:
            set_key(found, secret=wanted.secret or "", key=key.strip())
        if private is not None:
            found.private = private
        if wanted.prices:
            given = {model: text for model, text in wanted.prices.items() if text}
            kept = {name: each for name, each in found.prices.items() if name not in wanted.prices}
            found.prices = kept | read_prices(given)
        facts: dict[str, Any] = {"secret": found.secret} if key or wanted.secret is not None else {}
        facts |= {} if private is None else {"private": private}
        facts |= {"prices": sorted(wanted.prices)} if wanted.prices else {}
        record_event(
            session, actor.name, "connection.change", found.id, connection=found.name, **facts
        )
        return _row(found)


def remove(actor: Actor, name: str) -> ConnectionRow:
    """Remove a connection that no unfinished run uses.

    Raises NotFound, Refused while runs that are not over name it.
    """
    with writing(actor, RIGHT) as session:
        found = _stored(session, name)
        row = _row(found)
        remove_connection(session, found)
        record_event(session, actor.name, "connection.remove", found.id, connection=found.name)
        return row


def list_all(actor: Actor) -> Listed[ConnectionRow]:
    """List connections; the environment variables are the one called environment."""
    with reading(actor, USE) as session:
        rows = [_row(each) for each in list_connections(session)]
    return Listed[ConnectionRow].all([_environment_row(), *rows])


def show(actor: Actor, name: str) -> ConnectionRow:
    """Show one connection. Raises NotFound."""
    with reading(actor, USE) as session:
        return _environment_row() if name == ENVIRONMENT else _row(get_connection(session, name))


def test(actor: Actor, name: str, model: str = "") -> ConnectionRow:
    """List a server's models, time one call, find what it supports (three small calls).

    Raises NotFound, ProviderError, BadInput, InfError without a key, Refused by a token without a
    budget (its calls are not counted on it). `model`: one of its list, by default the first.
    """
    if isinstance(actor, TokenHolder) and actor.budget_usd is None:
        raise without_budget()
    from curation.providers.trial import try_server  # the SDK takes a second to import

    with reading(actor, USE) as session:
        stored = None if name == ENVIRONMENT else get_connection(session, name)
        if stored is not None and stored.kind not in SERVERS:
            raise BadInput(
                f"the connection {stored.name} is of kind {stored.kind}: it has no server",
                "start a run with it",
                code="connection_without_url",
            )
        server = server_named(session, name)
    tried = try_server(server, model)
    found = Tested(
        at=utc_now(),
        models=tried.models,
        model=tried.model,
        answered_as=tried.answered_as,
        seconds=tried.seconds,
        supports_schema=tried.schema,
        supports_reasoning=tried.reasoning,
        supports_batch=tried.batch,
    )
    if stored is None:
        return _environment_row(found)
    with writing(actor, USE) as session:
        row = get_connection(session, stored.name)
        row.tested = found.as_json()
        record_event(
            session,
            actor.name,
            "connection.test",
            row.id,
            connection=row.name,
            model=found.model,
            answered_as=found.answered_as,
        )
        return _row(row)


def may_be_private(
    actor: Actor,
    url: str,
    wanted: bool,
    *,
    by: str = "connections add NAME url=URL private=yes",
    server: str = "a model server",
) -> bool:
    """Whether a connection may reach private networks; refused addresses raise ProviderError.

    by: the operation with which the owner allows it; server: what the address is of.

    Where the store has accounts, its owner decides that by a command; else whoever is at the
    machine, by giving such an address. Names are looked up before the writer is held.
    """
    with reading(actor, RIGHT) as session:
        is_shared = has_accounts(session)
    if is_shared and wanted and not actor.owns_store:
        raise Refused(
            "on a server with accounts the store's owner alone allows a private network, on the "
            "command line",
            f"the owner can, with `{by}`",
            code="private_network_needs_owner",
        )
    allowed = wanted or (not is_shared and is_private(url))
    require_reachable(url, private=allowed, by=by, server=server)
    return allowed


def _stored(session: Session, name: str) -> Connection:
    """The row of a connection. Raises NotFound, Refused for that of the environment."""
    if name == ENVIRONMENT:
        raise Refused(
            f"the connection {ENVIRONMENT} is what the environment variables name",
            "set the variables, or add a connection of another name",
            code="connection_of_environment",
        )
    return get_connection(session, name)


def _row(found: Connection) -> ConnectionRow:
    problem = None
    try:
        key_of(found)
    except InfError as error:
        problem = str(error)
    return ConnectionRow(
        id=found.id,
        name=found.name,
        kind=found.kind,
        url=found.url or None,
        api_version=found.api_version or None,
        secret=found.secret or None,
        private=found.private,
        prices=found.prices,
        tested=Tested.model_validate(found.tested) if found.tested else None,
        problem=problem,
        created_by=found.created_by,
        created_at=found.created_at,
    )


def _environment_row(tested: Tested | None = None) -> ConnectionRow:
    """The connection that the environment variables of this process are."""
    problem, url, kind, secret = None, None, "openai", "OPENAI_API_KEY"
    version = None
    try:
        server = environment_server()
    except BadInput as error:
        problem = str(error)
    else:
        kind, url, version = server.kind, server.record()["url"], server.api_version
        secret = "AZURE_OPENAI_API_KEY" if kind == "azure" else secret
        if kind in ("openai", "azure") and not server.key:
            problem = f"{secret} is not set"
    return ConnectionRow(
        id=None,
        name=ENVIRONMENT,
        kind=kind,
        url=url,
        api_version=version,
        secret=secret,
        private=True,
        prices={},
        tested=tested,
        problem=problem,
        created_by=None,
        created_at=None,
    )
