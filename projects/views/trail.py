"""The audit trail, for those who may see over all projects."""

from django.core.exceptions import BadRequest
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from audit.checks import verify_chain
from audit.selectors import trail
from projects.access import actor_of, require_organisation_role

ENTRIES_A_PAGE = 100


@require_safe
def audit_trail(request: HttpRequest) -> HttpResponse:
    """List the newest changes first; `?verify=1` also recomputes the chain."""
    actor = actor_of(request)
    require_organisation_role(actor, write=False)
    entries = trail(
        actor.organisation_id,
        before_position=_position(request.GET.get("before", "")),
        limit=ENTRIES_A_PAGE,
    )
    context: dict[str, object] = {
        "entries": entries,
        "older": entries[-1].position if entries and entries[-1].position > 1 else None,
    }
    if "verify" in request.GET:
        context["findings"] = verify_chain(actor.organisation_id)
        context["is_verified"] = True
    return render(request, "projects/audit_trail.html", context)


def _position(text: str) -> int | None:
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= 18):
        raise BadRequest(_("`before` is the number of an entry."))
    return int(text)
