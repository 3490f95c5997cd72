"""The Google Cloud Billing Catalog (CloudCatalog): its words to FeedPrice records."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from typing import Any, Final

from django.utils.translation import gettext as _
from google.api_core import exceptions as google_errors
from google.api_core.retry import Retry, if_exception_type
from google.auth import exceptions as auth_errors
from google.protobuf.json_format import ParseError

from billing.amounts import exact_text
from billing.price_feeds.contract import (
    ACCELERATORS,
    FREE_TIERS,
    GIB_NOTE,
    LATER_TIERS,
    OTHER_PRODUCTS,
    OTHER_TERMS,
    STORAGE,
    TRANSFER,
    UNKNOWN_ACCELERATOR,
    FeedMachine,
    FeedPrice,
    FeedReading,
    FeedSettings,
    PriceFeedError,
    Report,
    per_gb,
)
from billing.price_feeds.gcp_machines import Parts, part_of, with_machines
from formulae.money import Money, MoneyError
from formulae.storage import price_per_tb_from_price_per_gib
from runs.catalogue import accelerator_from_text

COMPUTE: Final = "6F81-5844-456A"
CLOUD_STORAGE: Final = "95FF-2EF5-5EA1"
SERVICES_OF: Final = {
    COMPUTE: (ACCELERATORS, TRANSFER),
    CLOUD_STORAGE: (STORAGE, TRANSFER),
}
PURCHASES: Final = {
    "OnDemand": "on_demand",
    "Preemptible": "spot",
    "Commit1Yr": "reserved_1y",
    "Commit3Yr": "reserved_3y",
}
SAME_UNITS: Final = (
    ("accelerator_h", "h"),
    ("part_h", "h"),
    ("part_h", "GiBy.h"),
    ("gb", "GBy"),
)
PAGE_ROWS: Final = 5000
TIMEOUT_S: Final = 60.0
RETRY_S: Final = 120.0
_NOT_PLAIN: Final = re.compile(
    r"DWS|Sole Tenancy|Reserved|Calendar|vGPU|Workstation|Queued|Flex", re.IGNORECASE
)
_GPU: Final = re.compile(r"\bGPU\b|Nvidia|\bRTX\b|gpu slice", re.IGNORECASE)
_PLACE: Final = re.compile(
    r"\s*(?:attached to Spot Preemptible VMs)?\s*(?:running in|for [13] Years?).*$|"
    r"^Commitment v1: ",
    re.IGNORECASE,
)
_STORAGE: Final = (
    (re.compile(r"^Standard Storage "), "storage_object", "Standard"),
    (re.compile(r"^Nearline Storage "), "storage_object_infrequent", "Nearline"),
    (re.compile(r"^Coldline Storage "), "storage_object_infrequent", "Coldline"),
    (re.compile(r"^Archive Storage "), "storage_archive", "Archive"),
)
_OPERATIONS: Final = re.compile(
    r"(?P<tier>Standard|Nearline|Coldline|Archive)?.*\bClass (?P<letter>[AB]) Operations",
    re.IGNORECASE,
)
_EXTRA: Final = re.compile(r"Early Delete|Tagging|Multi-Region|Dual-Region", re.IGNORECASE)
_EGRESS: Final = re.compile(
    r"^Network Internet (?:Data Transfer Out|Egress)|^Download ", re.IGNORECASE
)
_INTER_REGION: Final = re.compile(
    r"^Network Inter Region (?:Data Transfer Out|Egress)|"
    r"^Network Data Transfer GCP Inter Region",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class GcpPriceFeed:
    """Reads the catalogue through a CloudCatalogClient."""

    client: Any

    def __call__(
        self, settings: FeedSettings, machines: Iterable[FeedMachine], report: Report
    ) -> FeedReading:
        """Read every SKU of the services that were asked for, in the regions that were."""
        reading, parts = FeedReading(), Parts()
        for service, name in self._services(settings):
            for sku in self._skus(service):
                reading.seen += 1
                if reading.seen % 500 == 1:
                    report(reading.seen, _("Google Cloud: {service}").format(service=name))
                _read(sku, settings, reading, parts)
        reading.prices = with_machines(reading.prices, parts, machines, reading.ignored)
        return reading.settled()

    def _services(self, settings: FeedSettings) -> list[tuple[str, str]]:
        """The resource names of the services that hold what was asked for.

        Raises:
            PriceFeedError: the catalogue does not list one of them.
        """
        wanted = {
            service
            for service, kinds in SERVICES_OF.items()
            if any(kind in settings.services for kind in kinds)
        }
        listed = {
            one.service_id: (one.name, one.display_name)
            for one in _pages(lambda: self.client.list_services(**_patience()))
            if one.service_id in wanted
        }
        if missing := sorted(wanted - set(listed)):
            raise PriceFeedError(
                "missing_service",
                _("The Google Cloud catalogue does not list the services {ids}.").format(
                    ids=", ".join(missing)
                ),
                is_permanent=True,
            )
        return [listed[service] for service in sorted(listed)]

    def _skus(self, service: str) -> Iterator[Any]:
        request = {"parent": service, "page_size": PAGE_ROWS}
        return _pages(lambda: self.client.list_skus(request=request, **_patience()))


def _patience() -> dict[str, Any]:
    """Try again where that can help: too many questions, a server that is not well."""
    passing = if_exception_type(
        google_errors.TooManyRequests,
        google_errors.ServiceUnavailable,
        google_errors.InternalServerError,
        google_errors.BadGateway,
        google_errors.GatewayTimeout,
    )
    retry = Retry(predicate=passing, initial=0.5, maximum=20.0, multiplier=2.0, timeout=RETRY_S)
    return {"retry": retry, "timeout": TIMEOUT_S}


def _pages(ask: Any) -> Iterator[Any]:
    """Every item of every page.

    Raises:
        PriceFeedError: a page could not be had or read.
    """
    try:
        yield from ask()
    except auth_errors.GoogleAuthError as error:
        raise PriceFeedError(
            "no_credentials",
            _(
                "No Google Cloud credentials were found or accepted ({error}): give web and worker "
                "Application Default Credentials, or an API key in "
                "COSTWATCH_CLOUD_BILLING_API_KEY. The catalogue is public: no role is needed, "
                "but the Cloud Billing API must be enabled in the project of the key."
            ).format(error=error),
            is_permanent=True,
        ) from error
    except google_errors.RetryError as error:
        raise _failed("throttled", error.cause or error, is_permanent=False) from error
    except (google_errors.Forbidden, google_errors.Unauthorized) as error:
        raise PriceFeedError(
            "denied",
            _(
                "Google Cloud refuses the price catalogue: enable the Cloud Billing API "
                "(cloudbilling.googleapis.com) for the project of the credentials, and let an API "
                "key call it. Google says: {said}"
            ).format(said=error.message),
            is_permanent=True,
        ) from error
    except google_errors.GoogleAPICallError as error:
        raise _failed("failed", error, is_permanent=False) from error
    except OSError as error:
        raise _failed("unreachable", error, is_permanent=False) from error
    except (ParseError, ValueError) as error:  # a page that is not as documented
        raise _failed("unreadable", error, is_permanent=False) from error


def _failed(code: str, error: BaseException, *, is_permanent: bool) -> PriceFeedError:
    words = _("The Google Cloud price catalogue could not be read: {error}").format(
        error=str(error).strip().split("\n")[0][:300]
    )
    return PriceFeedError(code, words, is_permanent=is_permanent)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rate:
    """What one unit of a SKU costs now."""

    price: Money
    unit: str
    effective_on: date
    published: str
    note: str


def _read(sku: Any, settings: FeedSettings, reading: FeedReading, parts: Parts) -> None:
    regions = [region for region in sku.service_regions if region in settings.regions]
    what = _what(sku, settings)
    if what is None:
        reading.ignored[OTHER_PRODUCTS] += 1
    if not regions or what is None:
        return
    price = _price(sku, what, reading)
    if price is None:
        return
    for region in regions:
        one = replace(price, region=region)
        if price.cost_class:
            reading.prices.append(one)
        else:
            parts.add(sku.description, one)


def _price(sku: Any, what: tuple[str, str, str], reading: FeedReading) -> FeedPrice | None:
    """The price of a SKU, of no region yet; None, counted, where it is no price of ours."""
    cost_class, unit, name = what
    purchase = PURCHASES.get(sku.category.usage_type)
    key = accelerator_from_text(name) if cost_class == "accelerator" else ""
    if key is None:
        reading.ignored[UNKNOWN_ACCELERATOR] += 1
        reading.unknown_names.add(sku.description)
        return None
    rate = None if _NOT_PLAIN.search(sku.description) else _rate(sku, reading)
    price = _in_unit(rate, unit) if rate else None
    if rate is None or price is None or purchase is None:
        reading.ignored[OTHER_TERMS] += 1
        return None
    return FeedPrice(
        cost_class=cost_class,
        unit=unit,
        price=price,
        effective_on=rate.effective_on,
        provider="gcp",
        region="",
        sku_id=sku.sku_id,
        published=rate.published,
        accelerator_key=key,
        instance_type=name,
        purchase=purchase,
        note=rate.note,
    )


def _what(sku: Any, settings: FeedSettings) -> tuple[str, str, str] | None:
    """Cost class, unit and product of a SKU; an empty class is a part of a machine."""
    description = sku.description
    if ACCELERATORS in settings.services:
        if part_of(description):
            return "", "part_h", description
        is_gpu = sku.category.resource_group == "GPU" or _GPU.search(description)
        if is_gpu and sku.category.resource_family in ("Compute", ""):
            return "accelerator", "accelerator_h", _PLACE.sub("", description)
    if STORAGE in settings.services and (found := _storage(description)):
        return found
    if TRANSFER in settings.services:
        if _EGRESS.search(description):
            return "egress", "gb", ""
        if _INTER_REGION.search(description):
            return "transfer_inter_region", "gb", ""
    return None


def _storage(description: str) -> tuple[str, str, str] | None:
    if _EXTRA.search(description):
        return None
    for pattern, cost_class, name in _STORAGE:
        if pattern.search(description):
            return cost_class, "tb_month", name
    if match := _OPERATIONS.search(description):
        cost_class = "request_put" if match["letter"].upper() == "A" else "request_get"
        return cost_class, "1000_requests", (match["tier"] or "Standard").capitalize()
    return None


def _rate(sku: Any, reading: FeedReading) -> _Rate | None:
    """The newest rate of a SKU: its first tier that costs something."""
    if not sku.pricing_info:
        return None
    newest = sku.pricing_info[-1]
    expression = newest.pricing_expression
    tiers = [(tier.start_usage_amount, _money(tier.unit_price)) for tier in expression.tiered_rates]
    paid = [price for _start, price in sorted(tiers, key=lambda one: one[0]) if price.amount]
    if not tiers:
        return None
    price = paid[0] if paid else tiers[0][1]
    later, free = len(paid[1:]), (len(tiers) - len(paid) if paid else 0)
    reading.ignored.update({LATER_TIERS: later} if later else {})
    reading.ignored.update({FREE_TIERS: free} if free else {})
    said = f"{exact_text(price.amount)} {price.currency} per {expression.usage_unit}"
    notes = [f"{said}, {GIB_NOTE}" if "GiBy" in expression.usage_unit else said]
    if later:
        notes.append(f"first of {later + 1} paid tiers")
    effective = newest.effective_time
    return _Rate(
        price=price,
        unit=expression.usage_unit,
        effective_on=date(effective.year, effective.month, effective.day),
        published=f"effective {effective.isoformat(timespec='seconds').replace('+00:00', 'Z')}",
        note="; ".join(notes),
    )


def _money(amount: Any) -> Money:
    """Whole units and nanos, exactly.

    Raises:
        ValueError: the catalogue states an amount that no price is.
    """
    try:
        value = Decimal(amount.units) + Decimal(amount.nanos).scaleb(-9)
        return Money(amount=value, currency=amount.currency_code)
    except MoneyError as error:
        raise ValueError(str(error)) from error


def _in_unit(rate: _Rate, unit: str) -> Money | None:
    """The price of our unit; None where the SKU is sold by another measure."""
    if (unit, rate.unit) in SAME_UNITS:
        return rate.price
    if (unit, rate.unit) == ("tb_month", "GiBy.mo"):
        return price_per_tb_from_price_per_gib(rate.price)
    if (unit, rate.unit) == ("gb", "GiBy"):
        return per_gb(rate.price)
    if (unit, rate.unit) in (("1000_requests", "count"), ("tb_month", "GBy.mo")):
        return rate.price.times(Decimal(1000))
    return None
