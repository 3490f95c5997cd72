"""The first page, the portfolio and a project's page. Parse, select, render."""

from datetime import UTC, date, datetime, timedelta
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe

from carbon.instants import settled
from formulae.periods import parse_utc
from planning.records import Burndown
from planning.selectors import BASES
from projects.access import Role, actor_of, has_role, project_for, sees_unallocated
from reports.advice import advice_of, metered_through
from reports.note_selectors import comments_of
from reports.note_views import PROJECT_KIND
from reports.portfolio import portfolio
from reports.selectors import project_page

DAYS_ADVISED = 30
MOST_DAYS_ADVISED = 92


@require_safe
def home(request: HttpRequest) -> HttpResponse:
    """The portfolio; while there is no project of one's own, the three doors to begin with."""
    actor = actor_of(request)
    rows = portfolio(actor, as_of=datetime.now(UTC))
    context = {
        "rows": rows,
        "demo": next((row.project for row in rows if row.project.is_synthetic), None),
        "is_first_run": all(row.project.is_synthetic for row in rows),
        "sees_unallocated": sees_unallocated(actor),
    }
    return render(request, "reports/home.html", context)


def asked_instant(request: HttpRequest) -> datetime:
    """The settled instant that the page is asked for; now when it is absent or unreadable."""
    try:
        asked = parse_utc(request.GET.get("as_of", ""))
    except ValueError:
        asked = datetime.now(UTC)
    return settled(asked)


def asked_basis(request: HttpRequest) -> str:
    """The cost basis that the page is asked for; effective when it is absent or unknown."""
    basis = request.GET.get("basis", "")
    return basis if basis in BASES else "effective"


def _energy_url(slug: str, burndown: Burndown, as_of: str) -> str:
    """Where energy and emissions of the page are walked down: the same days, known then."""
    asked = {"by": "day", "project": slug}
    if as_of:
        asked["to"] = f"{burndown.as_of.date() + timedelta(days=1)}"
        asked["as_of"] = burndown.as_of.isoformat().replace("+00:00", "Z")
    return f"{reverse('energy')}?{urlencode(asked)}"


def _query(request: HttpRequest) -> str:
    """What the page was asked, for the addresses of its tables as files."""
    asked = [(name, request.GET[name]) for name in ("basis", "as_of") if name in request.GET]
    return f"?{urlencode(asked)}" if asked else ""


@require_safe
def project(request: HttpRequest, slug: str) -> HttpResponse:
    """Plan against actuals in money, energy and carbon."""
    actor = actor_of(request)
    found = project_for(actor, slug, Role.VIEWER)
    page = project_page(found, as_of=asked_instant(request), basis=asked_basis(request))
    context = {
        "project": found,
        "page": page,
        "burndown": page.burndown,
        "bases": BASES[:2],
        "energy_url": _energy_url(found.slug, page.burndown, request.GET.get("as_of", "")),
        "query": _query(request),
        "may_annotate": has_role(actor, found, Role.ANALYST),
        "is_owner": has_role(actor, found, Role.OWNER),
        "comments": comments_of(
            found.organisation_id, project_id=found.pk, subject_kind=PROJECT_KIND
        ),
    }
    return render(request, "reports/project.html", context)


def _asked_days(request: HttpRequest, last: date) -> tuple[date, date]:
    """The days [from, to) that the page is asked for; else the last thirty, `last` included."""
    end_on = _day(request.GET.get("to", "")) or last + timedelta(days=1)
    start_on = _day(request.GET.get("from", "")) or end_on - timedelta(days=DAYS_ADVISED)
    if not timedelta(0) < end_on - start_on <= timedelta(days=MOST_DAYS_ADVISED):
        start_on = end_on - timedelta(days=DAYS_ADVISED)
    return start_on, end_on


def _day(text: str) -> date | None:
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


@require_safe
def advice(request: HttpRequest, slug: str) -> HttpResponse:
    """What wasted energy cost, and what other regions, hours and power caps would change."""
    found = project_for(actor_of(request), slug, Role.VIEWER)
    last = metered_through(found) or datetime.now(UTC).date()
    start_on, end_on = _asked_days(request, last)
    page = advice_of(found, start_on=start_on, end_on=end_on)
    return render(request, "reports/advice.html", {"project": found, "page": page})
