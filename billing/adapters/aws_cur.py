"""AWS Cost and Usage Reports, legacy (lineItem/UsageType) and 2.0 (line_item_usage_type).

Billed cost is the unblended cost as delivered. Effective cost follows AWS's amortised cost:
DiscountedUsage and SavingsPlanCoveredUsage cost what the commitment costs for them, RIFee and
SavingsPlanRecurringFee only their unused part, upfront fees and SavingsPlanNegation nothing, all
else its unblended cost; Net columns win where the report has them.
Source: AWS Cost Management user guide "Understanding your amortized costs"; CUR user guide.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, Final

import ibis

from billing.adapters.aws_columns import (
    BLOCK_STORAGE,
    CATEGORIES,
    COVERED,
    DIRECT,
    FREQUENCIES,
    INSTANTS,
    KNOWN,
    NUMBERS,
    OPEN_GROUPS,
    OTHER_CATEGORY,
    READ,
    REQUIRED,
    SERVICE_CATEGORIES,
    TAG_MAPS,
    TRAFFIC,
    TRAFFIC_PRODUCTS,
    WANTED,
)
from billing.adapters.cells import (
    Cells,
    first_match,
    found_columns,
    spelling,
    tag_map,
    translated,
)
from billing.adapters.exact import share
from billing.adapters.layout import InstantStyle, Layout, assembled, require_columns
from billing.records import MONEY_TYPE

OWN: Final = (
    "lineItem/LineItemType",
    "lineItem/UnblendedCost",
    "lineItem/UsageStartDate",
    "lineItem/ProductCode",
    "lineItem/UsageType",
)
TYPE: Final = "lineItem/LineItemType"
PRODUCT_MAP: Final = "product"  # CUR 2.0: what else AWS says about the product
NOTHING: Final = "None"  # what some tools write where there is no number
TAG_GROUP: Final = r"^(?:resourceTags/|resource_tags_)"  # the latter: Athena
USER_TAG: Final = r"^user[:_]"
MAP_PREFIXES: Final = ("user_", "user:", "resourceTags/user_", "resourceTags/user:")
MAP_USER_TAG: Final = r"^(?:resourceTags/)?user[_:]"
NARROW: Final = "decimal(35, 18)"  # sums of a few of these fit every engine's exact type


@dataclass(frozen=True, slots=True)
class AwsCur:
    """The adapter of both reports."""

    name: str = "aws-cur"
    json_columns: tuple[str, ...] = TAG_MAPS
    list_columns: tuple[str, ...] = ()

    def recognises(self, columns: Sequence[str]) -> int:
        """How many of the columns without which no report is stand in the file."""
        found = len(found_columns(columns, OWN))
        return found if found > 1 else 0

    def layout(self, columns: Sequence[str]) -> Layout:
        """Find the report's columns by either spelling."""
        found = found_columns(columns, KNOWN)
        is_new = not any("/" in name for name in columns)
        names = {written(name, is_new=is_new): name in found for name in (*REQUIRED, *WANTED)}
        require_columns(
            [name for name, is_there in names.items() if is_there],
            [written(name, is_new=is_new) for name in REQUIRED],
            of="AWS's report",
        )
        tags = _tag_columns(columns)
        unknown = tuple(
            name for name in columns if name not in found.values() and not _is_open(name)
        )
        report = "CUR 2.0" if is_new else "Cost and Usage Report"
        known = len(columns) - len(unknown)
        return Layout(
            columns={ours: found[name] for ours, name in DIRECT.items() if name in found},
            numbers=tuple(found[name] for name in NUMBERS if name in found),
            instants={found[name]: InstantStyle.ISO for name in INSTANTS if name in found},
            read_columns=(
                *(found[name] for name in READ if name in found),
                *tags.values(),
                *(name for name in columns if name == PRODUCT_MAP),
            ),
            extra_columns=unknown,
            unknown_columns=unknown,
            missing_columns=tuple(name for name, is_there in names.items() if not is_there),
            saw=f"AWS {report}, {known} of {len(columns)} columns are known",
            facts={"found": found, "tags": tags, "product": PRODUCT_MAP in columns},
        )

    def unfolded(self, lines: ibis.Table) -> ibis.Table:
        """The same lines, without the word that some tools write for a missing number."""
        numbers = found_columns(lines.columns, NUMBERS).values()
        texts = [name for name in numbers if lines[name].type().is_string()]
        return lines.mutate(**{name: lines[name].nullif(NOTHING) for name in texts})

    def charges(self, lines: ibis.Table, layout: Layout) -> ibis.Table:
        """Charges by the report's rules."""
        cells = Cells(lines, layout.facts["found"])
        values: dict[str, Any] = {
            ours: lines[theirs] for ours, theirs in layout.columns.items() if ours != "list_cost"
        }
        values |= _who(cells) | _what(cells) | _costs(cells) | _commitment(cells)
        if layout.facts["product"]:
            values["service_name"] = ibis.coalesce(
                _product_name(lines[PRODUCT_MAP]), values["service_name"]
            )
        values["tags"] = _tags(lines, layout.facts["tags"])
        return assembled(lines, layout, values)


