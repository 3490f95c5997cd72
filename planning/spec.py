"""The question of a kickoff estimate as people write it (JSON or form); ranges are formulae's."""

from datetime import date
from decimal import Decimal
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from formulae.estimate import EstimateInputError, EstimateSpec, Triangular
from runs.records import AcceleratorSpec


class Range(BaseModel):
    """A quantity that is not known to the point: lowest, most likely, highest."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    low: float
    mode: float
    high: float

    def triangular(self) -> Triangular:
        """The same belief, as the formulae take it."""
        return Triangular(low=self.low, mode=self.mode, high=self.high)


class EstimateRequest(BaseModel):
    """SPEC of `manage.py estimate` and of POST /api/v1/estimates; docs/cli.md documents it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = Field(default="Main run", min_length=1, max_length=200)
    params: float = Field(description="Parameters, all of them.")
    active_params: float | None = Field(default=None, description="MoE: those a token passes.")
    tokens: float = Field(description="Training tokens.")
    accelerator: str = Field(description="Key in the catalogue, e.g. h100-sxm-80gb.")
    accelerators: int = Field(description="How many run at once.")
    precision: Literal["bf16", "fp16", "fp8", "fp4", "tf32", "fp32"] = "bf16"
    peak_flop_per_s: float | None = Field(
        default=None, description="Dense peak, where it is not the catalogue's."
    )
    mfu: float | Range = Field(description="Model FLOPs utilisation, 0..1 of the dense peak.")
    goodput: float | Range = Field(default=1.0, description="Productive share of billed time.")
    price_per_accelerator_h: Decimal | None = None
    currency: str = "USD"
    power_w: float | Range | None = Field(
        default=None, description="Mean power of one accelerator; without it, its TDP."
    )
    host_factor: float | None = None
    pue: float | None = None
    g_per_kwh: float | None = Field(
        default=None, description="Grid intensity; without it, that of the region or country."
    )
    provider: str | None = Field(default=None, max_length=40)
    region: str | None = Field(default=None, max_length=60)
    country: str | None = Field(default=None, max_length=3)
    starts_on: date | None = None
    draws: int = 4_000
    seed: int = 0


class SpecError(ValueError):
    """A question that cannot be answered: `problems` maps a field to what is wrong with it."""

    def __init__(self, problems: dict[str, str]) -> None:
        super().__init__("; ".join(f"{field}: {why}" for field, why in problems.items()))
        self.problems = problems


def parse_request(document: dict[str, Any]) -> EstimateRequest:
    """Check the shape of a question.

    Raises:
        SpecError: names each wrong field and why.
    """
    try:
        return EstimateRequest.model_validate(document)
    except ValidationError as error:
        problems: dict[str, str] = {}
        for found in error.errors():
            field = str(found["loc"][0]) if found["loc"] else "spec"
            problems.setdefault(field, found["msg"].removeprefix("Value error, "))
        raise SpecError(problems) from error


def formula_spec(
    request: EstimateRequest, accelerator: AcceleratorSpec, *, g_per_kwh: float | None
) -> EstimateSpec:
    """The question as the formulae take it, with the catalogue's peak and TDP filled in.

    Args:
        request: the checked shape.
        accelerator: the catalogue's entry for `request.accelerator`.
        g_per_kwh: the grid intensity in force, gCO2e/kWh, or None when nothing is known.

    Raises:
        SpecError: a value outside its range, or no dense peak at the precision.
    """
    peak = request.peak_flop_per_s or accelerator.peak_dense_flop_per_s.get(request.precision)
    if peak is None:
        raise SpecError(
            {"precision": f"{accelerator.name} has no dense {request.precision} peak on record"}
        )
    power = request.power_w if request.power_w is not None else accelerator.tdp_w
    try:
        return EstimateSpec(
            active_params=request.active_params or request.params,
            total_params=request.params,
            tokens=request.tokens,
            accelerators=request.accelerators,
            peak_flop_per_s=peak,
            mfu=_point(request.mfu),
            mfu_range=_range(request.mfu),
            goodput=_point(request.goodput),
            goodput_range=_range(request.goodput),
            price_per_accelerator_h=request.price_per_accelerator_h,
            currency=request.currency if request.price_per_accelerator_h is not None else None,
            power_w=None if power is None else _point(power),
            power_w_range=None if power is None else _range(power),
            host_factor=request.host_factor,
            pue=request.pue,
            g_per_kwh=g_per_kwh,
            draws=request.draws,
            seed=request.seed,
        )
    except EstimateInputError as error:
        field = {"total_params": "params"}.get(error.field, error.field.removesuffix("_range"))
        why = f"{error.value} {error.unit}: it must be {error.requirement}. {error.fix}"
        raise SpecError({field: why}) from error


def _point(value: float | Range) -> float:
    """The most likely value."""
    return value.mode if isinstance(value, Range) else value


def _range(value: float | Range) -> Triangular | None:
    """The range, where one was given."""
    return value.triangular() if isinstance(value, Range) else None
