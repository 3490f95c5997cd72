"""The page of a site's pulls: Prometheus-like servers that are asked for energy and power."""

from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from carbon.models import PromqlPull
from carbon.promql_pulls import (
    NewPull,
    PullError,
    enqueue_pull,
    save_pull,
    set_enabled,
    try_pull,
)
from carbon.pull_forms import EXPORTER_WORDS, PullForm
from projects.access import actor_of, require_organisation_role
from projects.records import Actor
from runs.records import SiteRecord
from runs.selectors import site_by_slug


def _site_for(actor: Actor, slug: str, *, write: bool) -> SiteRecord:
    site = site_by_slug(actor.organisation_id, slug)
    if site is None:
        raise Http404("No such site.")
    require_organisation_role(actor, write=write)
    return site


@require_http_methods(["GET", "HEAD", "POST"])
def pulls(request: HttpRequest, slug: str) -> HttpResponse:
    """List a site's pulls, and set one up."""
    actor = actor_of(request)
    site = _site_for(actor, slug, write=request.method == "POST")
    form = PullForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            pull = save_pull(actor, site, NewPull(**form.cleaned_data), now=timezone.now())
        except PullError as error:
            form.add_error(None, str(error))
        else:
            messages.success(request, _("{name} is set up.").format(name=pull.name))
            _test_and_start(request, pull)
            return redirect("site_pulls", slug=slug)
    rows = [
        {"pull": one, "exporter": EXPORTER_WORDS.get(one.exporter, one.exporter)}
        for one in PromqlPull.objects.filter(site_id=site.site_id)
    ]
    context = {
        "site": site,
        "rows": rows,
        "form": form,
        "may_write": actor.organisation_role == "admin",
        "tab": "sites",
    }
    return render(request, "carbon/pulls.html", context)


def _test_and_start(request: HttpRequest, pull: PromqlPull) -> None:
    """Say what the server answers, and pull when it answers well."""
    try:
        messages.success(request, try_pull(pull))
    except PullError as error:
        messages.error(request, str(error))
    else:
        enqueue_pull(pull)


@require_POST
def pull_action(request: HttpRequest, slug: str, pull_id: UUID, action: str) -> HttpResponse:
    """Test a pull, pull now, stop it or let it go on."""
    actor = actor_of(request)
    site = _site_for(actor, slug, write=True)
    pull = PromqlPull.objects.filter(pk=pull_id, site_id=site.site_id).first()
    if pull is None:
        raise Http404("No such pull.")
    if action == "test":
        _test_and_start(request, pull)
    elif action in ("stop", "resume"):
        set_enabled(actor, pull, enabled=action == "resume")
    else:
        raise Http404("No such action.")
    return redirect("site_pulls", slug=slug)
