"""The plain HTML pages with a form: sign-in, invitation, own account. No script runs in them."""

from html import escape
from pathlib import Path
from string import Template

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from app.access.identity import COOKIE, COOKIE_SECONDS, DEVICE_COOKIE, DEVICE_SECONDS
from app.server.language import language_of, other_languages, say_to
from app.server.origins import is_tls
from app.text.languages import LANGUAGES
from db.people.attempts import place_of
from db.people.sign_ins import start_session
from db.store.scope import unscoped
from db.store.store import open_store
from db.tables import Account

PAGE = Template((Path(__file__).parent / "sign_in.html").read_text(encoding="utf-8"))
POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'"
)


def form_page(
    request: Request,
    title_key: str,
    action: str,
    fields: str,
    status: int = 200,
    after: str = "",
    *,
    back_to: str = "",
) -> Response:
    """A page with one form, in the request's language; `fields` and `after` (below it) are HTML.

    `back_to`: the page's own address, for links to it in other languages; by default `action`.
    """
    language = language_of(request)
    html = PAGE.substitute(
        title=say_to(request, title_key),
        action=action,
        fields=fields,
        after=after + other_languages(request, back_to or action),
        language=language,
        direction=LANGUAGES[language].direction,
    )
    headers = {"Cache-Control": "no-store", "Content-Security-Policy": POLICY}
    return HTMLResponse(html, status_code=status, headers=headers)


def alert(problem: str) -> str:
    """What went wrong, in the fields of a form."""
    return f'<p class="problem" role="alert">{escape(problem)}</p>'


def address_of(request: Request) -> str:
    """The address of the connection, or what a trusted proxy says it is (INF_TRUSTED_PROXIES)."""
    return request.client.host if request.client else ""


def device_token(request: Request) -> str:
    """The token of the last session in this browser; "" in a new one."""
    return request.cookies.get(DEVICE_COOKIE, "")


def signed_in(request: Request, account: Account, return_to: str) -> Response:
    """Begin a session of the account, set its cookie, and go to a page."""
    with unscoped(), open_store().write() as session:
        token = start_session(
            session,
            account,
            address=place_of(address_of(request)),
            device=request.headers.get("user-agent", ""),
        )
        session.commit()
    answer = RedirectResponse(return_to, status_code=303)
    for name, seconds in ((COOKIE, COOKIE_SECONDS), (DEVICE_COOKIE, DEVICE_SECONDS)):
        answer.set_cookie(
            name, token, max_age=seconds, httponly=True, samesite="lax", secure=is_tls(request)
        )
    return answer


def signed_out() -> Response:
    """Delete the cookie and go to the sign-in form."""
    answer = RedirectResponse("/sign-in", status_code=303)
    answer.delete_cookie(COOKIE, httponly=True, samesite="lax")
    return answer
