"""The inputs of the kickoff estimate and their checks; the estimate itself is in estimate.py."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from formulae.money import Money, MoneyError


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
class Triangular:
    """A triangular belief: impossible below low and above high, likeliest at mode."""

    low: float
    mode: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class EstimateSpec:
    """What is known at kickoff of one main run; checked when built.

    Power is either ``power_w``, or ``tdp_w`` times ``power_fraction``. What is None stays unknown
    and makes the results that need it None. For a mixture of experts ``active_params`` drives the
    compute.
    """

    active_params: float
    tokens: float
    accelerators: int
    peak_flop_per_s: float
    mfu: float
    goodput: float = 1.0
    total_params: float | None = None
    price_per_accelerator_h: Decimal | None = None
    currency: str | None = None
    power_w: float | None = None
    tdp_w: float | None = None
    power_fraction: float | None = None
    host_factor: float | None = None
    pue: float | None = None
    g_per_kwh: float | None = None
    mfu_range: Triangular | None = None
    goodput_range: Triangular | None = None
    power_w_range: Triangular | None = None
    draws: int = 4_000
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse what cannot be meant."""
        for rule in _RULES:
            _check(rule, rule.field, getattr(self, rule.field))
        _check_total(self)
        _check_price(self)
        _check_power(self)
        for name, span, point in _ranges(self):
            _check_range(_RULE_OF[name], span, point)

    @property
    def is_mixture_of_experts(self) -> bool:
        """Whether more parameters are stored than one token passes through."""
        return self.total_params is not None and self.total_params > self.active_params

    @property
    def mean_power_w(self) -> float | None:
        """Mean power of one accelerator over the billed hours, W; None when not given."""
        if self.power_w is not None:
            return self.power_w
        if self.tdp_w is None or self.power_fraction is None:
            return None
        return self.tdp_w * self.power_fraction


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rule:
    """The range of one field; low itself is admitted unless low_is_open."""

    field: str
    unit: str
    high: float
    fix: str
    low: float = 0.0
    low_is_open: bool = True
    is_optional: bool = False
    is_whole: bool = False

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


_PERCENT: Final = "Write a fraction: 55 % is 0.55."
_COUNT: Final = "Write the plain count: 10 billion is 1e10."
_RULES: Final = (
    _Rule(field="active_params", unit="parameters per token", high=1e15, fix=_COUNT),
    _Rule(field="total_params", unit="parameters", high=1e16, fix=_COUNT, is_optional=True),
    _Rule(
        field="tokens", unit="tokens", high=1e17, fix="Write the plain count: 10 trillion is 1e13."
    ),
    _Rule(
        field="accelerators",
        unit="count",
        low=1,
        low_is_open=False,
        high=10_000_000,
        is_whole=True,
        fix="Write how many accelerators run at once, such as 256.",
    ),
    _Rule(
        field="peak_flop_per_s",
        unit="FLOP/s of one accelerator",
        low=1e9,
        low_is_open=False,
        high=1e18,
        fix="Write FLOP/s, dense, at the training precision: 989.4 TFLOP/s is 989.4e12.",
    ),
    _Rule(field="mfu", unit="fraction of the dense peak", high=1, fix=_PERCENT),
    _Rule(field="goodput", unit="fraction of billed time", high=1, fix=_PERCENT),
    _Rule(
        field="power_w",
        unit="W per accelerator",
        high=20_000,
        is_optional=True,
        fix="Write watts: 700,000 milliwatt are 700.",
    ),
    _Rule(
        field="tdp_w",
        unit="W per accelerator",
        high=20_000,
        is_optional=True,
        fix="Write watts: 0.7 kW are 700.",
    ),
    _Rule(field="power_fraction", unit="fraction of TDP", high=1.5, is_optional=True, fix=_PERCENT),
    _Rule(
        field="host_factor",
        unit="IT watts per accelerator watt",
        low=1,
        low_is_open=False,
        high=5,
        is_optional=True,
        fix="Hosts add to their accelerators: use 1.0 when metered at the host, else 1.3 to 1.8.",
    ),
    _Rule(
        field="pue",
        unit="facility energy per IT energy",
        low=1,
        low_is_open=False,
        high=5,
        is_optional=True,
        fix="A facility uses at least what its IT uses: a good site is 1.1 to 1.2.",
    ),
    _Rule(
        field="g_per_kwh",
        unit="gCO2e/kWh",
        low=0,
        low_is_open=False,
        high=2_000,
        is_optional=True,
        fix="Write grams per kWh, not kg per MW h or lb: 0.4 kg/kWh is 400.",
    ),
    _Rule(
        field="draws",
        unit="count",
        low=100,
        low_is_open=False,
        high=1_000_000,
        is_whole=True,
        fix="Use 4000 unless the interval must be finer.",
    ),
    _Rule(
        field="seed",
        unit="whole number",
        low=0,
        low_is_open=False,
        high=2**63 - 1,
        is_whole=True,
        fix="Any number from 0 on repeats the same draws.",
    ),
)
_RULE_OF: Final = {rule.field: rule for rule in _RULES}


