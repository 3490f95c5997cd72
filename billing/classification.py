"""Ibis expressions that name a charge's cost class and accelerator; the rules are data."""

from functools import reduce
from typing import Any

import ibis

from billing.cost_classes import (
    ACCELERATED,
    ACCELERATOR_CATEGORIES,
    ACCELERATOR_UNITS,
    ACCELERATOR_WORDS,
    INSTANCE_TYPES,
    OTHERWISE,
    PART_OF_MACHINE,
    PROVIDERS,
    RULES,
    STORAGE_SERVICES,
    UNMAPPED,
    ClassRule,
)
from billing.records import MONEY_TYPE
from lake.engine import Engine
from runs.catalogue import accelerator_name_patterns
from runs.selectors import instance_types

_SCRATCH = (
    "x_provider",
    "words",
    "unit",
    "storage",
    "transfer",
    "committed",
    "accelerated",
    "named_accelerator",
    "unit_count",
)


def classify(engine: Engine, charges: ibis.Table) -> ibis.Table:
    """Add x_cost_class, x_accelerator, x_accelerator_h and x_instance_type to typed charges."""
    described = _describe(charges)
    found = _accelerators(engine, described)
    found = found.mutate(x_cost_class=_first_rule(found))
    found = found.mutate(
        x_accelerator=ibis.ifelse(
            found.x_cost_class == "accelerator",
            ibis.coalesce(
                found.catalogue_accelerator, found.named_accelerator, ibis.literal(UNMAPPED)
            ),
            ibis.null("string"),
        ),
        x_accelerator_h=ibis.ifelse(
            found.x_cost_class == "accelerator", _accelerator_h(found), ibis.null(MONEY_TYPE)
        ),
    )
    return found.drop(*_SCRATCH, "catalogue_accelerator", "catalogue_count")


def _describe(charges: ibis.Table) -> ibis.Table:
    """Add what the rules look at: provider, all words about the usage, yes-or-no facts."""
    words = [
        charges[name].fill_null("")
        for name in (
            "x_usage_type",
            "sku_meter",
            "charge_description",
            "sku_price_details",
            "x_operation",
        )
    ]
    described = charges.mutate(
        x_provider=_provider(charges.provider_name),
        words=ibis.literal(" ").join(words),
        unit=ibis.coalesce(charges.consumed_unit, charges.pricing_unit, ""),
        storage=(charges.service_category == "Storage")
        | _matches(charges.service_name, STORAGE_SERVICES),
        committed=charges.commitment_discount_id.notnull(),
    )
    return described.mutate(
        transfer=_matches(described.unit, r"gb|gib|mb|tb|tib|byte") | (described.unit == ""),
        x_instance_type=ibis.coalesce(charges.x_instance_type.lower(), _instance_type(described)),
    )


def _provider(name: Any) -> Any:
    return ibis.cases(*((_matches(name, pattern), key) for key, pattern in PROVIDERS), else_="")


def _matches(column: Any, pattern: str) -> Any:
    return column.fill_null("").re_search(f"(?i){pattern}")


def _instance_type(charges: ibis.Table) -> Any:
    """The instance type in the words of a usage row, in small letters."""
    possible = (charges.charge_category == "Usage") & charges.service_category.fill_null(
        "Other"
    ).isin(ACCELERATOR_CATEGORIES)
    cases = [
        (possible & (charges.x_provider == provider), charges.words.re_extract(f"(?i){pattern}", 1))
        for provider, pattern in INSTANCE_TYPES.items()
    ]
    return ibis.cases(*cases, else_=ibis.null("string")).lower().nullif("")


