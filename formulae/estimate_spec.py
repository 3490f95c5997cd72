"""The inputs of the kickoff estimate and their checks; the estimate itself is in estimate.py."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from formulae.beliefs import Belief, Certain, LogNormal, Triangular
from formulae.money import Money
from formulae.plan_lines import PLAN_LINES, PlanLineRule

# How far the lines around the main run end from their plan: the published programmes span a factor
# of four, and a team that plans its own lines knows more than nothing.
_ONE: Final = Certain(value=1.0)
DEVELOPMENT_SPREAD: Final = LogNormal(median=1.0, sd_log=0.35)


class EstimateInputError(ValueError):
    """One input of the estimate that cannot be meant; names the field, its unit and the fix."""

    def __init__(self, *, field: str, unit: str, value: object, requirement: str, fix: str) -> None:
        self.field = field
        self.unit = unit
        self.value = value
        self.requirement = requirement
        self.fix = fix
        super().__init__(f"{field} ({unit}) is {value}; it must be {requirement}. {fix}")


@dataclass(frozen=True, slots=True, kw_only=True)
class EstimateSpec:
    """What is known at kickoff of one main run; checked when built.

    What is None stays unknown and makes the results that need it None. `price_ratio` is what the
    price may turn out to be, over the price given; `fixed_lines` are programme lines of a fixed
    amount, beside those of a fraction.
    """

    flop_per_token: float
    tokens: float
    peak_flop_per_s: float
    step_mfu: Belief
    goodput: Belief = _ONE
    accelerators: int | None = None
    price_per_accelerator_h: Money | None = None
    price_ratio: Belief = _ONE
    power_w: Belief | None = None
    host_factor: Belief | None = None
    pue: Belief | None = None
    g_per_kwh: Belief | None = None
    market_g_per_kwh: Belief | None = None
    embodied_kg_per_accelerator_h: Belief | None = None
    wue_l_per_kwh: Belief | None = None
    lines: tuple[PlanLineRule, ...] = PLAN_LINES
    fixed_lines: Money | None = None
    development_ratio: Belief = DEVELOPMENT_SPREAD
    draws: int = 4_000
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse what cannot be meant."""
        for rule in RULES:
            given = getattr(self, rule.field)
            if given is not None or rule.is_required:
                check_input(rule.field, given)
        price = self.price_per_accelerator_h
        if price is not None and not 0 <= price.amount < _PRICE_LIMIT:
            raise EstimateInputError(
                field="price_per_accelerator_h",
                unit=f"{price.currency} per accelerator-hour",
                value=price.amount,
                requirement="an exact decimal from 0 to below 1000000",
                fix="Write decimal text such as 2.10.",
            )


def check_input(field: str, given: object) -> None:
    """Refuse a number, or a belief, that cannot be meant of an input of the estimate.

    low <= value <= high of the field's rule, for the ends of a range and a median

    Args:
        field: name of the input in EstimateSpec.
        given: a number in its unit, or a belief about it.

    Raises:
        EstimateInputError: names the field, its unit and the fix.

    Source: RULES; each range holds every published run, and refuses the usual wrong units.

    >>> check_input("pue", 1.2)
    >>> check_input("power_w", Certain(value=0.7))
    Traceback (most recent call last):
    formulae.estimate_spec.EstimateInputError: power_w (W per accelerator) is 0.7; it must be a \
number from 10 to 20000. Write watts: 700,000 milliwatt are 700, 0.7 kW is 700.
    """
    rule = _RULE_OF[field]
    for value in _values(given):
        rule.check(value)


def _values(given: object) -> Iterator[object]:
    """The numbers to check: a value itself, or the ends of what is believed."""
    if isinstance(given, Triangular):
        if not given.low <= given.mode <= given.high:
            raise EstimateInputError(
                field="range",
                unit="low, mode, high",
                value=f"{given.low:g}, {given.mode:g}, {given.high:g}",
                requirement="in the order low <= mode <= high",
                fix="Order the three values.",
            )
        yield from (given.low, given.mode, given.high)
    elif isinstance(given, Certain):
        yield given.value
    elif isinstance(given, LogNormal):
        yield min(given.median, given.ceiling)
    elif hasattr(given, "draw"):
        yield given.median  # type: ignore[attr-defined]
    else:
        yield given


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """The range of one field; low itself is admitted unless low_is_open."""

    field: str
    unit: str
    high: float
    fix: str
    low: float = 0.0
    low_is_open: bool = True
    is_whole: bool = False
    is_required: bool = False

    @property
    def requirement(self) -> str:
        """The range in words."""
        kind = "a whole number " if self.is_whole else "a number "
        bound = f"above {self.low:g} and at most" if self.low_is_open else f"from {self.low:g} to"
        return f"{kind}{bound} {self.high:g}"

    def admits(self, value: object) -> bool:
        """Whether the value is a finite number of the right kind in the range."""
        if isinstance(value, bool) or not isinstance(value, int | float):
            return False
        if not math.isfinite(value) or (self.is_whole and value != int(value)):
            return False
        return (self.low < value if self.low_is_open else self.low <= value) and value <= self.high

    def check(self, value: object) -> None:
        """Refuse a value that the rule does not admit."""
        if not self.admits(value):
            raise EstimateInputError(
                field=self.field,
                unit=self.unit,
                value=value,
                requirement=self.requirement,
                fix=self.fix,
            )


