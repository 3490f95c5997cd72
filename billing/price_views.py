"""Pages of prices and exchange rates: what is in force, its history, stating and withdrawing."""

from datetime import date
from functools import cache
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.http import urlencode
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from billing.doors import may_change_prices
from billing.price_documents import price_template, rate_template
from billing.price_feed_rows import feed_rows
from billing.price_forms import PriceFileForm, PriceForm, RateFileForm, RateForm
from billing.price_reading import MAX_FILE_BYTES
from billing.price_records import (
    KEY_FIELDS,
    ExchangeRateRecord,
    Imported,
    PriceRecord,
    PricesRefusedError,
)
from billing.price_selectors import newest_exchange_rates, price_history, prices_in_force
from billing.price_words import (
    PRICE_CLASS_NAMES,
    PROVIDER_NAMES,
    PURCHASE_NAMES,
    UNIT_NAMES,
)
from billing.services import (
    add_exchange_rate,
    add_price,
    import_exchange_rates,
    import_prices,
    withdraw_exchange_rate,
    withdraw_price,
)
from projects.access import Actor, actor_of, require_organisation_role
from runs.selectors import accelerators

OLD_RATE_DAYS = 31
ANY_PLACE = "-"  # the filter's word for prices of no provider


@require_safe
def prices(request: HttpRequest) -> HttpResponse:
    """Prices in force on a day, by class and provider."""
    actor = actor_of(request)
    on = _day(request.GET.get("on", "")) or timezone.now().date()
    found = prices_in_force(actor.organisation_id, on=on)
    cost_class, provider = request.GET.get("cost_class", ""), request.GET.get("provider", "")
    shown = [
        record
        for record in found
        if cost_class in ("", record.cost_class) and provider in ("", record.provider or ANY_PLACE)
    ]
    context = {
        "groups": _by_class(actor, shown),
        "shown": len(shown),
        "total": len(found),
        "on": on,
        "cost_class": cost_class,
        "provider": provider,
        "classes": [(key, PRICE_CLASS_NAMES[key]) for key in _present(found, "cost_class")],
        "providers": [
            (key or ANY_PLACE, PROVIDER_NAMES.get(key, key) or _("Any provider"))
            for key in _present(found, "provider")
        ],
        "own_count": sum(not record.is_shipped and not record.feed for record in found),
        "rates": _rate_rows(actor, on),
        "feeds": feed_rows(actor.organisation_id),
        "may_change": may_change_prices(actor),
    }
    return render(request, "billing/prices.html", context)


def _by_class(actor: Actor, shown: list[PriceRecord]) -> list[dict[str, Any]]:
    """The rows under the names of their classes, own prices first."""
    ordered = sorted(shown, key=lambda record: (record.is_shipped, *record.key[1:]))
    groups = [
        {
            "key": cost_class,
            "name": name,
            "rows": [price_row(actor, one) for one in ordered if one.cost_class == cost_class],
        }
        for cost_class, name in PRICE_CLASS_NAMES.items()
    ]
    return [group for group in groups if group["rows"]]


def _present(found: list[PriceRecord], name: str) -> list[str]:
    """What the prices in force hold in a column, in the order of the list of classes or by name."""
    values = {getattr(record, name) for record in found}
    if name == "cost_class":
        return [key for key in PRICE_CLASS_NAMES if key in values]
    return sorted(values)


def price_row(actor: Actor, record: PriceRecord) -> dict[str, Any]:
    """A price as a table shows it."""
    key = dict(zip(KEY_FIELDS, record.key, strict=True))
    accelerator, product = record.accelerator_key, record.instance_type
    return {
        "record": record,
        "class_name": PRICE_CLASS_NAMES[record.cost_class],
        "title": _accelerator_name(accelerator) or product or PRICE_CLASS_NAMES[record.cost_class],
        "subtitle": product if accelerator else "",
        "unit_name": UNIT_NAMES[record.unit],
        "purchase_name": PURCHASE_NAMES[record.purchase],
        "provider_name": PROVIDER_NAMES.get(record.provider, record.provider),
        "digits": _digits(record),
        "history_url": f"{reverse('price_history')}?{urlencode(key)}",
        "may_withdraw": not record.is_shipped and may_change_prices(actor),
    }


def _accelerator_name(key: str) -> str:
    """The name of a shipped accelerator; the key of one of the organisation's own."""
    return _shipped_names().get(key, key)


@cache
def _shipped_names() -> dict[str, str]:
    return {spec.key: spec.name for spec in accelerators()}


def _digits(record: PriceRecord) -> int:
    """So many decimals that no price looks like another: two to four, all of a small one's."""
    decimals = -int(record.price.amount.normalize().as_tuple().exponent)
    is_small = record.price.amount < 1
    return min(max(decimals, 2), 8 if is_small else 4)


def _day(text: str) -> date | None:
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


