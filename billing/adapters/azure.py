"""Azure's cost exports: actual (billed) and amortised, two books of the same month.

The actual export states what is invoiced: a reservation or savings plan is one purchase, the usage
it covers costs nothing, and what it is worth is not in the file, so its effective cost is unknown.
The amortised export spreads the purchase over usage and over what stayed unused: its cost is the
effective cost, and it states no other. A quantity counts units of measure: "10 Hours", "10K".
Source: Microsoft Cost Management, "Understand cost details fields", "Convert to FOCUS".
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import ibis

from billing.adapters.azure_columns import (
    ALSO,
    CATEGORIES,
    DIRECT,
    FAMILIES,
    FREQUENCIES,
    INSTANTS,
    NAMES,
    NUMBERS,
    OTHER_CATEGORY,
    PRICING,
    REQUIRED,
    SERVICE_CATEGORIES,
    SIZE,
    WANTED,
)
from billing.adapters.cells import Cells, first_match, found_columns, translated
from billing.adapters.exact import product
from billing.adapters.layout import (
    BillAdapter,
    InstantStyle,
    Layout,
    SeenFile,
    assembled,
    require_columns,
)
from billing.records import MONEY_TYPE, ChargesRefusedError, Dataset

OWN: Final = (
    "MeterCategory",
    "MeterSubCategory",
    "MeterId",
    "MeterName",
    "UnitOfMeasure",
    "ConsumedService",
    "ChargeType",
    "ResourceLocation",
    "IsAzureCreditEligible",
)
UNUSED: Final = ("unusedreservation", "unusedsavingsplan")
COMMITTED: Final = ("reservation", "savingsplan", "savings plan")
CAPACITY: Final = r'"VMCapacityReservationId"\s*:\s*"([^"]+)"'
COUNT: Final = r"^\s*([0-9][0-9,]*)\s*"
WORDS: Final[Mapping[Dataset, str]] = {Dataset.BILLED: "actual", Dataset.AMORTISED: "amortised"}


@dataclass(frozen=True, slots=True)
class Azure:
    """The adapter of both exports; `dataset` is None where the file's content has to tell."""

    name: str = "azure"
    dataset: Dataset | None = None
    json_columns: tuple[str, ...] = ("Tags", "tags")
    list_columns: tuple[str, ...] = ()

    def recognises(self, columns: Sequence[str]) -> int:
        """How many of the exports' own columns stand in the file."""
        found = len(found_columns(columns, OWN))
        return found if found > 3 else 0

    def layout(self, columns: Sequence[str]) -> Layout:
        """Find the export's columns in any of its spellings."""
        found: dict[str, str] = {}
        for fact, names in NAMES.items():
            there = found_columns(columns, names)
            if there:
                found[fact] = next(iter(there.values()))
        shown = {fact: found.get(fact, _written(NAMES[fact][0], columns)) for fact in NAMES}
        require_columns(
            tuple(found.values()),
            [shown[fact] for fact in REQUIRED],
            of="Azure's cost export",
            other_names={
                shown[fact]: [_written(name, columns) for name in NAMES[fact][1:]]
                for fact in REQUIRED
            },
        )
        known = {*found.values(), *found_columns(columns, ALSO).values()}
        known |= {
            name for names in NAMES.values() for name in found_columns(columns, names).values()
        }
        unknown = tuple(name for name in columns if name not in known)
        return Layout(
            columns={ours: found[fact] for ours, fact in DIRECT.items() if fact in found}
            | {"effective_cost" if self._is_amortised else "billed_cost": found["cost"]},
            numbers=tuple(found[fact] for fact in NUMBERS if fact in found),
            instants={found[fact]: InstantStyle.ISO_DAY for fact in INSTANTS if fact in found},
            read_columns=tuple(found.values()),
            extra_columns=unknown,
            unknown_columns=unknown,
            missing_columns=tuple(shown[fact] for fact in WANTED if fact not in found),
            saw=f"Azure cost export, {len(columns) - len(unknown)} of {len(columns)} "
            "columns are known",
            dataset=self.dataset or Dataset.BILLED,
            facts={"found": found},
        )

    @property
    def _is_amortised(self) -> bool:
        return self.dataset is Dataset.AMORTISED

    def question(self, lines: ibis.Table, layout: Layout) -> Mapping[str, Any]:
        """Rows that only one of the two exports has, and how the file writes days."""
        cells = Cells(lines, layout.facts["found"])
        kind, covered, bought = _kind(cells), _is_covered(cells), _is_bought(cells)
        is_paid = cells.text("cost").try_cast("float64").fill_null(0) != 0
        asked = {
            "unused": kind.isin(UNUSED).sum(),
            "covered_paid": (covered & is_paid).sum(),
            "covered_free": (covered & ~is_paid).sum(),
            "bought": bought.sum(),
        }
        for name in layout.instants:
            if lines[name].type().is_string():
                asked[f"slashed_{name}"] = lines[name].contains("/").sum()
        return asked

    def settled(self, seen: Sequence[SeenFile]) -> tuple[BillAdapter, tuple[Layout, ...]]:
        """Say which of the two exports the files are, by their rows, else by their names."""
        amortised = {one.name: one.counts["unused"] + one.counts["covered_paid"] for one in seen}
        actual = {one.name: one.counts["bought"] for one in seen}
        free = sum(one.counts["covered_free"] for one in seen)
        dataset, why = self._decided(amortised, actual, free)
        adapter = AZURE_AMORTISED if dataset is Dataset.AMORTISED else AZURE_ACTUAL
        layouts = []
        for one in seen:
            columns = dict(one.layout.columns)
            cost = columns.pop("billed_cost", None) or columns.pop("effective_cost")
            columns["effective_cost" if dataset is Dataset.AMORTISED else "billed_cost"] = cost
            instants = {
                name: InstantStyle.US_DATE if one.counts.get(f"slashed_{name}") else style
                for name, style in one.layout.instants.items()
            }
            saw = one.layout.saw.replace("Azure cost", f"Azure {WORDS[dataset]} cost") + why
            layouts.append(
                replace(one.layout, columns=columns, instants=instants, dataset=dataset, saw=saw)
            )
        return adapter, tuple(layouts)

    def _decided(
        self, amortised: Mapping[str, int], actual: Mapping[str, int], free: int
    ) -> tuple[Dataset, str]:
        """The dataset, and in words where that comes from."""
        spread, bought = sum(amortised.values()), sum(actual.values())
        if self.dataset is not None:
            wrong, right = (bought, spread) if self._is_amortised else (spread, bought)
            if wrong and not right:
                other = Dataset.BILLED if self._is_amortised else Dataset.AMORTISED
                raise ChargesRefusedError(
                    "format",
                    f"this looks like the {WORDS[other]} export, not the {WORDS[self.dataset]} "
                    f"one: {_evidence(spread=spread, bought=bought)}",
                )
            return self.dataset, "; which of the two exports it is was said"
        if spread and bought:
            raise ChargesRefusedError(
                "format",
                "the rows are those of an actual and of an amortised export at once "
                f"({_evidence(spread=spread, bought=bought)}); hand the two in one by one, or say "
                "which it is with --format azure-actual or --format azure-amortised",
            )
        if spread:
            return Dataset.AMORTISED, ""
        if bought or free:
            return Dataset.BILLED, ""
        return _named(amortised)

    def charges(self, lines: ibis.Table, layout: Layout) -> ibis.Table:
        """Charges of the book that the file is."""
        cells = Cells(lines, layout.facts["found"])
        direct = {ours: lines[theirs] for ours, theirs in layout.columns.items()}
        values: dict[str, Any] = {
            **direct,
            **_who(cells),
            **_what(cells),
            **_quantities(cells),
            **_commitment(cells),
            **(_amortised_costs(cells) if self._is_amortised else _actual_costs(cells)),
        }
        tags = layout.facts["found"].get("tags")
        is_map = tags is not None and lines[tags].type().is_map()
        values["tags"] = lines[tags] if is_map else None
        return assembled(lines, layout, values)


