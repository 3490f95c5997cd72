"""The addresses that a store may have: the house's rule, refused in a connector's words."""

from functools import partial

from billing.connectors.contract import ConnectorError
from projects import network
from projects.network import is_listed, is_public

__all__ = ["guard_host", "guard_url", "guarded", "is_listed", "is_public"]


def _refusal(message: str) -> ConnectorError:
    return ConnectorError("endpoint", message)


guard_host = partial(network.guard_host, refusal=_refusal)
guard_url = partial(network.guard_url, refusal=_refusal)
guarded = partial(network.guarded, refusal=_refusal)