@require_safe
def price_history_page(request: HttpRequest) -> HttpResponse:
    """Every price of one thing, newest first."""
    actor = actor_of(request)
    parts = [request.GET.get(name, "") for name in KEY_FIELDS]
    cost_class, provider, region, accelerator, instance, purchase = parts
    key = (cost_class, provider, region, accelerator, instance, purchase)
    found = price_history(actor.organisation_id, key)
    context = {
        "rows": [price_row(actor, record) for record in found],
        "today": timezone.now().date(),
        "may_change": may_change_prices(actor),
    }
    return render(request, "billing/price_history.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
def price_new(request: HttpRequest) -> HttpResponse:
    """State a price by hand, or a list of them as CSV."""
    actor = actor_of(request)
    require_organisation_role(actor, write=True)
    sent = request.POST if request.method == "POST" else None
    is_file = sent is not None and "into_book" in sent
    choices = [(spec.key, spec.name) for spec in accelerators(actor.organisation_id)]
    form = PriceForm(
        None if is_file else sent,
        accelerators=choices,
        initial={"valid_from": timezone.now().date().isoformat()},
    )
    file_form = PriceFileForm(sent if is_file else None, request.FILES if is_file else None)
    if sent is not None and (_file_taken if is_file else _price_taken)(
        request, file_form if is_file else form
    ):
        return redirect("prices")
    context = {"form": form, "file_form": file_form, "submit": _("Add price")}
    return render(request, "billing/price_new.html", context)


def _price_taken(request: HttpRequest, form: Any) -> bool:
    """Add the form's price; where it cannot be, the form says why."""
    if not form.is_valid() or form.wish is None:
        return False
    try:
        add_price(actor_of(request), form.wish, book=form.cleaned_data["book"])
    except PricesRefusedError as error:
        form.add_error(error.column if error.column in form.fields else None, error.reason)
        return False
    messages.success(request, _("The price is in the book."))
    return True


def _file_taken(request: HttpRequest, form: Any) -> bool:
    """Import the form's price list; where it cannot be, the form says which row is wrong."""
    if not form.is_valid():
        return False
    sent = form.cleaned_data["file"]
    try:
        imported = import_prices(
            actor_of(request),
            sent.read(MAX_FILE_BYTES + 1),
            file=sent.name,
            book=form.cleaned_data["into_book"],
        )
    except PricesRefusedError as error:
        form.add_error("into_book" if error.column == "book" else "file", error.sentence)
        return False
    messages.success(request, imported_words(imported))
    return True


def imported_words(imported: Imported) -> str:
    """What an import brought, in one sentence."""
    new = ngettext("{count} new row", "{count} new rows", imported.added).format(
        count=imported.added
    )
    return _("{new}, {unchanged} known already.").format(new=new, unchanged=imported.unchanged)


@require_POST
def price_withdraw(request: HttpRequest, price_id: UUID) -> HttpResponse:
    """Take a wrong price out."""
    price = withdraw_price(
        _admin_of(request),
        price_id,
        now=timezone.now(),
        reason=request.POST.get("reason", "").strip()[:500],
    )
    if price is None:
        raise Http404("No such price.")
    messages.success(request, _("The price is withdrawn: it counts on no day."))
    return redirect("prices")


def _admin_of(request: HttpRequest) -> Actor:
    actor = actor_of(request)
    require_organisation_role(actor, write=True)
    return actor


@require_safe
def price_template_file(request: HttpRequest) -> HttpResponse:
    """The layout of a price list."""
    actor_of(request)
    return _download(price_template(), "prices.csv")


@require_safe
def exchange_rate_template_file(request: HttpRequest) -> HttpResponse:
    """The layout of a file of exchange rates."""
    actor_of(request)
    return _download(rate_template(), "exchange-rates.csv")


def _download(text: str, name: str) -> HttpResponse:
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return HttpResponse(text, content_type="text/csv; charset=utf-8", headers=headers)


def _rate_rows(actor: Actor, on: date) -> list[dict[str, Any]]:
    return [
        {
            "rate": rate,
            "is_old": (on - rate.on_date).days > OLD_RATE_DAYS,
            "digits": _rate_digits(rate),
        }
        for rate in newest_exchange_rates(actor.organisation_id)
    ]


def _rate_digits(rate: ExchangeRateRecord) -> int:
    decimals = -int(rate.rate.normalize().as_tuple().exponent)
    return min(max(decimals, 2), 8)


@require_http_methods(["GET", "HEAD", "POST"])
def exchange_rate_new(request: HttpRequest) -> HttpResponse:
    """State an exchange rate by hand, or a file of them."""
    _admin_of(request)
    sent = request.POST if request.method == "POST" else None
    is_file = sent is not None and "file_source" in sent
    form = RateForm(None if is_file else sent, initial={"date": timezone.now().date().isoformat()})
    file_form = RateFileForm(sent if is_file else None, request.FILES if is_file else None)
    if sent is not None and (_rates_taken if is_file else _rate_taken)(
        request, file_form if is_file else form
    ):
        return redirect(f"{reverse('prices')}#rates")
    context = {"form": form, "file_form": file_form, "submit": _("Add rate")}
    return render(request, "billing/exchange_rate_new.html", context)


def _rate_taken(request: HttpRequest, form: Any) -> bool:
    if not form.is_valid() or form.wish is None:
        return False
    try:
        add_exchange_rate(actor_of(request), form.wish)
    except PricesRefusedError as error:
        form.add_error(error.column if error.column in form.fields else None, error.reason)
        return False
    messages.success(request, _("The exchange rate is stated."))
    return True


def _rates_taken(request: HttpRequest, form: Any) -> bool:
    if not form.is_valid():
        return False
    sent = form.cleaned_data["file"]
    try:
        imported = import_exchange_rates(
            actor_of(request),
            sent.read(MAX_FILE_BYTES + 1),
            file=sent.name,
            source=form.cleaned_data["file_source"],
            since=form.cleaned_data["since"],
        )
    except PricesRefusedError as error:
        form.add_error("file", error.sentence)
        return False
    messages.success(request, imported_words(imported))
    return True


@require_POST
def exchange_rate_withdraw(request: HttpRequest, rate_id: UUID) -> HttpResponse:
    """Take a wrong exchange rate out."""
    rate = withdraw_exchange_rate(
        _admin_of(request),
        rate_id,
        now=timezone.now(),
        reason=request.POST.get("reason", "").strip()[:500],
    )
    if rate is None:
        raise Http404("No such exchange rate.")
    messages.success(request, _("The exchange rate is withdrawn."))
    return redirect(f"{reverse('prices')}#rates")
