"""`inf mcp`: the tools of an agent on standard input and output."""

import anyio
import click

from app.cli.kit.options import request_options
from app.cli.kit.report import command_actor, errors_translated
from app.operations.doors.tokens import AgentStart, session_of
from app.operations.jobs import ensure_worked
from db.modules import load
from db.store.settings import owners_process


@click.command()
@request_options(AgentStart)
def mcp(request: AgentStart) -> None:
    """Serve an agent by the Model Context Protocol on standard input and output.

    It has the rights, datasets and budget given here, by a token that ends with the session.
    """
    with errors_translated():  # standard output is the protocol's: no report
        serve, actor = load("app.api.agents:serve_stdio"), command_actor()
        ensure_worked(actor)
        with session_of(actor, request) as agent:
            owners_process(False)  # from here on an operation says for whom it opens the store
            anyio.run(serve, agent)
