"""The bill around the accelerators, line by line: storage, requests, transfer, services.

In the plan, but outside 1.0x. A line whose price is not known has no amount, and then the bill has
no total: never a sum of the lines that happen to be known.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Final
from uuid import UUID

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from billing.amounts import exact_text
from formulae.money import Money, MoneyError, sum_money
from formulae.storage import (
    ShardingWhatIf,
    ShardSize,
    request_cost,
    shard_size,
    sharding_what_if,
    storage_cost,
)
from formulae.transfer import GB_PER_TB, transfer_cost
from formulae.units import EXACT
from planning.bill_prices import BillTerms, Priced, in_plan_currency, price_of
from planning.whole_bill_spec import (
    MoneySpec,
    RequestsSpec,
    ServiceSpec,
    StorageSpec,
    TransferSpec,
    WholeBillError,
    WholeBillSpec,
)

__all__ = ["BillFinding", "BillLine", "BillTerms", "ShardingAdvice", "WholeBill", "bill_lines"]

CLASS_OF: Final = {
    "hot": "storage_file",
    "warm": "storage_object",
    "cold": "storage_archive",
    "get": "request_get",
    "put": "request_put",
    "egress": "egress",
    "inter_region": "transfer_inter_region",
    "nat": "transfer_intra_region",
    "logging": "logging",
    "support": "support",
}
NAMES: Final = {
    "hot": gettext_lazy("Hot storage (parallel file system)"),
    "warm": gettext_lazy("Warm storage (object store)"),
    "cold": gettext_lazy("Cold storage (archive)"),
    "get": gettext_lazy("GET requests"),
    "put": gettext_lazy("PUT requests"),
    "egress": gettext_lazy("Egress"),
    "inter_region": gettext_lazy("Transfer between regions"),
    "nat": gettext_lazy("Traffic through NAT"),
    "logging": gettext_lazy("Logging"),
    "support": gettext_lazy("Support"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class BillLine:
    """One line in the plan's currency; price and amount are None together, and the note says why.

    `unit` is of the quantity: tb_month, 1000_requests, gb, month, or fraction_of_compute.
    """

    key: str
    name: str
    cost_class: str
    quantity: Decimal
    unit: str
    price: Money | None
    price_source: str
    amount: Money | None
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BillFinding:
    """Something to know about a line: what is missing, or what could be saved."""

    code: str
    where: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardingAdvice:
    """What reading the dataset of a line would cost in shards."""

    where: str
    what_if: ShardingWhatIf


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeBill:
    """The lines and their sum; no sum when a line has no amount, and `missing` says why."""

    currency: str
    lines: tuple[BillLine, ...]
    total: Money | None
    missing: tuple[BillFinding, ...]
    findings: tuple[BillFinding, ...]
    sharding: tuple[ShardingAdvice, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Drawn:
    """One line with what was found while it was drawn up."""

    line: BillLine
    missing: tuple[BillFinding, ...] = ()
    findings: tuple[BillFinding, ...] = ()
    sharding: ShardingAdvice | None = None


def bill_lines(organisation_id: UUID, spec: WholeBillSpec, terms: BillTerms) -> WholeBill:
    """Price every line of the bill around the accelerators.

    Args:
        organisation_id: whose price books and exchange rates are read.
        spec: the checked shape; `on_premises` is a price of compute and no line here.
        terms: the plan's currency, day of prices, place, months and compute cost.

    Raises:
        WholeBillError: an amount is too large to be money.
    """
    drawn = []
    for key, item in _keyed(spec):
        try:
            drawn.append(_draw(organisation_id, terms, key, item))
        except MoneyError as error:
            raise WholeBillError({key: str(error)}) from error
    lines = tuple(one.line for one in drawn)
    amounts = [line.amount for line in lines if line.amount is not None]
    is_whole = len(amounts) == len(lines)
    return WholeBill(
        currency=terms.currency,
        lines=lines,
        total=sum_money(amounts, currency=terms.currency) if is_whole else None,
        missing=tuple(finding for one in drawn for finding in one.missing),
        findings=tuple(finding for one in drawn for finding in one.findings),
        sharding=tuple(one.sharding for one in drawn if one.sharding is not None),
    )


_Item = StorageSpec | RequestsSpec | TransferSpec | ServiceSpec


def _keyed(spec: WholeBillSpec) -> Iterator[tuple[str, _Item]]:
    """Every item with a key of its own: storage_hot, storage_hot_2, ..."""
    items: list[tuple[str, _Item]] = []
    items += [(f"storage_{item.tier}", item) for item in spec.storage or ()]
    items += [(f"requests_{item.verb}", item) for item in spec.requests or ()]
    items += [(f"transfer_{item.kind}", item) for item in spec.transfer or ()]
    items += [(f"service_{item.kind}", item) for item in spec.services or ()]
    seen: Counter[str] = Counter()
    for stem, item in items:
        seen[stem] += 1
        yield (stem if seen[stem] == 1 else f"{stem}_{seen[stem]}"), item


def _draw(organisation_id: UUID, terms: BillTerms, key: str, item: _Item) -> _Drawn:
    """One line, whatever it is about."""
    match item:
        case StorageSpec():
            return _storage(organisation_id, terms, key, item)
        case RequestsSpec():
            return _requests(organisation_id, terms, key, item)
        case TransferSpec():
            return _transfer(organisation_id, terms, key, item)
        case ServiceSpec():
            return _service(organisation_id, terms, key, item)


def _storage(organisation_id: UUID, terms: BillTerms, key: str, item: StorageSpec) -> _Drawn:
    """TB times months at the tier's price."""
    months = terms.months if item.months is None else item.months
    priced = price_of(
        organisation_id,
        terms,
        stated=_money(item.price_per_tb_month),
        cost_class=CLASS_OF[item.tier],
        unit="tb_month",
    )
    amount = None if priced.price is None else storage_cost(item.terabytes, months, priced.price)
    quantity = EXACT.multiply(item.terabytes, months)
    drawn = _line(key, item.tier, (quantity, "tb_month"), priced, amount)
    kept = _("%(terabytes)s TB for %(months)s months.") % {
        "terabytes": exact_text(item.terabytes),
        "months": exact_text(months),
    }
    return _noted(drawn, kept)


