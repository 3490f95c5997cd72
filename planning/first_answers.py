"""Answers that were frozen before the estimator had priors and intervals, in today's shape."""

from decimal import Decimal
from typing import Any, Final

from formulae.money import Money
from formulae.plan_lines import EVIDENCE_PRESETS, plan_lines

_LEVELS: Final = ("p10", "p50", "p80", "p90", "mean")
_PHYSICAL: Final = (
    "accelerator_h",
    "days",
    "accelerator_energy_kwh",
    "it_energy_kwh",
    "facility_energy_kwh",
    "scope_2_location_kgco2e",
)
_LATER: Final = ("scope_2_market_kgco2e", "embodied_kgco2e", "water_l")
_RENAMED: Final = {
    "mfu": "step_mfu",
    "accelerators": "accelerator_count",
    "starts_on": "started_on",
    "g_per_kwh": "grid_g_per_kwh",
}


def todays_document(document: dict[str, Any]) -> dict[str, Any]:
    """A frozen answer as pages and plans read it now; one of today's shape is left alone.

    Args:
        document: what was frozen; the first answers hold one figure for each quantity, and an
            interval only where a range was given.
    """
    if "version" in document:
        return document
    interval, assumptions = document.get("interval") or {}, document["assumptions"]
    figures = {
        name: _levels(document[name], interval.get(name))
        for name in _PHYSICAL
        if document[name] is not None
    }
    return {
        "version": 1,
        "name": "",
        "training_flop": document["flop"],
        **dict.fromkeys((*_PHYSICAL, *_LATER)),
        **figures,
        "energy_kwh": figures.get("facility_energy_kwh"),
        "emissions_kgco2e": figures.get("scope_2_location_kgco2e"),
        "cost": _cost(document, interval),
        "programme": None,
        "bill": None,
        "own_hardware": None,
        "flop_terms": [],
        "tornado": {},
        "assumptions": {
            **assumptions,
            "peak": "dense",
            "peak_flop_per_s": assumptions.get("peak_dense_flop_per_s"),
        },
        "priors": [],
        "warnings": [],
    }


def todays_question(spec: dict[str, Any]) -> dict[str, Any]:
    """A question as it was first asked, in today's keys; one of today's shape is left alone."""
    if "model" in spec:
        return spec
    asked = dict(spec)
    question: dict[str, Any] = {
        "model": {name: asked.pop(name) for name in ("params", "active_params") if name in asked}
    }
    price, currency = asked.pop("price_per_accelerator_h", None), asked.pop("currency", "USD")
    if price is not None:
        amount = {"amount": str(price), "currency": currency}
        question["price_per_accelerator_hour"] = amount
    provider, region = asked.pop("provider", None), asked.pop("region", None)
    country = asked.pop("country", None)
    if provider and region:
        question["region"] = f"{provider}:{region}"
    elif country:
        question["region"] = country
    return question | {_RENAMED.get(key, key): value for key, value in asked.items()}


def _levels(value: Any, drawn: dict[str, Any] | None) -> dict[str, Any]:
    """The percentiles that were drawn, or the one figure at every level."""
    return {level: (drawn or {}).get(level, value) for level in _LEVELS}


def _cost(document: dict[str, Any], interval: dict[str, Any]) -> dict[str, Any] | None:
    """The cost with the chapter's lines around it, as the first pages showed them."""
    if document["cost"] is None:
        return None
    main = Money(amount=Decimal(document["cost"]), currency=document["currency"])
    return {
        "currency": main.currency,
        **_levels(document["cost"], interval.get("cost")),
        "lines": [
            {
                "key": line.rule.key,
                "name": "",
                "base": line.rule.base.value,
                "fraction": format(line.rule.fraction, "f"),
                "amount": format(line.amount.amount, "f"),
                "in_programme": True,
            }
            for line in plan_lines(main)
        ],
        "lines_source": EVIDENCE_PRESETS[0].source,
    }