def _written(name: str, columns: Sequence[str]) -> str:
    """A column's name as this file would write it: the customer agreement's begin small."""
    small = sum(1 for column in columns if column[:1].islower())
    return name[0].lower() + name[1:] if 2 * small > len(columns) else name


def _named(files: Mapping[str, Any]) -> tuple[Dataset, str]:
    """What the files' names say; without any commitment the two exports are the same rows."""
    if all(re.search(r"amorti[sz]ed", name, re.IGNORECASE) for name in files):
        return Dataset.AMORTISED, "; amortised by the file's name"
    return Dataset.BILLED, (
        "; no row of a reservation or savings plan tells it from the amortised one, "
        "which would be the same"
    )


def _evidence(*, spread: int, bought: int) -> str:
    """What was counted, in words."""
    parts = []
    if spread:
        parts.append(f"{spread} rows spread a reservation or savings plan over usage")
    if bought:
        parts.append(f"{bought} rows buy one")
    return ", ".join(parts)


def _kind(cells: Cells) -> Any:
    """The charge type in small letters; old exports hold usage only."""
    return cells.text("kind").lower().fill_null("usage")


def _is_committed(cells: Cells) -> Any:
    """Whether a line belongs to a reservation or savings plan."""
    named = cells.text("benefit", "reservation").nullif("").notnull()
    if "pricing_model" not in cells.found:
        return named
    return cells.text("pricing_model").lower().isin(COMMITTED).fill_null(False)


