"""Pages of the factor registry: every factor with source, use and approval; a CSV of them."""

import csv

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.http import urlencode
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from carbon.factor_approval import ApprovalError, approve_factor
from carbon.factor_registry import SHOWN, RegistryRow, registry
from projects.access import actor_of, require_organisation_role

COLUMNS = (
    "factor_id", "kind", "low", "high", "unit", "year", "source", "level", "basis", "version",
    "licence", "valid_from", "entries", "used_kwh", "first_used", "last_used", "entered_by",
)  # fmt: skip
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


@require_safe
def factors(request: HttpRequest) -> HttpResponse:
    """List the factors, those in the books first."""
    actor = actor_of(request)
    require_organisation_role(actor, write=False)
    text = request.GET.get("q", "").strip()[:80]
    rows = registry(actor.organisation_id, text=text)
    context = {
        "tab": "factors",
        "q": text,
        "rows": rows[:SHOWN],
        "total": len(rows),
        "used": sum(row.entries > 0 for row in rows),
        "unapproved": sum(row.entries > 0 and not row.approvals for row in rows),
        "is_cut": len(rows) > SHOWN,
        "actor_label": actor.label,
        "may_write": actor.organisation_role == "admin",
    }
    return render(request, "carbon/factors.html", context)


@require_POST
def factor_approve(request: HttpRequest) -> HttpResponse:
    """Approve one factor as it is now."""
    actor = actor_of(request)
    require_organisation_role(actor, write=True)
    try:
        approve_factor(
            actor,
            factor_id=request.POST.get("factor_id", ""),
            version=request.POST.get("version", ""),
            words=request.POST.get("note", "").strip(),
            now=timezone.now(),
        )
    except LookupError as error:
        raise Http404("No such factor.") from error
    except ApprovalError as error:
        messages.error(request, str(error))
    else:
        messages.success(request, _("The factor is approved."))
    query = urlencode({"q": request.POST.get("q", "")})
    return redirect(f"{reverse('factors')}?{query}")


@require_safe
def factors_csv(request: HttpRequest) -> HttpResponse:
    """The registry as a CSV."""
    actor = actor_of(request)
    require_organisation_role(actor, write=False)
    text = request.GET.get("q", "").strip()[:80]
    answer = HttpResponse(content_type="text/csv; charset=utf-8")
    answer["Content-Disposition"] = 'attachment; filename="factors.csv"'
    writer = csv.writer(answer)
    writer.writerow((*COLUMNS, "approved_by", "approved_at"))
    for row in registry(actor.organisation_id, text=text):
        writer.writerow(_cells(row))
    return answer


def _cells(row: RegistryRow) -> list[str]:
    """A row as cells that no spreadsheet takes for formulas."""
    values = [getattr(row, name) for name in COLUMNS]
    newest = max(row.approvals, key=lambda one: one.at, default=None)
    values += [newest.by, newest.at.isoformat()] if newest else ["", ""]
    texts = ["" if value is None else str(value) for value in values]
    return [f"'{text}" if text.startswith(FORMULA_STARTS) else text for text in texts]
