"""Pages of sources: the list, connecting one, its calendar, its pulls, its test."""

from typing import Any, Final
from uuid import UUID

from django.contrib import messages
from django.core.exceptions import ValidationError
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from billing.models import Source, SourceSecret
from billing.services import (
    ask_for_pull,
    ask_for_test,
    change_source,
    connect_source,
    forget_secret,
    pause_source,
)
from billing.source_doors import may_change_sources, require_source_reader, source_for
from billing.source_forms import SourceForm
from billing.source_kinds import FORMAT_NAMES, SCHEDULES, SOURCE_KINDS, SourceKind
from billing.source_policies import policies_for
from billing.source_selectors import (
    coverage_of_source,
    invoice_totals_of,
    last_test,
    published_months,
    pulls_of,
    source_statuses,
    status_of,
)
from jobs.records import JobProgress, UnknownJobError
from jobs.selectors import job_progress
from projects.access import actor_of, require_organisation_role

STEP_NAMES: Final = {
    "reach": gettext_lazy("Reach and sign in"),
    "list": gettext_lazy("Look what is there"),
    "manifest": gettext_lazy("Know what belongs together"),
    "read": gettext_lazy("Read charges"),
}


@require_safe
def sources(request: HttpRequest) -> HttpResponse:
    """Every source with its state; administrators also see how fresh it is and what went wrong."""
    actor = actor_of(request)
    require_source_reader(actor)
    context = {
        "rows": source_statuses(actor.organisation_id),
        "may_change": may_change_sources(actor),
        "now": timezone.now(),
    }
    return render(request, "billing/sources.html", context)


@require_safe
def source_new(request: HttpRequest) -> HttpResponse:
    """Choose what kind of source to connect."""
    require_organisation_role(actor_of(request), write=True)
    return render(request, "billing/source_new.html", {"kinds": SOURCE_KINDS.values()})


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def source_connect(request: HttpRequest, kind: str) -> HttpResponse:
    """Say where a source lies; then it is tested."""
    actor = actor_of(request)
    require_organisation_role(actor, write=True)
    form = SourceForm(request.POST or None, kind=_kind(kind), source=None)
    if request.method == "POST" and form.is_valid():
        try:
            source = connect_source(actor, form.wish())
        except ValidationError as error:
            form.show_errors(error)
        else:
            return redirect("source_test", source.pk)
    context = {"form": form, "kind": form.kind, "back": reverse("source_new"), "secret": None}
    return render(request, "billing/source_form.html", context)


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def source_change(request: HttpRequest, source_id: UUID) -> HttpResponse:
    """Change where a source lies, its credential, its schedule."""
    actor = actor_of(request)
    source = source_for(actor, source_id)
    form = SourceForm(request.POST or None, kind=_kind(source.kind), source=source)
    if request.method == "POST" and form.is_valid():
        try:
            change_source(actor, source, form.wish())
        except ValidationError as error:
            form.show_errors(error)
        else:
            return redirect("source_test", source.pk)
    context = {
        "form": form,
        "kind": form.kind,
        "source": source,
        "secret": _secret(source),
        "back": reverse("source_detail", args=[source.pk]),
    }
    return render(request, "billing/source_form.html", context)


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def source_test(request: HttpRequest, source_id: UUID) -> HttpResponse:
    """Try the connection, see what is missing, and what to paste where."""
    actor = actor_of(request)
    source = source_for(actor, source_id)
    _kind(source.kind)
    if request.method == "POST":
        job_id = ask_for_test(actor, source)
        return redirect(f"{reverse('source_test', args=[source.pk])}?job={job_id}")
    progress = _progress(request.GET.get("job", ""), source)
    context = {
        "source": source,
        "kind": SOURCE_KINDS[source.kind],
        "secret": _secret(source),
        "policies": policies_for(source.kind, source.connection),
        "progress": progress,
        "progress_url": reverse("job_progress", args=[progress.job_id]) if progress else "",
        **_outcome(progress),
    }
    return render(request, "billing/source_test.html", context)


