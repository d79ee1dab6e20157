"""`inf serve`: the app in the browser.

Without accounts the user is the local admin; the server then listens on loopback only and accepts
only requests whose host is this machine (a foreign page cannot reach it through a host name of its
own).
"""

import os
import sys

import click

from app.access.identity import owner
from app.cli.kit.report import Result, command_actor, launcher_options, me, reporting
from app.cli.start import without_collection
from app.operations.jobs import ensure_worked
from app.operations.overview.status import store_state
from app.operations.store import make_tables
from app.server.origins import public_address
from app.server.proxies import note_at_start, trusted_proxies
from db.errors import Refused
from db.logs import log_with_time
from db.machine import PORT, is_loopback, url_of
from db.store.settings import owners_process

QUESTION = "The PostgreSQL database is empty: create the tables of InF Studio in it?"


def store_to_serve() -> bool:
    """Make the tables of a store that has none, and report whether it has accounts.

    In a file of our own (SQLite) they are made at once, in a PostgreSQL database on consent. Raises
    InfError if the store is not of this version.
    """
    may_ask = sys.stdin.isatty()
    if made := make_tables(owner(me()), lambda: may_ask and click.confirm(QUESTION, err=True)):
        click.echo(f"made the tables of the new {made} store", err=True)
    command_actor()
    return bool(store_state(owner(me())).has_accounts)


@click.command()
@click.option("--port", default=PORT, show_default=True, type=click.IntRange(1, 65535))
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--open", "open_browser", is_flag=True, help="Also open the browser.")
@launcher_options
@reporting(lambda result: f"stopped serving on {result['url']}")
def serve(port: int, host: str, open_browser: bool) -> Result:
    """Serve the app on this machine, or for a team once there are accounts."""
    public_address()  # refuses one that no request could match
    proxies = trusted_proxies()
    has_accounts = store_to_serve()
    if not has_accounts and not is_loopback(host):
        raise Refused(
            f"there are no accounts yet, so anyone who reaches {host} would be admin",
            "first create one with `inf people add NAME --role admin`",
            code="public_server_needs_accounts",
        )
    ensure_worked(owner(me()))
    url = url_of(host, port)
    who = "sign-in required" if has_accounts else "no accounts yet: every user is admin"
    click.echo(f"InF Studio on {url} ({who}); stop with Ctrl-C", err=True)
    if note := note_at_start(has_accounts=has_accounts, is_local=is_loopback(host)):
        click.echo(f"note: {note}", err=True)

    # uvicorn reads it, and would believe whatever comes from this machine without it
    os.environ["FORWARDED_ALLOW_IPS"] = proxies
    with without_collection():
        from app.server.web import app, streamlit_config  # half a second, most of it Streamlit's

    log_with_time()
    owners_process(False)  # from here on a page or a route says for whom it opens the store
    public = os.environ.get("INF_PUBLIC_URL", "")
    settings = {
        **streamlit_config(),
        "server.address": host,
        "server.port": port,
        "server.headless": not open_browser,
        "server.showEmailPrompt": False,
        # Streamlit compares Origin and Host once more, for its WebSocket
        "server.corsAllowedOrigins": [public.rstrip("/")] if public else [],
    }
    app.run(config=settings)
    return {"url": url}
