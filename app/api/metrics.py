"""`/metrics` for Prometheus: for administrators, and for tokens with the right `watch`."""

from starlette.requests import Request
from starlette.responses import Response

from app.access.permissions import require
from app.api.limits import NO_STORE, Limits
from app.api.server import Programs
from app.operations.overview.metrics import figures

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Metrics(Programs):
    """The route; a request without a token was let in by the administrator's cookie
    (`app.server.web.RequireSignIn`)."""

    def __init__(self) -> None:
        super().__init__(Limits())

    async def _answer(self, request: Request) -> Response:
        if request.headers.get("authorization") is not None:
            require(await self._holder(request), "watch")
        text = await self.in_thread(figures)
        return Response(text, headers=dict(NO_STORE), media_type=CONTENT_TYPE)
