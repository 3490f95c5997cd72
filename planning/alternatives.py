"""The same run elsewhere, or on other hardware, side by side at the median; nothing is stored."""

from collections.abc import Iterable
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Final
from uuid import UUID

from carbon.places import Place, comparable_places
from formulae.money import Money
from planning.estimating import Answer, answer_request
from planning.prior_rows import SIXTEEN_BIT
from planning.spec import EstimateRequest, SpecError
from runs.records import AcceleratorSpec
from runs.selectors import accelerators

# Enough for a median to the percent; the page asks for dozens of answers at once.
_DRAWS: Final = 1_000
_OTHER_HARDWARE: Final = (
    "a100-sxm-80gb",
    "h100-sxm-80gb",
    "h200-sxm-141gb",
    "b200-sxm-180gb",
    "gb200-186gb",
    "mi300x-192gb",
    "tpu-v5p",
    "tpu-v6e",
    "trainium2",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Alternative:
    """One row of a comparison at the median; None is not known."""

    key: str
    name: str
    note: str
    days: float | None
    accelerator_h: float | None
    cost: Money | None
    facility_energy_kwh: float | None
    scope_2_location_kgco2e: float | None
    scope_2_market_kgco2e: float | None
    water_l: float | None
    g_per_kwh: float | None
    pue: float | None
    is_asked: bool


def same_run_elsewhere(
    organisation_id: UUID, request: EstimateRequest, *, as_of: datetime
) -> tuple[Alternative, ...]:
    """The run in other cloud regions, lowest emissions first; the asked place is among them.

    Each place brings its own grid and PUE. The price stays what it is: a region's price is in the
    price books, and is not what this table is about.

    Args:
        organisation_id: whose catalogue and prices are read.
        request: the question; its own grid intensity and PUE hold for its own place only.
        as_of: the instant whose day stands for a start that is not given.

    Raises:
        SpecError: the question itself cannot be answered.
    """
    own = answer_request(organisation_id, _light(request, {}), as_of=as_of)
    own_place = own.document["assumptions"]["place"]
    name = request.region or request.name
    asked = _row(own_place or "asked", name, own, is_asked=True)
    rows = [asked]
    price = asked.cost
    for place in comparable_places():
        if place.key != own_place:
            change: dict[str, object] = {
                "region": place.key,
                "pue": None,
                "grid_g_per_kwh": None,
            }
            answer = answer_request(organisation_id, _light(request, change), as_of=as_of)
            rows.append(_row(place.key, _place_name(place), answer, cost=price))
    return tuple(sorted(rows, key=_by_emissions))


def on_other_hardware(
    organisation_id: UUID, request: EstimateRequest, *, as_of: datetime
) -> tuple[Alternative, ...]:
    """The run on other accelerators at the same count, each with its own priors and price.

    A stated MFU, power and price are those of the asked hardware: the others take their priors and
    the price book's. FP8 falls back to 16 bit where an accelerator has none, and the note says so.

    Args:
        organisation_id: whose catalogue and prices are read.
        request: the question.
        as_of: the instant whose day stands for a start that is not given.

    Raises:
        SpecError: the question itself cannot be answered.
    """
    asked = answer_request(organisation_id, _light(request, {}), as_of=as_of)
    own_key = asked.document["assumptions"]["accelerator_key"]
    own_precision = asked.document["assumptions"]["precision"]
    rows = [_row(own_key, asked.document["assumptions"]["accelerator"], asked, is_asked=True)]
    catalogue = {item.key: item for item in accelerators(organisation_id=organisation_id)}
    for key in _OTHER_HARDWARE:
        if key == own_key or key not in catalogue:
            continue
        precision = _precision_on(catalogue[key], own_precision)
        change: dict[str, object] = {
            "accelerator": key,
            "precision": precision,
            "peak": "dense",
            "sparse_reason": "",
            "peak_flop_per_s": None,
            "step_mfu": None,
            "power_w": None,
            "host_factor": None,
            "price_per_accelerator_hour": None,
            "on_premises": None,
        }
        note = "" if precision == own_precision else precision
        try:
            answer = answer_request(organisation_id, _light(request, change), as_of=as_of)
        except SpecError as error:
            rows.append(_unknown(key, catalogue[key].name, note=str(error)))
        else:
            rows.append(_row(key, catalogue[key].name, answer, note=note))
    return tuple(rows)


def _light(request: EstimateRequest, change: dict[str, object]) -> EstimateRequest:
    """The question with few draws, without the bill around, and changed."""
    nothing: dict[str, object] = {"storage": (), "requests": (), "transfer": (), "services": ()}
    return request.model_copy(update={"draws": _DRAWS, **nothing, **change})


def _precision_on(accelerator: AcceleratorSpec, wanted: str) -> str:
    """The wanted precision, else the best 16-bit one that the accelerator has."""
    peaks = accelerator.peak_dense_flop_per_s
    return next((name for name in (wanted, *SIXTEEN_BIT) if name in peaks), wanted)


def _place_name(place: Place) -> str:
    return f"{place.location} ({place.key})" if place.location else place.key


def _by_emissions(row: Alternative) -> tuple[bool, float, str]:
    kgco2e = row.scope_2_location_kgco2e
    return kgco2e is None, kgco2e or 0.0, row.key


def _row(  # noqa: PLR0913 - one row of a table
    key: str,
    name: str,
    answer: Answer,
    *,
    note: str = "",
    cost: Money | None = None,
    is_asked: bool = False,
) -> Alternative:
    assumptions = answer.document["assumptions"]

    def median(belief: str) -> float | None:
        found = assumptions[belief]
        return None if found is None else float(found["p50"])

    return Alternative(
        key=key,
        name=name,
        note=note,
        days=answer.figure("days"),
        accelerator_h=answer.figure("accelerator_h"),
        cost=cost if cost is not None else answer.cost(),
        facility_energy_kwh=answer.figure("facility_energy_kwh"),
        scope_2_location_kgco2e=answer.figure("scope_2_location_kgco2e"),
        scope_2_market_kgco2e=answer.figure("scope_2_market_kgco2e"),
        water_l=answer.figure("water_l"),
        g_per_kwh=median("g_per_kwh"),
        pue=median("pue"),
        is_asked=is_asked,
    )


def _unknown(key: str, name: str, *, note: str) -> Alternative:
    """A row that says why it has no figures."""
    figures = [field.name for field in fields(Alternative)][3:-1]
    return Alternative(key=key, name=name, note=note, is_asked=False, **dict.fromkeys(figures))


def known(rows: Iterable[Alternative], quantity: str) -> bool:
    """Whether any row knows a quantity: a column of nothing is not shown."""
    return any(getattr(row, quantity) is not None for row in rows)
