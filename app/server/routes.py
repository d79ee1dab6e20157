"""HTTP routes besides Streamlit's own: health, sign-in, invitations and large downloads.

The forms are plain HTML that posts back here; the cookie is HttpOnly and SameSite=Lax, so that a
page of another site can neither read it nor post with it.
"""

from collections.abc import Sequence
from html import escape
from urllib.parse import urlencode

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import (
    JSONResponse,
    PlainTextResponse,
    RedirectResponse,
    Response,
    StreamingResponse,
)
from starlette.routing import BaseRoute, Route

from app.access import openid
from app.access.identity import SessionUser, user_of_cookies
from app.access.permissions import require
from app.kit.menu import views_for
from app.operations import releases
from app.operations.overview.goto import places
from app.server.form_page import address_of, alert, device_token, form_page, signed_in
from app.server.health import HEALTH_ROUTE
from app.server.language import LANGUAGE_ROUTE, language_of, problem_to, say_to
from app.server.own_account import OWN_ACCOUNT_ROUTES
from app.server.recruited import RECRUITED_ROUTES
from app.text.languages import text
from db.errors import InfError, NotFound, Refused
from db.names import MAX_NAME_CHARACTERS
from db.people import accounts, invitations
from db.people.fields import sign_in_by_email
from db.people.passwords import MIN_PASSWORD_CHARACTERS, hash_password
from db.store.scope import unscoped
from db.store.store import open_store
from db.study.studies import get_study
from db.tables import Account, Invitation

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


RETURN_TO = "inf_return_to"  # in the signed cookie of a sign-in that is under way


def old_review_page(request: Request) -> Response:
    """Redirect an address of the Review page, which the workbench replaced, with its query."""
    query = f"?{request.url.query}" if request.url.query else ""
    return RedirectResponse(f"/groups{query}", status_code=301)


def sign_in_form(request: Request) -> Response:
    """The sign-in form; a user who is already signed in is redirected."""
    return_to = _local_path(request.query_params.get("next", "/"))
    if user_of_cookies(open_store(), request.cookies) is not None:
        return RedirectResponse(return_to, status_code=303)
    return _form(request, return_to)


async def to_provider(request: Request) -> Response:
    """Redirect to the OpenID provider; keep the return path."""
    wanted = str(request.query_params.get("with", openid.DEFAULT))
    return_to = _local_path(request.query_params.get("next", "/"))
    if wanted not in openid.providers():
        problem = text(language_of(request), "form.unknown_provider", provider=wanted[:40])
        return _form(request, return_to, problem, status=404)
    try:
        answer = await openid.to_provider(request, wanted)
    except Refused as refused:
        return _form(request, return_to, problem_to(request, refused), status=502)
    request.session[RETURN_TO] = return_to
    return answer


async def return_from_provider(request: Request) -> Response:
    """Sign in the account with the e-mail address for which the provider vouches."""
    return_to = _local_path(str(request.session.pop(RETURN_TO, "/")))
    try:
        email = await openid.return_from_provider(request)
        account = await run_in_threadpool(_vouched_for, email, address_of(request))
    except Refused as refused:
        return _form(request, return_to, problem_to(request, refused), status=403)
    return await run_in_threadpool(signed_in, request, account, return_to)


def _vouched_for(email: str, address: str) -> Account:
    with unscoped(), open_store().write() as session:
        try:
            return sign_in_by_email(session, email, address=address)
        finally:
            session.commit()  # a refusal is recorded, too


async def sign_in(request: Request) -> Response:
    """Check name and password, set the cookie."""
    form = await request.form()
    name, password = str(form.get("name", "")), str(form.get("password", ""))
    return_to = _local_path(str(form.get("next", "/")))
    address = address_of(request)
    try:
        account = await run_in_threadpool(_checked, name, password, address, device_token(request))
    except Refused as refused:
        return _form(request, return_to, problem_to(request, refused), name=name, status=429)
    if account is None:
        problem = text(language_of(request), "form.wrong")
        return _form(request, return_to, problem, name=name, status=401)
    return await run_in_threadpool(signed_in, request, account, return_to)


def invitation_form(request: Request) -> Response:
    """The invitation form: choose a name and password, or join the study as the current user."""
    token = request.path_params["token"]
    store = open_store()
    user = user_of_cookies(store, request.cookies)
    try:
        with unscoped(), store.read() as session:
            invitation = invitations.open_invitation(session, token)
            role, study_id = invitation.role, invitation.study_id
            study = "" if study_id is None else get_study(session, study_id).name
    except Refused as refused:
        return _invitation_page(request, token, alert(problem_to(request, refused)), 410)
    if user is not None and user.account_id is not None and study_id is not None:
        return _joining(request, token, user.name, study)
    spoken = text(language_of(request), f"form.role_{role}")
    key = "form.invited_study" if study else "form.invited"
    return _invitation(request, token, text(language_of(request), key, role=spoken, study=study))


async def accept_invitation(request: Request) -> Response:
    """Create the account and sign in, or join the study with the existing account."""
    token, form = request.path_params["token"], await request.form()
    name, password = str(form.get("name", "")), str(form.get("password", ""))
    try:
        if form.get("as") == "me":
            cookies = dict(request.cookies)
            return_to = await run_in_threadpool(_joined, token, cookies)
            return RedirectResponse(return_to, status_code=303)
        account, return_to = await run_in_threadpool(_accepted, token, name, password)
    except InfError as error:
        return _invitation(request, token, problem_to(request, error), name=name, status=400)
    return await run_in_threadpool(signed_in, request, account, return_to)


