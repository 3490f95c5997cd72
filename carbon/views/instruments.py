"""Pages of instruments: contracts by market and year, what they cover, residual mixes."""

from uuid import UUID

from django.contrib import messages
from django.http import FileResponse, Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from carbon.evidence import open_evidence
from carbon.instrument_forms import InstrumentForm, ReasonForm, ResidualMixForm
from carbon.instrument_pages import contract_of, kind_words, last_day, market_years, uses_of
from carbon.instrument_reads import Contract
from carbon.instruments import (
    InstrumentError,
    add_instrument,
    keep_evidence,
    with_evidence,
    withdraw_instrument,
)
from carbon.renewing import state_residual_mix
from carbon.residual_mixes import mixes_of
from carbon.site_factors import FactorError
from projects.access import actor_of, require_organisation_role
from projects.records import Actor


def _may_write(actor: Actor) -> bool:
    return actor.organisation_role == "admin"


@require_safe
def instruments(request: HttpRequest) -> HttpResponse:
    """List markets and years with their contracts and residual mixes."""
    actor = actor_of(request)
    require_organisation_role(actor, write=False)
    return _list(request, actor, ResidualMixForm())


def _list(request: HttpRequest, actor: Actor, form: ResidualMixForm) -> HttpResponse:
    context = {
        "tab": "instruments",
        "years": market_years(actor.organisation_id),
        "mixes": mixes_of(actor.organisation_id),
        "mix_form": form,
        "may_write": _may_write(actor),
    }
    return render(request, "carbon/instruments.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
def instrument_new(request: HttpRequest) -> HttpResponse:
    """Enter a contract or certificate."""
    actor = actor_of(request)
    require_organisation_role(actor, write=True)
    form = InstrumentForm(request.POST or None, request.FILES or None)
    if request.method == "POST" and form.is_valid():
        instrument_id = _add(actor, form)
        if instrument_id is not None:
            messages.success(request, _("The instrument is entered. Market-based figures follow."))
            return redirect("instrument", instrument_id=instrument_id)
    context = {"form": form, "tab": "instruments"}
    return render(request, "carbon/instrument_form.html", context)


def _add(actor: Actor, form: InstrumentForm) -> UUID | None:
    """Keep the evidence and enter the instrument; what is wrong is said on the form."""
    upload = form.cleaned_data["evidence"]
    try:
        evidence = keep_evidence(upload.name, upload.chunks()) if upload else None
        wish = with_evidence(form.wish(), evidence)
        return add_instrument(actor, wish, known_at=timezone.now())
    except InstrumentError as error:
        form.add_error(None, str(error))
        return None


def _contract(actor: Actor, instrument_id: UUID) -> Contract:
    found = contract_of(actor.organisation_id, instrument_id)
    if found is None:
        raise Http404("No such instrument.")
    return found


@require_safe
def instrument(request: HttpRequest, instrument_id: UUID) -> HttpResponse:
    """Show one instrument: what it conveys, its proof, what of it is used."""
    actor = actor_of(request)
    found = _contract(actor, instrument_id)
    require_organisation_role(actor, write=False)
    return render(request, "carbon/instrument.html", _context(actor, found, ReasonForm()))


def _context(actor: Actor, found: Contract, form: ReasonForm) -> dict[str, object]:
    return {
        "tab": "instruments",
        "contract": found,
        "kind": kind_words(found.kind),
        "last_day": last_day(found.end),
        "uses": uses_of(actor.organisation_id, found),
        "reason_form": form,
        "may_write": _may_write(actor),
    }


@require_POST
def instrument_withdraw(request: HttpRequest, instrument_id: UUID) -> HttpResponse:
    """Let an instrument cover nothing any more."""
    actor = actor_of(request)
    found = _contract(actor, instrument_id)
    require_organisation_role(actor, write=True)
    form = ReasonForm(request.POST)
    if form.is_valid():
        reason = form.cleaned_data["reason"]
        try:
            withdraw_instrument(actor, instrument_id, known_at=timezone.now(), reason=reason)
        except InstrumentError as error:
            form.add_error(None, str(error))
        else:
            messages.success(request, _("The instrument is withdrawn and covers nothing."))
            return redirect("instruments")
    return render(request, "carbon/instrument.html", _context(actor, found, form))


@require_safe
def instrument_evidence(request: HttpRequest, instrument_id: UUID) -> FileResponse:
    """Give the evidence as it came."""
    actor = actor_of(request)
    found = _contract(actor, instrument_id)
    require_organisation_role(actor, write=False)
    file = open_evidence(found.evidence_sha256) if found.evidence_sha256 else None
    if file is None:
        raise Http404("No evidence is kept.")
    return FileResponse(file, as_attachment=True, filename=found.evidence_name or "evidence")


@require_POST
def residual_mix_set(request: HttpRequest) -> HttpResponse:
    """State the residual mix of a market zone and year."""
    actor = actor_of(request)
    require_organisation_role(actor, write=True)
    form = ResidualMixForm(request.POST)
    if form.is_valid():
        try:
            state_residual_mix(actor, **form.cleaned_data)
        except FactorError as error:
            form.add_error(None, str(error))
        else:
            messages.success(request, _("The residual mix holds. Figures follow in a moment."))
            return redirect("instruments")
    return _list(request, actor, form)
