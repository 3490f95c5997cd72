"""Pages of price feeds: connect a provider's price list, refresh it, let it go."""

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from billing.price_feed_forms import PriceFeedForm
from billing.price_records import PricesRefusedError
from billing.price_selectors import price_books
from billing.services import ask_for_refresh, connect_price_feed, disconnect_price_feed
from projects.access import Actor, actor_of, require_organisation_role


@require_http_methods(["GET", "HEAD", "POST"])
def price_feed_new(request: HttpRequest) -> HttpResponse:
    """Connect a price book to a provider's price list, and refresh it."""
    actor = _admin_of(request)
    form = PriceFeedForm(request.POST if request.method == "POST" else None)
    if form.is_valid():
        try:
            book = connect_price_feed(
                actor,
                form.cleaned_data["book"],
                feed=form.cleaned_data["feed"],
                wish=form.wish(),
            )
        except PricesRefusedError as error:
            form.add_error(error.column if error.column in form.fields else None, error.reason)
        else:
            ask_for_refresh(actor, book)
            messages.success(request, _("The feed is connected and is being read."))
            return _to_feeds()
    return render(
        request, "billing/price_feed_new.html", {"form": form, "submit": _("Connect and read")}
    )


@require_POST
def price_feed_refresh(request: HttpRequest, book_id: int) -> HttpResponse:
    """Read a price list now."""
    actor = _admin_of(request)
    book = price_books(actor.organisation_id).filter(pk=book_id).exclude(feed="").first()
    if book is None:
        raise Http404("No such price feed.")
    ask_for_refresh(actor, book)
    return _to_feeds()


@require_POST
def price_feed_disconnect(request: HttpRequest, book_id: int) -> HttpResponse:
    """Read a price list no longer; its prices stay."""
    if disconnect_price_feed(_admin_of(request), book_id) is None:
        raise Http404("No such price feed.")
    messages.success(request, _("The feed is disconnected; its prices stay in the book."))
    return _to_feeds()


def _to_feeds() -> HttpResponse:
    return redirect(f"{reverse('prices')}#feeds")


def _admin_of(request: HttpRequest) -> Actor:
    actor = actor_of(request)
    require_organisation_role(actor, write=True)
    return actor
