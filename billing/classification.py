"""Ibis expressions that name a charge's cost class, accelerator and measures; rules are data."""

from collections.abc import Sequence
from functools import reduce
from typing import Any, Final

import ibis
from django.utils.translation import gettext as _

from billing.cost_classes import (
    ACCELERATED,
    ACCELERATOR_CATEGORIES,
    ACCELERATOR_UNITS,
    ACCELERATOR_WORDS,
    IDLE_TYPES,
    IDLE_WORDS,
    INSTANCE_TYPES,
    OTHERWISE,
    PART_OF_MACHINE,
    PROVIDERS,
    REQUEST_CLASSES,
    RULES,
    STORAGE_CLASSES,
    STORAGE_SERVICES,
    TRANSFER_CLASSES,
    UNMAPPED,
    ClassRule,
)
from billing.expressions import telling_columns
from billing.known_kinds import remembered
from billing.records import MONEY_TYPE, ChargesRefusedError
from billing.unit_words import meaning_of
from lake.engine import Engine
from runs.catalogue import accelerator_name_patterns
from runs.selectors import instance_types

MAX_KINDS: Final = 200_000
SECONDS_PER_HOUR: Final = 3600
# All that the rules look at: charges alike in these are of one kind, and classified once.
KIND_COLUMNS: Final = (
    "provider_name",
    "service_name",
    "service_category",
    "service_subcategory",
    "charge_category",
    "charge_description",
    "commitment_discount_status",
    "capacity_reservation_status",
    "sku_meter",
    "sku_price_details",
    "consumed_unit",
    "pricing_unit",
    "resource_type",
    "x_usage_type",
    "x_operation",
    "x_line_item_type",
    "x_credit_type",
    "x_instance_type",
)
_FACTORS: Final = {
    "accelerators_in_hour": "decimal(9, 4)",  # accelerators in one unit of whole hours
    "hours_numerator": "decimal(18, 4)",  # accelerators in one unit times its seconds
    "tb_month_factor": "decimal(18, 12)",
    "tb_second_factor": "float64",
    "request_factor": "float64",
    "byte_factor": "float64",
}
# A measure is null in every row where no kind has any of these factors.
_NEEDS: Final = {
    "x_accelerator_h": {"hours_numerator", "accelerators_in_hour"},
    "x_idle_accelerator_h": {"hours_numerator", "accelerators_in_hour"},
    "x_storage_tb_month": {"tb_month_factor", "tb_second_factor"},
    "x_requests": {"request_factor"},
    "x_transfer_bytes": {"byte_factor"},
}
_ANSWERS: Final = ("x_cost_class", "x_accelerator", "is_idle", *_FACTORS)


def classify(engine: Engine, charges: ibis.Table) -> ibis.Table:
    """Add what a charge means to training: class, accelerator, and the measures.

    Charges of one kind are classified once; only quantities are computed for each row.
    """
    keyed = charges.mutate(x_is_committed=charges.commitment_discount_id.notnull())
    names = [*KIND_COLUMNS, "x_is_committed"]
    kinds = engine.arrow(keyed.select(*names).distinct().limit(MAX_KINDS + 1))
    if kinds.num_rows > MAX_KINDS:
        raise ChargesRefusedError(
            "too_large",
            _("more than {limit} different kinds of charges; split the delivery").format(
                limit=MAX_KINDS
            ),
        )
    answers = remembered(
        type(engine).__name__,
        kinds,
        lambda new: engine.arrow(kind_answers(engine, ibis.memtable(new))),
    )
    telling = telling_columns(kinds)
    lookup = ibis.memtable(answers.select([*telling, "read_instance_type", *_ANSWERS]))
    lookup = lookup.rename({f"kind_{name}": name for name in telling})
    found = keyed.left_join(
        lookup, [keyed[name].identical_to(lookup[f"kind_{name}"]) for name in telling]
    ).drop(*(f"kind_{name}" for name in telling), "x_instance_type", "x_is_committed")
    found = found.rename(x_instance_type="read_instance_type")
    measures = _measures(found)
    unused = {name for name in _FACTORS if answers[name].null_count == answers.num_rows}
    nothing = {name: ibis.null(MONEY_TYPE) for name, needs in _NEEDS.items() if needs <= unused}
    return found.mutate(**(measures | nothing)).drop("is_idle", *_FACTORS)


