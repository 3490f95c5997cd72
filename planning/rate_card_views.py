"""The page of a site's rate card: what its own hardware costs, and since when."""

from datetime import UTC, datetime

from django.contrib import messages
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from planning.charging import ask_to_charge, source_of
from planning.rate_card_forms import RateCardForm
from planning.rate_cards import RateCardError, card_on, cards_of, save_rate_card
from projects.access import Actor, actor_of, require_organisation_role
from runs.records import SiteRecord
from runs.selectors import site_by_slug


@require_http_methods(["GET", "HEAD", "POST"])
def rate_card(request: HttpRequest, slug: str) -> HttpResponse:
    """Show the cards of a site; POST states one and asks for its charges."""
    actor = actor_of(request)
    site = site_by_slug(actor.organisation_id, slug)
    if site is None:
        raise Http404("No such site.")
    require_organisation_role(actor, write=request.method == "POST")
    cards = cards_of(site)
    in_force = card_on(cards, datetime.now(UTC).date())
    form = RateCardForm.after(in_force, currency="USD")
    if request.method == "POST":
        form = RateCardForm(request.POST)
        if form.is_valid() and _state(actor, site, form):
            messages.success(request, _("The card holds. Charges follow in a moment."))
            return redirect("rate_card", slug=slug)
    context = {
        "tab": "sites",
        "site": site,
        "cards": cards,
        "in_force": in_force,
        "source": source_of(site),
        "form": form,
        "may_write": actor.organisation_role == "admin",
    }
    return render(request, "planning/rate_card.html", context)


@transaction.atomic
def _state(actor: Actor, site: SiteRecord, form: RateCardForm) -> bool:
    """Save the card and ask for the charges since; a refusal is shown in the form."""
    since = form.first_day()
    try:
        save_rate_card(actor, site, valid_from=since, card=form.card())
    except RateCardError as error:
        form.refuse(error.field, str(error))
        return False
    ask_to_charge(actor.organisation_id, site.site_id, since=since)
    return True
