"""Google Cloud's BigQuery billing export, standard and detailed, with dotted column names.

A line's cost is before credits. Every credit becomes a charge of its own beside its usage, on the
same row of the file, so gross and net both add up. Effective cost is Google's own: its FOCUS view
sets BilledCost and EffectiveCost to cost plus credits, for commitments are paid month by month and
nothing is left to spread. A commitment's fee is therefore a purchase at its cost, the discount it
earns (COMMITTED_USAGE_DISCOUNT, its DOLLAR_BASE kind, FEE_UTILIZATION_OFFSET) a credit at its
amount. The billing month is invoice.month over all cost types: that is what the invoice states.
Source: Cloud Billing documentation, "Structure of detailed data export", "FOCUS BigQuery view".
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import ibis

from billing.adapters.cells import UNREADABLE, Cells, first_match, found_columns, translated
from billing.adapters.gcp_columns import (
    CATEGORIES,
    COMMITMENT_SKU,
    DIRECT,
    DISK_SKU,
    KEPT,
    KNOWN,
    MACHINE_SKU,
    NUMBERS,
    READ,
    REQUIRED,
    SERVICE_CATEGORIES,
    SPEND_CREDITS,
    TAG_COLUMNS,
    TRAFFIC_SKU,
    USAGE_CREDITS,
    WANTED,
)
from billing.adapters.layout import InstantStyle, Layout, assembled, require_columns
from billing.records import MONEY_TYPE

OWN: Final = (
    "service.id",
    "service.description",
    "sku.id",
    "sku.description",
    "usage_start_time",
    "usage_end_time",
    "invoice.month",
    "credits",
    "cost_type",
)
AMOUNT: Final = "credits.amount"
CREDIT_FIELDS: Final = ("amount", "type", "name", "full_name", "id")
MACHINE_LABEL: Final = "compute.googleapis.com/machine_spec"
TAGS: Final = "map<string, string>"


@dataclass(frozen=True, slots=True)
class GcpExport:
    """The adapter of both exports."""

    name: str = "gcp-export"
    json_columns: tuple[str, ...] = tuple(TAG_COLUMNS)
    list_columns: tuple[str, ...] = ("credits",)

    def recognises(self, columns: Sequence[str]) -> int:
        """How many of the export's own columns stand in the file."""
        found = len(found_columns(columns, OWN))
        return found if found > 3 else 0

    def layout(self, columns: Sequence[str]) -> Layout:
        """Find the export's columns, dotted or joined by underscores."""
        found = found_columns(columns, KNOWN)
        require_columns(tuple(found), REQUIRED, of="Google's billing export")
        unknown = tuple(name for name in columns if name not in found.values())
        kept = tuple(found[name] for name in KEPT if name in found)
        style = {"usage_start_time": InstantStyle.ISO_DAY, "usage_end_time": InstantStyle.ISO_DAY}
        kind = "detailed" if "resource.name" in found else "standard"
        return Layout(
            columns={ours: found[name] for ours, name in DIRECT.items() if name in found},
            numbers=(*(found[name] for name in NUMBERS if name in found), AMOUNT),
            instants={found[name]: how for name, how in style.items()}
            | {found["invoice.month"]: InstantStyle.MONTH},
            read_columns=tuple(found[name] for name in (*READ, *TAG_COLUMNS) if name in found),
            extra_columns=(*unknown, *kept),
            unknown_columns=unknown,
            missing_columns=tuple(name for name in WANTED if name not in found),
            saw=f"Google Cloud billing export, {kind}, {len(columns) - len(unknown)} of "
            f"{len(columns)} columns are known",
            facts={
                "found": found | {f"credits.{name}": f"credits.{name}" for name in CREDIT_FIELDS}
            },
        )

    def unfolded(self, lines: ibis.Table) -> ibis.Table:
        """Each line, and each of its credits as a line of its own."""
        text = ibis.null("string")
        usage = lines.mutate(**{f"credits.{name}": text for name in CREDIT_FIELDS})
        listed = found_columns(lines.columns, ("credits",)).get("credits")
        if listed is None:
            return usage
        credits_of = lines[listed]
        if not credits_of.type().is_array():  # no list could be read: let the amount refuse it
            odd = lines.filter(~credits_of.cast("string").isin(("", "[]")))
            fields = {"amount": odd[listed].cast("string")}
        else:
            odd = lines.filter(credits_of.length() > 0)
            odd = odd.mutate(x_credit=odd[listed].unnest())
            one = odd.x_credit
            fields = {name: one[name] for name in CREDIT_FIELDS}
            fields["amount"] = ibis.coalesce(one["amount"], one[UNREADABLE], "")
        singly = odd.mutate(
            **{f"credits.{name}": fields.get(name, text) for name in CREDIT_FIELDS}
        ).select(*usage.columns)
        return usage.union(singly)

    def charges(self, lines: ibis.Table, layout: Layout) -> ibis.Table:
        """Usage at its gross cost, and the credits."""
        cells = Cells(lines, layout.facts["found"])
        values: dict[str, Any] = {ours: lines[theirs] for ours, theirs in layout.columns.items()}
        values |= _who(cells) | _what(cells) | _quantities(cells)
        values |= _costs(cells) | _commitment(cells)
        values["tags"] = _tags(lines, layout.facts["found"])
        machine = _label(lines, layout.facts["found"].get("system_labels"), MACHINE_LABEL)
        is_machine = cells.text("sku.description").fill_null("").re_search(MACHINE_SKU)
        values["x_instance_type"] = ibis.ifelse(
            is_machine & ~_is_credit(cells), machine, ibis.null("string")
        )
        return assembled(lines, layout, values)