def _is_covered(cells: Cells) -> Any:
    return (_kind(cells) == "usage") & _is_committed(cells)


def _is_bought(cells: Cells) -> Any:
    """Whether a line buys a reservation or savings plan, or gives one back."""
    named = cells.text("benefit", "reservation").nullif("").notnull()
    return _kind(cells).isin(("purchase", "refund")) & (named | _is_committed(cells))


def _actual_costs(cells: Cells) -> dict[str, Any]:
    """Billed as stated; effective only where no commitment hides it."""
    cost, nothing = cells.number("cost"), ibis.null(MONEY_TYPE)
    hidden = (_is_covered(cells) & (cost == 0)) | _is_bought(cells)
    by_quantity = _kind(cells) == "usage"
    listed = product(cells.number("list_price"), cells.number("quantity"))
    has_price = by_quantity & (cells.number("list_price") != 0) & _in_billing_currency(cells)
    contracted = product(cells.number("unit_price"), cells.number("quantity"))
    return {
        "billed_cost": cost,
        "effective_cost": ibis.ifelse(hidden.fill_null(False), nothing, cost),
        "list_cost": ibis.cases(
            (~by_quantity, cost),
            (cells.number("list_cost").notnull(), cells.number("list_cost")),
            (has_price.fill_null(False), listed),
            (cost == 0, ibis.ifelse(_is_covered(cells), nothing, cost)),
            else_=nothing,
        ),
        "contracted_cost": ibis.cases(
            (~by_quantity, cost),
            (_in_billing_currency(cells), contracted),
            else_=nothing,
        ),
    }


def _amortised_costs(cells: Cells) -> dict[str, Any]:
    """The cost is the effective one; the others are those of the actual export."""
    nothing = ibis.null(MONEY_TYPE)
    return {
        "billed_cost": nothing,
        "effective_cost": cells.number("cost"),
        "list_cost": nothing,
        "contracted_cost": nothing,
    }


def _in_billing_currency(cells: Cells) -> Any:
    """Whether unit prices are in the currency of the costs."""
    pricing = cells.text("pricing_currency").nullif("")
    return pricing.isnull() | (pricing == cells.text("currency"))


def _who(cells: Cells) -> dict[str, Any]:
    """Who bills whom, for which days."""
    day = cells.instant("date")
    start = ibis.coalesce(cells.instant("period_start"), day.truncate("month"))
    return {
        "provider_name": ibis.literal("Microsoft"),
        "publisher_name": ibis.coalesce(cells.text("publisher").nullif(""), "Microsoft"),
        "invoice_issuer_name": ibis.coalesce(cells.text("issuer").nullif(""), "Microsoft"),
        "billing_account_id": cells.text("account", "subscription"),
        "billing_period_start": start,
        "billing_period_end": ibis.coalesce(
            cells.instant("period_end") + ibis.interval(days=1), start + ibis.interval(months=1)
        ),
        "charge_period_end": day + ibis.interval(days=1),
        "region_id": cells.text("region").lower().replace(" ", "").nullif(""),
        "region_name": cells.text("region").nullif(""),
    }


