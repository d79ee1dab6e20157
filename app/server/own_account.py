"""What people do with their own account: sign out, end sessions, set a new password."""

from html import escape

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from app.access.identity import SessionUser, user_of_cookies
from app.server.form_page import address_of, alert, device_token, form_page, signed_in, signed_out
from app.server.language import problem_to, say_to
from db.errors import BadInput, InfError, Refused
from db.events import record_event
from db.people import accounts, sign_ins
from db.people.passwords import (
    MIN_PASSWORD_CHARACTERS,
    account_of_link,
    hash_password,
    known_of,
    set_password,
    use_password_link,
)
from db.store.scope import unscoped
from db.store.store import open_store
from db.tables import Account, AccountSession


def sign_out_form(request: Request) -> Response:
    """Confirmation before sign-out: following a link must not sign anyone out."""
    user = _person(request)
    if user is None:
        return RedirectResponse("/", status_code=303)
    fields = f"""<p>{say_to(request, "account.signed_in_as")} <b>{escape(user.name)}</b></p>
      <button name="where" value="here">{say_to(request, "account.sign_out")}</button>
      <button name="where" value="everywhere" class="second">
        {say_to(request, "account.sign_out_everywhere")}</button>
      <p><a href="/">{say_to(request, "account.back")}</a></p>"""
    return form_page(request, "account.sign_out", "/sign-out", fields)


async def sign_out(request: Request) -> Response:
    """End the session, or all of the person's; delete the cookie."""
    form = await request.form()
    await run_in_threadpool(_end, request, form.get("where") == "everywhere")
    return signed_out()


def own_account(request: Request) -> Response:
    """The person's sessions, and a form to change the password."""
    user = _person(request)
    if user is None:
        return RedirectResponse("/", status_code=303)
    return _account_page(request, user)


async def change_password(request: Request) -> Response:
    """Set another password; every session of the person ends, and a new one begins here."""
    form = await request.form()
    current, new = str(form.get("current", "")), str(form.get("password", ""))
    user = await run_in_threadpool(_person, request)
    if user is None:
        return signed_out()
    try:
        account = await run_in_threadpool(
            _changed, user, current, new, address_of(request), device_token(request)
        )
    except InfError as error:
        return await run_in_threadpool(
            _account_page, request, user, problem_to(request, error), 400
        )
    return await run_in_threadpool(signed_in, request, account, "/account")


async def end_session(request: Request) -> Response:
    """End one session of the person."""
    form = await request.form()
    user = await run_in_threadpool(_person, request)
    if user is None:
        return signed_out()
    try:
        await run_in_threadpool(_end_one, user, str(form.get("session", "")))
    except InfError as error:
        return await run_in_threadpool(
            _account_page, request, user, problem_to(request, error), 400
        )
    return RedirectResponse("/account", status_code=303)


def password_form(request: Request) -> Response:
    """The form behind a one-time link of an admin."""
    token = request.path_params["token"]
    try:
        with unscoped(), open_store().read() as session:
            name = account_of_link(session, token).name
    except Refused as refused:
        return _link_refused(request, refused)
    return _password_page(request, name)


async def use_link(request: Request) -> Response:
    """Set the password of a one-time link and sign in."""
    token, form = request.path_params["token"], await request.form()
    try:
        account = await run_in_threadpool(_used, token, str(form.get("password", "")))
    except BadInput as error:
        return _password_page(request, "", problem_to(request, error), 400)
    except Refused as refused:
        return _link_refused(request, refused)
    return await run_in_threadpool(signed_in, request, account, "/")


OWN_ACCOUNT_ROUTES: tuple[BaseRoute, ...] = (
    Route("/sign-out", sign_out_form, methods=["GET"]),
    Route("/sign-out", sign_out, methods=["POST"]),
    Route("/account", own_account, methods=["GET"]),
    Route("/account/password", change_password, methods=["POST"]),
    Route("/account/session", end_session, methods=["POST"]),
    Route("/password/{token}", password_form, methods=["GET"]),
    Route("/password/{token}", use_link, methods=["POST"]),
)


def _person(request: Request) -> SessionUser | None:
    user = user_of_cookies(open_store(), request.cookies)
    return None if user is None or user.account_id is None else user


def _end(request: Request, everywhere: bool) -> None:
    user = _person(request)
    if user is None or user.account_id is None or user.session_id is None:
        return
    with unscoped(), open_store().write() as session:
        if everywhere:
            accounts.sign_out_everywhere(session, user.name, actor=user.name)
        else:
            sign_ins.end_session(session, user.account_id, user.session_id)
            record_event(session, user.name, "sign-out")
        session.commit()


