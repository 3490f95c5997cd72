"""What the pages of an estimate show, read from its answer; no queries, no formulae."""

from collections.abc import Iterator
from decimal import Decimal
from typing import Any, Final

from django.utils.translation import gettext as _

from formulae.money import Money
from formulae.plan_lines import REFERENCE_BAND
from formulae.units import S_PER_HOUR, S_PER_MINUTE
from planning.estimate_words import TONES, basis_name, severity_name, unit_name
from planning.estimate_working import flop_terms, working
from planning.estimating import Answer
from planning.input_words import input_name
from planning.models import Estimate
from planning.names import line_name

# The ends of the strip that shows an interval, as shares of its median.
_STRIP: Final = (0.4, 2.0)
_PROGRAMME_STRIP: Final = (0.8, 2.6)
_LEVELS: Final = ("p10", "p50", "p80", "p90", "mean")


def list_row(estimate: Estimate) -> dict[str, Any]:
    """An estimate in the list."""
    answer = Answer.from_document(estimate.result)
    return {
        "estimate": estimate,
        "cost": answer.cost(),
        "is_blocked": answer.is_blocked,
        "days": answer.figure("days"),
        "accelerator_h": answer.figure("accelerator_h"),
        "facility_energy_kwh": answer.figure("facility_energy_kwh"),
        "scope_2_location_kgco2e": answer.figure("scope_2_location_kgco2e"),
    }


def answer_context(answer: Answer) -> dict[str, Any]:
    """Everything that the partials of an answer show."""
    document = answer.document
    steps = working(document)
    return {
        "document": document,
        "currency": answer.currency or "",
        "headline": list(_headline(document)),
        "findings": findings_of(document),
        "tornadoes": list(_tornadoes(document, {step.key: step.value for step in steps})),
        "programme": _programme(document),
        "flop_terms": flop_terms(document),
        "working": steps,
        "bill": _bill(document),
        "reliability": _reliability(document),
        "priors": [_prior(prior) for prior in document["priors"]],
        "is_certain": _is_certain(document),
        "is_blocked": answer.is_blocked,
    }


def _is_certain(document: dict[str, Any]) -> bool:
    """Whether nothing was drawn: every level is the same."""
    hours = document["accelerator_h"]
    return bool(hours["p10"] == hours["p90"])


