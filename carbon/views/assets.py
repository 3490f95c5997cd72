"""Pages of a site's hardware and boundary: embodied carbon in two views, who owns what."""

from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from carbon.asset_pages import amortised_years, inventory_years
from carbon.assets import assets_of
from carbon.boundaries import boundaries_of, stated_boundaries
from carbon.embodied import embodied_parts, life_assumptions
from carbon.instrument_forms import OWNERSHIPS, AssetForm, BoundaryForm
from carbon.renewing import drop_asset, state_asset, state_boundary
from carbon.site_factors import ALWAYS, FactorError
from projects.access import actor_of, require_organisation_role
from projects.records import Actor
from runs.records import SiteRecord
from runs.selectors import devices_of, site_by_slug


def _site(actor: Actor, slug: str, *, write: bool) -> SiteRecord:
    found = site_by_slug(actor.organisation_id, slug)
    if found is None:
        raise Http404("No such site.")
    require_organisation_role(actor, write=write)
    return found


@require_http_methods(["GET", "HEAD", "POST"])
def site_assets(request: HttpRequest, slug: str) -> HttpResponse:
    """Show the hardware of a site; POST states more."""
    actor = actor_of(request)
    site = _site(actor, slug, write=request.method == "POST")
    form = AssetForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            state_asset(actor, site, form.wish())
        except FactorError as error:
            form.add_error(None, str(error))
        else:
            messages.success(request, _("The hardware is stated. Its share follows in a moment."))
            return redirect("site_assets", slug=slug)
    assets = assets_of(actor.organisation_id, site_id=site.site_id)
    context = {
        "tab": "sites",
        "site": site,
        "assets": assets,
        "inventory": inventory_years(assets),
        "amortised": amortised_years(site, assets),
        "device_count": len(devices_of(site.site_id)),
        "published": embodied_parts().values(),
        "lifetime": life_assumptions()["lifetime_h"],
        "form": form,
        "may_write": actor.organisation_role == "admin",
    }
    return render(request, "carbon/site_assets.html", context)


@require_POST
def site_asset_withdraw(request: HttpRequest, slug: str, asset_id: UUID) -> HttpResponse:
    """Let a piece of hardware count no longer."""
    actor = actor_of(request)
    site = _site(actor, slug, write=True)
    try:
        drop_asset(actor, site, asset_id)
    except FactorError as error:
        raise Http404(str(error)) from error
    messages.success(request, _("The hardware is withdrawn. Figures follow in a moment."))
    return redirect("site_assets", slug=slug)


@require_http_methods(["GET", "HEAD", "POST"])
def site_boundary(request: HttpRequest, slug: str) -> HttpResponse:
    """Show who owns the hardware of a site, and since when; POST states it."""
    actor = actor_of(request)
    site = _site(actor, slug, write=request.method == "POST")
    form = BoundaryForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            state_boundary(actor, site, **form.cleaned_data)
        except FactorError as error:
            form.add_error(None, str(error))
        else:
            messages.success(request, _("The boundary holds. Scopes follow in a moment."))
            return redirect("site_boundary", slug=slug)
    names = {str(key): name for key, name in OWNERSHIPS}
    every = boundaries_of(site)
    context = {
        "tab": "sites",
        "site": site,
        "default": None
        if any(one.valid_from == ALWAYS for one in every)
        else (names[every[0].ownership], every[0].market_zone),
        "rows": [(names[one.ownership], one.market_zone, one.valid_from) for one in every[1:]],
        "has_stated": bool(stated_boundaries(site.site_id)),
        "form": form,
        "may_write": actor.organisation_role == "admin",
    }
    return render(request, "carbon/site_boundary.html", context)