_PRICE_LIMIT: Final = 1_000_000
_PERCENT: Final = "Write a fraction: 55 % is 0.55."
_GRAMS: Final = "Write grams per kWh, not kg per kWh or lb per MW h: 0.4 kg/kWh is 400."
RULES: Final = (
    Rule(
        field="flop_per_token",
        unit="FLOP per token",
        low=1e3,
        high=1e17,
        is_required=True,
        fix="Six times the parameters that a token passes through: 10 billion give 6e10.",
    ),
    Rule(
        field="tokens",
        unit="tokens",
        low=1e6,
        low_is_open=False,
        high=1e17,
        is_required=True,
        fix="Write tokens, not sequences or steps, as a plain count: 10 trillion is 1e13.",
    ),
    Rule(
        field="accelerators",
        unit="count",
        low=1,
        low_is_open=False,
        high=10_000_000,
        is_whole=True,
        fix="Write how many accelerators run at once, such as 256.",
    ),
    Rule(
        field="peak_flop_per_s",
        unit="FLOP/s of one accelerator",
        low=1e9,
        low_is_open=False,
        high=1e18,
        is_required=True,
        fix="Write FLOP/s, dense, at the training precision: 989.4 TFLOP/s is 989.4e12.",
    ),
    Rule(
        field="step_mfu",
        unit="fraction of the peak",
        low=1e-4,
        low_is_open=False,
        high=1,
        is_required=True,
        fix=_PERCENT,
    ),
    Rule(
        field="goodput",
        unit="fraction of billed time",
        low=0.01,
        low_is_open=False,
        high=1,
        is_required=True,
        fix=_PERCENT,
    ),
    Rule(
        field="price_ratio",
        unit="ratio to the price given",
        high=10,
        is_required=True,
        fix="1.0 is the price.",
    ),
    Rule(
        field="power_w",
        unit="W per accelerator",
        low=10,
        low_is_open=False,
        high=20_000,
        fix="Write watts: 700,000 milliwatt are 700, 0.7 kW is 700.",
    ),
    Rule(
        field="host_factor",
        unit="IT watts per accelerator watt",
        low=1,
        low_is_open=False,
        high=5,
        fix="Hosts add to their accelerators: use 1.0 when metered at the host, else 1.3 to 1.8.",
    ),
    Rule(
        field="pue",
        unit="facility energy per IT energy",
        low=1,
        low_is_open=False,
        high=5,
        fix="A facility uses at least what its IT uses: a good site is 1.1 to 1.2.",
    ),
    Rule(field="g_per_kwh", unit="gCO2e/kWh", low=0, low_is_open=False, high=2_000, fix=_GRAMS),
    Rule(
        field="market_g_per_kwh",
        unit="gCO2e/kWh",
        low=0,
        low_is_open=False,
        high=2_000,
        fix=_GRAMS,
    ),
    Rule(
        field="embodied_kg_per_accelerator_h",
        unit="kgCO2e per accelerator-hour",
        low=0,
        low_is_open=False,
        high=10,
        fix="Write kg: 12.8 g per hour are 0.0128.",
    ),
    Rule(
        field="wue_l_per_kwh",
        unit="litres per kWh of IT energy",
        low=0,
        low_is_open=False,
        high=20,
        fix="Write litres per kWh: sites are 0.1 to 2.",
    ),
    Rule(
        field="draws",
        unit="count",
        low=100,
        low_is_open=False,
        high=1_000_000,
        is_whole=True,
        is_required=True,
        fix="Use 4000 unless the interval must be finer.",
    ),
    Rule(
        field="seed",
        unit="whole number",
        low=0,
        low_is_open=False,
        high=2**63 - 1,
        is_whole=True,
        is_required=True,
        fix="Any number from 0 on repeats the same draws.",
    ),
)
_RULE_OF: Final = {rule.field: rule for rule in RULES}