def _accepted(token: str, name: str, password: str) -> tuple[Account, str]:
    with unscoped(), open_store().read() as session:
        return_to = _landing_path(invitations.open_invitation(session, token))
    hashed = hash_password(password, known=[name.strip()])
    with unscoped(), open_store().write() as session:
        account = invitations.accept_invitation(session, token, name, hashed)
        session.commit()
        return account, return_to


def _joined(token: str, cookies: dict[str, str]) -> str:
    store = open_store()
    user = user_of_cookies(store, cookies)
    if user is None or user.account_id is None:
        raise Refused(
            "you are signed out", "sign in, or create an account here", code="signed_out_here"
        )
    with unscoped(), store.write() as session:
        return_to = _landing_path(invitations.open_invitation(session, token))
        invitations.join_by_invitation(session, token, user.account_id)
        session.commit()
        return return_to


def _landing_path(invitation: Invitation) -> str:
    return "/" if invitation.study_id is None else f"/judge?study={invitation.study_id}"


def _joining(request: Request, token: str, name: str, study: str) -> Response:
    fields = f"""<p>{say_to(request, "form.invited_as", study=study, name=name)}</p>
      <button name="as" value="me">{say_to(request, "form.join", name=name)}</button>
      <p><a href="/sign-out">{say_to(request, "form.other_account")}</a></p>"""
    return _invitation_page(request, token, fields, 200)


def _invitation(
    request: Request, token: str, message: str, *, name: str = "", status: int = 200
) -> Response:
    fields = f"""{f"<p>{escape(message)}</p>" if status == 200 else alert(message)}
      <label>{say_to(request, "form.name")}
        <input name="name" value="{escape(name)}" autocomplete="username"
        maxlength="{MAX_NAME_CHARACTERS}" required autofocus></label>
      <label>{say_to(request, "form.new_password", count=MIN_PASSWORD_CHARACTERS)}
        <input name="password" type="password" autocomplete="new-password"
        minlength="{MIN_PASSWORD_CHARACTERS}" required></label>
      <button>{say_to(request, "form.create")}</button>
      <p>{say_to(request, "form.have_account")}
        <a href="/sign-in?next=/invitation/{escape(token)}">
        {say_to(request, "form.sign_in")}</a></p>"""
    return _invitation_page(request, token, fields, status)


def _invitation_page(request: Request, token: str, fields: str, status: int) -> Response:
    return form_page(request, "form.invitation", f"/invitation/{escape(token)}", fields, status)


async def found_places(request: Request) -> Response:
    """The pages and rows that the box behind Ctrl-K lists: `{"data": [{"kind", "label", "url"}]}`.

    401 for who is not signed in.
    """
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


ROUTES: Sequence[BaseRoute] = (
    LANGUAGE_ROUTE,
    Route("/goto", found_places, methods=["GET"]),
    HEALTH_ROUTE,
    Route("/review", old_review_page, methods=["GET"]),
    Route("/sign-in", sign_in_form, methods=["GET"]),
    Route("/sign-in", sign_in, methods=["POST"]),
    Route("/sign-in/openid", to_provider, methods=["GET"]),
    Route("/oauth2callback", return_from_provider, methods=["GET"]),
    Route("/invitation/{token}", invitation_form, methods=["GET"]),
    Route("/invitation/{token}", accept_invitation, methods=["POST"]),
    *RECRUITED_ROUTES,
    *OWN_ACCOUNT_ROUTES,
    *DOWNLOAD_ROUTES,
)


def _checked(name: str, password: str, address: str, device: str) -> Account | None:
    with unscoped(), open_store().write() as session:
        account = accounts.check_password(session, name, password, address=address, device=device)
        session.commit()
        return account


def _local_path(path: str) -> str:
    """The path if it is local to this server, else "/"."""
    is_local = path.startswith("/") and not path.startswith(("//", "/\\")) and path.isprintable()
    return path if is_local else "/"


def _form(
    request: Request, return_to: str, problem: str = "", *, name: str = "", status: int = 200
) -> Response:
    fields = f"""{alert(problem) if problem else ""}
      <input type="hidden" name="next" value="{escape(return_to)}">
      <label>{say_to(request, "form.name")} <input name="name" value="{escape(name)}"
        autocomplete="username" required autofocus></label>
      <label>{say_to(request, "form.password")} <input name="password" type="password"
        autocomplete="current-password" required></label>
      <button>{say_to(request, "form.sign_in")}</button>
      {_provider_links(request, return_to)}"""
    back_to = f"/sign-in?{urlencode({'next': return_to})}"
    return form_page(request, "form.sign_in", "/sign-in", fields, status, back_to=back_to)


def _provider_links(request: Request, return_to: str) -> str:
    """Links to the configured OpenID providers."""
    links = []
    for name in openid.providers():
        provider = "OpenID" if name == openid.DEFAULT else name
        query = escape(urlencode({"with": name, "next": return_to}))
        label = say_to(request, "form.with", provider=provider)
        links.append(f'<p><a href="/sign-in/openid?{query}">{label}</a></p>')
    return "".join(links)
