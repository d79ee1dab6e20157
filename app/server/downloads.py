"""Downloads that are too large for a page: a release as a zip, sent while it is made."""

import re

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import BaseRoute, Route

from app.access.identity import SessionUser, user_of_cookies
from app.access.permissions import NEEDS, require
from db.errors import InfError, NotFound, Refused
from db.events import record_event
from db.release.releases import get_release
from db.store.scope import limited_to, unscoped
from db.store.store import open_store

PERMISSION = "export"
UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


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
        return _answer(user, release_id)
    except NotFound as error:
        return PlainTextResponse(str(error), 404)
    except InfError as error:
        return PlainTextResponse(str(error), 409)


def _answer(user: SessionUser, release_id: int) -> Response:
    from curation.hub.archive import archive_of  # here: it loads numpy, which the start needs not

    with limited_to(NEEDS[PERMISSION].scope(user)), open_store().read() as session:
        release = get_release(session, release_id)
        chunks, size = archive_of(release)
        name = UNSAFE.sub("-", release.name).strip("-.") or f"release-{release_id}"
    with unscoped(), open_store().write() as session:
        record_event(session, user.name, "release.download", ("release", release_id), bytes=size)
        session.commit()
    headers = {
        "Content-Disposition": f'attachment; filename="{name}.zip"',
        "Cache-Control": "private, no-store",
    }
    return StreamingResponse(chunks, media_type="application/zip", headers=headers)


DOWNLOAD_ROUTES: tuple[BaseRoute, ...] = (
    Route("/download/release/{release_id:int}", release_archive, methods=["GET"]),
)
