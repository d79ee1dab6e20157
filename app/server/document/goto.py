"""GET /goto?q=TEXT: the pages and rows that the box behind Ctrl-K lists, for who is signed in."""

from urllib.parse import urlencode

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from app.access.identity import SessionUser, user_of_cookies
from app.kit.menu import views_for
from app.operations.overview.goto import places
from db.store.store import open_store


async def found_places(request: Request) -> Response:
    """`{"data": [{"kind", "label", "url"}]}`; 401 for who is not signed in."""
    typed = request.query_params.get("q", "")
    found = await run_in_threadpool(_found, request.cookies, typed)
    if found is None:
        return JSONResponse({"error": "sign in"}, status_code=401)
    return JSONResponse({"data": found}, headers={"Cache-Control": "no-store"})


def _found(cookies: dict[str, str], typed: str) -> list[dict[str, str]] | None:
    user = user_of_cookies(open_store(), cookies)
    if user is None:
        return None
    return [*_pages(user, typed), *_rows(user, typed)]


def _pages(user: SessionUser, typed: str) -> list[dict[str, str]]:
    wanted = typed.strip().casefold()
    return [
        {
            "kind": "Page",
            "label": view.title,
            "url": "/" if view.name == "home" else f"/{view.name}",
        }
        for view in views_for(user)
        if wanted in view.title.casefold()
    ]


def _rows(user: SessionUser, typed: str) -> list[dict[str, str]]:
    return [
        {
            "kind": place.kind,
            "label": place.label,
            "url": f"/{place.view}?{urlencode(place.parameters)}",
        }
        for place in places(user, typed)
    ]


GOTO_ROUTE = Route("/goto", found_places, methods=["GET"])
