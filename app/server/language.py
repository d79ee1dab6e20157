"""The route that keeps a language of the annotators' pages in a cookie and returns to the page."""

from html import escape
from urllib.parse import quote, urlsplit

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from app.server.origins import is_tls
from app.text.languages import COOKIE, LANGUAGES, best_language, error_text, text
from db.errors import InfError

YEAR = 365 * 24 * 3600


def choose_language(request: Request) -> Response:
    """Keep the language, unless it is unknown, and return to `next`, a path of this server."""
    wanted = request.query_params.get("next", "/")
    is_local = (
        wanted.startswith("/") and not wanted.startswith(("//", "/\\")) and wanted.isprintable()
    )
    answer = RedirectResponse(wanted if is_local and not urlsplit(wanted).netloc else "/", 303)
    code = request.path_params["code"]
    if code in LANGUAGES:
        answer.set_cookie(
            COOKIE,
            code,
            max_age=YEAR,
            httponly=True,
            samesite="lax",
            secure=is_tls(request),
        )
    return answer


def language_of(request: Request) -> str:
    """The language of a page for this request: of the cookie, else of the browser."""
    accepted = request.headers.get("accept-language", "")
    return best_language(request.cookies.get(COOKIE, ""), accepted)


def say_to(request: Request, key: str, **values: object) -> str:
    """The text of a key in the request's language, escaped for HTML."""
    return escape(text(language_of(request), key, **values))


def problem_to(request: Request, error: InfError) -> str:
    """The error as a sentence in the request's language; not escaped."""
    found = error_text(language_of(request), error)
    return found[:1].upper() + found[1:] + ("" if found.endswith((".", "!", "?")) else ".")


def other_languages(request: Request, path: str) -> str:
    """Links to the same page in every other language, as HTML."""
    here = quote(path, safe="")
    links = [
        f'<a href="/language/{code}?next={here}" lang="{code}" hreflang="{code}">{one.name}</a>'
        for code, one in LANGUAGES.items()
        if code != language_of(request)
    ]
    return f"<p>{' · '.join(links)}</p>"


LANGUAGE_ROUTE = Route("/language/{code}", choose_language, methods=["GET"])
