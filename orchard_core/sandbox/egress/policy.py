"""Which destinations a sandbox may reach through the driver's proxy."""

from __future__ import annotations

import ipaddress
import socket
from dataclasses import dataclass

from orchard_core.errors import ConfigError
from orchard_core.types.sandbox import Network, NetworkMode

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_DENIED_V4 = tuple(
    ipaddress.IPv4Network(text)
    for text in (
        "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12",
        "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15",
        "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/3", "168.63.129.16/32",
    )
)  # fmt: skip
"""IANA's special-purpose registry, multicast and reserved space, and a cloud's metadata server outside of
both."""
_UNICAST_V6 = ipaddress.IPv6Network("2000::/3")
_DENIED_V6 = tuple(
    ipaddress.IPv6Network(text)
    for text in ("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20", "2620:4f:8000::/48")
)
"""Within global unicast: Teredo, ORCHID, documentation, 6to4, which carries an IPv4 address."""
_DEFAULT_PORTS = (80, 443)


def is_public(address: Address) -> bool:
    """Whether an address is of the public internet: not loopback, private, link-local, metadata, multicast,
    carrier-grade NAT, translated or mapped, and not this host's own."""
    if isinstance(address, ipaddress.IPv4Address):
        public = not any(address in network for network in _DENIED_V4)
    else:
        public = address in _UNICAST_V6 and not any(address in network for network in _DENIED_V6)
    return public and not _is_own(address)


def _is_own(address: Address) -> bool:
    """A socket can be bound only to an address of this host."""
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.bind((str(address), 0))
    except OSError:
        return False
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rule:
    name: str
    """A host name, or the part after `*.`."""
    suffix: bool
    """`name` is a suffix."""
    ports: tuple[int, ...]
    """Allowed ports."""

    def matches(self, host: str, port: int) -> bool:
        """Whether it lets this destination through."""
        named = host.endswith("." + self.name) if self.suffix else host == self.name
        return named and port in self.ports


class EgressPolicy:
    """What `open` and `allow-list` mean, name by name. Addresses are checked after resolution besides."""

    def __init__(self, network: Network) -> None:
        """Raises ConfigError for an entry of `allow` that is not understood."""
        self._open = network.mode is NetworkMode.OPEN
        self._rules = tuple(_parse(entry) for entry in network.allow)

    def refuses(self, host: str, port: int) -> str | None:
        """Why this destination may not be reached, or None."""
        name = normal_name(host)
        if not name or not 0 < port < 65536:
            return f"{host!r} port {port} is not a destination"
        if self._open or any(rule.matches(name, port) for rule in self._rules):
            return None
        return f"{name}:{port} is not on this sandbox's allow-list"


def normal_name(host: str) -> str:
    """Lower case, ASCII, without the root's dot; empty for what is no host name."""
    text = host.strip("[]").rstrip(".").lower()
    try:
        return text if text.isascii() else text.encode("idna").decode("ascii")
    except UnicodeError:
        return ""


def _parse(entry: str) -> _Rule:
    host, separator, port = entry.rpartition(":") if entry.count(":") == 1 else (entry, "", "")
    suffix = host.startswith("*.")
    name = normal_name(host.removeprefix("*."))
    bad_port = separator and not (port.isdigit() and 0 < int(port) < 65536)
    if not name or "*" in name or "/" in name or bad_port:
        raise ConfigError(
            f"allow-list entry {entry!r} is not understood",
            hint="write name, *.suffix or name:port, without a scheme",
        )
    return _Rule(name=name, suffix=suffix, ports=(int(port),) if separator else _DEFAULT_PORTS)
