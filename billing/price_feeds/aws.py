"""The AWS price list (the `pricing` API's GetProducts): its words to FeedPrice records."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from typing import Any, Final

from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    NoCredentialsError,
    PartialCredentialsError,
)
from django.utils.translation import gettext as _

from billing.amounts import exact_text
from billing.price_feeds.aws_words import REQUEST_TYPES, STORAGE_TYPES
from billing.price_feeds.contract import (
    ACCELERATORS,
    COUNT_DIFFERS,
    FREE_TIERS,
    GIB_NOTE,
    LATER_TIERS,
    OTHER_PRODUCTS,
    OTHER_TERMS,
    STORAGE,
    TRANSFER,
    FeedMachine,
    FeedPrice,
    FeedReading,
    FeedSettings,
    PriceFeedError,
    Report,
    per_gb,
)
from formulae.money import Money, divide
from formulae.storage import price_per_tb_from_price_per_gib
from formulae.units import NumberTextError, strict_decimal

PERMISSION: Final = "pricing:GetProducts"
PAGE_ROWS: Final = 100
# What an accelerated machine is called on the price list when nothing is added to it.
PLAIN_LINUX: Final = {
    "operatingSystem": "Linux",
    "tenancy": "Shared",
    "preInstalledSw": "NA",
    "capacitystatus": "Used",
}
RESERVED: Final = {"1yr": "reserved_1y", "3yr": "reserved_3y"}
_PREFIX: Final = re.compile(r"^(?:[A-Z]{2,4}[0-9]{0,2}-)(?=[A-Z][a-z])")
_EGRESS: Final = re.compile(r"(?:^|-)DataTransfer-Out-Bytes$")
_INTER_REGION: Final = re.compile(r"(?:^|-)AWS-Out-Bytes$")


@dataclass(frozen=True, slots=True, kw_only=True)
class AwsPriceFeed:
    """Reads the price list through a boto3 `pricing` client."""

    client: Any

    def __call__(
        self, settings: FeedSettings, machines: Iterable[FeedMachine], report: Report
    ) -> FeedReading:
        """Read the machines, storage and transfer of every region that was asked for."""
        asked = list(_questions(settings, list(machines)))
        reading = FeedReading()
        for number, question in enumerate(asked, start=1):
            report(reading.seen, _("AWS: {number} of {all}").format(number=number, all=len(asked)))
            for text in self._pages(question):
                reading.seen += 1
                product = _product(text)
                _read(product, question, reading)
        return reading.settled()

    def _pages(self, question: "_Question") -> Iterator[str]:
        filters = [
            {"Type": "TERM_MATCH", "Field": name, "Value": value}
            for name, value in question.filters.items()
        ]
        try:
            pages = self.client.get_paginator("get_products").paginate(
                ServiceCode=question.service,
                Filters=filters,
                FormatVersion="aws_v1",
                PaginationConfig={"PageSize": PAGE_ROWS},
            )
            for page in pages:
                yield from page.get("PriceList", [])
        except (NoCredentialsError, PartialCredentialsError) as error:
            raise PriceFeedError(
                "no_credentials",
                _(
                    "No AWS credentials were found: give web and worker a role or the usual AWS "
                    "environment variables; the only permission needed is {permission}."
                ).format(permission=PERMISSION),
                is_permanent=True,
            ) from error
        except ClientError as error:
            raise _client_error(error) from error
        except BotoCoreError as error:
            raise PriceFeedError(
                "unreachable",
                _("The AWS price list could not be reached: {error}").format(error=error),
                is_permanent=False,
            ) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class _Question:
    """One GetProducts: a service and what its products must be."""

    service: str
    region: str
    filters: Mapping[str, str]
    machine: FeedMachine | None = None


def _questions(settings: FeedSettings, machines: Sequence[FeedMachine]) -> Iterator[_Question]:
    for region in settings.regions:
        if ACCELERATORS in settings.services:
            for machine in machines:
                yield _Question(
                    service="AmazonEC2",
                    region=region,
                    filters={"instanceType": machine.name, "regionCode": region, **PLAIN_LINUX},
                    machine=machine,
                )
        if STORAGE in settings.services:
            for family in ("Storage", "API Request"):
                yield _Question(
                    service="AmazonS3",
                    region=region,
                    filters={"productFamily": family, "regionCode": region},
                )
        if TRANSFER in settings.services:
            yield _Question(
                service="AWSDataTransfer", region=region, filters={"fromRegionCode": region}
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Product:
    """One entry of the list, its shape checked."""

    sku_id: str
    family: str
    published: str
    attributes: Mapping[str, str]
    on_demand: Sequence["_Term"]
    reserved: Sequence["_Term"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Term:
    effective_on: date
    attributes: Mapping[str, str] = field(default_factory=dict)
    tiers: Sequence["_Tier"] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tier:
    begins_at: Decimal
    unit: str
    price: Money


def _product(text: str) -> _Product:
    """An entry from its JSON text.

    Raises:
        PriceFeedError: it is not what the API's documentation says.
    """
    try:
        document = json.loads(text)
        product, terms = document["product"], document.get("terms", {})
        return _Product(
            sku_id=str(product["sku"]),
            family=str(product.get("productFamily", "")),
            published=str(document.get("publicationDate", "")),
            attributes=product.get("attributes", {}),
            on_demand=[_term(one) for one in terms.get("OnDemand", {}).values()],
            reserved=[_term(one) for one in terms.get("Reserved", {}).values()],
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise PriceFeedError(
            "unreadable",
            _("An entry of the AWS price list cannot be read ({error}): {text}").format(
                error=error, text=str(text)[:120]
            ),
            is_permanent=False,
        ) from error


def _term(document: Mapping[str, Any]) -> _Term:
    tiers = [_tier(one) for one in document["priceDimensions"].values()]
    return _Term(
        effective_on=date.fromisoformat(document["effectiveDate"][:10]),
        attributes=document.get("termAttributes", {}),
        tiers=sorted(tiers, key=lambda tier: tier.begins_at),
    )


def _tier(document: Mapping[str, Any]) -> _Tier:
    (currency, amount), *_others = sorted(
        document["pricePerUnit"].items(), key=lambda item: item[0] != "USD"
    )
    return _Tier(
        begins_at=_exact(document.get("beginRange", "0")),
        unit=str(document.get("unit", "")),
        price=Money(amount=_exact(amount), currency=currency),
    )


def _exact(text: str) -> Decimal:
    try:
        parsed = strict_decimal(text)
    except NumberTextError as error:
        raise ValueError(str(error)) from error
    if parsed.digits_lost:
        raise ValueError(f"{text} has more than 18 decimals")
    return parsed.value


def _read(product: _Product, question: _Question, reading: FeedReading) -> None:
    if question.machine is not None:
        _read_machine(product, question, question.machine, reading)
        return
    usage_type = product.attributes.get("usagetype", "")
    plain = _PREFIX.sub("", usage_type)
    for types, unit in ((STORAGE_TYPES, "tb_month"), (REQUEST_TYPES, "1000_requests")):
        if question.service == "AmazonS3" and plain in types:
            cost_class, name = types[plain]
            _add_first_tier(product, question, reading, (cost_class, unit, name))
            return
    if question.service == "AWSDataTransfer":
        if _EGRESS.search(usage_type) and _goes_out(product):
            _add_first_tier(product, question, reading, ("egress", "gb", ""))
            return
        if _INTER_REGION.search(usage_type):
            _add_first_tier(product, question, reading, ("transfer_inter_region", "gb", ""))
            return
    reading.ignored[OTHER_PRODUCTS] += 1


def _goes_out(product: _Product) -> bool:
    return product.attributes.get("transferType", "AWS Outbound") == "AWS Outbound"


def _read_machine(
    product: _Product, question: _Question, machine: FeedMachine, reading: FeedReading
) -> None:
    attributes = product.attributes
    wanted = {"instanceType": machine.name, **PLAIN_LINUX}
    if any(attributes.get(name, value) != value for name, value in wanted.items()):
        reading.ignored[OTHER_PRODUCTS] += 1
        return
    named = attributes.get("gpu", "")
    if named.isdigit() and Decimal(named) != machine.accelerator_count:
        reading.ignored[COUNT_DIFFERS] += 1
        reading.unknown_names.add(f"{machine.name}: {named}")
        return
    for term in product.on_demand:
        _add_machine(product, question, reading, (term, "on_demand"))
    for term in product.reserved:
        purchase = RESERVED.get(term.attributes.get("LeaseContractLength", ""))
        is_plain = (
            term.attributes.get("PurchaseOption") == "No Upfront"
            and term.attributes.get("OfferingClass", "standard") == "standard"
        )
        if purchase is None or not is_plain:
            reading.ignored[OTHER_TERMS] += 1
            continue
        _add_machine(product, question, reading, (term, purchase))


def _add_machine(
    product: _Product, question: _Question, reading: FeedReading, bought: tuple[_Term, str]
) -> None:
    term, purchase = bought
    hourly = [tier for tier in term.tiers if tier.unit in ("Hrs", "Hours")]
    machine = question.machine
    if len(hourly) != 1 or machine is None or not hourly[0].price.amount:
        reading.ignored[OTHER_TERMS] += 1
        return
    price = hourly[0].price
    each = divide(price.amount, machine.accelerator_count)
    if each is None:
        reading.ignored[COUNT_DIFFERS] += 1
        return
    reading.prices.append(
        FeedPrice(
            cost_class="accelerator",
            unit="accelerator_h",
            price=Money(amount=each, currency=price.currency),
            effective_on=term.effective_on,
            provider="aws",
            region=question.region,
            sku_id=product.sku_id,
            published=product.published,
            accelerator_key=machine.accelerator_key,
            instance_type=machine.name,
            purchase=purchase,
            note=f"{machine.name} at {exact_text(price.amount)} {price.currency} an hour over "
            f"{exact_text(machine.accelerator_count)} accelerators",
        )
    )


def _add_first_tier(
    product: _Product, question: _Question, reading: FeedReading, what: tuple[str, str, str]
) -> None:
    """Take the first tier that costs something, or a price of 0 where none does."""
    cost_class, unit, name = what
    for term in product.on_demand:
        paid = [tier for tier in term.tiers if tier.price.amount]
        if not term.tiers:
            reading.ignored[OTHER_TERMS] += 1
            continue
        first = paid[0] if paid else term.tiers[0]
        later = len(paid[1:])
        free = len(term.tiers) - len(paid) if paid else 0
        reading.ignored.update({LATER_TIERS: later} if later else {})
        reading.ignored.update({FREE_TIERS: free} if free else {})
        reading.prices.append(
            FeedPrice(
                cost_class=cost_class,
                unit=unit,
                price=_in_unit(first.price, unit),
                effective_on=term.effective_on,
                provider="aws",
                region=question.region,
                sku_id=product.sku_id,
                published=product.published,
                instance_type=name,
                note=_tier_note(first, unit, later),
            )
        )


def _in_unit(price: Money, unit: str) -> Money:
    """The price of our unit: the list's GB are of 2^30 bytes, its requests single."""
    if unit == "tb_month":
        return price_per_tb_from_price_per_gib(price)
    if unit == "gb":
        return per_gb(price)
    return price.times(Decimal(1000))


