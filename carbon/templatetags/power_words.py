"""Words for the codes of energy data: reasons of quarantine, levels of factors."""

from typing import Any, Final

from django import template
from django.utils.translation import gettext_lazy as _

register = template.Library()
REASONS: Final[dict[str, Any]] = {
    "not_a_number": _("no number"),
    "device_of_another_site": _("device of another site"),
    "end_not_after_start": _("end not after start"),
    "longer_than_31_days": _("longer than 31 days"),
    "in_the_future": _("in the future"),
    "before_2010": _("before 2010"),
    "negative": _("negative"),
    "above_the_power_limit": _("above the power limit"),
    "counter_above_the_power_limit": _("counter rose faster than the power limit allows"),
    "overlaps_another_interval": _("overlaps another interval"),
    "another_value_is_stored": _("another value is stored"),
}
LEVELS: Final[dict[str, Any]] = {
    "site": _("of this site"),
    "cloud_region": _("cloud region"),
    "us_state": _("US state"),
    "country": _("country"),
    "world": _("world"),
    "not set": _("not set"),
    "hour": _("of the hour"),
    "month": _("of the month"),
    "year": _("of the year"),
    "market zone": _("market zone"),
    "fleet": _("provider's fleet"),
    "provider_region": _("provider's region"),
    "provider_geography": _("provider's geography"),
}

KINDS: Final[dict[str, Any]] = {
    "grid_intensity": _("grid intensity"),
    "grid_g_per_kwh": _("grid intensity"),
    "upstream": _("upstream of the grid"),
    "host_factor": _("host factor"),
    "pue": _("PUE"),
    "wue": _("water on site (WUE)"),
    "wue_l_per_kwh": _("water on site (WUE)"),
    "source_l_per_kwh": _("water at power plants"),
    "residual_mix": _("residual mix"),
    "embodied": _("embodied carbon"),
    "max_gap_s": _("longest gap between samples"),
}


@register.filter
def kind_words(code: str) -> Any:
    """What a factor is for."""
    return KINDS.get(code, code)


@register.filter
def reason_words(code: str) -> Any:
    """Why a reading was set aside."""
    return REASONS.get(code, code)


@register.filter
def level_words(code: str) -> Any:
    """How near to the site a factor was found."""
    return LEVELS.get(code, code)
