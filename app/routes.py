"""The HTTP routes beside Streamlit's own: health, sign-in and sign-out.

The forms are plain HTML that posts back here; the cookie is HttpOnly and SameSite=Lax, so that a
page of another site can neither read it nor post with it.
"""

from collections.abc import Sequence
from html import escape
from pathlib import Path
from string import Template

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from app.identity import COOKIE, COOKIE_SECONDS, visitor_of, write_cookie
from db import accounts
from db.schema import current
from db.store import open_store

PAGE = Template((Path(__file__).parent / "sign_in.html").read_text(encoding="utf-8"))
LONGEST_FORM_BYTES = 16_384


def health(request: Request) -> Response:
    """Whether the server can reach its store, for a load balancer."""
    return JSONResponse({"status": "ok", "revision": current(open_store())})


def sign_in_form(request: Request) -> Response:
    """The form; whoever is signed in already goes on."""
    goes_to = _local_path(request.query_params.get("next", "/"))
    if visitor_of(open_store(), request.cookies) is not None:
        return RedirectResponse(goes_to, status_code=303)
    return _form(goes_to)


async def sign_in(request: Request) -> Response:
    """Check name and password, set the cookie."""
    if int(request.headers.get("content-length") or 0) > LONGEST_FORM_BYTES:
        return _form("/", "That was too long.", status=413)
    form = await request.form()
    name, password = str(form.get("name", "")), str(form.get("password", ""))
    goes_to = _local_path(str(form.get("next", "/")))
    value = await run_in_threadpool(_checked, name, password)
    if value is None:
        return _form(goes_to, "Name or password is wrong.", name=name, status=401)
    answer = RedirectResponse(goes_to, status_code=303)
    answer.set_cookie(
        COOKIE,
        value,
        max_age=COOKIE_SECONDS,
        httponly=True,
        samesite="lax",
        secure=request.url.scheme == "https",
    )
    return answer


def sign_out_form(request: Request) -> Response:
    """Ask before signing out: a link alone must not do it."""
    visitor = visitor_of(open_store(), request.cookies)
    if visitor is None or visitor.account_id is None:
        return RedirectResponse("/", status_code=303)
    fields = f"""<p>Signed in as <b>{escape(visitor.name)}</b>.</p>
      <button name="where" value="here">Sign out</button>
      <button name="where" value="everywhere" class="second">Sign out on all devices</button>
      <p><a href="/">Back</a></p>"""
    return _page("Sign out", "/sign-out", fields)


async def sign_out(request: Request) -> Response:
    """Forget the cookie; on all devices where asked to."""
    form = await request.form()
    everywhere = form.get("where") == "everywhere"
    await run_in_threadpool(_note_sign_out, dict(request.cookies), everywhere)
    answer = RedirectResponse("/sign-in", status_code=303)
    answer.delete_cookie(COOKIE, httponly=True, samesite="lax")
    return answer


ROUTES: Sequence[BaseRoute] = (
    Route("/health", health),
    Route("/sign-in", sign_in_form, methods=["GET"]),
    Route("/sign-in", sign_in, methods=["POST"]),
    Route("/sign-out", sign_out_form, methods=["GET"]),
    Route("/sign-out", sign_out, methods=["POST"]),
)


def _checked(name: str, password: str) -> str | None:
    with open_store().write() as session:
        account = accounts.check_password(session, name, password)
        session.commit()
        return None if account is None else write_cookie(account)


def _note_sign_out(cookies: dict[str, str], everywhere: bool) -> None:
    store = open_store()
    visitor = visitor_of(store, cookies)
    if visitor is None or visitor.account_id is None:
        return
    with store.write() as session:
        if everywhere:
            accounts.sign_out_everywhere(session, visitor.name, actor=visitor.name)
        else:
            accounts.record_audit(session, visitor.name, "sign-out")
        session.commit()


def _local_path(path: str) -> str:
    """The path when it leads to this server, else the front page."""
    tame = path.startswith("/") and not path.startswith(("//", "/\\")) and path.isprintable()
    return path if tame else "/"


def _form(goes_to: str, problem: str = "", *, name: str = "", status: int = 200) -> Response:
    said = f'<p class="problem" role="alert">{escape(problem)}</p>' if problem else ""
    fields = f"""{said}
      <input type="hidden" name="next" value="{escape(goes_to)}">
      <label>Name <input name="name" value="{escape(name)}" autocomplete="username"
        required autofocus></label>
      <label>Password <input name="password" type="password" autocomplete="current-password"
        required></label>
      <button>Sign in</button>"""
    return _page("Sign in", "/sign-in", fields, status=status)


def _page(title: str, action: str, fields: str, *, status: int = 200) -> Response:
    html = PAGE.substitute(title=title, action=action, fields=fields)
    headers = {"Cache-Control": "no-store", "X-Frame-Options": "DENY"}
    return HTMLResponse(html, status_code=status, headers=headers)
