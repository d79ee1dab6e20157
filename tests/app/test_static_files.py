"""Streamlit's scripts come compressed to who takes it, as they are to others, and nothing else."""

import re
from collections.abc import Iterator
from pathlib import Path

import httpx
import pyarrow as pa
import pytest
import streamlit as st
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.routing import Mount
from starlette.testclient import TestClient
from streamlit.web.server.starlette.starlette_static_routes import create_streamlit_static_handler

from app.server.document.static_files import TRACES, CompressStatic, with_our_traces

ROOT = Path(__file__).parents[2]
STATIC = Path(st.__file__).parent / "static" / "static"


@pytest.fixture
def client() -> Iterator[TestClient]:
    """Of our middleware before what Streamlit does."""
    handler = create_streamlit_static_handler(str(STATIC.parent), None)
    app = Starlette(routes=[Mount("/", handler)], middleware=[Middleware(CompressStatic)])
    with TestClient(app) as found:
        yield found


def largest(kind: str) -> str:
    """The path of the largest file of a kind that is under a megabyte, below /static."""
    files = [path for path in STATIC.rglob(f"*.{kind}") if path.stat().st_size < 1_000_000]
    return max(files, key=lambda path: path.stat().st_size).relative_to(STATIC).as_posix()


def fetch(client: TestClient, name: str, accepted: str) -> httpx.Response:
    return client.get(f"/static/{name}", headers={"Accept-Encoding": accepted})


@pytest.mark.parametrize("kind", ["js", "css"])
@pytest.mark.parametrize("accepted", ["gzip, deflate", "br;q=0, gzip;q=0.8", "gzip, xbr"])
def test_what_is_compressed_is_the_file_and_a_third_of_it(
    client: TestClient, kind: str, accepted: str
) -> None:
    name = largest(kind)
    answer = fetch(client, name, accepted)
    assert answer.headers["content-encoding"] == "gzip"
    assert answer.content == (STATIC / name).read_bytes()
    assert int(answer.headers["content-length"]) < 0.5 * len(answer.content)
    assert answer.headers["vary"] == "Accept-Encoding"
    assert "immutable" in answer.headers["cache-control"]


@pytest.mark.parametrize("kind", ["js", "css"])
@pytest.mark.parametrize("accepted", ["gzip, deflate, br, zstd", "br;q=1.0, gzip;q=0.8", "br"])
def test_who_takes_brotli_gets_it(client: TestClient, kind: str, accepted: str) -> None:
    name = largest(kind)
    headers = {"Accept-Encoding": accepted}
    with client.stream("GET", f"/static/{name}", headers=headers) as answer:
        sent = b"".join(answer.iter_raw())
    content = (STATIC / name).read_bytes()
    assert answer.headers["content-encoding"] == "br"
    assert answer.headers["vary"] == "Accept-Encoding"
    assert pa.Codec("brotli").decompress(sent, len(content), asbytes=True) == content
    assert len(sent) < int(fetch(client, name, "gzip").headers["content-length"])


@pytest.mark.parametrize(
    "accepted", ["", "identity", "zstd", "gzip;q=0", "gzip; q=0.0, br;q=0", "xgzip"]
)
def test_who_does_not_take_it_gets_the_file_as_it_is(client: TestClient, accepted: str) -> None:
    name = largest("js")
    answer = fetch(client, name, accepted)
    assert "content-encoding" not in answer.headers
    assert answer.content == (STATIC / name).read_bytes()


def test_the_script_of_figures_comes_without_what_no_figure_of_ours_draws(
    client: TestClient,
) -> None:
    (figures,) = STATIC.rglob("PlotlyChart.*.js")
    whole = figures.read_text(encoding="utf-8")
    sent = fetch(client, figures.relative_to(STATIC).as_posix(), "gzip").text
    assert len(sent) < 0.45 * len(whole)
    kept = {f"src/traces/{trace}/index.js" for trace in (*TRACES, "scatter")}
    assert kept <= set(re.findall(r"src/traces/[a-z0-9]+/index\.js", sent))
    assert "src/traces/surface/" in whole and "src/traces/surface/" not in sent
    assert sent[-3_000:] == whole[-3_000:]  # what Streamlit makes of Plotly
    assert with_our_traces(whole.replace("lib/sankey.js", "lib/s.js")) == whole.replace(
        "lib/sankey.js", "lib/s.js"
    )
    assert with_our_traces("export default 1;") == "export default 1;"


def test_a_browser_asks_whether_the_script_of_figures_is_still_the_same(
    client: TestClient,
) -> None:
    (figures,) = STATIC.rglob("PlotlyChart.*.js")
    name = figures.relative_to(STATIC).as_posix()
    first = fetch(client, name, "gzip")
    assert first.headers["cache-control"] == "no-cache"
    known = {"Accept-Encoding": "gzip", "If-None-Match": first.headers["etag"]}
    again = client.get(f"/static/{name}", headers=known)
    assert again.status_code == 304 and not again.content


def test_no_figure_of_ours_has_a_trace_that_is_left_out() -> None:
    made = re.compile(r"\bgo\.([A-Z]\w+)\(|\bfigure\.add_(\w+)\(|\bpx\.(\w+)\(")
    found = {
        next(filter(None, each)).lower()
        for folder in ("app", "analysis")
        for path in (ROOT / folder).rglob("*.py")
        if "plotly" in (text := path.read_text(encoding="utf-8"))
        for each in made.findall(text)
    }
    others = {"figure", "annotation", "shape", "hline", "vline", "hrect", "vrect"}
    assert {"bar", "heatmap", "sankey", "scatter"} <= found
    assert found - others <= {*TRACES, "scatter"}


def test_fonts_are_not_compressed_again(client: TestClient) -> None:
    answer = fetch(client, largest("woff2"), "gzip")
    assert answer.status_code == 200 and "content-encoding" not in answer.headers


@pytest.mark.parametrize(
    "path",
    [
        "js/none.js",
        "../../path_security.js",
        "%2e%2e/%2e%2e/x.js",
        "js/..%2f..%2f..%2fx.js",
        "js/%00.js",
        "js",
    ],
)
def test_what_is_no_file_of_the_folder_is_left_to_streamlit(client: TestClient, path: str) -> None:
    answer = fetch(client, path, "gzip")
    assert "content-encoding" not in answer.headers
    assert answer.status_code >= 400 or answer.headers["content-type"].startswith("text/html")