def _tier_note(tier: _Tier, unit: str, later: int) -> str:
    said = f"{exact_text(tier.price.amount)} {tier.price.currency} per {tier.unit}"
    parts = [said if unit == "1000_requests" else f"{said}, {GIB_NOTE}"]
    if later:
        parts.append(f"first of {later + 1} tiers")
    return "; ".join(parts)


def _client_error(error: ClientError) -> PriceFeedError:
    code = error.response.get("Error", {}).get("Code", "")
    said = error.response.get("Error", {}).get("Message", "")
    if code in ("AccessDeniedException", "AccessDenied", "UnauthorizedOperation"):
        return PriceFeedError(
            "denied",
            _(
                "AWS refuses the price list: allow {permission} for this role or key "
                "(resource *). AWS says: {said}"
            ).format(permission=PERMISSION, said=said),
            is_permanent=True,
        )
    if code in ("UnrecognizedClientException", "InvalidClientTokenId", "ExpiredTokenException"):
        return PriceFeedError(
            "bad_credentials",
            _("AWS does not accept these credentials: {said}").format(said=said),
            is_permanent=True,
        )
    if code in ("ThrottlingException", "Throttling", "TooManyRequestsException"):
        return PriceFeedError(
            "throttled",
            _("AWS asks for fewer questions ({said}); it is tried again.").format(said=said),
            is_permanent=False,
        )
    return PriceFeedError(
        "failed",
        _("The AWS price list answered {code}: {said}").format(code=code, said=said),
        is_permanent=False,
    )
