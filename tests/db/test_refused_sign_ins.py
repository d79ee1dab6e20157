"""A database that refuses the sign-in is no outage: waiting would not help."""

import socket
import socketserver
import struct
import threading
from collections.abc import Callable

import pytest
from sqlalchemy import select
from sqlalchemy.engine import make_url

from db.errors import InfError
from db.patience import patiently
from db.store import sign_in
from db.store.store import Store, open_store


class Refusing(socketserver.ThreadingTCPServer):
    """A server of PostgreSQL's protocol that answers every start with one error."""

    daemon_threads = True

    def __init__(self, code: str, message: str) -> None:
        super().__init__(("127.0.0.1", 0), Refuse)
        fields = (b"SFATAL", b"VFATAL", b"C" + code.encode(), b"M" + message.encode())
        self.body = b"\0".join(fields) + b"\0\0"
        self.starts = 0


class Refuse(socketserver.BaseRequestHandler):
    server: Refusing

    def handle(self) -> None:
        while True:
            length, version = struct.unpack("!II", self.request.recv(8))
            if version != 3 << 16:  # whether it takes TLS, or GSSAPI
                self.request.sendall(b"N")
                continue
            self.request.recv(length - 8)
            self.server.starts += 1
            if self.server.body:
                self.request.sendall(b"E" + struct.pack("!I", 4 + len(self.server.body)))
                self.request.sendall(self.server.body)
            return


def reads(store: Store) -> Callable[[], None]:
    def read() -> None:
        with store.read() as session:
            session.execute(select(1))

    return read


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("28P01", 'password authentication failed for user "inf"'),
        ("28000", 'role "inf" does not exist'),
        ("28000", 'no pg_hba.conf entry for host "10.0.0.9", user "inf", database "inf"'),
        ("28000", 'role "inf" is not permitted to log in'),
        ("3D000", 'database "inf" does not exist'),
        ("28P01", "Passwort-Authentifizierung für Benutzer »inf« fehlgeschlagen"),
        ("28000", "Rolle »inf« existiert nicht"),
        ("28000", "データベース inf は拒否されました"),
        ("3D000", "la base de données « inf » n'existe pas"),
    ],
)
def test_a_refused_sign_in_ends_the_wait_at_once(code: str, message: str) -> None:
    with Refusing(code, message) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        store = open_store(f"postgresql://inf:wrong@127.0.0.1:{server.server_address[1]}/inf")
        with pytest.raises(InfError) as refused:
            patiently(reads(store), 60.0)
        store.close()
        server.shutdown()
    assert refused.value.code == "store_refuses_sign_in" and refused.value.remedy
    assert server.starts <= 2 and "wrong" not in str(refused.value)


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("57P03", "the database system is starting up"),
        ("57P03", "das Datenbanksystem startet"),
        ("53300", "zu viele Verbindungen für Rolle »inf«"),
    ],
)
def test_a_server_that_starts_up_or_is_full_is_waited_for(code: str, message: str) -> None:
    with Refusing(code, message) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        store = open_store(f"postgresql://inf@127.0.0.1:{server.server_address[1]}/inf")
        with pytest.raises(InfError) as away:
            patiently(reads(store), 0.5)
        store.close()
        server.shutdown()
    assert away.value.code == "store_unreachable" and server.starts > 1


@pytest.mark.parametrize("message", ["", "the database system is starting up"])
def test_a_server_that_is_known_to_be_away_is_called_once_at_each_look(message: str) -> None:
    with Refusing("57P03", message) as server:
        server.body = server.body if message else b""  # it closes the connection without an answer
        threading.Thread(target=server.serve_forever, daemon=True).start()
        store = open_store(f"postgresql://inf@127.0.0.1:{server.server_address[1]}/inf")
        for look in (1, 2):
            with pytest.raises(InfError) as away:
                reads(store)()
            assert away.value.code == "store_unreachable" and server.starts == look
        store.close()
        server.shutdown()


def test_where_nothing_listens_no_code_is_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(sign_in, "_with_codes")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    for host in ("127.0.0.1", "localhost", "no-such-host.invalid"):
        store = open_store(f"postgresql://inf@{host}:{port}/inf")
        with pytest.raises(InfError) as away:
            reads(store)()
        store.close()
        assert away.value.code == "store_unreachable"


@pytest.mark.postgres
@pytest.mark.parametrize("wrong", ["username", "database"])
def test_a_server_of_now_refuses_so(postgres_store: Store, wrong: str) -> None:
    url = make_url(postgres_store.url).set(**{wrong: "nobody_of_here"})
    store = open_store(url.render_as_string(hide_password=False))
    with pytest.raises(InfError) as refused:
        patiently(reads(store), 60.0)
    store.close()
    assert refused.value.code == "store_refuses_sign_in"
