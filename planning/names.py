"""The lines of a plan in words, and what they are a share of; nothing about their amounts."""

import re
from typing import Final

from django.utils.translation import gettext as _

from planning.whole_bill import NAMES as BILL_NAMES

_BILL_KEY: Final = re.compile(
    rf"(?:storage|requests|transfer|service)_({'|'.join(BILL_NAMES)})(?:_\d+)?"
)


def line_name(key: str, *, own_name: str = "") -> str:
    """The name of a line: a listed one's in the reader's language, an own one's as given."""
    found = _BILL_KEY.fullmatch(key)
    if found:
        return str(BILL_NAMES[found[1]])
    return {
        "main_run": _("Main run"),
        "experiments": _("Experiments and debugging"),
        "preprocessing": _("Data preprocessing"),
        "distillation": _("Distillation and mid-training"),
        "evaluation": _("Continuous evaluation"),
        "contingency": _("Contingency"),
    }.get(key, own_name or key)


def level_name(level: str) -> str:
    """A percentile of an estimate, P50, or the mean."""
    return _("mean") if level == "mean" else level.upper()


def evidence_name(key: str) -> str:
    """Whose programme an evidence preset is taken from."""
    return {
        "chapter": _("The reference chapter"),
        "olmo-2": "OLMo 2",
        "llama-1": "LLaMA 1",
        "olmo-3": "OLMo 3",
    }.get(key, key)


def evidence_finding(key: str) -> str:
    """What an evidence preset found, in a sentence."""
    return {
        "chapter": _(
            "The listed lines make 1.45 × 1.20 = 1.74×; the chapter prints about 1.86× and asks "
            "for 1.8 to 2.0×."
        ),
        "olmo-2": _("Development cost half of what the final training did."),
        "llama-1": _(
            "Five months on 2,048 accelerators took 3.4 times the energy of the four final runs."
        ),
        "olmo-3": _(
            "All but 17.8 %, the final run, was development: 1 / (1 − 0.822) = 5.618 in all."
        ),
    }.get(key, "")


def total_name(key: str) -> str:
    """A total of a plan."""
    return {
        "main_run_cost": _("Main run, 1.0×"),
        "budget_at_completion": _("Budget at completion"),
        "programme_multiple": _("Programme multiple"),
        "all_in_multiple": _("All-in multiple"),
        "facility_energy_kwh": _("Facility energy"),
        "scope_2_location_kgco2e": _("Emissions, location-based"),
    }.get(key, key)