def written(name: str, *, is_new: bool) -> str:
    """A column's name as CUR 2.0 writes it.

    >>> written("savingsPlan/SavingsPlanARN", is_new=True)
    'savings_plan_savings_plan_a_r_n'
    """
    if not is_new:
        return name
    return "_".join(re.sub(r"(?<!^)([A-Z])", r"_\1", part).lower() for part in name.split("/"))


def _is_open(name: str) -> bool:
    return spelling(name).startswith(OPEN_GROUPS) or name in TAG_MAPS


def _tag_columns(columns: Sequence[str]) -> dict[str, str]:
    """The tag's key -> the column that holds it; a map column stands under no key.

    A user tag's key loses its prefix, unless another tag would have the same.
    """
    full = {name: re.sub(TAG_GROUP, "", name) for name in columns if re.search(TAG_GROUP, name)}
    short = {name: re.sub(USER_TAG, "", key) for name, key in full.items()}
    taken = Counter((*full.values(), *short.values()))
    found: dict[str, str] = {}
    for name, key in short.items():
        alone = taken[key] == 1 + (full[name] == key)
        found.setdefault(key if alone else full[name], name)
    if not found:
        maps = [name for name in TAG_MAPS if name in columns]
        found = {"": maps[0]} if maps else {}
    return found


def _tags(lines: ibis.Table, found: Mapping[str, str]) -> Any:
    """User tags under their own keys, AWS's own under theirs; of two alike each keeps its full."""
    if "" not in found:
        return tag_map({key: lines[name].cast("string") for key, name in found.items()})
    tags = lines[found[""]]
    if not tags.type().is_map():
        return ibis.null("map<string, string>")
    keys = tags.keys().map(lambda key: _tag_key(key, tags))
    return ibis.ifelse(tags.notnull(), ibis.map(keys, tags.values()), ibis.null(tags.type()))


def _tag_key(key: Any, tags: Any) -> Any:
    """A user tag's own key, or the full one where another tag of the line would have the same."""
    short = key.re_replace(MAP_USER_TAG, "")
    alike = reduce(
        lambda left, right: left + right,
        (tags.contains(prefix + short).cast("int8") for prefix in ("", *MAP_PREFIXES)),
    )
    return ibis.ifelse(alike > 1, key, short)


def _product_name(product: Any) -> Any:
    """The service's name in CUR 2.0's map, whether it came as a map or as its text."""
    if product.type().is_map():
        return product["product_name"]
    return product.cast("string").re_extract(r'"product_name"\s*:\s*"([^"\\]*)"', 1).nullif("")


def _who(cells: Cells) -> dict[str, Any]:
    """Who bills whom."""
    is_aws = cells.text("bill/BillingEntity").fill_null("AWS") == "AWS"
    return {
        "provider_name": ibis.literal("AWS"),
        "publisher_name": ibis.ifelse(is_aws, "AWS", cells.text("lineItem/LegalEntity")),
        "invoice_issuer_name": cells.text("bill/InvoicingEntity", "lineItem/LegalEntity"),
        "billing_account_id": cells.text("bill/PayerAccountId", "lineItem/UsageAccountId"),
        "billing_period_end": ibis.coalesce(
            cells.instant("bill/BillingPeriodEndDate"),
            cells.instant("bill/BillingPeriodStartDate") + ibis.interval(months=1),
        ),
    }