def category_of(service: Any) -> Any:
    """The service category of one of Google's services."""
    return first_match(service, SERVICE_CATEGORIES, "Other")


def _is_credit(cells: Cells) -> Any:
    return cells.number(AMOUNT).notnull()


def _quantities(cells: Cells) -> dict[str, Any]:
    """How much was used, at which prices; a credit has neither."""
    stated = {
        "list_unit_price": cells.number("price.list_price"),
        "contracted_unit_price": cells.number("price.effective_price"),
        "pricing_quantity": cells.number("usage.amount_in_pricing_units"),
        "pricing_unit": cells.text("usage.pricing_unit"),
        "consumed_quantity": cells.number("usage.amount"),
        "consumed_unit": cells.text("usage.unit"),
    }
    is_credit = _is_credit(cells)
    return {
        name: ibis.ifelse(is_credit, ibis.null(value.type()), value)
        for name, value in stated.items()
    }


def _who(cells: Cells) -> dict[str, Any]:
    """Who bills whom, for which month, where."""
    is_partner = cells.text("invoice.publisher_type").upper() == "PARTNER"
    month = cells.instant("invoice.month")
    return {
        "provider_name": ibis.literal("Google Cloud"),
        "publisher_name": ibis.ifelse(
            is_partner.fill_null(False), cells.text("seller_name"), "Google Cloud"
        ),
        "invoice_issuer_name": ibis.literal("Google Cloud"),
        "billing_period_start": month,
        "billing_period_end": month + ibis.interval(months=1),
        "region_id": cells.text("location.region", "location.location"),
        "resource_id": cells.text("resource.global_name", "resource.name"),
        "resource_name": cells.text("resource.name"),
    }


def _what(cells: Cells) -> dict[str, Any]:
    """What was used, and what kind of charge it is."""
    kind = cells.text("cost_type").fill_null("regular")
    sku = cells.text("sku.description").fill_null("")
    service = cells.text("service.description")
    is_credit = _is_credit(cells)
    buys = (kind == "regular") & sku.re_search(COMMITMENT_SKU)
    on_machine = service == "Compute Engine"
    nobody = ibis.null("string")
    corrects = (kind == "adjustment") & cells.text(
        "adjustment_info.mode", "adjustment_info.type"
    ).notnull()
    return {
        "charge_category": ibis.cases(
            (is_credit, "Credit"),
            (buys, "Purchase"),
            else_=translated(kind, CATEGORIES, "Adjustment"),
        ),
        "charge_class": ibis.ifelse(corrects & ~is_credit, "Correction", nobody),
        "charge_frequency": ibis.cases(
            (is_credit, "One-Time"),
            (buys, "Recurring"),
            (kind == "regular", "Usage-Based"),
            else_="One-Time",
        ),
        "charge_description": ibis.cases(
            (is_credit, cells.text("credits.full_name", "credits.name", "credits.id")),
            (kind == "adjustment", cells.text("adjustment_info.description", "sku.description")),
            else_=cells.text("sku.description"),
        ),
        "pricing_category": ibis.cases(
            (is_credit | (kind != "regular"), nobody),
            (sku.re_search(r"(?i)\b(?:spot|preemptible)\b"), "Dynamic"),
            else_="Standard",
        ),
        "service_category": ibis.cases(
            (on_machine & sku.re_search(DISK_SKU), "Storage"),
            (on_machine & sku.re_search(TRAFFIC_SKU), "Networking"),
            else_=category_of(service),
        ),
        "x_line_item_type": kind,
        "x_credit_type": cells.text("credits.type"),
    }


