"""Pages of hourly grid intensity: the sources, one source, and a site's calendar of hours."""

from datetime import timedelta
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from carbon import intensity_feeds as feeds
from carbon.adapters.intensity_csv import CsvReading, IntensityFileError
from carbon.intensity import intensity_days, sources_of, zones_of_site
from carbon.intensity_forms import PROVIDERS, IntensityFileForm, SourceForm
from carbon.intensity_pages import calendar_months, source_rows, zone_rows
from carbon.intensity_sources import (
    BASES,
    CSV,
    SourceError,
    save_source,
    set_enabled,
    sites_with_zones,
)
from carbon.models import IntensitySource
from projects.access import actor_of, require_organisation_role
from projects.records import Actor
from runs.selectors import site_by_slug, sites

DAYS_SHOWN = 92
DAYS_LISTED = 31


def _source_for(actor: Actor, source_id: UUID, *, write: bool) -> IntensitySource:
    """The organisation's source of this id, for organisation-wide roles."""
    source = IntensitySource.objects.filter(
        pk=source_id, organisation_id=actor.organisation_id
    ).first()
    if source is None:
        raise Http404("No such source.")
    require_organisation_role(actor, write=write)
    return source


def _may_write(actor: Actor) -> bool:
    return actor.organisation_role == "admin"