def _requests(organisation_id: UUID, terms: BillTerms, key: str, item: RequestsSpec) -> _Drawn:
    """Requests at the verb's price, and what shards would save."""
    priced = _request_price(organisation_id, terms, item.verb, stated=_money(item.price_per_1000))
    amount = None if priced.price is None else request_cost(item.requests, priced.price)
    thousands = EXACT.scaleb(Decimal(item.requests), -3)
    drawn = _line(key, item.verb, (thousands, "1000_requests"), priced, amount)
    if item.verb == "put" or item.object_bytes is None or not item.dataset_bytes:
        return drawn
    return replace(
        drawn,
        findings=_object_findings(key, item.object_bytes),
        sharding=_sharding(organisation_id, terms, key, item),
    )


def _request_price(
    organisation_id: UUID, terms: BillTerms, verb: str, *, stated: Money | None
) -> Priced:
    """The price of 1,000 requests of a verb."""
    return price_of(
        organisation_id, terms, stated=stated, cost_class=CLASS_OF[verb], unit="1000_requests"
    )


def _sharding(
    organisation_id: UUID, terms: BillTerms, key: str, item: RequestsSpec
) -> ShardingAdvice | None:
    """The same reads in shards, where the objects are smaller and a GET has a price."""
    get = _request_price(organisation_id, terms, "get", stated=_money(item.price_per_1000))
    if get.price is None or item.object_bytes is None or item.object_bytes >= item.shard_bytes:
        return None
    put = _request_price(organisation_id, terms, "put", stated=None)
    what_if = sharding_what_if(
        bytes_total=item.dataset_bytes or 1,
        object_bytes=item.object_bytes,
        shard_bytes=item.shard_bytes,
        epochs=item.epochs or 1,
        price_per_1000_get=get.price,
        price_per_1000_put=put.price,
    )
    return ShardingAdvice(where=key, what_if=what_if)


