"""PgBouncer in front of a cluster: transaction mode, one server connection, TLS for clients."""

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

from postgres_cluster import NOBODY, Cluster


def missing_pgbouncer() -> str | None:
    """Why there can be no PgBouncer here; None where there can."""
    if shutil.which("pgbouncer") is None:
        return "no PgBouncer: its program is missing (Debian's package pgbouncer)"
    return None


@contextmanager
def pgbouncer(cluster: Cluster, *, pool_size: int = 1) -> Iterator[tuple[int, Path]]:
    """Yields the port on 127.0.0.1 and the file of the authority that signed its certificate.

    With a pool of one server connection every client shares it: what one leaves behind there (a
    prepared statement, a setting) the next one meets.
    """
    folder = Path(tempfile.mkdtemp(prefix="inf-pgb-", dir="/tmp"))
    folder.chmod(0o755)
    authority = write_certificate(folder)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    (folder / "users.txt").write_text('"inf" ""\n"reader" ""\n')
    (folder / "pgbouncer.ini").write_text(
        f"[databases]\n* = host={cluster.folder}\n"
        "[pgbouncer]\npool_mode = transaction\nlisten_addr = 127.0.0.1\n"
        f"listen_port = {port}\nauth_type = trust\nauth_file = {folder}/users.txt\n"
        f"default_pool_size = {pool_size}\nunix_socket_dir =\nlogfile = {folder}/log\n"
        f"client_tls_sslmode = allow\nclient_tls_key_file = {folder}/key.pem\n"
        f"client_tls_cert_file = {folder}/cert.pem\n"
    )
    if os.geteuid() == 0:
        nobody = pwd.getpwnam(NOBODY)
        for path in (folder, *folder.iterdir()):
            os.chown(path, nobody.pw_uid, nobody.pw_gid)
    process = subprocess.Popen(
        ["pgbouncer", "-q", str(folder / "pgbouncer.ini")],
        user=NOBODY if os.geteuid() == 0 else None,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        _wait_for(port, folder / "log")
        yield port, authority
    finally:
        process.kill()
        process.wait()
        shutil.rmtree(folder, ignore_errors=True)


def _wait_for(port: int, log: Path) -> None:
    for _ in range(100):
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.05)
    raise RuntimeError(f"PgBouncer does not listen:\n{log.read_text() if log.exists() else ''}")


def write_certificate(folder: Path) -> Path:
    """A certificate for 127.0.0.1 that signs itself, as key.pem and cert.pem."""
    from ipaddress import ip_address

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    (folder / "key.pem").write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    certificate = folder / "cert.pem"
    certificate.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    return certificate
