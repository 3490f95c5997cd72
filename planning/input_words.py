"""The inputs of an estimate in words, by their path in the question; nothing is compared here."""

from decimal import Decimal
from typing import Any

from django.utils.translation import get_language
from django.utils.translation import gettext as _

from ui.formatting import babel_locale, count_text, decimal_text, percent_text, power_of_ten_text

_FRACTIONS = frozenset({"step_mfu", "goodput"})
_LARGE = 1e6
_HUGE = 1e16


def input_name(path: str) -> str:
    """`step_mfu` as people say it; a path that has no word is shown as it is written."""
    head, _dot, rest = path.partition(".")
    words = {
        "tokens": _("Training tokens"),
        "seq_len": _("Context length"),
        "batch_sequences": _("Batch, sequences"),
        "precision": _("Precision"),
        "accelerator": _("Accelerator"),
        "accelerator_count": _("Accelerators at once"),
        "started_on": _("Starts on"),
        "training_flop": _("Training compute (FLOP)"),
        "peak": _("Peak"),
        "peak_flop_per_s": _("Peak (FLOP/s)"),
        "step_mfu": _("Step MFU"),
        "goodput": _("Goodput"),
        "price_per_accelerator_hour": _("Price per accelerator-hour"),
        "price_ratio": _("Price ratio"),
        "purchase": _("Purchase"),
        "power_w": _("Mean power (W)"),
        "host_factor": _("Host factor"),
        "region": _("Region"),
        "pue": _("PUE"),
        "grid_g_per_kwh": _("Grid intensity (g/kWh)"),
        "g_per_kwh": _("Grid intensity (g/kWh)"),
        "market_g_per_kwh": _("Market-based intensity (g/kWh)"),
        "embodied_kg_per_accelerator_h": _("Embodied (kg per accelerator-hour)"),
        "wue_l_per_kwh": _("Water (litres per kWh)"),
        "model": _("Model"),
        "reliability": _("Reliability"),
        "storage": _("Storage"),
        "requests": _("Requests"),
        "transfer": _("Transfer"),
        "services": _("Services"),
        "on_premises": _("On premises"),
        "draws": _("Draws"),
        "seed": _("Seed"),
    }
    name = words.get(head, head)
    place, _dot, within = rest.partition(".")
    if place.isdigit():
        name, rest = f"{name} {int(place) + 1}", within
    return f"{name}: {rest.replace('.', ' ').replace('_', ' ')}" if rest else name


def input_value(path: str, value: Any) -> str:
    """A value of the question as a reader expects it; what was not stated is said so."""
    locale = babel_locale(get_language())
    if value is None:
        return _("not stated")
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return str(value)
    if path.partition(".")[0] in _FRACTIONS:
        return percent_text(value, locale)
    size = abs(float(value))
    if size >= _HUGE:
        return power_of_ten_text(value)
    if size >= _LARGE:
        return count_text(value, locale, compact=True)
    if isinstance(value, int) or size.is_integer():
        return count_text(int(value), locale)
    return decimal_text(value, locale)