def _end_one(user: SessionUser, session_id: str) -> None:
    if not (session_id.isascii() and session_id.isdigit() and len(session_id) < 10):
        raise BadInput(
            "no such session", "reload the page: it may have ended already", code="session_unknown"
        )
    with unscoped(), open_store().write() as session:
        sign_ins.end_session(session, int(user.account_id or 0), int(session_id))
        record_event(session, user.name, "sign-out", ("session", session_id))
        session.commit()


def _changed(user: SessionUser, current: str, new: str, address: str, device: str) -> Account:
    """Raises Refused for a wrong current password, whose attempts are limited as sign-ins are."""
    with unscoped(), open_store().read() as session:
        known = known_of(session.get_one(Account, int(user.account_id or 0)))
    hashed = hash_password(new, known=known)
    with unscoped(), open_store().write() as session:
        account = accounts.check_password(
            session, user.name, current, address=address, device=device
        )
        session.commit()  # the attempt
        if account is None:
            raise Refused(
                "the current password is wrong",
                "try again, or have an admin send you a link for a new one",
                code="wrong_password",
            )
        set_password(session, account, hashed, actor=user.name)
        session.commit()
        return account


def _used(token: str, password: str) -> Account:
    with unscoped(), open_store().read() as session:
        known = known_of(account_of_link(session, token))
    hashed = hash_password(password, known=known)
    with unscoped(), open_store().write() as session:
        account = use_password_link(session, token, hashed)
        session.commit()
        return account


def _account_page(
    request: Request, user: SessionUser, problem: str = "", status: int = 200
) -> Response:
    with unscoped(), open_store().read() as session:
        account = session.get_one(Account, int(user.account_id or 0))
        rows = sign_ins.list_sessions(session, account.id)
    fields = f"""{alert(problem) if problem else ""}
      <p>{say_to(request, "account.signed_in_as")} <b>{escape(user.name)}</b>
      ({say_to(request, f"form.role_{user.role}")})</p>"""
    if account.password_hash is None:
        fields += f"<p>{say_to(request, 'account.by_provider')}</p>"
    else:
        fields += f"""<label>{say_to(request, "account.current_password")}
            <input name="current" type="password" autocomplete="current-password" required></label>
          {_new_password(request)}
          <button>{say_to(request, "account.change_password")}</button>
          <p>{say_to(request, "account.sessions_end")}</p>"""
    fields += f"""<p><a href="/">{say_to(request, "account.back")}</a> ·
      <a href="/sign-out">{say_to(request, "account.sign_out")}</a></p>"""
    sessions = "".join(_session_form(request, row, row.id == user.session_id) for row in rows)
    after = f"<section><h2>{say_to(request, 'account.sessions')}</h2>{sessions}</section>"
    return form_page(
        request, "account.title", "/account/password", fields, status, after, back_to="/account"
    )


def _session_form(request: Request, row: AccountSession, is_here: bool) -> str:
    seen, since = (f"{moment:%Y-%m-%d %H:%M} UTC" for moment in (row.seen_at, row.created_at))
    label = say_to(request, "account.this_one" if is_here else "account.last_seen", moment=seen)
    begun = say_to(request, "account.since", moment=since, address=row.address)
    return f"""<form method="post" action="/account/session">
      <p><b>{label}</b><br>{begun}
      <br><small>{escape(row.device)}</small></p>
      <button name="session" value="{row.id}" class="second">
        {say_to(request, "account.end_session")}</button></form>"""


def _link_refused(request: Request, refused: Refused) -> Response:
    problem, path = alert(problem_to(request, refused)), request.url.path
    return form_page(
        request, "account.new_password", "/sign-in", problem, 410, back_to=escape(path)
    )


def _password_page(request: Request, name: str, problem: str = "", status: int = 200) -> Response:
    account = f"<p>{say_to(request, 'account.account')}: <b>{escape(name)}</b></p>" if name else ""
    fields = f"""{alert(problem) if problem else account}
      {_new_password(request)}
      <button>{say_to(request, "account.set_password")}</button>"""
    path = f"/password/{escape(request.path_params['token'])}"
    return form_page(request, "account.new_password", path, fields, status)


def _new_password(request: Request) -> str:
    return f"""<label>
      {say_to(request, "account.new_password_field", count=MIN_PASSWORD_CHARACTERS)}
      <input name="password" type="password" autocomplete="new-password"
      minlength="{MIN_PASSWORD_CHARACTERS}" required></label>"""
