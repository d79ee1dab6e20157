"""The server that a run's requests go to: a stored connection, or what the environment names.

OPENAI_BASE_URL (several separated by commas) and OPENAI_API_KEY, or AZURE_OPENAI_ENDPOINT,
AZURE_OPENAI_API_KEY and OPENAI_API_VERSION are the connection `environment`. What is stored of a
server with a run is `Server.record()`, which has no key; the key is looked up by the process that
works, when it begins.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from sqlalchemy.orm import Session

from curation.recipe.prices import Price, load_prices
from curation.servers.addresses import VENDOR_URL, endpoint_urls, public_url
from db.errors import Refused
from db.servers.connections import ENVIRONMENT, SERVERS, get_connection, key_of
from db.tables import Connection, Run

PROVIDER_OF_KIND: Final = {
    **dict.fromkeys(SERVERS, "openai"),
    **{"offline": "offline", "recorded": "recorded"},
}


@dataclass(frozen=True)
class Server:
    """A server with its key. `private`: a stored connection may reach private networks."""

    connection: str
    kind: str
    urls: tuple[str, ...]
    key: str | None = field(default=None, repr=False)
    api_version: str | None = None
    private: bool = False
    prices: Mapping[str, Price] = field(default_factory=dict)

    @property
    def is_stored(self) -> bool:
        """Whether it is a row of the store, not what the environment or a recipe names."""
        return self.connection != ENVIRONMENT

    def record(self) -> dict[str, Any]:
        """What a run keeps of it."""
        urls = ", ".join(public_url(each) for each in self.urls)
        return {"connection": self.connection, "kind": self.kind, "url": urls}


def environment_server(endpoints: Sequence[str] = ()) -> Server:
    """The server of the environment variables, or of the endpoints of a recipe with their key.

    Raises BadInput for an address that is none.
    """
    urls = tuple(endpoint_urls(endpoints))
    if not endpoints and os.environ.get("AZURE_OPENAI_ENDPOINT"):
        key, version = os.environ.get("AZURE_OPENAI_API_KEY"), os.environ.get("OPENAI_API_VERSION")
        return Server(ENVIRONMENT, "azure", urls, key, version)
    is_vendors = urls == (VENDOR_URL,) and not endpoints and not os.environ.get("OPENAI_BASE_URL")
    kind = "openai" if is_vendors else "compatible"
    return Server(ENVIRONMENT, kind, urls, os.environ.get("OPENAI_API_KEY"))


def stored_server(connection: Connection) -> Server:
    """A stored connection with its key of now. Raises BadInput, InfError where the key lacks."""
    return Server(
        connection.name,
        connection.kind,
        (connection.url,),
        key_of(connection),
        connection.api_version or None,
        connection.private,
        prices_of(connection),
    )


def server_named(session: Session, name: str, endpoints: Sequence[str] = ()) -> Server:
    """The server of a connection's name. Raises NotFound, BadInput, InfError.

    `endpoints`: those of a recipe, which replace the environment's.
    """
    if name == ENVIRONMENT:
        return environment_server(endpoints)
    return stored_server(get_connection(session, name))


def server_of_run(session: Session, run: Run, endpoints: Sequence[str] = ()) -> Server:
    """The server that a run names, with the key of now; else that of the environment.

    `endpoints`: those of its recipe. Raises NotFound for a connection that is gone, Refused for one
    that has another address than the run's answers came from.
    """
    name = run.server.get("connection", ENVIRONMENT)
    if name == ENVIRONMENT:
        return environment_server(endpoints)
    found = get_connection(session, name)
    if (found.kind, found.url) != (run.server["kind"], run.server["url"]):
        raise Refused(
            f"the connection {name} is {found.url} now, and run {run.id} is of {run.server['url']}",
            "make a connection of that name with the run's address, or start a new run",
            code="connection_address_differs",
        )
    return stored_server(found)


def url_of_connection(run: Run) -> str | None:
    """The address of a run's stored connection; None for a run by the environment."""
    is_stored = run.server.get("connection", ENVIRONMENT) != ENVIRONMENT
    return str(run.server["url"]) if is_stored else None


def prices_of(connection: Connection) -> dict[str, Price]:
    """The connection's own prices by model."""
    return {model: Price(row["input"], row["output"]) for model, row in connection.prices.items()}


def prices_of_run(session: Session, run: Run) -> dict[str, Price]:
    """Prices by model for a run: its connection's own take precedence over the price tables."""
    name = run.server.get("connection", ENVIRONMENT)
    own = {} if name == ENVIRONMENT else prices_of(get_connection(session, name))
    return load_prices() | own
