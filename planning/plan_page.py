"""What the pages of a plan show, from its versions and the estimate under them; no queries."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any, Final

from formulae.money import exact_sum, multiply
from formulae.plan_lines import EVIDENCE_PRESETS, REFERENCE_BAND, programme_multiple
from planning.differences import PlanDifferences
from planning.drafting import contingency_amount, contingency_fraction
from planning.estimating import Answer
from planning.input_words import input_name, input_value
from planning.names import evidence_finding, evidence_name, level_name, total_name
from planning.records import LineBase, PlanLineRecord, PlanRecord

CONTINGENCY: Final = "contingency"
_SCALE_END: Final = Decimal("2.5")
_HEADROOM: Final = Decimal("1.08")


@dataclass(frozen=True, slots=True, kw_only=True)
class BandPicture:
    """Where a plan stands beside 1.8x to 2.0x; places are CSS percentages of the width."""

    position: str
    multiple: Decimal
    all_in: Decimal
    low_at: str
    high_at: str
    width: str
    multiple_at: str
    all_in_at: str
    one_at: str


def band_picture(plan: PlanRecord) -> BandPicture:
    """Below, inside or above the reference band, and a scale from 0x on."""
    low, high = REFERENCE_BAND
    multiple, all_in = plan.programme_multiple, plan.all_in_multiple
    end = max(_SCALE_END, all_in * _HEADROOM)
    return BandPicture(
        position="below" if multiple < low else "above" if multiple > high else "inside",
        multiple=multiple,
        all_in=all_in,
        low_at=_at(low, end),
        high_at=_at(high, end),
        width=_at(high - low, end),
        multiple_at=_at(multiple, end),
        all_in_at=_at(all_in, end),
        one_at=_at(Decimal(1), end),
    )


def _at(multiple: Decimal, end: Decimal) -> str:
    return f"{multiple / end:.3%}"


def version_context(
    plan: PlanRecord, answer: Answer, *, differences: PlanDifferences | None, first_on: date | None
) -> dict[str, Any]:
    """One version as every page of it shows it.

    Args:
        plan: the version.
        answer: of the estimate that it rests on.
        differences: from the version before, or None where there is none.
        first_on: the day of the first approval of this plan, or None before it.
    """
    return {
        "plan": plan,
        "level": level_name(plan.level),
        "programme_lines": [line for line in plan.lines if line.in_programme],
        "around_lines": [line for line in plan.lines if not line.in_programme],
        "programme_total": exact_sum(line.amount for line in plan.lines if line.in_programme),
        "around_total": exact_sum(line.amount for line in plan.lines if not line.in_programme),
        "band": band_picture(plan),
        "odds": _odds(answer),
        "late": late_by_days(plan, first_on=first_on),
        "differences": differences_context(differences),
    }


def _odds(answer: Answer) -> list[dict[str, Any]]:
    """The probabilities of ending inside the band's ends, as the estimate drew them."""
    programme = answer.document.get("programme")
    if programme is None:
        return []
    return [
        {"multiple": Decimal(multiple), "fraction": fraction}
        for multiple, fraction in programme["probability_inside"].items()
    ]


def late_by_days(plan: PlanRecord, *, first_on: date | None) -> int | None:
    """Days from W0, the start of the main run, to the budget's first approval; None if in time.

    Args:
        plan: the version whose main run starts at W0.
        first_on: the day of the first approval, or today where nothing is approved.
    """
    if first_on is None or first_on <= plan.main_run_starts_on:
        return None
    return (first_on - plan.main_run_starts_on).days


def draft_context(draft: PlanRecord, answer: Answer) -> dict[str, Any]:
    """What only a draft has: findings, the two kinds of reserve, and the evidence presets."""
    warnings = answer.document["warnings"]
    return {
        "red": [one for one in warnings if one["severity"] == "red"],
        "amber": [one for one in warnings if one["severity"] == "amber"],
        "contingency": _contingency(draft, answer),
        "evidence": [
            {
                "key": preset.key,
                "name": evidence_name(preset.key),
                "finding": evidence_finding(preset.key),
                "source": preset.source,
                "multiple": programme_multiple(preset.rules),
            }
            for preset in EVIDENCE_PRESETS
        ],
    }


def _contingency(draft: PlanRecord, answer: Answer) -> dict[str, Any]:
    """Flat and drawn reserve side by side, and which of them the draft has."""
    line = next((one for one in draft.lines if one.key == CONTINGENCY), None)
    drawn = contingency_amount(answer)
    fraction = contingency_fraction(answer)
    if line is not None and line.base is LineBase.SUBTOTAL and line.fraction is not None:
        fraction = line.fraction
    before = exact_sum(
        one.amount for one in draft.lines if one.in_programme and one.key != CONTINGENCY
    )
    chosen = _chosen(line, drawn)
    return {
        "chosen": chosen,
        "fraction": fraction,
        "flat": multiply(before, fraction),
        "drawn": drawn,
        "counts_twice": chosen == "p80" and draft.level in ("p80", "p90"),
    }


def _chosen(line: PlanLineRecord | None, drawn: Decimal | None) -> str:
    """flat, p80, own or none: what the draft's contingency line is."""
    if line is None:
        return "none"
    if line.base is LineBase.SUBTOTAL:
        return "flat"
    return "p80" if line.base is LineBase.AMOUNT and line.amount == drawn else "own"


def differences_context(found: PlanDifferences | None) -> dict[str, Any] | None:
    """The differences in words."""
    if found is None:
        return None
    return {
        "found": found,
        "before_level": level_name(found.before_level),
        "after_level": level_name(found.after_level),
        "totals": [{"name": total_name(total.key), "total": total} for total in found.totals],
        "inputs": [
            {
                "name": input_name(one.field),
                "before": input_value(one.field, one.before),
                "after": input_value(one.field, one.after),
                "is_assumed": is_assumed,
            }
            for inputs, is_assumed in ((found.inputs, False), (found.assumptions, True))
            for one in inputs
        ],
    }


def first_approval_on(versions: Sequence[PlanRecord]) -> date | None:
    """The day on which the project first had an approved budget."""
    return min((one.approved_at.date() for one in versions if one.approved_at), default=None)