def kind_answers(engine: Engine, kinds: ibis.Table) -> ibis.Table:
    """What every kind of charge means: class, accelerator, and the factors of its quantities."""
    found = described_kinds(engine, kinds)
    found = _settled(engine, found.mutate(x_cost_class=_first_rule(found)))
    is_accelerator = found.x_cost_class == "accelerator"
    is_idle = _is_idle(found)
    count = ibis.ifelse(is_accelerator | is_idle, found.unit_count, ibis.null("decimal(9, 4)"))
    hours = count.cast("float64") * found.unit_units.cast("float64") * found.unit_seconds
    answers = {
        "x_accelerator": ibis.ifelse(
            is_accelerator,
            ibis.coalesce(
                found.catalogue_accelerator, found.named_accelerator, ibis.literal(UNMAPPED)
            ),
            ibis.null("string"),
        ),
        "is_idle": is_idle,
        "accelerators_in_hour": _whole_accelerators(hours.cast(_FACTORS["hours_numerator"])),
        "hours_numerator": hours,
        "tb_month_factor": _where(found, STORAGE_CLASSES, found.unit_tb_months),
        "tb_second_factor": _where(found, STORAGE_CLASSES, found.unit_tb_seconds),
        "request_factor": _where(found, REQUEST_CLASSES, found.unit_requests),
        "byte_factor": _where(found, TRANSFER_CLASSES, found.unit_bytes),
    }
    answered = found.mutate(
        **{
            name: value.cast(_FACTORS[name]) if name in _FACTORS else value
            for name, value in answers.items()
        }
    )
    return answered.select(*KIND_COLUMNS, "x_is_committed", "read_instance_type", *_ANSWERS)


def described_kinds(engine: Engine, kinds: ibis.Table) -> ibis.Table:
    """Kinds of charges with every fact that the rules look at."""
    described = _settled(engine, _with_units(engine, _settled(engine, _describe(kinds))))
    return _settled(engine, _accelerators(engine, described))


def _settled(engine: Engine, kinds: ibis.Table) -> ibis.Table:
    """The same small table, computed: what is built on it does not repeat its expressions."""
    return ibis.memtable(engine.arrow(kinds))


def _where(kinds: ibis.Table, classes: Sequence[str], value: Any) -> Any:
    """The factor for usage of these classes, else null."""
    holds = kinds.x_cost_class.isin(classes) & (kinds.charge_category == "Usage")
    return ibis.ifelse(holds, value, ibis.null(value.type()))


def _is_idle(kinds: ibis.Table) -> Any:
    """Whether the capacity was billed, and used by nobody."""
    unused = (kinds.capacity_reservation_status == "Unused").fill_null(False)
    unused = unused | (kinds.commitment_discount_status == "Unused").fill_null(False)
    return unused | _matches(kinds.words, IDLE_WORDS) | _matches(kinds.x_line_item_type, IDLE_TYPES)


def _measures(charges: ibis.Table) -> dict[str, Any]:
    """The quantities of each row, from its kind's factors; null where it has none."""
    quantity = ibis.ifelse(
        charges.consumed_unit.notnull(), charges.consumed_quantity, charges.pricing_quantity
    )
    number = quantity.cast("float64")
    accelerator_h = ibis.coalesce(
        (quantity.try_cast("decimal(18, 6)") * charges.accelerators_in_hour).cast(MONEY_TYPE),
        _rounded(number * charges.hours_numerator.cast("float64") / SECONDS_PER_HOUR),
    )
    month_s = (
        charges.billing_period_end.epoch_seconds() - charges.billing_period_start.epoch_seconds()
    ).cast("float64")
    tb_month = quantity.try_cast("decimal(18, 9)") * charges.tb_month_factor
    nothing = ibis.null(MONEY_TYPE)
    stored = ibis.coalesce(
        tb_month.cast(MONEY_TYPE), _rounded(number * charges.tb_second_factor / month_s.nullif(0))
    )
    is_stored = charges.tb_month_factor.notnull() | charges.tb_second_factor.notnull()
    # Engines work a branch out for its own rows only: most rows have most measures not.
    measures = {
        "x_accelerator_h": (charges.x_cost_class == "accelerator", accelerator_h),
        "x_idle_accelerator_h": (charges.is_idle, accelerator_h),
        "x_storage_tb_month": (is_stored, stored),
        "x_requests": (
            charges.request_factor.notnull(),
            _whole(number * charges.request_factor),
        ),
        "x_transfer_bytes": (charges.byte_factor.notnull(), _whole(number * charges.byte_factor)),
    }
    return {
        "x_estimated": ibis.literal(False),
        "x_price_label": ibis.null("string"),
        **{name: ibis.ifelse(has, value, nothing) for name, (has, value) in measures.items()},
    }


