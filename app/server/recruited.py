"""The way in of people whom a platform sends, without a password, and their way back with a code.

Looking at the link changes nothing: platforms, mail programs and previews look, too. The button
posts back here, which a page of another site cannot.
"""

from html import escape

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from app.access.identity import user_of_cookies
from app.server.form_page import address_of, alert, form_page, signed_in
from app.server.language import problem_to, say_to
from db.errors import InfError, Refused
from db.people import recruiting
from db.people.attempts import place_of
from db.store.scope import unscoped
from db.store.store import open_store
from db.tables import Account


def arrive(request: Request) -> Response:
    """What the study is, and a button to begin or go on with it."""
    try:
        with unscoped(), open_store().write() as session:
            try:
                study = recruiting.study_of_link(session, *_link(request), place=_place(request))
            finally:
                session.commit()  # a refusal is recorded, too
            platform, name = recruiting.platform_of(study), study.name
    except Refused as refused:
        return _problem(request, refused)
    ids = [request.query_params.get(each, "") for each in (platform.person, platform.submission)]
    fields = f"<p>{say_to(request, 'form.recruited', study=name)}</p>"
    if platform.blank and ids[1] == platform.blank:
        fields += f"<p>{say_to(request, 'form.recruited_blank')}</p>"
        return _page(request, fields)
    user = user_of_cookies(open_store(), request.cookies)
    if user is not None and user.account_id is not None:
        fields += f"<p>{say_to(request, 'form.recruited_as', name=user.name)}</p>"
    for key, value in zip(("person", "submission"), ids, strict=True):
        fields += f'<input type="hidden" name="{key}" value="{escape(value)}">'
    return _page(request, fields + f"<button>{say_to(request, 'form.recruited_begin')}</button>")


async def begin(request: Request) -> Response:
    """Sign in the account of a person and submission, a new one where they are new."""
    form = await request.form()
    ids = str(form.get("person", "")), str(form.get("submission", ""))
    try:
        account = await run_in_threadpool(_joined, request, *ids)
    except InfError as error:
        return _problem(request, error)
    path = f"/judge?study={request.path_params['study_id']}"
    return await run_in_threadpool(signed_in, request, account, path)


def leave(request: Request) -> Response:
    """To the platform with the code that was earned, or the code to copy; before that, why not."""
    user, study_id = user_of_cookies(open_store(), request.cookies), request.path_params["study_id"]
    account_id = user and user.account_id
    try:
        with unscoped(), open_store().write() as session:
            code, returns_to = recruiting.code_earned(session, study_id, account_id or 0)
            session.commit()
    except InfError as error:
        return _problem(request, error)
    if code and returns_to:
        return RedirectResponse(returns_to + code, status_code=303)
    key = "form.recruited_code" if code else "form.recruited_no_code"
    fields = f"<p>{say_to(request, key)}</p>" + f"<p><b>{escape(code)}</b></p>" * bool(code)
    back = f'<p><a href="/judge?study={study_id}">{say_to(request, "account.back")}</a></p>'
    return _page(request, fields + back)


RECRUITED_ROUTES: tuple[BaseRoute, ...] = (
    Route("/recruited/{study_id:int}/end", leave, methods=["GET"]),
    Route("/recruited/{study_id:int}/{token}", arrive, methods=["GET"]),
    Route("/recruited/{study_id:int}/{token}", begin, methods=["POST"]),
)


def _link(request: Request) -> tuple[int, str]:
    return request.path_params["study_id"], request.path_params["token"]


def _place(request: Request) -> str:
    return place_of(address_of(request))


def _joined(request: Request, person: str, submission: str) -> Account:
    with unscoped(), open_store().write() as session:
        try:
            return recruiting.join_as_recruit(
                session, *_link(request), person, submission, place=_place(request)
            )
        finally:
            session.commit()  # a refusal is recorded, too


def _problem(request: Request, error: InfError) -> Response:
    status = 429 if error.code == "too_many" else 403
    return _page(request, alert(problem_to(request, error)), status)


def _page(request: Request, fields: str, status: int = 200) -> Response:
    path = request.url.path
    back_to = escape(path + (f"?{request.url.query}" if request.url.query else ""))
    return form_page(request, "judge.study", escape(path), fields, status, back_to=back_to)
