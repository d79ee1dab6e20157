"""What `app.access.openid` needs of Streamlit's internals: cookies written by Streamlit itself."""

import importlib.metadata
import random
import re
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import streamlit as st
from packaging.requirements import Requirement
from starlette.responses import Response
from streamlit import config
from streamlit.auth_util import set_cookie_with_chunks
from streamlit.web.server.starlette.starlette_app_utils import create_signed_value

from app.access import openid
from db.errors import Refused

ROOT = Path(__file__).resolve().parents[2]
SECRET = "a secret for cookies, long enough"
INCOMPRESSIBLE = [random.Random(number).randbytes(32).hex() for number in range(200)]
ATTRIBUTE_BYTES = 100  # of a Set-Cookie header, beside name and value


@pytest.fixture
def configured(tmp_path: Path) -> Iterator[None]:
    """One provider in the [auth] section of a secrets file."""
    file = tmp_path / "secrets.toml"
    file.write_text(f'[auth]\ncookie_secret = "{SECRET}"\nclient_id = "app"\n')
    before = config.get_option("secrets.files")
    config.set_option("secrets.files", [str(file)])
    st.secrets._reset()
    yield
    config.set_option("secrets.files", before)
    st.secrets._reset()


def cookies_of_streamlit(claims: dict[str, Any], secret: str = SECRET) -> dict[str, str]:
    """The cookies that Streamlit sets once its user has returned from the provider."""
    cookies: dict[str, str] = {}

    def sign(name: str, value: str) -> bytes:
        return create_signed_value(secret, name, value)

    def store(name: str, value: str) -> None:
        cookies[name] = sign(name, value).decode("latin-1")

    set_cookie_with_chunks(
        store, sign, openid.USER_COOKIE_NAME, claims, cookie_attr_size=ATTRIBUTE_BYTES
    )
    return cookies


def claims(**more: Any) -> dict[str, Any]:
    return {
        "email": "ann@example.org",
        "email_verified": True,
        "exp": time.time() + 60,
        **more,
    }


def test_a_cookie_signed_with_another_secret_gives_no_claims(configured: None) -> None:
    assert openid.claims_of(cookies_of_streamlit(claims(), secret="x" * 32)) is None


def test_a_cookie_moved_under_another_name_gives_no_claims(configured: None) -> None:
    signed = create_signed_value(SECRET, "another_cookie", '{"email": "root@example.org"}')
    assert openid.claims_of({openid.USER_COOKIE_NAME: signed.decode()}) is None


def test_without_a_provider_streamlits_cookie_is_not_read() -> None:
    assert openid.claims_of(cookies_of_streamlit(claims())) is None


def test_claims_are_read_from_the_cookie_that_streamlit_writes(configured: None) -> None:
    written = claims()
    assert openid.claims_of(cookies_of_streamlit(written)) == written


def test_claims_too_long_for_one_cookie_are_read_from_its_parts(configured: None) -> None:
    written = claims(groups=INCOMPRESSIBLE)
    cookies = cookies_of_streamlit(written)
    assert len(cookies) > 2
    assert openid.claims_of(cookies) == written


def test_every_part_of_the_cookie_is_deleted(configured: None) -> None:
    cookies = cookies_of_streamlit(claims(groups=INCOMPRESSIBLE)) | {"another": "cookie"}
    answer = Response()
    openid.forget(answer, cookies)
    headers = [value.decode() for name, value in answer.raw_headers if name == b"set-cookie"]
    assert {header.split("=")[0] for header in headers} == set(cookies) - {"another"}
    assert all("Max-Age=0" in header for header in headers)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"exp": 1.0}, "expired"),
        ({"email": ""}, "no e-mail address"),
        ({"email_verified": False}, "has not verified"),
        ({"email_verified": "true"}, "has not verified"),
    ],
)
def test_unfit_claims_are_refused(more: dict[str, Any], message: str) -> None:
    with pytest.raises(Refused, match=message):
        openid.email_of(claims(**more))


def test_streamlit_is_pinned_to_the_minor_version_that_these_tests_run_with() -> None:
    """Internals may move with any minor version: the upper limit is the next one."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    declared = next(
        Requirement(line) for line in project["dependencies"] if line.startswith("streamlit")
    )
    installed = importlib.metadata.version("streamlit")
    major, minor = (int(part) for part in installed.split(".")[:2])
    assert declared.specifier.contains(installed)
    assert not declared.specifier.contains(f"{major}.{minor + 1}.0")
    assert not declared.specifier.contains(f"{major}.{minor - 1}.0")


def test_streamlits_internals_are_imported_by_four_modules() -> None:
    internal = re.compile(r"^\s*(?:from|import) streamlit\.(?!delta_generator\b)", re.MULTILINE)
    found = [
        str(path.relative_to(ROOT))
        for path in (ROOT / "app").rglob("*.py")
        if internal.search(path.read_text())
    ]
    assert sorted(found) == [
        "app/access/openid.py",
        "app/access/scope.py",
        "app/server/packaged_components.py",
        "app/server/uploads.py",
    ]
