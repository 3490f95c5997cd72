"""Pages of sites: where accelerators stand, which factors hold there, how good the data is."""

from datetime import UTC, date, datetime, time, timedelta
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from carbon import services
from carbon.factors import published_pues
from carbon.forms import AssignForm, FactorForm, SiteForm
from carbon.records import HOST_FACTOR_OFFER, HOST_FACTOR_OFFER_RANGE
from carbon.selectors import (
    deliveries,
    emissions_summary,
    energy_by_day,
    quarantine_by_reason,
)
from carbon.site_pages import (
    assigned_devices,
    current_factors,
    energy_figure,
    site_rows,
    summary_badge,
)
from projects.access import actor_of, project_for, projects_for, require_organisation_role
from projects.records import Actor
from runs.records import SiteRecord
from runs.selectors import devices_of, site_by_slug
from runs.services import RunsError, assign_devices, save_site

DAYS_SHOWN = 90
DEVICES_SHOWN = 512


def _site_for(actor: Actor, slug: str, *, write: bool) -> SiteRecord:
    """The site of this slug, for organisation-wide roles."""
    site = site_by_slug(actor.organisation_id, slug)
    if site is None:
        raise Http404("No such site.")
    require_organisation_role(actor, write=write)
    return site


def _may_write(actor: Actor) -> bool:
    return actor.organisation_role == "admin"