def _object_findings(key: str, object_bytes: int) -> tuple[BillFinding, ...]:
    """What to say of the size of objects; nothing where it is as advised."""
    megabytes = exact_text(Decimal(object_bytes).scaleb(-6))
    match shard_size(object_bytes):
        case ShardSize.TOO_SMALL:
            message = _(
                "Objects of %(megabytes)s MB ask one GET each: pack them into tar shards of "
                "100 to 500 MB and read those."
            )
        case ShardSize.TOO_LARGE:
            message = _(
                "Objects of %(megabytes)s MB are larger than the 100 to 500 MB that stream and "
                "shuffle well."
            )
        case ShardSize.ADVISED:
            return ()
    return (BillFinding(code="object_size", where=key, message=message % {"megabytes": megabytes}),)


def _transfer(organisation_id: UUID, terms: BillTerms, key: str, item: TransferSpec) -> _Drawn:
    """GB at the price of the way they take, and how to take another."""
    priced = price_of(
        organisation_id,
        terms,
        stated=_money(item.price_per_gb),
        cost_class=CLASS_OF[item.kind],
        unit="gb",
    )
    terabytes = item.moved_terabytes
    amount = None if priced.price is None else transfer_cost(terabytes, priced.price)
    quantity = EXACT.multiply(terabytes, Decimal(GB_PER_TB))
    drawn = _line(key, item.kind, (quantity, "gb"), priced, amount)
    advice = {
        "nat": _(
            "A gateway endpoint (AWS) or Private Google Access (Google Cloud) carries this "
            "traffic past NAT, usually free of charge: the whole line can be avoided."
        ),
        "inter_region": _(
            "Keep accelerators and bucket in one region: the whole line can be avoided."
        ),
    }.get(item.kind)
    if advice is None or not terabytes:
        return drawn
    finding = BillFinding(code=f"avoidable_{item.kind}", where=key, message=advice)
    return replace(drawn, findings=(finding,))


def _service(organisation_id: UUID, terms: BillTerms, key: str, item: ServiceSpec) -> _Drawn:
    """A share of the compute cost, or so much a month, flat or by the GB of logs."""
    quantity, unit = terms.months, "month"
    if item.gigabytes_per_month is not None:
        quantity, unit = EXACT.multiply(item.gigabytes_per_month, terms.months), "gb"
    if item.fraction_of_compute is not None:
        quantity, unit = item.fraction_of_compute, "fraction_of_compute"
        priced = _compute(organisation_id, terms)
    else:
        priced = price_of(
            organisation_id,
            terms,
            stated=_money(item.per_month),
            cost_class=CLASS_OF[item.kind],
            unit=unit,
        )
    amount = None if priced.price is None else priced.price.times(quantity)
    drawn = _line(key, item.kind, (quantity, unit), priced, amount)
    return replace(drawn, line=replace(drawn.line, name=item.name or drawn.line.name))


def _compute(organisation_id: UUID, terms: BillTerms) -> Priced:
    """The compute cost as the price of a whole share, in the plan's currency."""
    if terms.compute_cost is None:
        return Priced(
            price=None,
            source="",
            missing_code="compute_cost_missing",
            missing=_("The compute cost is not known, so a share of it is not known either."),
        )
    source = _("share of the compute cost")
    return in_plan_currency(organisation_id, terms, terms.compute_cost, source=source)


def _money(stated: MoneySpec | None) -> Money | None:
    """The stated price as money."""
    return None if stated is None else stated.money()


def _line(
    key: str, kind: str, measure: tuple[Decimal, str], priced: Priced, amount: Money | None
) -> _Drawn:
    """The line, and what its price lacks."""
    line = BillLine(
        key=key,
        name=str(NAMES[kind]),
        cost_class=CLASS_OF[kind],
        quantity=measure[0],
        unit=measure[1],
        price=priced.price,
        price_source=priced.source,
        amount=amount,
        note=priced.missing or priced.note,
    )
    if not priced.missing:
        return _Drawn(line=line)
    finding = BillFinding(code=priced.missing_code, where=key, message=priced.missing)
    return _Drawn(line=line, missing=(finding,))


def _noted(drawn: _Drawn, note: str) -> _Drawn:
    """The line with a sentence before its note."""
    notes = " ".join(part for part in (note, drawn.line.note) if part)
    return replace(drawn, line=replace(drawn.line, note=notes))
