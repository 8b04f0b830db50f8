"""Decide to which addresses a connection may go: those of the public internet, and hosts that the agent's file names.

A name is resolved once. All of its addresses are checked, and one of those is connected to: what the DNS answers a
moment later does not matter. Pure but for the resolver.
"""

import socket
from collections.abc import Callable, Collection
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

from agents.tools.functions import ToolCallError
from pager.errors import brief

Address = IPv4Address | IPv6Address
Resolve = Callable[[str, int], list[str]]

# The registries of IANA for special purposes. Python's `is_global` is asked as well, but it changes with its versions.
_PRIVATE = tuple(
    IPv4Network(network)
    for network in (
        "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24",
        "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24",
        "224.0.0.0/4", "240.0.0.0/4",
    )
)  # fmt: skip
_PUBLIC_6 = IPv6Network("2000::/3")
_NOT_PUBLIC_6 = tuple(map(IPv6Network, ("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20")))
_WITH_IPV4 = tuple(map(IPv6Network, ("::ffff:0:0/96", "64:ff9b::/96")))  # mapped, and the well-known NAT64


def resolved(host: str, port: int) -> list[str]:
    """Return the addresses of a host from the system's resolver."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(each[4][0]) for each in found))


def is_public(text: str) -> bool:
    """Return True for an address of the public internet."""
    address: Address = ip_address(text)
    if isinstance(address, IPv6Address):
        if not any(address in network for network in _WITH_IPV4):
            return address in _PUBLIC_6 and address.is_global and not any(address in each for each in _NOT_PUBLIC_6)
        address = IPv4Address(int(address) & 0xFFFFFFFF)
    return address.is_global and not any(address in network for network in _PRIVATE)


def is_allowed(host: str, port: int, allowed: Collection[str]) -> bool:
    """Return True if the agent's file names this host, alone or with this port."""
    names = {host, f"[{host}]"} if ":" in host else {host}
    return any(name in allowed or f"{name}:{port}" in allowed for name in names)


def checked(host: str, port: int, allowed: Collection[str], resolve: Resolve = resolved) -> list[str]:
    """Return the addresses of a host that may be connected to. Raise ToolCallError if there are none, or if one of
    them is not public and the host is not allowed."""
    try:
        addresses = resolve(host, port)
    except (OSError, UnicodeError) as error:
        raise ToolCallError(f"the host {brief(host, 200)} was not found. Check the address.") from error
    refused = [each for each in addresses if not is_public(each)]
    if refused and not is_allowed(host, port, allowed):
        what = f"{brief(host, 200)} is {refused[0]}, which is this machine or a private network"
        way = "A person can allow it: allow_private in the agent's file"
        raise ToolCallError(f"{what}; only public addresses are fetched. {way}.")
    return addresses