def _what(cells: Cells) -> dict[str, Any]:
    """What was used, and what kind of charge it is."""
    kind = cells.text(TYPE)
    category = translated(kind, CATEGORIES, OTHER_CATEGORY)
    usage_type = cells.text("lineItem/UsageType").fill_null("")
    code = cells.text("lineItem/ProductCode")
    on_machine = code.isin(TRAFFIC_PRODUCTS)
    instance = cells.text("product/instanceType").re_replace(r"(?i)(?:^ml\.|-[a-z]+$)", "")
    nobody = ibis.null("string")
    return _quantities(cells, category) | {
        "charge_category": category,
        "charge_class": ibis.ifelse(kind == "Refund", "Correction", nobody),
        "charge_frequency": translated(kind, FREQUENCIES, "One-Time"),
        "pricing_category": ibis.cases(
            (category != "Usage", nobody),
            (kind.isin(COVERED), "Committed"),
            (usage_type.contains("SpotUsage"), "Dynamic"),
            else_="Standard",
        ),
        "service_name": ibis.coalesce(
            cells.text("product/ProductName", "product/servicename").nullif(""), code
        ),
        "service_category": ibis.cases(
            (on_machine & usage_type.re_search(BLOCK_STORAGE), "Storage"),
            (on_machine & usage_type.re_search(TRAFFIC), "Networking"),
            else_=first_match(code, SERVICE_CATEGORIES, "Other"),
        ),
        "region_id": cells.text("product/regionCode", "product/region"),
        "region_name": cells.text("product/location"),
        "x_instance_type": instance.nullif(""),
    }


def _quantities(cells: Cells, category: Any) -> dict[str, Any]:
    """How much was used; a reservation's fee states the hours that nobody used."""
    kind = cells.text(TYPE)
    used = (category == "Usage") & (kind != "SavingsPlanNegation")
    amount = ibis.ifelse(used, cells.number("lineItem/UsageAmount"), ibis.null(MONEY_TYPE))
    unit = ibis.ifelse(used, cells.text("pricing/unit"), ibis.null("string"))
    unused_h = cells.number("reservation/UnusedQuantity")
    idle = ((kind == "RIFee") & (unused_h > 0)).fill_null(False)
    usage_type = cells.text("lineItem/UsageType").fill_null("")
    status = cells.text("capacityReservation/CapacityReservationStatus").lower()
    return {
        "pricing_quantity": amount,
        "pricing_unit": unit,
        "consumed_quantity": ibis.ifelse(idle, unused_h, amount),
        "consumed_unit": ibis.ifelse(idle, "Hours", unit),
        "capacity_reservation_id": cells.text("capacityReservation/CapacityReservationArn"),
        "capacity_reservation_status": ibis.cases(
            (usage_type.re_search(r"\bUnused(?:Box|Ded):"), "Unused"),
            (status == "unused", "Unused"),
            (status == "used", "Used"),
            else_=ibis.null("string"),
        ),
    }


def _costs(cells: Cells) -> dict[str, Any]:
    """The three costs that the report does not state as such."""
    kind = cells.text(TYPE)
    unblended = cells.number("lineItem/UnblendedCost")
    zero = ibis.literal(0).cast(MONEY_TYPE)
    is_free = kind.isin(("SavingsPlanNegation", "SavingsPlanUpfrontFee")) | (
        (kind == "Fee") & cells.text("reservation/ReservationARN").notnull()
    )
    effective = ibis.cases(
        (
            kind == "DiscountedUsage",
            cells.number("reservation/NetEffectiveCost", "reservation/EffectiveCost"),
        ),
        (
            kind == "SavingsPlanCoveredUsage",
            cells.number(
                "savingsPlan/NetSavingsPlanEffectiveCost", "savingsPlan/SavingsPlanEffectiveCost"
            ),
        ),
        (kind == "RIFee", _unused_reservation(cells)),
        (kind == "SavingsPlanRecurringFee", _unused_savings_plan(cells)),
        (is_free, zero),
        else_=cells.number("lineItem/NetUnblendedCost", "lineItem/UnblendedCost"),
    )
    is_negation = kind == "SavingsPlanNegation"
    return {
        "effective_cost": effective,
        "list_cost": ibis.cases(
            (is_negation, zero),
            (
                translated(kind, CATEGORIES, OTHER_CATEGORY) == "Usage",
                ibis.coalesce(cells.number("pricing/publicOnDemandCost"), unblended),
            ),
            else_=unblended,
        ),
        "contracted_cost": ibis.cases(
            (is_negation, zero),
            (kind == "DiscountedUsage", ibis.null(MONEY_TYPE)),  # no report states it
            else_=unblended,
        ),
    }


