"""Which addresses a connection may reach: public ones, and what the operator lists. No requests."""

import ipaddress
import socket
from collections.abc import Callable, Collection
from ipaddress import IPv4Address, IPv6Address
from typing import Any, Final
from urllib.parse import urlsplit

from django.utils.translation import gettext as _
from urllib3.connection import HTTPConnection

USUAL_PORTS: Final = frozenset({80, 443})
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_COMPATIBLE = ipaddress.IPv6Network("::/96")
# Of no use as a store's address although Python calls some of them global.
_SPECIAL = tuple(
    ipaddress.ip_network(text) for text in ("192.0.0.0/24", "192.88.99.0/24", "240.0.0.0/4")
)

Address = IPv4Address | IPv6Address


class AddressRefusedError(Exception):
    """An address that may not be reached; the message is for people."""


Refusal = Callable[[str], Exception]


def is_public(address: str) -> bool:
    """Whether the address is one of the public internet, whatever form hides a private one."""
    found = ipaddress.ip_address(address.partition("%")[0])
    return all(_is_open(one) for one in (found, _inside(found)))


def _is_open(one: Address) -> bool:
    return one.is_global and not one.is_multicast and not any(one in net for net in _SPECIAL)


def _inside(found: Address) -> Address:
    """The IPv4 address that an IPv6 address carries, else the address itself."""
    if isinstance(found, IPv4Address):
        return found
    if found.ipv4_mapped is not None:
        return found.ipv4_mapped
    if found.sixtofour is not None:
        return found.sixtofour
    if found.teredo is not None:
        return found.teredo[1]
    if found in _NAT64 or found in _COMPATIBLE:
        return IPv4Address(int(found) & 0xFFFFFFFF)
    return found


def may_reach(address: str, *, host: str, listed: Collection[str]) -> bool:
    """Whether a connection to this host may end at this address."""
    return is_public(address) or is_listed(host, listed) or is_listed(address, listed)


def is_listed(host: str, listed: Collection[str]) -> bool:
    """Whether the operator lists the host: by its name, its address or a network that holds it."""
    name = host.strip("[]").partition("%")[0].rstrip(".").lower()
    if name in {one.strip("[]").lower() for one in listed}:
        return True
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        return False
    networks = (_network(one) for one in listed if "/" in one)
    return any(net is not None and address in net for net in networks)


def _network(text: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network | None:
    try:
        return ipaddress.ip_network(text, strict=False)
    except ValueError:
        return None


def guard_url(url: str, listed: Collection[str], *, refusal: Refusal = AddressRefusedError) -> None:
    """Let a web address pass that is public or listed by the operator; every answer is checked.

    Raises:
        AddressRefusedError: (or what `refusal` makes) another scheme, a user name in it, an
            unusual port, or a private address.
    """
    if not url.isprintable() or any(letter.isspace() for letter in url):
        raise refusal(_("The address holds blanks or control characters."))
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise refusal(_("Give an address that starts with https:// or http://."))
    if parts.username is not None or parts.password is not None:
        raise refusal(_("Leave user name and password out of the address."))
    try:
        port = parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError as error:
        raise refusal(_("The port of the address is no port.")) from error
    guard_host(parts.hostname, port=port, listed=listed, refusal=refusal)


def guard_host(
    host: str,
    *,
    port: int | None,
    listed: Collection[str],
    refusal: Refusal = AddressRefusedError,
) -> None:
    """Let a host pass whose every address may be reached.

    Raises:
        AddressRefusedError: (or what `refusal` makes) the name is not known, or leads to an
            address that may not be reached.
    """
    if is_listed(host, listed):
        return
    if port is not None and port not in USUAL_PORTS:
        raise refusal(
            _(
                "Port {port} is reached only at hosts that the operator of this installation "
                "lists in COSTWATCH_PRIVATE_HOSTS."
            ).format(port=port)
        )
    for address in _addresses(host, refusal):
        if not may_reach(address, host=host, listed=listed):
            raise refusal(_private(host))


def _addresses(host: str, refusal: Refusal) -> set[str]:
    try:
        answers = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise refusal(_("There is no host named {host}.").format(host=host)) from error
    return {str(answer[4][0]) for answer in answers}


def _private(host: str) -> str:
    return _(
        "{host} leads to a private address. The operator of this installation can allow it "
        "in COSTWATCH_PRIVATE_HOSTS."
    ).format(host=host)


def guarded(
    base: type[HTTPConnection],
    listed: Collection[str],
    *,
    refusal: Refusal = AddressRefusedError,
) -> type[HTTPConnection]:
    """A connection class that looks at the address it was really connected to.

    A name may have another answer when it is asked again: what counts is where the socket ends.
    """

    class Guarded(base):  # type: ignore[misc, valid-type]
        def _new_conn(self) -> Any:
            sock = super()._new_conn()
            address = sock.getpeername()[0]
            if may_reach(address, host=self.host, listed=listed):
                return sock
            sock.close()
            raise refusal(_private(self.host))

    return Guarded
