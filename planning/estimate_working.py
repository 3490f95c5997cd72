"""The working of an answer, step by step with its numbers; it repeats and decides nothing."""

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from django.utils.translation import get_language
from django.utils.translation import gettext as _

from formulae.units import FLOP_PER_TFLOP, G_PER_KG, HOURS_PER_DAY, S_PER_HOUR, WH_PER_KWH
from planning.estimate_words import term_name
from ui.formatting import (
    babel_locale,
    count_text,
    decimal_text,
    money_text,
    percent_text,
    power_of_ten_text,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One line of the working: symbols, the medians put in, their product, the drawn median."""

    key: str
    name: str
    symbols: str
    numbers: str
    unit: str
    value: Any
    drawn: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Medians:
    """The medians of the inputs as numbers and as text."""

    assumptions: dict[str, Any]

    def of(self, name: str) -> float | None:
        """The median of one input; None when it is not known."""
        found = self.assumptions.get(name)
        return None if found is None else float(found["p50"])

    def text(self, name: str) -> str:
        """The same as a reader expects it."""
        value, locale = self.of(name), babel_locale(get_language())
        if value is None:
            return _("n/a")
        if name in ("step_mfu", "goodput"):
            return percent_text(value, locale)
        return decimal_text(value, locale)


def flop_terms(document: dict[str, Any]) -> list[dict[str, Any]]:
    """The terms of one token with their shares of the model's FLOP."""
    terms = document.get("flop_terms", [])
    total = sum(term["flop_per_token"] for term in terms if term["is_model_flop"])
    return [
        {
            **term,
            "name": term_name(term["key"]),
            "share": term["flop_per_token"] / total if total else None,
        }
        for term in terms
    ]


def working(document: dict[str, Any]) -> list[Step]:
    """Compute, time, money, energy, carbon and water at the medians of the inputs."""
    assumptions = document["assumptions"]
    if not document.get("flop_terms"):
        return []
    medians = _Medians(assumptions=assumptions)
    hours = document["training_flop"] / (
        assumptions["peak_flop_per_s"]
        * (medians.of("step_mfu") or 1.0)
        * (medians.of("goodput") or 1.0)
        * S_PER_HOUR
    )
    return [
        _compute(document),
        *_time(document, medians, hours),
        *_energy(document, medians, hours),
    ]


def _compute(document: dict[str, Any]) -> Step:
    """FLOP of the run: counted, or as the question states them."""
    assumptions, flop = document["assumptions"], document["training_flop"]
    counted = assumptions["model_flop_per_token"] * assumptions["tokens"]
    is_stated = abs(flop / counted - 1) > 1e-9
    numbers = _("as stated in the question")
    if not is_stated:
        numbers = (
            f"{power_of_ten_text(assumptions['model_flop_per_token'], digits=3)} × "
            f"{power_of_ten_text(assumptions['tokens'])}"
        )
    return Step(
        key="training_flop",
        name=_("Training compute"),
        symbols=_("FLOP of a token × tokens"),
        numbers=numbers,
        unit="flop",
        value=flop,
    )


def _time(document: dict[str, Any], medians: _Medians, hours: float) -> Iterator[Step]:
    """Hours, days and money."""
    assumptions, locale = document["assumptions"], babel_locale(get_language())
    peak = decimal_text(assumptions["peak_flop_per_s"] / FLOP_PER_TFLOP, locale)
    yield Step(
        key="accelerator_h",
        name=_("Accelerator-hours"),
        symbols=_("FLOP / (peak × MFU × goodput × 3,600 s)"),
        numbers=f"{power_of_ten_text(document['training_flop'])} / ({peak} × 10¹² × "
        f"{medians.text('step_mfu')} × {medians.text('goodput')} × 3600)",
        unit="count",
        value=hours,
        drawn=document["accelerator_h"]["p50"],
    )
    count = assumptions["accelerator_count"]
    if document["days"] is not None and count:
        yield Step(
            key="days",
            name=_("Days"),
            symbols=_("accelerator-hours / accelerators / 24"),
            numbers=f"{count_text(round(hours), locale)} / {count_text(count, locale)} / 24",
            unit="days",
            value=hours / count / HOURS_PER_DAY,
            drawn=document["days"]["p50"],
        )
    price, cost = assumptions["price_per_accelerator_hour"], document["cost"]
    if price is not None and cost is not None:
        shown = money_text(Decimal(price), cost["currency"], locale)
        yield Step(
            key="cost",
            name=_("Cost of the main run"),
            symbols=_("accelerator-hours × price"),
            numbers=f"{count_text(round(hours), locale)} × {shown}",
            unit="money",
            value=Decimal(price) * Decimal(round(hours)),
            drawn=Decimal(cost["p50"]),
        )


# Result, what it follows from ("" is the hours), the input, its unit, the divisor, kind of value.
_CHAIN: Final = (
    ("accelerator_energy_kwh", "", "power_w", "W", WH_PER_KWH, "kwh"),
    ("it_energy_kwh", "accelerator_energy_kwh", "host_factor", "", 1, "kwh"),
    ("facility_energy_kwh", "it_energy_kwh", "pue", "", 1, "kwh"),
    ("scope_2_location_kgco2e", "facility_energy_kwh", "g_per_kwh", "g/kWh", G_PER_KG, "kgco2e"),
    (
        "scope_2_market_kgco2e", "facility_energy_kwh", "market_g_per_kwh", "g/kWh", G_PER_KG,
        "kgco2e",
    ),
    ("water_l", "it_energy_kwh", "wue_l_per_kwh", "L/kWh", 1, "L"),
    ("embodied_kgco2e", "", "embodied_kg_per_accelerator_h", "kg/h", 1, "kgco2e"),
)  # fmt: skip


def _energy(document: dict[str, Any], medians: _Medians, hours: float) -> Iterator[Step]:
    """The chain from hours to energy, and from energy to carbon and water."""
    known: dict[str, float] = {"": hours}
    locale = babel_locale(get_language())
    for key, of, factor, per_unit, per, unit in _CHAIN:
        median = medians.of(factor)
        if document.get(key) is None or median is None or of not in known:
            continue
        known[key] = known[of] * median / per
        numbers = (
            f"{count_text(round(known[of]), locale)} × {medians.text(factor)} {per_unit}".strip()
        )
        yield Step(
            key=key,
            name=_chain_name(key),
            symbols=f"{_chain_name(of)} × {_factor_name(factor)}",
            numbers=f"{numbers} / {per}" if per > 1 else numbers,
            unit=unit,
            value=known[key],
            drawn=document[key]["p50"],
        )


def _chain_name(key: str) -> str:
    """A result of the chain in words."""
    return {
        "": _("accelerator-hours"),
        "accelerator_energy_kwh": _("Energy of the accelerators"),
        "it_energy_kwh": _("Energy of the servers"),
        "facility_energy_kwh": _("Energy of the facility"),
        "scope_2_location_kgco2e": _("Emissions, location-based"),
        "scope_2_market_kgco2e": _("Emissions, market-based"),
        "water_l": _("Water"),
        "embodied_kgco2e": _("Embodied carbon"),
    }[key]


def _factor_name(key: str) -> str:
    """What a result of the chain is multiplied with."""
    return {
        "power_w": _("mean power"),
        "host_factor": _("host factor"),
        "pue": _("PUE"),
        "g_per_kwh": _("grid intensity"),
        "market_g_per_kwh": _("market-based intensity"),
        "wue_l_per_kwh": _("water per kWh"),
        "embodied_kg_per_accelerator_h": _("embodied carbon of an hour"),
    }[key]
