"""The endpoints of a server, each with the SDK's client.

The SDK's own retries are off: they do not know our gate. A stored connection has a guarded
transport, and follows no redirect: it would take the request to an address that nobody gave.
"""

from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from openai import AsyncAzureOpenAI, AsyncOpenAI, DefaultAioHttpClient
from openai._vendor.httpx_aiohttp import AiohttpTransport  # DefaultAioHttpClient's own

from curation.providers.endpoints import Endpoint
from curation.servers.addresses import public_url
from curation.servers.connection import Server
from curation.servers.guard import guarded_session, require_reachable
from db.errors import ProviderError


def make_endpoints(server: Server) -> list[Endpoint]:
    """The endpoints with their clients. Raises ProviderError without a key that is needed, or for
    an address that the connection may not reach."""
    if server.kind == "azure" and not (server.key and server.api_version):
        raise ProviderError(
            f"{server.urls[0]} is an address of Azure",
            "set AZURE_OPENAI_API_KEY and OPENAI_API_VERSION, too, or the key and version of the "
            "connection",
            code="azure_endpoint_unsupported",
        )
    if server.kind == "openai" and not server.key:
        raise ProviderError(
            "no OPENAI_API_KEY in the environment",
            "set it, or OPENAI_BASE_URL for a server of your own, or use `provider=offline`, or a "
            "connection",
            code="server_key_missing",
        )
    return [_endpoint(server, url) for url in server.urls]


def _endpoint(server: Server, url: str) -> Endpoint:
    common: dict[str, Any] = {"http_client": _http_client(server, url), "max_retries": 0}
    if server.kind == "azure":
        azure = AsyncAzureOpenAI(
            azure_endpoint=url, api_key=server.key, api_version=server.api_version, **common
        )
        return Endpoint(public_url(url), azure, own_server=False)
    client = AsyncOpenAI(api_key=server.key or "none", base_url=url, **common)
    return Endpoint(public_url(url), client, own_server="api.openai.com" not in url)


def _http_client(server: Server, url: str) -> Any:
    if not server.is_stored:  # the addresses are those of whoever starts the process
        return DefaultAioHttpClient(follow_redirects=False)
    require_reachable(url, private=server.private)
    if _has_proxy(url):  # it connects in our place; it is the machine owner's own
        return DefaultAioHttpClient(follow_redirects=False)
    transport = AiohttpTransport()
    context = transport.ssl_context
    transport.client = lambda: guarded_session(private=server.private, ssl=context)
    return DefaultAioHttpClient(follow_redirects=False, transport=transport)


def _has_proxy(url: str) -> bool:
    parts, proxies = urlsplit(url), getproxies()
    is_named = parts.scheme in proxies or "all" in proxies
    return is_named and not proxy_bypass(parts.hostname or "")
