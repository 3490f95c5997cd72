"""The pages of senders: who sends readings, how they do, what is missing."""

from datetime import UTC, datetime

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from carbon.sender_selectors import much_waiting, sender_detail, sender_rows
from projects.access import actor_of, require_organisation_role


@never_cache
@require_safe
def senders(request: HttpRequest) -> HttpResponse:
    """All senders, those with trouble first."""
    actor = actor_of(request)
    require_organisation_role(actor, write=False)
    site = request.GET.get("site", "")
    rows = sender_rows(actor.organisation_id, now=datetime.now(UTC), site=site)
    waiting = much_waiting(actor.organisation_id)
    context = {"tab": "senders", "rows": rows, "site_slug": site, "much_waiting": waiting}
    return render(request, "carbon/senders.html", context)


@never_cache
@require_safe
def sender(request: HttpRequest, sender_id: int) -> HttpResponse:
    """One sender with its batches and gaps."""
    actor = actor_of(request)
    found = sender_detail(actor.organisation_id, sender_id, now=datetime.now(UTC))
    if found is None:
        raise Http404("No such sender.")
    require_organisation_role(actor, write=False)
    return render(request, "carbon/sender.html", {"tab": "senders", "detail": found})