@never_cache
@require_safe
def source_detail(request: HttpRequest, source_id: UUID) -> HttpResponse:
    """One source: how fresh, which days, how its pulls went."""
    actor = actor_of(request)
    source = source_for(actor, source_id)
    pulls = pulls_of(source)
    job = request.GET.get("job", "") or next(
        (str(one.job_id) for one in pulls if one.state == "running" and one.job_id), ""
    )
    progress = _progress(job, source)
    coverage = coverage_of_source(source, as_of=timezone.now().date())
    status = status_of(source, charged_through=coverage.charged_through, test=last_test(source))
    context = {
        "source": source,
        "status": status,
        "connection": _connection_rows(source),
        "secret": _secret(source),
        "coverage": coverage,
        "day_numbers": range(1, 32),
        "pulls": pulls,
        "months": published_months(source),
        "invoice_totals": invoice_totals_of(source).count(),
        "progress": progress,
        "progress_url": reverse("job_progress", args=[progress.job_id]) if progress else "",
        "schedule": SCHEDULES.get(source.every_h or 0, ""),
        "format_name": FORMAT_NAMES.get(source.bill_format, source.bill_format),
        "now": timezone.now(),
    }
    return render(request, "billing/source_detail.html", context)


@require_POST
def source_pull(request: HttpRequest, source_id: UUID) -> HttpResponse:
    """Pull now."""
    actor = actor_of(request)
    source = source_for(actor, source_id)
    _kind(source.kind)
    job_id = ask_for_pull(source, actor)
    return redirect(f"{reverse('source_detail', args=[source.pk])}?job={job_id}")


@require_POST
def source_pause(request: HttpRequest, source_id: UUID) -> HttpResponse:
    """Stop pulling by the schedule, or go on."""
    actor = actor_of(request)
    source = source_for(actor, source_id)
    pause = request.POST.get("pause") == "1"
    pause_source(actor, source, pause=pause)
    messages.info(request, _("Paused.") if pause else _("It is pulled by its schedule again."))
    return redirect("source_detail", source.pk)


@require_POST
def source_forget_secret(request: HttpRequest, source_id: UUID) -> HttpResponse:
    """Forget the stored credential."""
    actor = actor_of(request)
    source = source_for(actor, source_id)
    if forget_secret(actor, source):
        messages.info(request, _("The credential is forgotten."))
    return redirect("source_test", source.pk)


def _kind(key: str) -> SourceKind:
    """The kind of source.

    Raises:
        Http404: nothing of this kind can be pulled.
    """
    if key not in SOURCE_KINDS:
        raise Http404("No such kind of source.")
    return SOURCE_KINDS[key]


def _secret(source: Source) -> dict[str, Any] | None:
    """When and by whom a credential was set: all that is ever shown of it."""
    known = SourceSecret.objects.filter(source=source).values("set_at", "set_by").first()
    return dict(known) if known is not None else None


def _progress(job_id: str, source: Source) -> JobProgress | None:
    """The job, if it is one of this source."""
    try:
        progress = job_progress(UUID(job_id), source.organisation_id)
    except (ValueError, UnknownJobError):
        return None
    return progress if progress.scope == f"source:{source.pk}" else None


def _outcome(progress: JobProgress | None) -> dict[str, Any]:
    """What the test found, step by step; the steps that it did not come to are named too."""
    if progress is None or not isinstance(progress.result, dict):
        return {"steps": None}
    found = {step["name"]: step for step in progress.result.get("steps", [])}
    return {
        "is_well": bool(progress.result.get("ok")),
        "steps": [
            {"title": title, **found.get(name, {"name": name, "ok": None})}
            for name, title in STEP_NAMES.items()
        ],
    }


def _connection_rows(source: Source) -> list[tuple[Any, Any]]:
    """Where the source lies, in the words of its form."""
    kind = SOURCE_KINDS.get(source.kind)
    labels = {one.name: one.label for one in kind.fields} if kind is not None else {}
    rows = []
    for name, value in source.connection.items():
        shown = (
            ", ".join(f"{key}={one}" for key, one in value.items())
            if isinstance(value, dict)
            else value
        )
        rows.append((labels.get(name, name), shown))
    return rows
