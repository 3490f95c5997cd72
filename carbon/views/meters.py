"""The page of a site's meters: facility, IT and water; PUE and WUE by hour, month and year."""

from collections.abc import Sequence
from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from carbon.meter_forms import MeterFileForm, MeterForm
from carbon.meter_pages import diverging_hours, factor_rows, measured_hosts, reading_rows
from carbon.meter_texts import MeterRow
from carbon.site_factors import FactorError
from carbon.site_meters import (
    enter_meter_rows,
    withdraw_factor_of_period,
    withdraw_reading,
)
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
def meters(request: HttpRequest, slug: str) -> HttpResponse:
    """List a site's meters and factors of periods; add one."""
    actor = actor_of(request)
    site = _site_for(actor, slug, write=request.method == "POST")
    form = MeterForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        refused = _entered(request, actor, site, [form.row()])
        if refused is None:
            return redirect("site_meters", slug=slug)
        form.add_error("value", refused)
    return _page(request, actor, site, form=form)


@require_POST
def meters_upload(request: HttpRequest, slug: str) -> HttpResponse:
    """Take a CSV of meters and factors; one wrong row refuses it whole."""
    actor = actor_of(request)
    site = _site_for(actor, slug, write=True)
    form = MeterFileForm(request.POST, request.FILES)
    if form.is_valid():
        refused = _entered(request, actor, site, form.cleaned_data["file"])
        if refused is None:
            return redirect("site_meters", slug=slug)
        form.add_error("file", refused)
    return _page(request, actor, site, file_form=form)


def _entered(
    request: HttpRequest, actor: Actor, site: SiteRecord, rows: Sequence[MeterRow]
) -> str | None:
    """Store rows and say so; gives why they cannot be."""
    try:
        found = enter_meter_rows(actor, site, rows, now=timezone.now())
    except FactorError as error:
        return str(error)
    if found.new:
        messages.success(
            request,
            _("{new} of {rows} rows are new. Energy and emissions follow in a moment.").format(
                new=found.new, rows=found.rows
            ),
        )
    else:
        messages.info(request, _("All of it was known: nothing changed."))
    return None


@require_POST
def meter_withdraw(request: HttpRequest, slug: str, reading_id: int) -> HttpResponse:
    """Let a meter's reading hold no longer."""
    actor = actor_of(request)
    site = _site_for(actor, slug, write=True)
    try:
        withdraw_reading(actor, site, reading_id, now=timezone.now())
    except FactorError as error:
        raise Http404(str(error)) from error
    messages.success(
        request, _("The reading is withdrawn. Energy and emissions follow in a moment.")
    )
    return redirect("site_meters", slug=slug)


@require_POST
def period_factor_withdraw(request: HttpRequest, slug: str, factor_id: UUID) -> HttpResponse:
    """Let an entered PUE or WUE hold no longer."""
    actor = actor_of(request)
    site = _site_for(actor, slug, write=True)
    try:
        withdraw_factor_of_period(actor, site, factor_id, now=timezone.now())
    except FactorError as error:
        raise Http404(str(error)) from error
    messages.success(
        request, _("The factor is withdrawn. Energy and emissions follow in a moment.")
    )
    return redirect("site_meters", slug=slug)


def _page(
    request: HttpRequest,
    actor: Actor,
    site: SiteRecord,
    *,
    form: MeterForm | None = None,
    file_form: MeterFileForm | None = None,
) -> HttpResponse:
    context = {
        "site": site,
        "form": form or MeterForm(),
        "file_form": file_form or MeterFileForm(),
        "readings": reading_rows(site.site_id),
        "factors": factor_rows(site.site_id),
        "hosts": measured_hosts(site.site_id),
        "diverging": diverging_hours(site.site_id),
        "may_write": actor.organisation_role == "admin",
        "tab": "sites",
    }
    return render(request, "carbon/meters.html", context)
