"""Downloads that are too large for a page: a release as a zip, sent while it is made."""

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import BaseRoute, Route

from app.access.identity import user_of_cookies
from app.access.permissions import require
from app.operations import releases
from db.errors import InfError, NotFound, Refused
from db.store.store import open_store

PERMISSION = "export"


def release_archive(request: Request) -> Response:
    """The release as a zip, for those with the right *release* on all its datasets.

    404 where it does not exist or is not visible, 403 without the right, 409 if the folder is no
    longer what was exported.
    """
    release_id = int(request.path_params["release_id"])
    try:
        user = require(user_of_cookies(open_store(), request.cookies), PERMISSION)
    except Refused as refused:
        return PlainTextResponse(str(refused), 403)
    try:
        found = releases.archive(user, release_id)
    except NotFound as error:
        return PlainTextResponse(str(error), 404)
    except InfError as error:
        return PlainTextResponse(str(error), 409)
    headers = {
        "Content-Disposition": f'attachment; filename="{found.name}"',
        "Cache-Control": "private, no-store",
    }
    return StreamingResponse(found.chunks, media_type="application/zip", headers=headers)


DOWNLOAD_ROUTES: tuple[BaseRoute, ...] = (
    Route("/download/release/{release_id:int}", release_archive, methods=["GET"]),
)