def _headline(document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """One row for each quantity: its unit, levels, and where they lie on the strip."""
    rows = (
        ("days", _("Time"), "", "days"),
        ("accelerator_h", _("Accelerator-hours"), "", "count"),
        ("cost", _("Cost"), _("main run, 1.0×"), "money"),
        ("programme", _("Programme"), _("lines, no reserve"), "money"),
        ("facility_energy_kwh", _("Energy"), _("facility"), "kwh"),
        ("scope_2_location_kgco2e", _("Emissions"), _("location-based"), "kgco2e"),
        ("scope_2_market_kgco2e", _("Emissions"), _("market-based"), "kgco2e"),
        ("embodied_kgco2e", _("Emissions"), _("embodied"), "kgco2e"),
        ("water_l", _("Water"), "", "L"),
    )
    for key, label, kind, unit in rows:
        levels = document.get(key)
        yield {
            "key": key,
            "label": label,
            "kind": kind,
            "unit": unit,
            "is_minor": key in ("scope_2_market_kgco2e", "embodied_kgco2e", "water_l"),
            "levels": levels and {level: _value(levels[level], unit) for level in _LEVELS},
            "strip": levels and _strip(levels),
        }


def _value(level: Any, unit: str) -> Any:
    return Decimal(level) if unit == "money" else level


def _strip(levels: dict[str, Any]) -> dict[str, str] | None:
    """Where the percentiles lie between 40 % and 200 % of the median, in percent of the width."""
    median = float(levels["p50"])
    if not median:
        return None
    low, high = _STRIP
    places = {
        level: _place(float(levels[level]) / median, low=low, high=high)
        for level in ("p10", "p50", "p80", "p90")
    }
    return _drawn(places) | {"width": f"{places['p90'] - places['p10']:.2f}"}


def _place(value: float, *, low: float, high: float) -> float:
    return 100 * min(1.0, max(0.0, (value - low) / (high - low)))


def _drawn(places: dict[str, float]) -> dict[str, str]:
    """Coordinates as text: a template would write them with the reader's decimal comma."""
    return {name: f"{place:.2f}" for name, place in places.items()}


def findings_of(document: dict[str, Any]) -> list[dict[str, str]]:
    """Warnings with their tone and word, most severe first as they come."""
    bill, own = document.get("bill") or {}, document.get("own_hardware") or {}
    around = [
        {"severity": "amber", "code": item["code"], "message": item["message"]}
        for part in (bill, own)
        for item in part.get("findings", [])
    ]
    missing = [
        {"severity": "amber", "code": "missing", "message": item["message"]}
        for item in bill.get("missing", [])
    ]
    return [
        {**found, "tone": TONES[found["severity"]], "word": severity_name(found["severity"])}
        for found in (*document["warnings"], *around, *missing)
    ]


def _tornadoes(document: dict[str, Any], at_medians: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """What the spread of money (or time) and of emissions (or energy) comes from."""
    found = document["tornado"]
    for keys in (("cost", "accelerator_h"), ("scope_2_location_kgco2e", "facility_energy_kwh")):
        key = next((name for name in keys if found.get(name)), None)
        if key is not None:
            yield _tornado(document, key, centre=float(at_medians[key]))


def _tornado(document: dict[str, Any], key: str, *, centre: float) -> dict[str, Any]:
    titles = {
        "cost": (_("What the cost hangs on"), "money"),
        "accelerator_h": (_("What the time hangs on"), "h"),
        "facility_energy_kwh": (_("What the energy hangs on"), "kwh"),
        "scope_2_location_kgco2e": (_("What the emissions hang on"), "kgco2e"),
    }
    bars = document["tornado"][key]
    ends = [end for bar in bars for end in (bar["at_p10"], bar["at_p90"])]
    low, high = min([*ends, centre]), max([*ends, centre])
    margin = (high - low) * 0.02 or 1.0
    scale = {"low": low - margin, "high": high + margin}
    title, unit = titles[key]
    return {
        "key": key,
        "title": title,
        "unit": unit,
        "centre": f"{_place(centre, **scale):.2f}",
        "bars": [_bar(document, bar, unit, scale) for bar in bars],
    }


def _bar(
    document: dict[str, Any], bar: dict[str, Any], unit: str, scale: dict[str, float]
) -> dict[str, Any]:
    """One bar: the result where the input is at its P10 and at its P90."""
    ends = sorted((bar["at_p10"], bar["at_p90"]))
    left, right = (_place(end, **scale) for end in ends)
    belief = document["assumptions"].get(bar["name"]) or {}
    return {
        "name": input_name(bar["name"]),
        "input": bar["name"],
        "belief": belief,
        "is_share": bar["name"] in ("step_mfu", "goodput"),
        "share": bar["variance_fraction"],
        "low": _money_or(ends[0], unit),
        "high": _money_or(ends[1], unit),
        "x": f"{left:.2f}",
        "width": f"{max(0.5, right - left):.2f}",
    }


def _money_or(value: float, unit: str) -> Any:
    return Decimal(round(value)) if unit == "money" else value


def _programme(document: dict[str, Any]) -> dict[str, Any] | None:
    """The plan's lines at the median, their sum, the odds of the band, and both reserves."""
    cost, programme = document["cost"], document.get("programme")
    if cost is None:
        return None
    main = Money(amount=Decimal(cost["p50"]), currency=cost["currency"])
    total = main.times(0)
    lines = []
    for line in cost["lines"]:
        amount = Money(amount=Decimal(line["amount"]), currency=cost["currency"])
        total = total + amount if line["in_programme"] else total
        lines.append(
            {
                **line,
                "name": line_name(line["key"], own_name=line["name"]),
                "amount": amount.amount,
                "multiple": amount.ratio_to(main) if main.amount else None,
            }
        )
    flat = next((line["amount"] for line in lines if line["key"] == "contingency"), None)
    multiple = total.ratio_to(main) if main.amount else None
    return {
        "lines": lines,
        "total": total.amount,
        "multiple": multiple,
        "all_in": _all_in(document, total, main),
        "source": cost["lines_source"],
        "flat": flat,
        "drawn": programme and Decimal(programme["contingency_p80_less_p50"]),
        "inside": _inside(programme),
        "strip": programme and main.amount and _programme_strip(programme, main, multiple),
    }


def _all_in(document: dict[str, Any], total: Money, main: Money) -> dict[str, Any] | None:
    """The programme and the bill around it; None without a bill, or while a price is missing."""
    bill = document.get("bill")
    if bill is None or bill["total"] is None or bill["currency"] != main.currency:
        return None
    amount = total + Money(amount=Decimal(bill["total"]), currency=main.currency)
    return {
        "amount": amount.amount,
        "multiple": amount.ratio_to(main) if main.amount else None,
    }


def _inside(programme: dict[str, Any] | None) -> list[dict[str, Any]]:
    """The probability of ending inside each multiple of the band."""
    if programme is None:
        return []
    return [
        {"multiple": Decimal(multiple), "fraction": fraction}
        for multiple, fraction in programme["probability_inside"].items()
    ]


def _programme_strip(
    programme: dict[str, Any], main: Money, multiple: Decimal | None
) -> dict[str, str]:
    """The programme's interval beside the band, in percent of the width."""
    low, high = _PROGRAMME_STRIP
    places = {
        level: _place(float(Decimal(programme[level]) / main.amount), low=low, high=high)
        for level in ("p10", "p50", "p80", "p90")
    }
    band = [_place(float(end), low=low, high=high) for end in REFERENCE_BAND]
    places |= {"band": band[0], "band_end": band[1]}
    if multiple is not None:
        places["planned"] = _place(float(multiple), low=low, high=high)
    widths = {
        "width": f"{places['p90'] - places['p10']:.2f}",
        "band_width": f"{band[1] - band[0]:.2f}",
    }
    return _drawn(places) | widths


def _prior(prior: dict[str, Any]) -> dict[str, Any]:
    """A prior with its name in words."""
    return {
        **prior,
        "name": input_name(prior["quantity"]),
        "basis": basis_name(prior["basis"]),
        "is_share": prior["quantity"] in ("step_mfu", "goodput"),
    }


def _bill(document: dict[str, Any]) -> dict[str, Any] | None:
    """The bill around, its units in words."""
    bill = document.get("bill")
    if bill is None:
        return None
    lines = [
        {
            **line,
            "name": line_name(line["key"], own_name=line["name"]),
            "unit_name": unit_name(line["unit"]),
            "price_digits": _digits(line["price"]),
        }
        for line in bill["lines"]
    ]
    return {**bill, "lines": lines}


def _digits(price: str | None) -> int:
    """The decimals that a price is written with, at least two: 0.045 is not 0.04."""
    exponent = Decimal(price or 0).normalize().as_tuple().exponent
    return max(2, -exponent) if isinstance(exponent, int) else 2


def _reliability(document: dict[str, Any]) -> dict[str, Any] | None:
    """What failures cost, in hours and minutes."""
    failures = document["assumptions"].get("failures")
    if failures is None:
        return None
    return {
        **failures,
        "mean_time_between_failures_h": failures["mean_time_between_failures_s"] / S_PER_HOUR,
        "checkpoint_interval_min": failures["checkpoint_interval_s"] / S_PER_MINUTE,
        "advice_min": failures["advice"]["interval_s"] / S_PER_MINUTE,
        "lost_fraction": 1 - failures["goodput_fraction"],
    }