def _what(cells: Cells) -> dict[str, Any]:
    """What kind of charge it is, and of what."""
    kind = _kind(cells)
    category = translated(kind, CATEGORIES, OTHER_CATEGORY)
    details = cells.text("details").fill_null("")
    reserved = details.re_extract(CAPACITY, 1).nullif("")
    is_reservation = cells.text("resource").fill_null("").lower().contains("/capacityreservations/")
    family = first_match(cells.text("family"), FAMILIES, "Other")
    nobody = ibis.null("string")
    return {
        "charge_category": category,
        "charge_class": ibis.ifelse(kind == "refund", "Correction", nobody),
        "charge_frequency": translated(cells.text("frequency").lower(), FREQUENCIES),
        "pricing_category": ibis.ifelse(
            category == "Usage",
            translated(cells.text("pricing_model").lower().replace(" ", ""), PRICING),
            nobody,
        ),
        "service_category": ibis.coalesce(
            first_match(cells.text("service"), SERVICE_CATEGORIES, None), family
        ),
        "capacity_reservation_id": reserved,
        "capacity_reservation_status": ibis.cases(
            (reserved.isnull(), nobody), (is_reservation, "Unused"), else_="Used"
        ),
        "x_instance_type": details.re_extract(SIZE, 1).nullif(""),
    }


def _quantities(cells: Cells) -> dict[str, Any]:
    """Quantities in single units: ten of "10 Hours" are a hundred hours."""
    kind = _kind(cells)
    quantity, unit = cells.number("quantity"), cells.text("unit")
    count = unit.re_extract(COUNT, 1).replace(",", "").nullif("").try_cast("decimal(9, 0)")
    rest = unit.re_replace(COUNT, "")
    scale = ibis.cases(
        (rest.re_search(r"^K\b"), 1_000), (rest.re_search(r"^M\b"), 1_000_000), else_=1
    )
    size = count.fill_null(1).cast("int64") * scale.cast("int64")
    words = rest.re_replace(r"^[KM]\b\s*", "")
    single = ibis.cases(
        (words == "", "Count"), (words.startswith("/"), ibis.literal("Units") + words), else_=words
    )
    whole = ibis.ifelse(
        size == 1,
        quantity,
        (quantity.try_cast("decimal(24, 12)") * size.cast("decimal(12, 0)")).cast(MONEY_TYPE),
    )
    nothing, nobody = ibis.null(MONEY_TYPE), ibis.null("string")
    is_usage, is_unused = kind == "usage", kind.isin(UNUSED)
    return {
        "consumed_quantity": ibis.ifelse(is_usage, whole, nothing),
        "consumed_unit": ibis.ifelse(is_usage, single, nobody),
        "commitment_discount_quantity": ibis.ifelse(is_unused, whole, nothing),
        "commitment_discount_unit": ibis.ifelse(is_unused, single, nobody),
    }


def _commitment(cells: Cells) -> dict[str, Any]:
    """The reservation or savings plan that a line belongs to."""
    benefit = cells.text("benefit", "reservation").nullif("")
    where = benefit.lower()
    by_spend = where.contains("/microsoft.billingbenefits/") | _kind(cells).contains("savingsplan")
    nobody = ibis.null("string")
    return {
        "commitment_discount_id": benefit,
        "commitment_discount_name": cells.text("benefit_name", "reservation_name").nullif(""),
        "commitment_discount_category": ibis.cases(
            (benefit.isnull(), nobody), (by_spend, "Spend"), else_="Usage"
        ),
        "commitment_discount_type": ibis.cases(
            (benefit.isnull(), nobody), (by_spend, "Savings Plan"), else_="Reservation"
        ),
        "commitment_discount_status": ibis.cases(
            (_kind(cells).isin(UNUSED), "Unused"), (_is_covered(cells), "Used"), else_=nobody
        ),
    }


AZURE: Final = Azure()
AZURE_ACTUAL: Final = Azure(name="azure-actual", dataset=Dataset.BILLED)
AZURE_AMORTISED: Final = Azure(name="azure-amortised", dataset=Dataset.AMORTISED)