def _costs(cells: Cells) -> dict[str, Any]:
    """Gross on the usage line, the credit's amount on its own; a credit has no price."""
    is_credit = _is_credit(cells)
    amount, cost = cells.number(AMOUNT), cells.number("cost")
    zero = ibis.literal(0).cast(MONEY_TYPE)
    paid = ibis.ifelse(is_credit, amount, cost)
    is_regular = cells.text("cost_type").fill_null("regular") == "regular"
    listed = ibis.ifelse(
        is_regular, cells.number("cost_at_list"), ibis.coalesce(cells.number("cost_at_list"), cost)
    )
    return {
        "billed_cost": paid,
        "effective_cost": paid,
        # an export that states no list prices has no list cost, not even one of nothing
        "list_cost": ibis.ifelse(is_credit, zero, listed)
        if "cost_at_list" in cells.found
        else ibis.null(MONEY_TYPE),
        "contracted_cost": ibis.ifelse(is_credit, zero, cost),
    }


def _commitment(cells: Cells) -> dict[str, Any]:
    """The commitment that a credit comes from."""
    credit = cells.text("credits.type")
    by_spend, by_usage = credit.isin(SPEND_CREDITS), credit.isin(USAGE_CREDITS)
    nobody = ibis.null("string")
    source = cells.text("credits.id", "credits.name", "credits.full_name")
    return {
        "commitment_discount_id": ibis.ifelse(
            (by_spend | by_usage).fill_null(False), source, nobody
        ),
        "commitment_discount_name": ibis.ifelse(
            (by_spend | by_usage).fill_null(False), cells.text("credits.full_name"), nobody
        ),
        "commitment_discount_category": ibis.cases(
            (by_spend.fill_null(False), "Spend"),
            (by_usage.fill_null(False), "Usage"),
            else_=nobody,
        ),
        "commitment_discount_type": ibis.ifelse(
            (by_spend | by_usage).fill_null(False), "Committed Use Discount", nobody
        ),
    }


def _label(lines: ibis.Table, column: str | None, key: str) -> Any:
    """One label of a line; null where the column holds no labels."""
    if column is None or not lines[column].type().is_map():
        return ibis.null("string")
    return lines[column][key]


def _tags(lines: ibis.Table, found: dict[str, str]) -> Any:
    """Labels of all kinds in one map; a key that is there already gets its kind before it."""
    maps = [
        (ibis.coalesce(lines[found[name]], _no_tags()), prefix)
        for name, prefix in TAG_COLUMNS.items()
        if name in found and lines[found[name]].type().is_map()
    ]
    if not maps:
        return ibis.null(TAGS)
    (tags, _none), *others = maps
    taken = [tags]
    keys, values = tags.keys(), tags.values()
    for more, prefix in others:
        keys = keys.concat(more.keys().map(_renaming(tuple(taken), prefix)))
        values = values.concat(more.values())
        taken.append(more)
    return ibis.ifelse(keys.length() > 0, ibis.map(keys, values), ibis.null(TAGS))


def _no_tags() -> Any:
    none = ibis.literal([], type="array<string>")
    return ibis.map(none, none)


def _renaming(taken: Sequence[Any], prefix: str) -> Any:
    """The key's new name where one of the maps before has the same."""

    def named(key: Any) -> Any:
        clash = ibis.literal(False)
        for tags in taken:
            clash = clash | tags.contains(key)
        return ibis.ifelse(clash, ibis.literal(prefix) + key, key)

    return named


GCP_EXPORT: Final = GcpExport()