def _unused_reservation(cells: Cells) -> Any:
    """What a month's reservation cost for hours that nobody used."""
    return _sum(
        cells.number(
            "reservation/NetUnusedAmortizedUpfrontFeeForBillingPeriod",
            "reservation/UnusedAmortizedUpfrontFeeForBillingPeriod",
        ),
        cells.number("reservation/NetUnusedRecurringFee", "reservation/UnusedRecurringFee"),
    )


def _unused_savings_plan(cells: Cells) -> Any:
    """What a savings plan's commitment cost beyond its use; net as the share that was unused."""
    gross, unused = _commitment_fee(cells, ""), _unused_commitment(cells)
    net = _commitment_fee(cells, "Net")
    nothing = ibis.literal(0).cast(MONEY_TYPE)
    return ibis.cases(
        (net.isnull(), unused),
        (cells.number("savingsPlan/UsedCommitment") == nothing, net),
        else_=share(net, unused, gross),  # null where it is too large to be exact
    )


def _unused_commitment(cells: Cells) -> Any:
    """The gross commitment less its use."""
    used = cells.number("savingsPlan/UsedCommitment").try_cast(NARROW)
    return (_commitment_fee(cells, "").try_cast(NARROW) - used).cast(MONEY_TYPE)


def _commitment_fee(cells: Cells, prefix: str) -> Any:
    """A savings plan's fee of the month, its upfront part and its recurring part."""
    parts = ("AmortizedUpfrontCommitment", "RecurringCommitment")
    return _sum(*(cells.number(f"savingsPlan/{prefix}{name}ForBillingPeriod") for name in parts))


def _sum(left: Any, right: Any) -> Any:
    """Left plus right where at least one is stated."""
    zero = ibis.literal(0).cast(NARROW)
    total = left.try_cast(NARROW).fill_null(zero) + right.try_cast(NARROW).fill_null(zero)
    stated = left.notnull() | right.notnull()
    return ibis.ifelse(stated, total.cast(MONEY_TYPE), ibis.null(MONEY_TYPE))


def _commitment(cells: Cells) -> dict[str, Any]:
    """Which commitment covers a line or is bought by it, and how much of it lay idle."""
    kind = cells.text(TYPE)
    plan = cells.text("savingsPlan/SavingsPlanARN")
    reservation = cells.text("reservation/ReservationARN")
    nothing = ibis.null("string")
    unused_h = cells.number("reservation/UnusedQuantity")
    fee_unused = (kind == "RIFee") & (unused_h > 0)
    fee_unused = fee_unused | (
        (kind == "SavingsPlanRecurringFee") & (_unused_commitment(cells) > 0)
    )
    return {
        "commitment_discount_id": ibis.coalesce(plan, reservation),
        "commitment_discount_category": ibis.cases(
            (plan.notnull(), "Spend"), (reservation.notnull(), "Usage"), else_=nothing
        ),
        "commitment_discount_type": ibis.cases(
            (plan.notnull(), cells.text("savingsPlan/OfferingType").fill_null("Savings Plan")),
            (reservation.notnull(), "Reserved Instance"),
            else_=nothing,
        ),
        "commitment_discount_status": ibis.cases(
            (kind.isin(COVERED), "Used"), (fee_unused.fill_null(False), "Unused"), else_=nothing
        ),
        "commitment_discount_quantity": ibis.ifelse(
            kind == "RIFee", unused_h, ibis.null(MONEY_TYPE)
        ),
        "commitment_discount_unit": ibis.ifelse(
            (kind == "RIFee") & unused_h.notnull(), "Hours", nothing
        ),
    }


AWS_CUR: Final = AwsCur()
