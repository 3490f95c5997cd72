"""What accelerator a kind of charge bills, and how many of it: facts that the rules look at."""

from functools import reduce
from typing import Any

import ibis

from billing.cost_classes import (
    ACCELERATED,
    ACCELERATOR_CATEGORIES,
    ACCELERATOR_UNITS,
    ACCELERATOR_WORDS,
    GCP_MACHINE_WORDS,
    GCP_SHARED_GPU,
    GPU_FRACTION,
    INSTANCE_TYPES,
    PART_OF_MACHINE,
    PROVIDERS,
    SURCHARGE_SERVICES,
    SURCHARGE_WORDS,
)
from lake.engine import Engine
from runs.catalogue import accelerator_name_patterns
from runs.selectors import instance_types


def provider_key(name: Any) -> Any:
    """The provider as our rules call it; nothing for others."""
    return ibis.cases(*((matches(name, pattern), key) for key, pattern in PROVIDERS), else_="")


def matches(column: Any, pattern: str) -> Any:
    """Whether the text matches, in any case; a missing text matches as an empty one."""
    return column.fill_null("").re_search(f"(?i){pattern}")


def instance_type(charges: ibis.Table) -> Any:
    """The instance type in the words of a usage row, in small letters."""
    possible = _may_bill(charges)
    found = [
        ibis.ifelse(
            possible & (charges.x_provider == provider),
            charges.words.re_extract(f"(?i){pattern}", 1).nullif(""),
            ibis.null("string"),
        )
        for provider, pattern in INSTANCE_TYPES
    ]
    return ibis.coalesce(*found).lower()


def with_accelerators(engine: Engine, charges: ibis.Table) -> ibis.Table:
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
        ibis.literal("azure standard_") + charges.read_instance_type.replace(" ", "_"),
        charges.x_provider + " " + charges.read_instance_type,
    )
    joined = charges.mutate(instance_key=key)
    joined = joined.left_join(catalogue, joined.instance_key == catalogue.catalogue_key)
    joined = joined.drop("catalogue_key", "instance_key")
    named = _named_accelerator(joined)
    accelerated = (
        joined.catalogue_accelerator.notnull()
        | _looks_accelerated(joined)
        | named.notnull()
        | _is_gcp_machine(joined)
    ) & ~_is_surcharge(joined)
    return joined.mutate(named_accelerator=named, accelerated=accelerated).mutate(
        unit_count=_count_of_unit(joined, named)
    )


def _looks_accelerated(charges: ibis.Table) -> Any:
    tests = [
        (charges.x_provider == provider) & matches(charges.read_instance_type, pattern)
        for provider, pattern in ACCELERATED.items()
    ]
    return reduce(lambda left, right: left | right, tests) & charges.read_instance_type.notnull()


def _may_bill(charges: ibis.Table) -> Any:
    """Usage in a service category in which accelerators can be billed."""
    return (charges.charge_category == "Usage") & charges.service_category.fill_null("Other").isin(
        ACCELERATOR_CATEGORIES
    )


def _is_gcp_machine(charges: ibis.Table) -> Any:
    """Whether Google's words mean a machine with accelerators, or a part of one."""
    is_gcp = charges.x_provider == "gcp"
    return _may_bill(charges) & is_gcp & matches(charges.words, GCP_MACHINE_WORDS)


def _is_surcharge(charges: ibis.Table) -> Any:
    """Whether it is a fee on a machine that is billed by itself."""
    return matches(charges.service_name, SURCHARGE_SERVICES) | matches(
        charges.words, SURCHARGE_WORDS
    )


def _named_accelerator(charges: ibis.Table) -> Any:
    """The accelerator that the words name, where the provider bills GPUs by their own SKU."""
    possible = (
        _may_bill(charges)
        & (charges.x_provider != "aws")
        & matches(charges.words, ACCELERATOR_WORDS)
    )
    shared, shared_key = GCP_SHARED_GPU
    is_shared = (charges.x_provider == "gcp") & matches(charges.words, shared)
    named = ibis.cases(
        *(
            (charges.words.re_search(f"(?i){pattern}"), key)
            for pattern, key in accelerator_name_patterns()
        ),
        (is_shared, shared_key),
        else_=ibis.null("string"),
    )
    return ibis.cases((possible, named), else_=ibis.null("string"))


def _count_of_unit(charges: ibis.Table, named: Any) -> Any:
    """Accelerators in one billed unit: 1 where GPUs are billed singly, None where unknown."""
    count_type = "decimal(9, 4)"
    one, unknown = ibis.literal(1).cast(count_type), ibis.null(count_type)
    gpu_sku = (charges.x_provider == "gcp") & matches(charges.words, r"\bv?gpus?\b|\btpu|\brtx\b")
    parts = charges.words.re_extract(f"(?i){GPU_FRACTION}", 1).nullif("").try_cast("int32")
    fraction = (1 / parts.nullif(0).cast("float64")).cast(count_type)
    gpu_unit = matches(charges.unit, ACCELERATOR_UNITS)
    return ibis.cases(
        (gpu_sku & parts.notnull(), fraction),
        (gpu_unit, one),
        (gpu_sku & named.notnull(), one),
        (matches(charges.words, PART_OF_MACHINE) & (charges.x_provider != "azure"), unknown),
        (charges.catalogue_count.notnull(), charges.catalogue_count),
        else_=unknown,
    )