@require_safe
def intensity_sources(request: HttpRequest) -> HttpResponse:
    """List the sources of hourly grid intensity, and the sites with how their hours are known."""
    actor = actor_of(request)
    require_organisation_role(actor, write=False)
    now = timezone.now()
    context = {
        "tab": "intensity_sources",
        "rows": source_rows(sources_of(actor.organisation_id), now),
        "sites": sites(actor.organisation_id),
        "providers": PROVIDERS.items(),
        "may_write": _may_write(actor),
    }
    return render(request, "carbon/intensity.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
def intensity_source_new(request: HttpRequest) -> HttpResponse:
    """Connect a source."""
    actor = actor_of(request)
    require_organisation_role(actor, write=True)
    provider = request.GET.get("provider", "")
    if not provider:
        return redirect("intensity_sources")  # where one is chosen
    if provider not in BASES:
        raise Http404("No such provider.")
    zones = [(site, "") for site in sites(actor.organisation_id)]
    form = SourceForm(
        request.POST if request.method == "POST" else None, provider=provider, site_zones=zones
    )
    if form.is_valid():
        source = _saved(actor, form, None)
        if source is not None:
            messages.success(request, _("Connected. Test it, then let it tell its hours."))
            return redirect("intensity_source", source_id=source.pk)
    context = {
        "tab": "intensity_sources",
        "form": form,
        "provider_name": PROVIDERS[provider],
        "submit": _("Connect"),
    }
    return render(request, "carbon/intensity_form.html", context)


def _saved(
    actor: Actor, form: SourceForm, source: IntensitySource | None
) -> IntensitySource | None:
    """The stored source; None once the form tells what cannot be."""
    try:
        return save_source(actor, form.wish(), now=timezone.now(), source=source)
    except SourceError as error:
        form.add_error(error.field if error.field in form.fields else None, str(error))
        return None


@require_http_methods(["GET", "HEAD", "POST"])
def intensity_source(request: HttpRequest, source_id: UUID) -> HttpResponse:
    """Show and change one source."""
    actor = actor_of(request)
    source = _source_for(actor, source_id, write=request.method == "POST")
    form = _form(source, request.POST if request.method == "POST" else None)
    if form.is_valid() and _saved(actor, form, source) is not None:
        messages.success(request, _("Saved. Energy and emissions of its sites follow in a moment."))
        return redirect("intensity_source", source_id=source.pk)
    return _show(request, actor, source, form=form)


def _form(source: IntensitySource, data: Any = None) -> SourceForm:
    return SourceForm(
        data,
        provider=source.provider,
        site_zones=sites_with_zones(source),
        is_new=False,
        initial={
            "name": source.name,
            "basis": source.basis,
            "position": source.position,
            "base_url": source.base_url,
        },
    )


def _show(request: HttpRequest, actor: Actor, source: IntensitySource, **more: Any) -> HttpResponse:
    """The page of a source."""
    now = timezone.now()
    source.refresh_from_db()
    context = {
        "tab": "intensity_sources",
        "source": source,
        "row": source_rows([source], now)[0],
        "zones": zone_rows(source, now),
        "is_files": source.provider == CSV,
        "may_write": _may_write(actor),
        "file_form": IntensityFileForm(),
        **more,
    }
    context.setdefault("form", _form(source))
    return render(request, "carbon/intensity_source.html", context)


@require_POST
def intensity_source_test(request: HttpRequest, source_id: UUID) -> HttpResponse:
    """Try the connection now and show what works."""
    actor = actor_of(request)
    source = _source_for(actor, source_id, write=True)
    steps = feeds.check_source(actor, source, now=timezone.now())
    return _show(request, actor, source, steps=steps, is_well=all(step.ok for step in steps))


@require_POST
def intensity_source_pull(request: HttpRequest, source_id: UUID) -> HttpResponse:
    """Ask the source now, or (`again`) for every hour back to the first energy."""
    actor = actor_of(request)
    source = _source_for(actor, source_id, write=True)
    if source.provider == CSV:
        raise Http404("Files fill this source.")
    if request.POST.get("again"):
        feeds.ask_for_backfill(actor, source)
        messages.success(request, _("All hours are asked for again; this may take minutes."))
    else:
        feeds.ask_for_pull(source, user_id=actor.user_id)
        messages.success(request, _("The source is being asked."))
    return redirect("intensity_source", source_id=source.pk)


@require_POST
def intensity_source_pause(request: HttpRequest, source_id: UUID) -> HttpResponse:
    """Ask a source no longer, or again."""
    actor = actor_of(request)
    source = _source_for(actor, source_id, write=True)
    set_enabled(actor, source, enabled=not source.enabled)
    return redirect("intensity_source", source_id=source.pk)


@require_POST
def intensity_source_import(request: HttpRequest, source_id: UUID) -> HttpResponse:
    """Store the hours of an uploaded file."""
    actor = actor_of(request)
    source = _source_for(actor, source_id, write=True)
    form = IntensityFileForm(request.POST, request.FILES)
    if form.is_valid():
        file = form.cleaned_data["file"]
        how = CsvReading(
            file=file.name,
            basis=source.basis,
            accept_low=form.cleaned_data["accept_low"],
            now=timezone.now(),
        )
        try:
            stored = feeds.import_intensity(actor, source, file.read(), how)
        except (IntensityFileError, SourceError) as error:
            form.add_error("file", str(error))
        else:
            words = _("{new} new hours, {revised} revised, {unchanged} unchanged.")
            messages.success(request, words.format(**stored.document()))
            return redirect("intensity_source", source_id=source.pk)
    return _show(request, actor, source, file_form=form)


@require_safe
def site_intensity(request: HttpRequest, slug: str) -> HttpResponse:
    """Show how the hours of a site's last three months are known, day by day."""
    actor = actor_of(request)
    site = site_by_slug(actor.organisation_id, slug)
    if site is None:
        raise Http404("No such site.")
    require_organisation_role(actor, write=False)
    now = timezone.now()
    first = now.date() - timedelta(days=DAYS_SHOWN - 1)
    days = intensity_days(site, first, now.date(), until=now)
    context = {
        "tab": "intensity_sources",
        "site": site,
        "zones": zones_of_site(site.site_id),
        "months": calendar_months(days),
        "days": [day for day in reversed(days) if day.measured or day.estimated][:DAYS_LISTED],
        "day_numbers": range(1, 32),
    }
    return render(request, "carbon/intensity_site.html", context)
