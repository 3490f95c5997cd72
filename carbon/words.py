"""Factors in words, for every page that names one."""

from django.utils.translation import gettext as _

from carbon.embodied import CLASS_PREFIX, COMPUTED, NO_TABLE_SUFFIX, PUBLISHED
from carbon.plan_factors import (
    FLEET,
    GEOGRAPHY,
    INDUSTRY,
    MARKET_CFE,
    MARKET_CLAIM,
    MARKET_GRID,
)


def kind_name(kind: str) -> str:
    """What a factor is."""
    return {
        "grid_intensity": _("Grid intensity"),
        "market_intensity": _("Market-based intensity"),
        "embodied": _("Embodied carbon"),
        "wue": _("WUE"),
        "source_water": _("Water of the grid's power plants"),
        "upstream": _("Upstream of the grid"),
        "residual_mix": _("Residual mix"),
        "host_factor": _("Host factor"),
        "pue": _("PUE"),
    }.get(kind, kind)


def level_name(level: str) -> str:
    """How near to the site or accelerator a factor was found."""
    if level.startswith(CLASS_PREFIX):
        relative = level.removeprefix(CLASS_PREFIX)
        if relative.endswith(NO_TABLE_SUFFIX):
            return _("class estimate from %(relative)s; this accelerator is in no table") % {
                "relative": relative.removesuffix(NO_TABLE_SUFFIX)
            }
        return _("class estimate from %(relative)s") % {"relative": relative}
    return {
        "site": _("set on the site"),
        "cloud_region": _("cloud region"),
        "us_state": _("US state"),
        "country": _("country"),
        "world": _("world average"),
        "not set": _("not set"),
        "hour": _("of the hour"),
        "month": _("of the month"),
        "year": _("of the year"),
        "market zone": _("market zone"),
        "fleet": _("provider's fleet"),
        "provider_region": _("provider's region"),
        "provider_geography": _("provider's geography"),
        FLEET: _("provider's fleet"),
        GEOGRAPHY: _("provider's geography"),
        INDUSTRY: _("industry average"),
        MARKET_CFE: _("estimate: grid x (1 - hourly carbon-free share), no instrument seen"),
        MARKET_CLAIM: _("provider's claim, no instrument seen"),
        MARKET_GRID: _("grid average: no contract and no residual mix known"),
        PUBLISHED: _("published footprint"),
        COMPUTED: _("computed from a published footprint or from its parts"),
    }.get(level, level)
