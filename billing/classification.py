"""Ibis expressions that name a charge's cost class, accelerator and measures; rules are data."""

from collections.abc import Sequence
from functools import reduce
from typing import Any, Final

import ibis
from django.utils.translation import gettext as _

from billing.accelerator_facts import (
    instance_type,
    matches,
    provider_key,
    with_accelerators,
)
from billing.cost_classes import (
    IDLE_TYPES,
    IDLE_WORDS,
    OTHERWISE,
    PART_OF_MACHINE,
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
    # cores and memory of a machine with accelerators: its GPUs are billed, and named, beside them
    is_part = (found.x_provider == "gcp") & matches(found.words, PART_OF_MACHINE)
    count = ibis.ifelse(is_accelerator | is_idle, found.unit_count, ibis.null("decimal(9, 4)"))
    hours = count.cast("float64") * found.unit_units.cast("float64") * found.unit_seconds
    answers = {
        "x_accelerator": ibis.ifelse(
            is_accelerator,
            ibis.coalesce(
                found.catalogue_accelerator,
                found.named_accelerator,
                ibis.ifelse(is_part, ibis.null("string"), ibis.literal(UNMAPPED)),
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
    return _settled(engine, with_accelerators(engine, described))


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
    return unused | matches(kinds.words, IDLE_WORDS) | matches(kinds.x_line_item_type, IDLE_TYPES)


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
    month = charges.charge_period_start.truncate("M")  # of use: the invoice's may be the next
    month_s = ((month + ibis.interval(months=1)).epoch_seconds() - month.epoch_seconds()).cast(
        "float64"
    )
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
        x_provider=provider_key(kinds.provider_name),
        words=ibis.literal(" ").join(words),
        unit=ibis.coalesce(kinds.consumed_unit, kinds.pricing_unit, ""),
        storage=(kinds.service_category == "Storage")
        | matches(kinds.service_name, STORAGE_SERVICES),
        committed=kinds.x_is_committed,
    )
    return described.mutate(
        transfer=matches(described.unit, r"gb|gib|mb|tb|tib|byte") | (described.unit == ""),
        read_instance_type=ibis.coalesce(
            described.x_instance_type.lower(), instance_type(described)
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
    tests += [matches(charges[name], pattern) for name, pattern in rule.matches.items()]
    return reduce(lambda left, right: left & right, tests)
