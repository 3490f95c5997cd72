"""What stands under the fields of the question: which prior or price is taken, and its value."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.utils.translation import get_language
from django.utils.translation import gettext as _

from formulae.units import FLOP_PER_TFLOP
from planning.estimate_words import basis_name
from ui.formatting import babel_locale, count_text, decimal_text, percent_text


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """A line under a field; `at` is where its slider rests while the field is empty."""

    field: str
    text: str
    at: str = ""


def notes_of(document: dict[str, Any]) -> list[Note]:
    """The notes of an answer; none of an answer that names no priors."""
    assumptions = document["assumptions"]
    if "step_mfu" not in assumptions:
        return []
    return [
        _about_accelerator(assumptions),
        _about_tokens(assumptions),
        *_about_priors(document),
        _about_price(assumptions),
    ]


def _about_accelerator(assumptions: dict[str, Any]) -> Note:
    locale = babel_locale(get_language())
    peak = assumptions["peak_flop_per_s"] / FLOP_PER_TFLOP
    parts = [
        assumptions["accelerator"],
        _("%(peak)s TFLOP/s, %(kind)s %(precision)s")
        % {
            "peak": decimal_text(peak, locale),
            "kind": _("sparse") if assumptions["peak"] == "sparse" else _("dense"),
            "precision": assumptions["precision"].upper(),
        },
    ]
    if assumptions["tdp_w"] is not None:
        parts.append(f"{decimal_text(assumptions['tdp_w'], locale)} W")
    return Note(field="accelerator", text=" · ".join(parts))


def _about_tokens(assumptions: dict[str, Any]) -> Note:
    locale = babel_locale(get_language())
    ratio = count_text(round(assumptions["tokens"] / assumptions["active_params"]), locale)
    return Note(
        field="tokens", text=_("%(ratio)s tokens for each active parameter.") % {"ratio": ratio}
    )


def _about_priors(document: dict[str, Any]) -> Iterator[Note]:
    """Which prior stands in for an empty field; a given value needs no note."""
    priors = {prior["quantity"]: prior for prior in document["priors"]}
    rows = (
        ("step_mfu", "step_mfu"),
        ("goodput", "goodput"),
        ("pue", "pue"),
        ("region", "g_per_kwh"),
    )
    for field, quantity in rows:
        prior = priors.get(quantity)
        if prior is None:
            is_place = field == "region"
            text = _("aws:us-east-1, or a country: SWE.") if is_place else _("As you gave it.")
            yield Note(field=field, text=text)
            continue
        low, middle, high = (_shown(prior[level], quantity) for level in ("p10", "p50", "p90"))
        words = {"middle": middle, "low": low, "high": high, "basis": basis_name(prior["basis"])}
        if field == "region":
            yield Note(field=field, text=_("Grid %(middle)s gCO₂e/kWh: %(basis)s") % words)
        else:
            text = _("Prior %(middle)s (%(low)s to %(high)s): %(basis)s") % words
            yield Note(field=field, text=text, at=f"{prior['p50']:.4g}")


def _shown(value: float, quantity: str) -> str:
    locale = babel_locale(get_language())
    if quantity in ("step_mfu", "goodput"):
        return percent_text(value, locale)
    return decimal_text(value, locale, digits=0 if quantity == "g_per_kwh" else 2)


def _about_price(assumptions: dict[str, Any]) -> Note:
    price = assumptions["price_per_accelerator_hour"]
    if price is None:
        return Note(field="price", text=_("No price book has one: state yours."))
    return Note(field="price", text=assumptions["price_source"], at=f"{float(price):g}")