def _accelerators(engine: Engine, charges: ibis.Table) -> ibis.Table:
    """Look instance type and words up: is an accelerator billed, which, how many a unit."""
    catalogue = engine.small_table(
        [
            {
                "catalogue_key": f"{spec.provider} {spec.name.lower()}",
                "catalogue_accelerator": spec.accelerator_key,
                "catalogue_count": spec.accelerator_count,
            }
            for spec in instance_types()
        ],
        {
            "catalogue_key": "string",
            "catalogue_accelerator": "string",
            "catalogue_count": "decimal(9, 4)",
        },
    )
    is_azure = charges.x_provider == "azure"
    key = ibis.ifelse(
        is_azure,
        ibis.literal("azure standard_") + charges.x_instance_type.replace(" ", "_"),
        charges.x_provider + " " + charges.x_instance_type,
    )
    joined = charges.mutate(instance_key=key)
    joined = joined.left_join(catalogue, joined.instance_key == catalogue.catalogue_key)
    joined = joined.drop("catalogue_key", "instance_key")
    named = _named_accelerator(joined)
    accelerated = (
        joined.catalogue_accelerator.notnull() | _looks_accelerated(joined) | named.notnull()
    )
    return joined.mutate(named_accelerator=named, accelerated=accelerated).mutate(
        unit_count=_count_of_unit(joined, named)
    )


def _looks_accelerated(charges: ibis.Table) -> Any:
    tests = [
        (charges.x_provider == provider) & _matches(charges.x_instance_type, pattern)
        for provider, pattern in ACCELERATED.items()
    ]
    return reduce(lambda left, right: left | right, tests) & charges.x_instance_type.notnull()


def _named_accelerator(charges: ibis.Table) -> Any:
    """The accelerator that the words name, where the provider bills GPUs by their own SKU."""
    possible = (
        (charges.charge_category == "Usage")
        & (charges.x_provider != "aws")
        & charges.service_category.fill_null("Other").isin(ACCELERATOR_CATEGORIES)
        & _matches(charges.words, ACCELERATOR_WORDS)
    )
    named = ibis.cases(
        *(
            (charges.words.re_search(f"(?i){pattern}"), key)
            for pattern, key in accelerator_name_patterns()
        ),
        else_=ibis.null("string"),
    )
    return ibis.cases((possible, named), else_=ibis.null("string"))


def _count_of_unit(charges: ibis.Table, named: Any) -> Any:
    """Accelerators in one billed unit: 1 where GPUs are billed singly, None where unknown."""
    count_type = "decimal(9, 4)"
    one, unknown = ibis.literal(1).cast(count_type), ibis.null(count_type)
    gpu_sku = (charges.x_provider == "gcp") & _matches(charges.words, r"\bgpus?\b|\btpu")
    gpu_unit = _matches(charges.unit, ACCELERATOR_UNITS)
    return ibis.cases(
        (gpu_unit, one),
        (gpu_sku & named.notnull(), one),
        (_matches(charges.words, PART_OF_MACHINE) & (charges.x_provider != "azure"), unknown),
        (charges.catalogue_count.notnull(), charges.catalogue_count),
        else_=unknown,
    )


def _accelerator_h(charges: ibis.Table) -> Any:
    """Billed hours times accelerators; None where the unit is no time or the count unknown."""
    quantity = ibis.ifelse(
        charges.consumed_unit.notnull(), charges.consumed_quantity, charges.pricing_quantity
    )
    hours = quantity.try_cast("decimal(18, 6)") * charges.unit_count
    fraction = quantity.cast("float64") * charges.unit_count.cast("float64")
    return ibis.cases(
        (_matches(charges.unit, r"hours?\b|hrs?\b"), hours.cast(MONEY_TYPE)),
        (_matches(charges.unit, r"^(?:gpu[- ])?minutes?$"), _rounded(fraction / 60)),
        (_matches(charges.unit, r"^(?:gpu[- ])?seconds?$"), _rounded(fraction / 3600)),
        else_=ibis.null(MONEY_TYPE),
    )


def _rounded(value: Any) -> Any:
    """A physical quantity with nine decimals, in the column's exact type."""
    return value.cast("decimal(28, 9)").cast(MONEY_TYPE)


def _first_rule(charges: ibis.Table) -> Any:
    return ibis.cases(
        *((_holds(charges, rule), rule.cost_class) for rule in RULES), else_=OTHERWISE
    )


def _holds(charges: ibis.Table, rule: ClassRule) -> Any:
    tests = [
        (charges[name] if value is True else charges[name].fill_null("") == value)
        for name, value in rule.equals.items()
    ]
    tests += [_matches(charges[name], pattern) for name, pattern in rule.matches.items()]
    return reduce(lambda left, right: left & right, tests)
