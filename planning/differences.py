"""What changed between two versions of a plan: lines, totals, percentile, inputs. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from enum import StrEnum
from typing import Any, Final

from formulae.units import EXACT
from planning.records import LineBase, PlanLineRecord, PlanRecord

# What an answer stood on besides the question: priors, prices and factors of its day.
_ASSUMED: Final = (
    "step_mfu",
    "goodput",
    "price_per_accelerator_hour",
    "power_w",
    "host_factor",
    "pue",
    "g_per_kwh",
    "market_g_per_kwh",
    "embodied_kg_per_accelerator_h",
    "wue_l_per_kwh",
)
# The key of the question where it is not the name of what was used.
_STATED_AS: Final = {"g_per_kwh": "grid_g_per_kwh"}
# A name is no input: two questions that differ in it alone ask the same.
_NO_INPUTS: Final = frozenset({"name", "lines"})


class Change(StrEnum):
    """What happened to a line."""

    ADDED = "added"
    REMOVED = "removed"
    CHANGED = "changed"


@dataclass(frozen=True, slots=True, kw_only=True)
class LineState:
    """The parts of a line that a difference is told of."""

    base: LineBase
    fraction: Decimal | None
    amount: Decimal
    in_programme: bool
    starts_on: date
    ends_on: date


@dataclass(frozen=True, slots=True, kw_only=True)
class LineDifference:
    """One line that is not the same in both versions; a side is None where the line is not there.

    `amount_change` is None where the versions have different currencies.
    """

    key: str
    name: str
    change: Change
    before: LineState | None
    after: LineState | None
    amount_change: Decimal | None

    @property
    def is_share_changed(self) -> bool:
        """Whether base or fraction moved."""
        return self._differs("base") or self._differs("fraction")

    @property
    def are_dates_changed(self) -> bool:
        """Whether a date moved."""
        return self._differs("starts_on") or self._differs("ends_on")

    @property
    def is_place_changed(self) -> bool:
        """Whether it moved into or out of the programme."""
        return self._differs("in_programme")

    def _differs(self, field: str) -> bool:
        return bool(getattr(self.before, field, None) != getattr(self.after, field, None))


@dataclass(frozen=True, slots=True, kw_only=True)
class TotalDifference:
    """A total of both versions; `unit` is money, multiple, kwh or kgco2e, None is not known."""

    key: str
    unit: str
    before: Decimal | float | None
    after: Decimal | float | None
    change: Decimal | float | None
    change_fraction: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class InputDifference:
    """An input of the two frozen estimates, by its path in the question; None was not stated."""

    field: str
    before: Any
    after: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class FrozenEstimate:
    """The question and the answer that a version rests on, as they were kept."""

    question: Mapping[str, Any]
    answer: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanDifferences:
    """Everything that is not the same in a version and the one that it replaces."""

    before_number: int
    after_number: int
    before_currency: str
    after_currency: str
    before_level: str
    after_level: str
    lines: tuple[LineDifference, ...]
    totals: tuple[TotalDifference, ...]
    inputs: tuple[InputDifference, ...]
    assumptions: tuple[InputDifference, ...]

    @property
    def is_level_changed(self) -> bool:
        """Whether another percentile is planned."""
        return self.before_level != self.after_level

    @property
    def is_empty(self) -> bool:
        """Whether both versions say the same."""
        moved = any(total.before != total.after for total in self.totals)
        return not (moved or self.lines or self.inputs or self.assumptions or self.is_level_changed)


def plan_differences(
    before: PlanRecord,
    after: PlanRecord,
    *,
    before_estimate: FrozenEstimate,
    after_estimate: FrozenEstimate,
) -> PlanDifferences:
    """Compare two versions of a plan, line by line, and the estimates under them.

    Args:
        before: the version in force before.
        after: the one that replaces it, or would.
        before_estimate: what `before` rests on.
        after_estimate: what `after` rests on.

    Returns:
        Only what differs, except totals, which are all there. Amounts of two currencies are never
        subtracted: their change is None.
    """
    has_one_currency = before.currency == after.currency
    return PlanDifferences(
        before_number=before.number,
        after_number=after.number,
        before_currency=before.currency,
        after_currency=after.currency,
        before_level=before.level,
        after_level=after.level,
        lines=_line_differences(before, after, has_one_currency=has_one_currency),
        totals=_totals(before, after, has_one_currency=has_one_currency),
        inputs=input_differences(before_estimate.question, after_estimate.question),
        assumptions=_assumption_differences(before_estimate, after_estimate),
    )


def _line_differences(
    before: PlanRecord, after: PlanRecord, *, has_one_currency: bool
) -> tuple[LineDifference, ...]:
    old = {line.key: line for line in before.lines}
    new = {line.key: line for line in after.lines}
    found = []
    for key in [*new, *(key for key in old if key not in new)]:
        was, now = _state(old.get(key)), _state(new.get(key))
        if was == now and has_one_currency:
            continue
        change = Change.ADDED if was is None else Change.REMOVED if now is None else Change.CHANGED
        found.append(
            LineDifference(
                key=key,
                name=(new.get(key) or old[key]).name,
                change=change,
                before=was,
                after=now,
                amount_change=EXACT.subtract(
                    now.amount if now else Decimal(0), was.amount if was else Decimal(0)
                )
                if has_one_currency
                else None,
            )
        )
    return tuple(found)


def _state(line: PlanLineRecord | None) -> LineState | None:
    if line is None:
        return None
    return LineState(
        base=line.base,
        fraction=line.fraction,
        amount=line.amount,
        in_programme=line.in_programme,
        starts_on=line.starts_on,
        ends_on=line.ends_on,
    )


def _totals(
    before: PlanRecord, after: PlanRecord, *, has_one_currency: bool
) -> tuple[TotalDifference, ...]:
    return (
        *(
            _money_total(
                key, getattr(before, key), getattr(after, key), has_one_currency=has_one_currency
            )
            for key in ("main_run_cost", "budget_at_completion")
        ),
        _total(
            "programme_multiple", "multiple", before.programme_multiple, after.programme_multiple
        ),
        _total("all_in_multiple", "multiple", before.all_in_multiple, after.all_in_multiple),
        _total("facility_energy_kwh", "kwh", before.facility_energy_kwh, after.facility_energy_kwh),
        _total("scope_2_location_kgco2e", "kgco2e", before.kgco2e, after.kgco2e),
    )


def _money_total(
    key: str, before: Decimal, after: Decimal, *, has_one_currency: bool
) -> TotalDifference:
    if has_one_currency:
        return _total(key, "money", before, after)
    return TotalDifference(
        key=key, unit="money", before=before, after=after, change=None, change_fraction=None
    )


def _total(
    key: str, unit: str, before: Decimal | float | None, after: Decimal | float | None
) -> TotalDifference:
    change: Decimal | float | None = None
    if isinstance(before, Decimal) and isinstance(after, Decimal):
        change = EXACT.subtract(after, before)
    elif isinstance(before, float) and isinstance(after, float):
        change = after - before
    return TotalDifference(
        key=key,
        unit=unit,
        before=before,
        after=after,
        change=change,
        change_fraction=float(change) / float(before)
        if change is not None and before is not None and before != 0
        else None,
    )


def input_differences(
    before: Mapping[str, Any], after: Mapping[str, Any]
) -> tuple[InputDifference, ...]:
    """The inputs of two questions that differ, each by its path: `model.params`, `storage.0.tier`.

    Args:
        before: a question as planning.spec keeps it.
        after: another.

    >>> input_differences({"step_mfu": 0.42, "seed": 1}, {"step_mfu": 0.45, "seed": 1})
    (InputDifference(field='step_mfu', before=0.42, after=0.45),)
    """
    old, new = _flat(before), _flat(after)
    return tuple(
        InputDifference(field=field, before=old.get(field), after=new.get(field))
        for field in sorted({*old, *new})
        if old.get(field) != new.get(field) and field.partition(".")[0] not in _NO_INPUTS
    )


def _flat(value: Any, path: str = "") -> dict[str, Any]:
    """Every leaf of a document by its path."""
    if isinstance(value, Mapping):
        parts = {str(key): part for key, part in value.items()}
    elif isinstance(value, list | tuple):
        parts = {str(place): part for place, part in enumerate(value)}
    else:
        return {path: value}
    flat: dict[str, Any] = {}
    for key, part in parts.items():
        flat |= _flat(part, f"{path}.{key}" if path else key)
    return flat


def _assumption_differences(
    before: FrozenEstimate, after: FrozenEstimate
) -> tuple[InputDifference, ...]:
    """Median of each input as it was used, where it moved though nobody stated another."""
    stated = {one.field for one in input_differences(before.question, after.question)}
    found = []
    for name in _ASSUMED:
        was, now = assumed(before.answer, name), assumed(after.answer, name)
        is_stated = any(field.partition(".")[0] == _STATED_AS.get(name, name) for field in stated)
        if was != now and not is_stated:
            found.append(InputDifference(field=name, before=was, after=now))
    return tuple(found)


def assumed(answer: Mapping[str, Any], name: str) -> Any:
    """The median of an input as an answer used it; None where it was not known."""
    value = (answer.get("assumptions") or {}).get(name)
    return value["p50"] if isinstance(value, Mapping) else value
