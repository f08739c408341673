"""The HTTP proxy that the environment names, looked up once and not at every request."""

from __future__ import annotations

from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass


def proxy_for(url: str) -> str | None:
    """URL of the proxy for requests to `url`; None for none. Loopback never goes through a proxy."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    if host == "localhost" or host.startswith("127.") or host == "::1" or proxy_bypass(host):
        return None
    proxies = getproxies()
    return proxies.get(parts.scheme) or proxies.get("all")
