"""What people do with their own account: sign out, end sessions, set a new password."""

from html import escape

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from app.access.identity import SessionUser, user_of_cookies
from app.server.form_page import address_of, device_token, form_page, signed_in, signed_out
from db.errors import BadInput, InfError, Refused
from db.people import accounts, sign_ins
from db.people.audit import record_audit
from db.people.passwords import (
    MIN_PASSWORD_CHARACTERS,
    account_of_link,
    hash_password,
    known_of,
    set_password,
    use_password_link,
)
from db.store.store import open_store
from db.tables import Account, AccountSession


def sign_out_form(request: Request) -> Response:
    """Confirmation before sign-out: following a link must not sign anyone out."""
    user = _person(request)
    if user is None:
        return RedirectResponse("/", status_code=303)
    fields = f"""<p>Signed in as <b>{escape(user.name)}</b>.</p>
      <button name="where" value="here">Sign out</button>
      <button name="where" value="everywhere" class="second">Sign out on all devices</button>
      <p><a href="/">Back</a></p>"""
    return form_page("Sign out", "/sign-out", fields)


async def sign_out(request: Request) -> Response:
    """End the session, or all of the person's; delete the cookie."""
    form = await request.form()
    await run_in_threadpool(_end, request, form.get("where") == "everywhere")
    return signed_out()


def own_account(request: Request) -> Response:
    """The person's sessions, and a form to change the password."""
    user = _person(request)
    return RedirectResponse("/", status_code=303) if user is None else _account_page(user)


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
        return await run_in_threadpool(_account_page, user, f"{error}.", 400)
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
        return await run_in_threadpool(_account_page, user, f"{error}.", 400)
    return RedirectResponse("/account", status_code=303)


def password_form(request: Request) -> Response:
    """The form behind a one-time link of an admin."""
    token = request.path_params["token"]
    try:
        with open_store().read() as session:
            name = account_of_link(session, token).name
    except Refused as refused:
        return form_page("New password", "/sign-in", _alert(str(refused)), 410)
    return _password_page(token, name)


async def use_link(request: Request) -> Response:
    """Set the password of a one-time link and sign in."""
    token, form = request.path_params["token"], await request.form()
    try:
        account = await run_in_threadpool(_used, token, str(form.get("password", "")))
    except BadInput as error:
        return await run_in_threadpool(_password_page, token, "", f"{error}.", 400)
    except Refused as refused:
        return form_page("New password", "/sign-in", _alert(str(refused)), 410)
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
    with open_store().write() as session:
        if everywhere:
            accounts.sign_out_everywhere(session, user.name, actor=user.name)
        else:
            sign_ins.end_session(session, user.account_id, user.session_id)
            record_audit(session, user.name, "sign-out")
        session.commit()


def _end_one(user: SessionUser, session_id: str) -> None:
    if not (session_id.isascii() and session_id.isdigit() and len(session_id) < 10):
        raise BadInput("no such session")
    with open_store().write() as session:
        sign_ins.end_session(session, int(user.account_id or 0), int(session_id))
        record_audit(session, user.name, "sign-out", f"session {session_id}")
        session.commit()


def _changed(user: SessionUser, current: str, new: str, address: str, device: str) -> Account:
    """Raises Refused for a wrong current password, whose attempts are limited as sign-ins are."""
    with open_store().read() as session:
        known = known_of(session.get_one(Account, int(user.account_id or 0)))
    hashed = hash_password(new, known=known)
    with open_store().write() as session:
        account = accounts.check_password(
            session, user.name, current, address=address, device=device
        )
        session.commit()  # the attempt
        if account is None:
            raise Refused("the current password is wrong")
        set_password(session, account, hashed, actor=user.name)
        session.commit()
        return account


def _used(token: str, password: str) -> Account:
    with open_store().read() as session:
        known = known_of(account_of_link(session, token))
    hashed = hash_password(password, known=known)
    with open_store().write() as session:
        account = use_password_link(session, token, hashed)
        session.commit()
        return account


def _account_page(user: SessionUser, problem: str = "", status: int = 200) -> Response:
    with open_store().read() as session:
        account = session.get_one(Account, int(user.account_id or 0))
        rows = sign_ins.list_sessions(session, account.id)
    fields = f"""{_alert(problem) if problem else ""}
      <p>Signed in as <b>{escape(user.name)}</b> ({escape(user.role)}).</p>"""
    if account.password_hash is None:
        fields += "<p>You sign in through your provider; there is no password here.</p>"
    else:
        fields += f"""<label>Current password <input name="current" type="password"
            autocomplete="current-password" required></label>
          {_new_password()}
          <button>Change password</button>
          <p>All sessions end, and a new one begins here.</p>"""
    fields += """<p><a href="/">Back</a> · <a href="/sign-out">Sign out</a></p>"""
    sessions = "".join(_session_form(row, row.id == user.session_id) for row in rows)
    after = f"<section><h2>Your sessions</h2>{sessions}</section>"
    return form_page("Account", "/account/password", fields, status, after)


def _session_form(row: AccountSession, is_here: bool) -> str:
    label = "this one" if is_here else f"last seen {row.seen_at:%Y-%m-%d %H:%M} UTC"
    return f"""<form method="post" action="/account/session">
      <p><b>{label}</b><br>since {row.created_at:%Y-%m-%d %H:%M} UTC, from {escape(row.address)}
      <br><small>{escape(row.device)}</small></p>
      <button name="session" value="{row.id}" class="second">End session</button></form>"""


def _password_page(token: str, name: str, problem: str = "", status: int = 200) -> Response:
    account = f"<p>Account: <b>{escape(name)}</b></p>" if name else ""
    fields = f"""{_alert(problem) if problem else account}
      {_new_password()}
      <button>Set password</button>"""
    return form_page("New password", f"/password/{escape(token)}", fields, status)


def _new_password() -> str:
    return f"""<label>New password, at least {MIN_PASSWORD_CHARACTERS} characters
      <input name="password" type="password" autocomplete="new-password"
      minlength="{MIN_PASSWORD_CHARACTERS}" required></label>"""


def _alert(problem: str) -> str:
    return f'<p class="problem" role="alert">{escape(problem)}</p>'
