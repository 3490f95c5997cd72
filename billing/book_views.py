"""Pages about the books themselves: reconciliation, versions of a month, findings with a price."""

from datetime import date
from decimal import Decimal
from typing import Any, Final
from urllib.parse import urlencode
from uuid import UUID

from django.contrib import messages
from django.core.exceptions import PermissionDenied, ValidationError
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from billing.book_forms import InvoiceTotalForm
from billing.doors import may_upload, require_upload
from billing.finding_records import SpendFinding
from billing.finding_selectors import billed_months, spend_findings
from billing.finding_words import ASSUMPTIONS, WORDS
from billing.invoice_records import Reconciliation
from billing.invoice_selectors import reconciliations, view_totals
from billing.records import Basis
from billing.selectors import billed_through, charged_sources
from billing.services.invoices import TotalWish, state_total, withdraw_total
from billing.version_selectors import (
    DIFFERENCE_VIEWS,
    period_of,
    version_before,
    version_difference,
    versions_of,
)
from billing.words import VIEW_NAMES
from projects.access import actor_of, sees_unallocated
from projects.records import Actor

_ASKED: Final = ("source", "month", "currency")  # what an address fills into the form


def _require_all(actor: Actor) -> None:
    """Let through who may see what belongs to no project: sums of whole bills are shown.

    Raises:
        PermissionDenied: everybody else.
    """
    if not sees_unallocated(actor):
        raise PermissionDenied(_("Only organisation-wide roles see whole bills."))


@require_http_methods(["GET", "HEAD", "POST"])
def reconciliation(request: HttpRequest) -> HttpResponse:
    """Stated totals beside charges, month by month; POST states one."""
    actor = actor_of(request)
    _require_all(actor)
    choices = [(str(one.pk), one.name) for one in charged_sources(actor.organisation_id)]
    asked = {name: request.GET[name] for name in _ASKED if name in request.GET}
    form = InvoiceTotalForm(request.POST or None, source_choices=choices, initial=asked)
    if request.method == "POST":
        require_upload(actor)
        if form.is_valid() and _stated(actor, form):
            messages.success(request, _("The total is kept and compared."))
            return redirect("reconciliation")
    context = {
        "rows": [
            {"tie": one, "charges": _charges_of(one), "state": _state_of(one)}
            for one in reconciliations(actor.organisation_id)
        ],
        "form": form if may_upload(actor) and choices else None,
    }
    return render(request, "billing/reconciliation.html", context)


def _charges_of(row: Reconciliation) -> str:
    """The address of the charges that a total is compared with."""
    query = [("basis", "billed"), ("month", f"{row.month_on:%Y-%m}")]
    if row.invoice_id:
        query.append(("filter", f"invoice_id={row.invoice_id}"))
    return f"{reverse('charges')}?{urlencode(query)}"


def _state_of(row: Reconciliation) -> str:
    """The address at which the form is filled in for a month."""
    asked = (str(row.source_id), f"{row.month_on:%Y-%m}", row.currency)
    return f"?{urlencode(list(zip(_ASKED, asked, strict=True)))}#state"


def _stated(actor: Actor, form: InvoiceTotalForm) -> bool:
    typed = form.cleaned_data
    try:
        state_total(
            actor,
            TotalWish(
                source_id=UUID(typed["source"]),
                month_on=typed["month"],
                invoice_id=typed["invoice_id"].strip(),
                amount=typed["amount"],
                currency=typed["currency"],
                tolerance=typed["tolerance"] or Decimal(0),
                note=typed["note"],
            ),
        )
    except ValidationError as error:
        form.add_error(None, error.messages)
        return False
    return True


@require_POST
def invoice_total_withdraw(request: HttpRequest, total_id: UUID) -> HttpResponse:
    """Take a stated total back."""
    actor = actor_of(request)
    _require_all(actor)
    require_upload(actor)
    try:
        withdraw_total(actor, total_id)
    except ValidationError as error:
        raise Http404("No such total.") from error
    return redirect("reconciliation")


@require_safe
def period_versions(request: HttpRequest, period_id: int) -> HttpResponse:
    """The versions of one month of one source, and what changed between two of them."""
    actor = actor_of(request)
    _require_all(actor)
    period = period_of(actor.organisation_id, period_id)
    if period is None:
        raise Http404("No such month.")
    versions = versions_of(period)
    by_number = {str(one.number): one for one in versions}
    after = by_number.get(request.GET.get("to", ""), versions[0] if versions else None)
    before = by_number.get(request.GET.get("from", "")) or version_before(
        period, now=timezone.now()
    )
    view = _one_of(request, "by", DIFFERENCE_VIEWS)
    basis = Basis(_one_of(request, "basis", tuple(one.value for one in Basis)))
    context = {
        "period": period,
        "versions": versions,
        "before": before,
        "after": after,
        "view": view,
        "view_name": VIEW_NAMES[view],
        "basis": basis.value,
        "views": [(name, VIEW_NAMES[name]) for name in DIFFERENCE_VIEWS],
        "bases": [one.value for one in Basis],
        "totals": [
            {"name": VIEW_NAMES[one.view], "total": one}
            for one in view_totals(actor.organisation_id, period)
        ],
    }
    if before is not None and after is not None:
        context["difference"] = version_difference(before, after, view=view, basis=basis)
    return render(request, "billing/period_versions.html", context)


def _one_of(request: HttpRequest, name: str, known: tuple[str, ...]) -> str:
    """A word of the address, or the first of those known."""
    word = request.GET.get(name, "")
    return word if word in known else known[0]


@require_safe
def findings(request: HttpRequest) -> HttpResponse:
    """What the bills of a month show about waste, each with its price."""
    actor = actor_of(request)
    _require_all(actor)
    months = billed_months(actor.organisation_id)
    asked = request.GET.get("month", "")
    known = {f"{month:%Y-%m}": month for month in months}
    month_on = known.get(asked, months[0] if months else None)
    found = spend_findings(actor.organisation_id, month_on=month_on) if month_on else []
    through = billed_through(actor.organisation_id, None)
    is_last = bool(month_on and through and through.replace(day=1) == month_on)
    context = {
        "months": months,
        "month_on": month_on,
        "is_unknown": bool(asked) and asked not in known,
        "asked": asked,
        "through": through if is_last else None,
        "findings": [_worded(one, month_on) for one in found if month_on],
    }
    return render(request, "billing/findings.html", context)


def _worded(one: SpendFinding, month_on: date) -> dict[str, Any]:
    words = WORDS[one.code]
    query = [("basis", "effective"), ("month", f"{month_on:%Y-%m}")]
    query += [("filter", text) for text in one.filters]
    return {
        "finding": one,
        "title": words.title,
        "shows": str(words.shows).format(
            **{key: text or _("n/a") for key, text in one.facts.items()}
        ),
        "do": words.do,
        "assumption": ASSUMPTIONS.get(one.assumption, ""),
        "href": f"{reverse('charges')}?{urlencode(query)}",
    }
