"""`/metrics` for Prometheus: for administrators, and for tokens with the right `watch`."""

from starlette.requests import Request
from starlette.responses import Response

from app.access.identity import USER, Actor
from app.api.limits import NO_STORE, Limits
from app.api.server import Programs
from app.operations.overview.metrics import figures

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Metrics(Programs):
    """The route: the figures for the holder of a token, else for the user of the cookie."""

    def __init__(self) -> None:
        super().__init__(Limits())

    async def _answer(self, request: Request) -> Response:
        if request.headers.get("authorization") is not None:
            actor: Actor = await self._holder(request)
        else:  # `app.server.web.RequireSignIn` let it in
            actor = request.scope[USER]
        text = await self.in_thread(lambda: figures(actor))
        return Response(text, headers=dict(NO_STORE), media_type=CONTENT_TYPE)
