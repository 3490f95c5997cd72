"""Pages of the books: periods to prepare, approve, lock and reopen; the log of restatements."""

from collections.abc import Callable
from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from carbon.book_pages import (
    CAUSES,
    cause_words,
    figure_rows,
    held_rows,
    last_month,
    period_row,
    period_rows,
    restatement_rows,
)
from carbon.instrument_forms import PeriodForm, ReasonForm
from carbon.models import PeriodLock
from carbon.sign_off import (
    LockError,
    approve_period,
    discard_period,
    prepare_period,
    release_changes,
    reopen_period,
)
from projects.access import actor_of, require_organisation_role
from projects.records import Actor
from runs.selectors import sites

WITH_REASON = ("release", "reopen")


@require_safe
def books(request: HttpRequest) -> HttpResponse:
    """List periods and restatements."""
    actor = actor_of(request)
    require_organisation_role(actor, write=False)
    first, last = last_month(timezone.now().date())
    return _books(request, actor, PeriodForm(initial={"start_on": first, "end_on": last}))


def _books(request: HttpRequest, actor: Actor, form: PeriodForm) -> HttpResponse:
    cause, site = request.GET.get("cause", ""), request.GET.get("site", "")
    log = restatement_rows(actor.organisation_id, cause=cause, site_slug=site)
    context = {
        "tab": "books",
        "periods": period_rows(actor.organisation_id),
        "log": log,
        "is_filtered": bool(cause or site),
        "chosen_cause": cause,
        "chosen_site": site,
        "causes": [(one, cause_words(one)) for one in CAUSES],
        "sites": sites(actor.organisation_id),
        "form": form,
        "may_write": actor.organisation_role == "admin",
    }
    return render(request, "carbon/books.html", context)


@require_POST
def book_prepare(request: HttpRequest) -> HttpResponse:
    """Take the totals of a period down."""
    actor = actor_of(request)
    require_organisation_role(actor, write=True)
    form = PeriodForm(request.POST)
    if form.is_valid():
        try:
            lock_id = prepare_period(actor, *form.span(), now=timezone.now())
        except LockError as error:
            form.add_error(None, str(error))
        else:
            messages.success(request, _("The period is prepared. Somebody else approves it."))
            return redirect("book_period", lock_id=lock_id)
    return _books(request, actor, form)


def _lock(actor: Actor, lock_id: UUID) -> PeriodLock:
    found = PeriodLock.objects.filter(pk=lock_id, organisation_id=actor.organisation_id).first()
    if found is None:
        raise Http404("No such period.")
    return found


@require_safe
def book_period(request: HttpRequest, lock_id: UUID) -> HttpResponse:
    """Show a period: what was signed, what the books say now, what waits."""
    actor = actor_of(request)
    lock = _lock(actor, lock_id)
    require_organisation_role(actor, write=False)
    return _period(request, actor, lock, ReasonForm())


def _period(
    request: HttpRequest, actor: Actor, lock: PeriodLock, form: ReasonForm, error: str = ""
) -> HttpResponse:
    held = held_rows(actor.organisation_id, lock)
    is_locked = lock.approved_at is not None and lock.reopened_at is None
    context = {
        "tab": "books",
        "period": period_row(lock),
        "figures": figure_rows(lock),
        "held": held if is_locked else [],
        "is_locked": is_locked,
        "is_prepared": lock.approved_at is None,
        "is_own": lock.prepared_by.casefold() == actor.label.casefold(),
        "form": form,
        "error": error,
        "may_write": actor.organisation_role == "admin",
    }
    return render(request, "carbon/book_period.html", context)


@require_POST
def book_action(request: HttpRequest, lock_id: UUID, action: str) -> HttpResponse:
    """Approve, drop, release or reopen a period."""
    actor = actor_of(request)
    lock = _lock(actor, lock_id)
    require_organisation_role(actor, write=True)
    form = ReasonForm(request.POST if action in WITH_REASON else None)
    if action in WITH_REASON and not form.is_valid():
        return _period(request, actor, lock, form)
    reason = form.cleaned_data["reason"] if action in WITH_REASON else ""
    now = timezone.now()
    doors: dict[str, Callable[[], object]] = {
        "approve": lambda: approve_period(actor, lock_id, now=now),
        "drop": lambda: discard_period(actor, lock_id),
        "release": lambda: release_changes(actor, lock_id, reason=reason),
        "reopen": lambda: reopen_period(actor, lock_id, reason=reason, now=now),
    }
    if action not in doors:
        raise Http404("No such action.")
    try:
        doors[action]()
    except LockError as error:
        return _period(request, actor, lock, form, str(error))
    messages.success(request, _done(action))
    return redirect("books") if action == "drop" else redirect("book_period", lock_id=lock_id)


def _done(action: str) -> str:
    return {
        "approve": _("The period is locked: what would change it waits for a release."),
        "drop": _("The prepared period is dropped."),
        "release": _("The changes are posted. The totals that were signed stay beside them."),
        "reopen": _("The period is open again. What waited is posted in a moment."),
    }[action]