@require_safe
def sites(request: HttpRequest) -> HttpResponse:
    """List the sites with what is known about their energy."""
    actor = actor_of(request)
    require_organisation_role(actor, write=False)
    context = {"rows": site_rows(actor.organisation_id), "may_write": _may_write(actor)}
    return render(request, "carbon/sites.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
def site_new(request: HttpRequest) -> HttpResponse:
    """Create a site."""
    actor = actor_of(request)
    require_organisation_role(actor, write=True)
    form = SiteForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        slug = form.cleaned_data["slug"]
        if site_by_slug(actor.organisation_id, slug) is None:
            save_site(actor, _wanted(actor, slug, form.cleaned_data))
            return redirect("site", slug=slug)
        form.add_error("slug", _("There is a site of this short name: choose another one."))
    return render(request, "carbon/site_form.html", {"form": form, "submit": _("Create site")})


def _wanted(actor: Actor, slug: str, data: dict[str, Any]) -> SiteRecord:
    return SiteRecord(
        site_id=UUID(int=0),
        organisation_id=actor.organisation_id,
        slug=slug,
        name=data["name"],
        provider=data["provider"],
        region=data["region"],
        country=data["country"].upper(),
        state=data["state"].upper(),
        time_zone=data["time_zone"],
    )


@require_safe
def site(request: HttpRequest, slug: str) -> HttpResponse:
    """Show one site: energy, factors, quality, devices."""
    actor = actor_of(request)
    found = _site_for(actor, slug, write=False)
    return render(request, "carbon/site.html", _site_context(actor, found))


def _site_context(
    actor: Actor,
    found: SiteRecord,
    *,
    factor_form: FactorForm | None = None,
    assign_form: AssignForm | None = None,
) -> dict[str, Any]:
    """What the page of a site shows."""
    summary = emissions_summary(actor.organisation_id, None, site_id=found.site_id)
    devices = devices_of(found.site_id)
    days = energy_by_day(actor.organisation_id, None, site_id=found.site_id)[-DAYS_SHOWN:]
    factors = current_factors(found, timezone.now().date())
    return {
        "site": found,
        "summary": summary,
        "summary_badge": summary_badge(summary),
        "figure": energy_figure(days),
        "energy_days": days,
        "factors": factors,
        "host_factor_missing": factors.host_factor is None,
        "host_factor_offer": HOST_FACTOR_OFFER,
        "host_factor_range": HOST_FACTOR_OFFER_RANGE,
        "quarantine": quarantine_by_reason(found.site_id),
        "deliveries": deliveries(actor.organisation_id, site_id=found.site_id, limit=10),
        "devices": assigned_devices(actor, found, devices[:DEVICES_SHOWN], timezone.now()),
        "device_count": len(devices),
        "published_pues": published_pues(),
        "factor_form": factor_form or FactorForm(),
        "assign_form": assign_form or _assign_form(actor, found),
        "may_write": _may_write(actor),
    }


def _assign_form(actor: Actor, found: SiteRecord, data: Any = None) -> AssignForm:
    choices = [(project.slug, project.name) for project in projects_for(actor)]
    nodes = sorted({one.node for one in devices_of(found.site_id) if one.node})
    return AssignForm(data, projects=choices, nodes=nodes)


@require_http_methods(["GET", "HEAD", "POST"])
def site_edit(request: HttpRequest, slug: str) -> HttpResponse:
    """Change where a site stands; its entries follow."""
    actor = actor_of(request)
    found = _site_for(actor, slug, write=True)
    initial = {name: getattr(found, name) for name in SiteForm.base_fields}
    data = {**request.POST.dict(), "slug": slug} if request.method == "POST" else None
    form = SiteForm(data, initial=initial)
    form.fields["slug"].disabled = True
    if data is not None and form.is_valid():
        with transaction.atomic():
            save_site(actor, _wanted(actor, slug, form.cleaned_data))
            services.enqueue_closing(found, repost=True)
        messages.success(request, _("Saved. Energy and emissions of this site follow in a moment."))
        return redirect("site", slug=slug)
    context = {"form": form, "site": found, "submit": _("Save")}
    return render(request, "carbon/site_form.html", context)


@require_POST
def site_factor_add(request: HttpRequest, slug: str) -> HttpResponse:
    """Set a factor from a day on."""
    actor = actor_of(request)
    found = _site_for(actor, slug, write=True)
    form = FactorForm(request.POST)
    if form.is_valid():
        try:
            services.set_site_factors(
                actor, found, [services.NewFactor(**form.cleaned_data)], now=timezone.now()
            )
        except services.FactorError as error:
            form.add_error("value", str(error))
        else:
            messages.success(
                request, _("The factor holds. Energy and emissions follow in a moment.")
            )
            return redirect("site", slug=slug)
    context = _site_context(actor, found, factor_form=form)
    return render(request, "carbon/site.html", context)


@require_POST
def site_factor_withdraw(request: HttpRequest, slug: str, factor_id: UUID) -> HttpResponse:
    """Let a factor hold no longer."""
    actor = actor_of(request)
    found = _site_for(actor, slug, write=True)
    try:
        services.withdraw_site_factor(actor, found, factor_id, now=timezone.now())
    except services.FactorError as error:
        raise Http404(str(error)) from error
    messages.success(
        request, _("The factor is withdrawn. Energy and emissions follow in a moment.")
    )
    return redirect("site", slug=slug)


@require_POST
def site_assign(request: HttpRequest, slug: str) -> HttpResponse:
    """Assign devices of a site to a project."""
    actor = actor_of(request)
    found = _site_for(actor, slug, write=True)
    form = _assign_form(actor, found, request.POST)
    if form.is_valid():
        try:
            with transaction.atomic():
                count = _assign(actor, found, form.cleaned_data)
                services.enqueue_closing(found, repost=True)
        except RunsError as error:
            form.add_error(None, str(error))
        else:
            messages.success(
                request,
                _("%(count)d devices are assigned. Their energy follows in a moment.")
                % {"count": count},
            )
            return redirect("site", slug=slug)
    context = _site_context(actor, found, assign_form=form)
    return render(request, "carbon/site.html", context)


def _assign(actor: Actor, found: SiteRecord, data: dict[str, Any]) -> int:
    node, last = data["node"], data["end_on"]
    wanted = [one for one in devices_of(found.site_id) if not node or one.node == node]
    return assign_devices(
        actor,
        device_ids=[one.device_id for one in wanted],
        project_id=project_for(actor, data["project"]).pk,
        start=_midnight(data["start_on"]),
        end=_midnight(last + timedelta(days=1)) if last else None,
    )


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)
