"""The page of GPUs now: power by site, node and device, and what it emits; asks again by itself."""

from datetime import UTC, datetime
from typing import Any, Final

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from carbon.now_selectors import sites_now
from projects.access import actor_of, require_organisation_role

MAX_CARDS: Final = 16  # devices of a site shown with all that is known of them
MAX_CELLS: Final = 1024  # devices of a site shown one by one, as cells; more of them by node


@never_cache
@require_safe
def power_now(request: HttpRequest) -> HttpResponse:
    """Every site now; `site` and `node` narrow."""
    actor = actor_of(request)
    require_organisation_role(actor, write=False)
    site, node = request.GET.get("site", ""), request.GET.get("node", "")
    now = datetime.now(UTC)
    found = sites_now(actor.organisation_id, now=now, slug=site)
    shown = [
        {
            "site": one,
            "nodes": [each for each in one.nodes if node in ("", each.name)],
            "grain": _grain(len(one.devices), is_one_node=bool(node)),
        }
        for one in found
    ]
    context: dict[str, Any] = {
        "tab": "power_now",
        "now": now,
        "shown": shown,
        "site_slug": site,
        "node": node,
        "has_readings": any(one.nodes for one in found),
    }
    is_fragment = bool(request.headers.get("HX-Request"))
    return render(request, "carbon/_now.html" if is_fragment else "carbon/now.html", context)


def _grain(devices: int, *, is_one_node: bool) -> str:
    """How finely a site is shown: cards and cells are devices."""
    if is_one_node or devices <= MAX_CARDS:
        return "cards"
    return "cells" if devices <= MAX_CELLS else "nodes"
