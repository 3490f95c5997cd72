"""The answer to a kickoff question: catalogue and grid looked up, formulae asked; its JSON."""

from dataclasses import asdict, dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from carbon.factors import choose_grid, shipped_grid_factors, zone_chain
from formulae.estimate import EstimateInterval, EstimateResult, estimate_training
from formulae.money import Money
from planning.spec import EstimateRequest, SpecError, formula_spec
from runs.records import AcceleratorSpec
from runs.selectors import accelerator, accelerators


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What an estimate says of the main run, with what it was computed from."""

    flop: float
    accelerator_h: float
    days: float
    cost: Money | None
    accelerator_energy_kwh: float | None
    it_energy_kwh: float | None
    facility_energy_kwh: float | None
    scope_2_location_kgco2e: float | None
    interval: dict[str, Any] | None
    assumptions: dict[str, Any]

    def document(self) -> dict[str, Any]:
        """The JSON of `manage.py estimate`; money as strings."""
        document = {field: getattr(self, field) for field in _PLAIN_FIELDS}
        document["currency"] = self.cost.currency if self.cost else None
        document["cost"] = format(self.cost.amount, "f") if self.cost else None
        return document

    @classmethod
    def from_document(cls, document: dict[str, Any]) -> "Answer":
        """Read a frozen answer back."""
        cost = document["cost"]
        return cls(
            cost=None
            if cost is None
            else Money(amount=Decimal(cost), currency=document["currency"]),
            **{field: document[field] for field in _PLAIN_FIELDS},
        )


_PLAIN_FIELDS = (
    "flop",
    "accelerator_h",
    "days",
    "accelerator_energy_kwh",
    "it_energy_kwh",
    "facility_energy_kwh",
    "scope_2_location_kgco2e",
    "interval",
    "assumptions",
)


def answer_request(organisation_id: UUID, request: EstimateRequest, *, as_of: datetime) -> Answer:
    """Answer a kickoff question; deterministic for the same question, catalogue and factors.

    Args:
        organisation_id: whose catalogue extends the shipped one.
        request: the checked shape.
        as_of: the instant whose year the grid factor is chosen for.

    Raises:
        SpecError: an unknown accelerator, or a value outside its range.
    """
    try:
        spec_of = accelerator(request.accelerator, organisation_id=organisation_id)
    except LookupError as error:
        known = ", ".join(item.key for item in accelerators(organisation_id=organisation_id))
        raise SpecError(
            {"accelerator": f"{request.accelerator!r} is not in the catalogue; known: {known}"}
        ) from error
    g_per_kwh, grid = _grid(request, as_of=as_of)
    spec = formula_spec(request, spec_of, g_per_kwh=g_per_kwh)
    result = estimate_training(spec)
    return _answer(result, _assumptions(request, spec_of, spec.peak_flop_per_s, grid))


def _grid(
    request: EstimateRequest, *, as_of: datetime
) -> tuple[float | None, dict[str, Any] | None]:
    """The grid intensity: the asker's own, else that of the place, else none."""
    if request.g_per_kwh is not None:
        return request.g_per_kwh, {"value": request.g_per_kwh, "level": "given by the user"}
    if not (request.region or request.country):
        return None, None
    chain = zone_chain(
        provider=request.provider or "",
        region=request.region or "",
        country=request.country or "",
        state="",
    )
    year = (request.starts_on or as_of.date()).year
    factor = choose_grid(shipped_grid_factors(), chain, year=year)
    return (factor.value, factor.as_json()) if factor else (None, None)


def _assumptions(
    request: EstimateRequest,
    spec_of: AcceleratorSpec,
    peak_flop_per_s: float,
    grid: dict[str, Any] | None,
) -> dict[str, Any]:
    """What the answer hangs on, for the page and for whoever asks later."""
    return {
        "accelerator": spec_of.name,
        "accelerator_source": spec_of.source,
        "precision": request.precision,
        "peak_dense_flop_per_s": peak_flop_per_s,
        "tdp_w": spec_of.tdp_w,
        "power_is_tdp": request.power_w is None,
        "grid": grid,
        "formula": "6 * N * D",
    }


def _answer(result: EstimateResult, assumptions: dict[str, Any]) -> Answer:
    """The formulae's result in the shape that is kept."""
    return Answer(
        flop=result.flop,
        accelerator_h=result.accelerator_h,
        days=result.days,
        cost=result.cost,
        accelerator_energy_kwh=result.accelerator_energy_kwh,
        it_energy_kwh=result.it_energy_kwh,
        facility_energy_kwh=result.facility_energy_kwh,
        scope_2_location_kgco2e=result.scope_2_location_kgco2e,
        interval=_interval_document(result.interval),
        assumptions=assumptions,
    )


def _interval_document(interval: EstimateInterval | None) -> dict[str, Any] | None:
    """Percentiles as JSON; money as strings."""
    if interval is None:
        return None
    document = asdict(interval)
    if interval.cost is not None:
        document["cost"] = {
            level: format(getattr(interval.cost, level).amount, "f")
            for level in ("p10", "p50", "p80", "p90", "mean")
        }
    return document
