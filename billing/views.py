"""Pages of bills: deliveries, upload, the import report."""

from datetime import date
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.core.exceptions import ValidationError
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from billing.doors import (
    delivery_for,
    may_change_rules,
    may_upload,
    require_upload,
    sees_totals,
)
from billing.forms import UploadForm
from billing.import_months import charges_url, files_of, months_of
from billing.models import Delivery
from billing.records import ChargesRefusedError
from billing.selectors import (
    deliveries,
    known_sources,
    period_statuses,
    unallocated_cost,
)
from billing.services import (
    IncomingFile,
    NewDelivery,
    Receipt,
    TooManyUploadsError,
    add_delivery,
    confirm_delivery,
    decline_delivery,
    receive_files,
    upload_slot,
)
from billing.words import CLASS_NAMES
from jobs.records import JobProgress, UnknownJobError
from jobs.selectors import job_progress
from projects.access import (
    Actor,
    actor_of,
    sees_unallocated,
)

PAGE_ROWS = 50


@require_safe
def imports(request: HttpRequest) -> HttpResponse:
    """Every delivery with its state, and what is published of each month."""
    actor = actor_of(request)
    sees_all = sees_unallocated(actor)
    visible = deliveries(actor.organisation_id) if sees_all or may_upload(actor) else None
    page = None
    if visible is not None:
        page = Paginator(visible, PAGE_ROWS).get_page(request.GET.get("page"))
    context = {
        "page": page,
        "rows": [
            {"delivery": delivery, "sees_totals": sees_totals(actor, delivery)}
            for delivery in page or []
        ],
        "is_busy": any(one.state == Delivery.State.RECEIVED for one in page or []),
        "periods": period_statuses(actor.organisation_id),
        "may_upload": may_upload(actor),
        "sees_all": sees_all,
    }
    return render(request, "billing/imports.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
def import_upload(request: HttpRequest) -> HttpResponse:
    """Hand bill files in."""
    actor = actor_of(request)
    require_upload(actor)
    form = UploadForm(
        request.POST or None,
        request.FILES or None,
        initial={"source": request.GET.get("source", "default")},
    )
    if request.method == "POST" and form.is_valid():
        receipt = _receive(actor, form)
        if receipt is not None:
            if receipt.already_imported:
                messages.info(request, _("These bytes were imported before: nothing new."))
            response = redirect("import_detail", receipt.delivery_id)
            response.status_code = 303
            return response
    context = {
        "form": form,
        "sources": known_sources(actor.organisation_id),
        "submit": _("Import"),
        "back": reverse("imports"),
    }
    return render(request, "billing/import_upload.html", context)


def _receive(actor: Actor, form: UploadForm) -> Receipt | None:
    period = form.cleaned_data["period"]
    wish = NewDelivery(
        source_name=form.cleaned_data["source"],
        files=[
            IncomingFile(name=file.name or "", chunks=file.chunks())
            for file in form.cleaned_data["file"]
        ],
        periods=[period] if period else [],
        adds=form.cleaned_data["adds"],
    )
    try:
        with upload_slot(actor.organisation_id):
            return receive_files(actor, wish)
    except TooManyUploadsError as error:
        form.add_error(None, str(error))
    except ChargesRefusedError as refusal:
        form.add_error("file", refusal.sentence)
    except ValidationError as error:
        form.add_error(None, error.messages)
    return None


@never_cache
@require_safe
def import_detail(request: HttpRequest, delivery_id: UUID) -> HttpResponse:
    """One delivery: its progress, then its report or why it was refused."""
    actor = actor_of(request)
    delivery = delivery_for(actor, delivery_id)
    progress = _progress(delivery)
    context = {
        "delivery": delivery,
        "report": delivery.report,
        "months": months_of(delivery, sees_all=sees_unallocated(actor)),
        "files": files_of(delivery),
        "charges_url": _charges_url(actor, delivery),
        "classes": [
            {**row, "name": CLASS_NAMES.get(row["x_cost_class"], row["x_cost_class"])}
            for row in delivery.report.get("cost_classes", [])
        ],
        "sees_totals": sees_totals(actor, delivery),
        "sees_unallocated": sees_unallocated(actor),
        "may_upload": may_upload(actor),
        "may_change_rules": may_change_rules(actor),
        "progress": progress,
        "progress_url": reverse("job_progress", args=[delivery.job_id]) if progress else "",
        "is_waiting": delivery.state == Delivery.State.NEEDS_CONFIRMATION
        and (progress is None or progress.is_over),
        "unallocated": _unallocated(actor, delivery),
    }
    return render(request, "billing/import_detail.html", context)


def _charges_url(actor: Actor, delivery: Delivery) -> str:
    """The delivery's charges, for those who see them all."""
    is_there = delivery.state == Delivery.State.PUBLISHED and sees_unallocated(actor)
    return charges_url(delivery) if is_there else ""


def _progress(delivery: Delivery) -> JobProgress | None:
    if delivery.job_id is None:
        return None
    try:
        return job_progress(delivery.job_id, delivery.organisation_id)
    except UnknownJobError:
        return None


def _unallocated(actor: Actor, delivery: Delivery) -> Any:
    """What no rule gives to a project, in the delivery's months; for organisation-wide roles."""
    months = [entry["period"] for entry in delivery.report.get("periods", [])]
    if not months or not sees_unallocated(actor):
        return None
    first = date.fromisoformat(f"{min(months)}-01")
    last = date.fromisoformat(f"{max(months)}-01")
    end_on = date(last.year + last.month // 12, last.month % 12 + 1, 1)
    return unallocated_cost(actor.organisation_id, basis="effective", start_on=first, end_on=end_on)


@require_POST
def import_decide(request: HttpRequest, delivery_id: UUID) -> HttpResponse:
    """Let a delivery shrink a published month or add to it, or decline it."""
    actor = actor_of(request)
    require_upload(actor)
    delivery = delivery_for(actor, delivery_id)
    decisions = {"confirm": confirm_delivery, "add": add_delivery}
    decide = decisions.get(request.POST.get("decision", ""), decline_delivery)
    try:
        decide(actor, delivery.pk)
    except ValidationError as error:
        messages.warning(request, " ".join(error.messages))
    return redirect("import_detail", delivery.pk)
