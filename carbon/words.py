"""Factors in words, for every page that names one."""

from django.utils.translation import gettext as _


def kind_name(kind: str) -> str:
    """What a factor is."""
    return {
        "grid_intensity": _("Grid intensity"),
        "host_factor": _("Host factor"),
        "pue": _("PUE"),
    }.get(kind, kind)


def level_name(level: str) -> str:
    """How near to the site a factor was found."""
    return {
        "site": _("set on the site"),
        "cloud_region": _("cloud region"),
        "us_state": _("US state"),
        "country": _("country"),
        "world": _("world average"),
        "not set": _("not set"),
    }.get(level, level)
