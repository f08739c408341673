"""Which addresses are public, and which names a sandbox may name."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchard_core.errors import ConfigError
from orchard_core.sandbox.egress.policy import EgressPolicy, is_public
from orchard_core.types.sandbox import Network, NetworkMode


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1", "127.255.0.9", "0.0.0.0", "10.1.2.3", "172.16.0.1", "172.31.255.255", "192.168.1.1",
        "169.254.169.254", "169.254.170.2", "100.64.0.1", "100.100.100.200", "168.63.129.16", "192.0.0.192",
        "198.18.0.1", "224.0.0.1", "239.1.1.1", "240.0.0.1", "255.255.255.255", "192.0.2.7",
        "::", "::1", "fe80::1", "fc00::1", "fd00:ec2::254", "ff02::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1",
        "::ffff:8.8.8.8", "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "2002:7f00:1::", "2002:a9fe:a9fe::",
        "2001:0:7f00:1::", "2001:db8::1", "fec0::1",
    ],
)  # fmt: skip
def test_what_is_not_of_the_public_internet_is_refused(address: str) -> None:
    assert not is_public(ipaddress.ip_address(address))


@pytest.mark.parametrize(
    "address", ["8.8.8.8", "1.1.1.1", "172.32.0.1", "100.128.0.1", "2606:4700:4700::1111"]
)
def test_public_addresses_are_public(address: str) -> None:
    assert is_public(ipaddress.ip_address(address))


@given(st.ip_addresses())
def test_nothing_is_public_that_python_calls_special(
    address: ipaddress.IPv4Address | ipaddress.IPv6Address,
) -> None:
    if is_public(address):
        special = (address.is_loopback, address.is_private, address.is_link_local, address.is_multicast)
        assert not any((*special, address.is_reserved, address.is_unspecified))


def _policy(*allow: str) -> EgressPolicy:
    return EgressPolicy(Network(mode=NetworkMode.ALLOW_LIST, allow=allow))


@pytest.mark.parametrize(
    ("entry", "host", "port", "allowed"),
    [
        ("example.org", "example.org", 443, True),
        ("example.org", "Example.org.", 80, True),
        ("example.org", "example.org", 22, False),
        ("example.org", "evil-example.org", 443, False),
        ("example.org", "example.org.evil.com", 443, False),
        ("example.org", "www.example.org", 443, False),
        ("*.example.org", "www.example.org", 443, True),
        ("*.example.org", "a.b.example.org", 443, True),
        ("*.example.org", "example.org", 443, False),
        ("*.example.org", "evilexample.org", 443, False),
        ("git.example:22", "git.example", 22, True),
        ("git.example:22", "git.example", 443, False),
        ("bücher.example", "xn--bcher-kva.example", 443, True),
    ],
)
def test_an_allow_list_means_what_it_says(entry: str, host: str, port: int, allowed: bool) -> None:
    assert (_policy(entry).refuses(host, port) is None) is allowed


def test_an_empty_allow_list_allows_nothing_and_open_allows_any_name() -> None:
    assert _policy().refuses("example.org", 443) is not None
    assert EgressPolicy(Network(mode=NetworkMode.OPEN)).refuses("any.example", 8443) is None


@pytest.mark.parametrize(
    "entry",
    ["", "https://example.org", "example.org/simple", "a.*.org", "*", "example.org:0", "example.org:x"],
)
def test_an_entry_that_is_no_name_is_refused(entry: str) -> None:
    with pytest.raises(ConfigError):
        _policy(entry)