def _check(rule: _Rule, field: str, value: object) -> None:
    """Refuse a value that the rule does not admit; None passes where it is optional."""
    if (value is None and rule.is_optional) or rule.admits(value):
        return
    raise EstimateInputError(
        field=field, unit=rule.unit, value=value, requirement=rule.requirement, fix=rule.fix
    )


def _check_total(spec: EstimateSpec) -> None:
    """A model stores at least what one token passes through."""
    if spec.total_params is not None and spec.total_params < spec.active_params:
        raise EstimateInputError(
            field="total_params",
            unit="parameters",
            value=spec.total_params,
            requirement=f"at least active_params, {spec.active_params:g}",
            fix="Leave it out for a dense model.",
        )


def _check_price(spec: EstimateSpec) -> None:
    """A price is a Decimal of at least zero, with its currency."""
    price, currency = spec.price_per_accelerator_h, spec.currency
    if price is None and currency is None:
        return
    if not isinstance(price, Decimal) or not price.is_finite() or not 0 <= price < 1_000_000:
        raise EstimateInputError(
            field="price_per_accelerator_h",
            unit=f"{currency or 'currency'} per accelerator-hour",
            value=price,
            requirement="an exact decimal from 0 to below 1000000",
            fix="Write decimal text such as 2.10; without a price leave the currency out too.",
        )
    try:
        Money(amount=Decimal(0), currency=currency or "")
    except MoneyError as error:
        raise EstimateInputError(
            field="currency",
            unit="ISO 4217 code",
            value=currency,
            requirement="three capital letters, given with the price",
            fix="Write a code such as USD.",
        ) from error


def _check_power(spec: EstimateSpec) -> None:
    """Power is given one way or the other, not by half and not twice."""
    is_by_fraction = spec.power_fraction is not None
    is_complete = is_by_fraction and spec.tdp_w is not None and spec.power_w is None
    if is_complete or (not is_by_fraction and (spec.tdp_w is None or spec.power_w is not None)):
        return
    raise EstimateInputError(
        field="power_fraction",
        unit="fraction of TDP",
        value=spec.power_fraction,
        requirement="given together with tdp_w, and without power_w",
        fix="Give power_w alone, or tdp_w with power_fraction (0.9 for a busy H100).",
    )


def _ranges(spec: EstimateSpec) -> Iterator[tuple[str, Triangular, float | None]]:
    """The ranges that are given, each with its field and its point value."""
    spans = (
        ("mfu", spec.mfu_range, spec.mfu),
        ("goodput", spec.goodput_range, spec.goodput),
        ("power_w", spec.power_w_range, spec.mean_power_w),
    )
    return ((name, span, point) for name, span, point in spans if span is not None)


def _check_range(rule: _Rule, span: Triangular, point: float | None) -> None:
    """A range is in order, each end admitted by its field's rule, and holds the point value."""
    name = f"{rule.field}_range"
    for value in (span.low, span.mode, span.high):
        _check(rule, name, value)
    is_ordered = span.low <= span.mode <= span.high
    if not is_ordered or point is None or not span.low <= point <= span.high:
        raise EstimateInputError(
            field=name,
            unit=rule.unit,
            value=f"{span.low:g}, {span.mode:g}, {span.high:g} around {point}",
            requirement=f"low <= mode <= high with the given {rule.field} between low and high",
            fix=f"Order the three values, and give {rule.field} a value inside them.",
        )
