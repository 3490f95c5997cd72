"""The page that sets saved estimates side by side."""

from typing import Any
from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from planning.comparison import (
    LETTERS,
    MOST,
    Compared,
    Row,
    asked_rows,
    found_rows,
    pictures,
)
from planning.estimate_page import findings_of
from planning.estimating import Answer
from planning.input_words import input_name
from planning.models import Estimate
from planning.selectors import estimate_by_id, estimates_of, may_see_estimate
from projects.access import Actor, actor_of

_LEAST = 2


@require_safe
def compare(request: HttpRequest) -> HttpResponse:
    """Two to four estimates side by side: `?ids=a,b` or `?ids=a&ids=b`; without, a choice."""
    actor = actor_of(request)
    texts = [text.strip() for one in request.GET.getlist("ids") for text in one.split(",")]
    chosen = [_visible(actor, text) for text in dict.fromkeys(filter(None, texts))]
    if _LEAST <= len(chosen) <= MOST:
        return render(request, "planning/compare.html", _context(chosen))
    context = {
        "rows": [
            {"estimate": one, "is_chosen": one in chosen}
            for one in estimates_of(actor.organisation_id)
            if may_see_estimate(actor, one)
        ],
        "said": _why_not(len(chosen)),
    }
    status = 400 if len(chosen) > MOST else 200
    return render(request, "planning/compare_choose.html", context, status=status)


def _why_not(count: int) -> str:
    """Why this many cannot be compared; nothing where nothing was chosen yet."""
    if count > MOST:
        return _("%(count)s estimates are too many to read side by side: choose at most 4.") % {
            "count": count
        }
    return _("Choose one more: a comparison needs at least two.") if count else ""


def _visible(actor: Actor, text: str) -> Estimate:
    """The estimate with this id; one that the actor may not see is not there."""
    try:
        found = estimate_by_id(actor.organisation_id, UUID(text))
    except ValueError as error:
        raise Http404("No such estimate.") from error
    if found is None or not may_see_estimate(actor, found):
        raise Http404("No such estimate.")
    return found


def _context(chosen: list[Estimate]) -> dict[str, Any]:
    compared = [
        Compared(name=one.name, question=one.spec, answer=Answer.from_document(one.result))
        for one in chosen
    ]
    found = found_rows(compared)
    asked = asked_rows(compared)
    return {
        "columns": [
            {
                "letter": letter,
                "estimate": one,
                "findings": [
                    finding for finding in findings_of(one.result) if finding["severity"] != "info"
                ],
            }
            for letter, one in zip(LETTERS, chosen, strict=False)
        ],
        "asked": [_named(row) for row in asked],
        "differing": [_asked_name(row.key) for row in asked if _differs(row)],
        "found": [_named(row) for row in found],
        "pictures": [
            {"name": _found_name(picture.key), "picture": picture} for picture in pictures(found)
        ],
        "has_mixed_currencies": any(picture.has_mixed_currencies for picture in pictures(found)),
    }


def _differs(row: Row) -> bool:
    return any(getattr(cell, "differs", False) for cell in row.cells)


def _named(row: Row) -> dict[str, Any]:
    name = _found_name(row.key) or _asked_name(row.key)
    return {"name": name, "row": row, "differs": _differs(row)}


def _asked_name(key: str) -> str:
    return {
        "total_params": _("Parameters"),
        "active_params": _("Active parameters"),
        "training_flop": _("Training compute"),
        "peak_flop_per_s": _("Peak that is counted with"),
        "place": _("Region"),
        "power_w": _("Mean power"),
        "g_per_kwh": _("Grid intensity"),
        "priced_on": _("Prices and factors of"),
    }.get(key, "") or input_name(key)


def _found_name(key: str) -> str:
    return {
        "days": _("Days"),
        "accelerator_h": _("Accelerator-hours"),
        "cost": _("Main run, 1.0×"),
        "programme": _("Programme before contingency"),
        "listed": _("Programme as listed, with contingency"),
        "all_in": _("All in, with the bill around"),
        "contingency": _("Contingency, P80 less P50"),
        "bill": _("Bill around the accelerators"),
        "facility_energy_kwh": _("Facility energy"),
        "scope_2_location_kgco2e": _("Emissions, location-based"),
        "scope_2_market_kgco2e": _("Emissions, market-based"),
        "embodied_kgco2e": _("Embodied emissions"),
        "water_l": _("Water"),
    }.get(key, "")