def _whole(value: Any) -> Any:
    """A count, in the column's exact type."""
    return value.round().try_cast("int64").cast(MONEY_TYPE)


def _whole_accelerators(numerator: Any) -> Any:
    """The accelerators in a unit of whole hours: an exact factor; null where it is none."""
    accelerators = (numerator / SECONDS_PER_HOUR).cast("decimal(9, 4)")
    is_whole = accelerators.cast("float64") * SECONDS_PER_HOUR == numerator.cast("float64")
    return ibis.ifelse(is_whole, accelerators, ibis.null("decimal(9, 4)"))


def _describe(kinds: ibis.Table) -> ibis.Table:
    """Add what the rules look at: provider, all words about the usage, yes-or-no facts."""
    words = [
        kinds[name].fill_null("")
        for name in (
            "x_usage_type",
            "sku_meter",
            "charge_description",
            "sku_price_details",
            "x_operation",
        )
    ]
    described = kinds.mutate(
        x_provider=_provider(kinds.provider_name),
        words=ibis.literal(" ").join(words),
        unit=ibis.coalesce(kinds.consumed_unit, kinds.pricing_unit, ""),
        storage=(kinds.service_category == "Storage")
        | _matches(kinds.service_name, STORAGE_SERVICES),
        committed=kinds.x_is_committed,
    )
    return described.mutate(
        transfer=_matches(described.unit, r"gb|gib|mb|tb|tib|byte") | (described.unit == ""),
        read_instance_type=ibis.coalesce(
            described.x_instance_type.lower(), _instance_type(described)
        ),
    )


def _with_units(engine: Engine, kinds: ibis.Table) -> ibis.Table:
    """Look up what each unit means; the few units are read in Python."""
    found = engine.rows(kinds.select("unit", "x_provider").distinct())
    rows = [
        {
            "unit_word": row["unit"],
            "unit_provider": row["x_provider"],
            "unit_seconds": meaning.seconds,
            "unit_units": meaning.units_in_one,
            "unit_tb_months": meaning.tb_months,
            "unit_tb_seconds": meaning.tb_seconds,
            "unit_requests": meaning.requests,
            "unit_bytes": meaning.size_bytes,
        }
        for row in found
        for meaning in [meaning_of(row["unit"], provider=row["x_provider"])]
    ]
    types = {
        "unit_word": "string",
        "unit_provider": "string",
        "unit_seconds": "int32",
        "unit_units": "decimal(9, 0)",
        "unit_tb_months": "decimal(38, 24)",
        "unit_tb_seconds": "decimal(38, 24)",
        "unit_requests": "decimal(12, 0)",
        "unit_bytes": "decimal(16, 0)",
    }
    units = engine.small_table(rows, types)
    joined = kinds.left_join(
        units, [kinds.unit == units.unit_word, kinds.x_provider == units.unit_provider]
    )
    return joined.drop("unit_word", "unit_provider")


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
        ibis.literal("azure standard_") + charges.read_instance_type.replace(" ", "_"),
        charges.x_provider + " " + charges.read_instance_type,
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
        (charges.x_provider == provider) & _matches(charges.read_instance_type, pattern)
        for provider, pattern in ACCELERATED.items()
    ]
    return reduce(lambda left, right: left | right, tests) & charges.read_instance_type.notnull()


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


def _rounded(value: Any) -> Any:
    """A physical quantity with nine decimals, in the column's exact type."""
    return value.cast("decimal(28, 9)").cast(MONEY_TYPE)


def _first_rule(charges: ibis.Table) -> Any:
    return ibis.cases(
        *((rule_holds(charges, rule), rule.cost_class) for rule in RULES), else_=OTHERWISE
    )


def rule_holds(charges: ibis.Table, rule: ClassRule) -> Any:
    tests = [
        (charges[name] if value is True else charges[name].fill_null("") == value)
        for name, value in rule.equals.items()
    ]
    tests += [_matches(charges[name], pattern) for name, pattern in rule.matches.items()]
    return reduce(lambda left, right: left & right, tests)
