"""Writes of a draft's lines: changes, lines of one's own, evidence presets, the contingency."""

from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from django.db import transaction
from django.utils.text import slugify
from django.utils.translation import gettext as _

from audit.services import record
from formulae.money import Money
from formulae.plan_lines import PLAN_LINES, EvidencePreset, PlanLineRule
from formulae.units import EXACT
from planning.drafting import DraftedLine, contingency_amount, contingency_fraction
from planning.estimating import Answer
from planning.models import Estimate, PlanLine, PlanVersion
from planning.names import line_name
from planning.phasing import default_dates
from planning.records import LineBase
from projects.records import Actor

MAIN_RUN: Final = "main_run"
CONTINGENCY: Final = "contingency"
MOST_LINES: Final = 60
_LONGEST_KEY: Final = 40
# The lines that evidence presets speak of; every other line is somebody's own and stays.
_LISTED: Final = frozenset(rule.key for rule in PLAN_LINES)
_FIELDS: Final = ("base", "fraction", "amount", "in_programme", "starts_on", "ends_on")


class PlanError(ValueError):
    """A change of a plan that cannot be made; the message says what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LineChange:
    """What a person may change of a draft's line. None leaves it as it is.

    An amount makes the line a fixed amount; a fraction is one of `base`, or of the base it had.
    """

    key: str
    base: LineBase | None = None
    fraction: Decimal | None = None
    amount: Decimal | None = None
    in_programme: bool | None = None
    starts_on: date | None = None
    ends_on: date | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NewLine:
    """A line of one's own: a fraction of its base or an amount; None dates are the main run's."""

    name: str
    base: LineBase
    fraction: Decimal | None = None
    amount: Decimal | None = None
    in_programme: bool = True
    starts_on: date | None = None
    ends_on: date | None = None


def record_change(
    actor: Actor,
    action: str,
    thing: Estimate | PlanVersion,
    after: dict[str, Any],
    *,
    before: dict[str, Any] | None = None,
) -> None:
    """One line of the trail, in the transaction of the change."""
    record(
        organisation_id=actor.organisation_id,
        actor_label=actor.label,
        user_id=actor.user_id,
        token_id=actor.token_id,
        ip=actor.ip,
        action=action,
        object_type=thing._meta.model_name or "",
        object_id=str(thing.pk),
        before=before,
        after=after,
        reason=str(after.get("reason", "")),
    )


def draft_for_update(organisation_id: UUID, version_id: int) -> PlanVersion:
    """The draft, locked.

    Raises:
        PlanError: it is approved: baselines do not change.
    """
    version = PlanVersion.objects.select_for_update().get(
        pk=version_id, organisation_id=organisation_id
    )
    if version.state != PlanVersion.State.DRAFT:
        raise PlanError(_("This version is approved and frozen: draft a new one."))
    return version


def write_line(version: PlanVersion, position: int, line: DraftedLine) -> PlanLine:
    """One line with its default dates; `recompute` follows the fractions."""
    if line.fraction is None and line.amount is None:
        raise PlanError(
            _("%(line)s has no price: state one in the estimate or in a price book.")
            % {"line": line.name}
        )
    starts_on, ends_on = default_dates(
        line.key, run_start=version.main_run_starts_on, run_end=version.main_run_ends_on
    )
    return PlanLine.objects.create(
        organisation_id=version.organisation_id,
        version=version,
        key=line.key,
        name=line.name,
        position=position,
        base=line.base.value,
        fraction=line.fraction,
        in_programme=line.in_programme,
        amount=line.amount or Decimal(0),
        starts_on=starts_on,
        ends_on=ends_on,
    )


def recompute(version: PlanVersion) -> None:
    """Follow the fractions again: order, amounts, energy and carbon of every line of a draft.

    Lines outside the programme stand after it, so that no share of a sum of lines counts them.
    """
    lines = sorted(version.lines.order_by("position"), key=lambda line: not line.in_programme)
    subtotal = Decimal(0)
    for position, line in enumerate(lines):
        line.position = position
        if line.base == LineBase.MAIN_RUN and line.fraction is not None:
            line.amount = _times(version.main_run_cost, line.fraction)
        elif line.base == LineBase.SUBTOTAL and line.fraction is not None:
            line.amount = _times(subtotal, line.fraction)
        subtotal = EXACT.add(subtotal, line.amount)
        share = float(line.amount / version.main_run_cost) if line.in_programme else None
        line.facility_energy_kwh = _part(version.main_run_facility_energy_kwh, share)
        line.kgco2e = _part(version.main_run_kgco2e, share)
        line.save()


def _part(main_run: float | None, share: float | None) -> float | None:
    """A share of the main run's energy or carbon. What storage or egress take is not known, and
    not zero.
    """
    return None if main_run is None or share is None else main_run * share


def _times(amount: Decimal, fraction: Decimal) -> Decimal:
    """An exact product, to the 18 decimals that are stored."""
    return Money(amount=amount, currency="XXX").times(fraction).amount


@transaction.atomic
def change_lines(actor: Actor, version: PlanVersion, changes: list[LineChange]) -> PlanVersion:
    """Change bases, fractions, fixed amounts, places or dates of a draft's lines.

    Raises:
        PlanError: the version is approved, a line is gone, or would end before it starts.
    """
    draft = draft_for_update(actor.organisation_id, version.pk)
    lines = {line.key: line for line in draft.lines.all()}
    before = {key: _shown(line) for key, line in lines.items()}
    for change in changes:
        if change.key not in lines:
            raise PlanError(_("The line %(key)s is no longer there.") % {"key": change.key})
        line = lines[change.key]
        _apply(line, change)
        line.save()
        if line.key == MAIN_RUN:
            draft.main_run_starts_on, draft.main_run_ends_on = line.starts_on, line.ends_on
            draft.save()
    recompute(draft)
    changed = [line for key, line in lines.items() if _shown(line) != before[key]]
    record_change(
        actor,
        "plan.change",
        draft,
        {"lines": {line.key: _shown(line) for line in changed}},
        before={"lines": {line.key: before[line.key] for line in changed}},
    )
    return draft


def _shown(line: PlanLine) -> dict[str, str]:
    """What the trail keeps of a line."""
    return {field: str(getattr(line, field)) for field in _FIELDS}


def _apply(line: PlanLine, change: LineChange) -> None:
    """One change of one line, checked."""
    if line.key == MAIN_RUN and _changes_the_main_run(line, change):
        raise PlanError(_("The main run is the estimate's 1.0×: estimate again to change it."))
    if change.amount is not None:
        line.base, line.fraction, line.amount = LineBase.AMOUNT, None, change.amount
    elif change.fraction is not None:
        line.base = (change.base or _fraction_base(line)).value
        line.fraction = change.fraction
    if change.in_programme is not None:
        line.in_programme = change.in_programme
    line.starts_on = change.starts_on or line.starts_on
    line.ends_on = change.ends_on or line.ends_on
    if line.ends_on <= line.starts_on:
        raise PlanError(
            _("%(line)s must end after it starts.")
            % {"line": line_name(line.key, own_name=line.name)}
        )


def _changes_the_main_run(line: PlanLine, change: LineChange) -> bool:
    """Whether more than dates would move."""
    return (
        change.amount is not None
        or change.fraction not in (None, line.fraction)
        or change.base not in (None, LineBase(line.base))
        or change.in_programme is False
    )


def _fraction_base(line: PlanLine) -> LineBase:
    """The base of a new fraction where none is named: the line's, or the main run."""
    base = LineBase(line.base)
    return LineBase.MAIN_RUN if base is LineBase.AMOUNT else base


@transaction.atomic
def add_line(actor: Actor, version: PlanVersion, new: NewLine) -> PlanVersion:
    """Add a line of one's own to a draft: before the contingency, or after the programme.

    Raises:
        PlanError: the version is approved, has too many lines, or the line is not complete.
    """
    draft = draft_for_update(actor.organisation_id, version.pk)
    if draft.lines.count() >= MOST_LINES:
        raise PlanError(_("A plan has at most %(most)s lines.") % {"most": MOST_LINES})
    if not new.name.strip() or (new.fraction is None) == (new.amount is None):
        raise PlanError(_("A line needs a name, and a percentage or an amount."))
    line = write_line(
        draft,
        MOST_LINES,
        DraftedLine(
            key=_free_key(draft, new.name),
            name=new.name.strip(),
            base=new.base,
            fraction=new.fraction,
            amount=new.amount,
            in_programme=new.in_programme,
        ),
    )
    _apply(line, LineChange(key=line.key, starts_on=new.starts_on, ends_on=new.ends_on))
    line.save()
    if new.in_programme and new.base is not LineBase.SUBTOTAL:
        _put_before_subtotals(draft, line)
    recompute(draft)
    record_change(actor, "plan.add_line", draft, {"line": line.key, "name": line.name})
    return draft


def _free_key(draft: PlanVersion, name: str) -> str:
    """A key for a line of one's own that no other line of the draft has."""
    taken = set(draft.lines.values_list("key", flat=True))
    stem = f"own-{slugify(name) or 'line'}"[: _LONGEST_KEY - 3].rstrip("-")
    candidates = [stem, *(f"{stem}-{number}" for number in range(2, MOST_LINES + 2))]
    return next(key for key in candidates if key not in taken)


def _put_before_subtotals(draft: PlanVersion, line: PlanLine) -> None:
    """A share of the lines above, such as the contingency, counts a new line too."""
    others = list(draft.lines.exclude(pk=line.pk).order_by("position"))
    first = next(
        (place for place, one in enumerate(others) if one.base == LineBase.SUBTOTAL), len(others)
    )
    first = min([first, *(place for place, one in enumerate(others) if one.key == CONTINGENCY)])
    for position, one in enumerate([*others[:first], line, *others[first:]]):
        one.position = position
        one.save()


@transaction.atomic
def remove_line(actor: Actor, version: PlanVersion, key: str) -> PlanVersion:
    """Take a line out of a draft; the main run stays.

    Raises:
        PlanError: the version is approved, or the line is the main run or is not there.
    """
    draft = draft_for_update(actor.organisation_id, version.pk)
    if key == MAIN_RUN:
        raise PlanError(_("The main run cannot be removed: it is what 1.0× means."))
    line = draft.lines.filter(key=key).first()
    if line is None:
        raise PlanError(_("The line %(key)s is no longer there.") % {"key": key})
    before = {"line": key, "name": line.name, **_shown(line)}
    line.delete()
    recompute(draft)
    record_change(actor, "plan.remove_line", draft, {"line": None}, before=before)
    return draft


@transaction.atomic
def apply_evidence(actor: Actor, version: PlanVersion, preset: EvidencePreset) -> PlanVersion:
    """Make the programme's listed lines those of a preset; own lines and the bill stay.

    Raises:
        PlanError: the version is approved.
    """
    draft = draft_for_update(actor.organisation_id, version.pk)
    wanted = {rule.key for rule in preset.rules}
    draft.lines.filter(key__in=_LISTED - wanted).delete()
    lines = {line.key: line for line in draft.lines.all()}
    own = [line for key, line in lines.items() if key not in wanted]
    listed = [_line_of(draft, lines.get(rule.key), rule) for rule in preset.rules]
    plain = [line for line in listed if line.base != LineBase.SUBTOTAL]
    shares = [line for line in listed if line.base == LineBase.SUBTOTAL]
    for position, line in enumerate([*plain, *own, *shares]):
        line.position = position
        line.save()
    recompute(draft)
    record_change(actor, "plan.evidence", draft, {"preset": preset.key, "source": preset.source})
    return draft


def _line_of(draft: PlanVersion, line: PlanLine | None, rule: PlanLineRule) -> PlanLine:
    """The line of a rule: the one that is there with its dates, or a new one."""
    base = LineBase(rule.base.value)
    if line is None:
        drafted = DraftedLine(
            key=rule.key,
            name=rule.key,
            base=base,
            fraction=rule.fraction,
            amount=None,
            in_programme=True,
        )
        return write_line(draft, MOST_LINES, drafted)
    line.base, line.fraction, line.in_programme = base.value, rule.fraction, True
    return line


@transaction.atomic
def choose_contingency(actor: Actor, version: PlanVersion, kind: str) -> PlanVersion:
    """Make the contingency a flat share of the lines above it, or the estimate's P80 less P50.

    Args:
        actor: who changes.
        version: a draft.
        kind: flat or p80.

    Raises:
        PlanError: the version is approved, the kind is another, or the estimate has no programme.
    """
    if kind not in ("flat", "p80"):
        raise PlanError(_("The contingency is flat or p80."))
    draft = draft_for_update(actor.organisation_id, version.pk)
    answer = Answer.from_document(draft.estimate.result)
    amount = contingency_amount(answer)
    if kind == "p80" and amount is None:
        raise PlanError(_("The estimate has no programme, so there is no P80 less P50."))
    line = draft.lines.filter(key=CONTINGENCY).first()
    if line is None:
        drafted = DraftedLine(
            key=CONTINGENCY,
            name=CONTINGENCY,
            base=LineBase.SUBTOTAL,
            fraction=contingency_fraction(answer),
            amount=None,
            in_programme=True,
        )
        line = write_line(draft, MOST_LINES, drafted)
    if kind == "p80":
        _apply(line, LineChange(key=CONTINGENCY, amount=amount))
    elif line.fraction is None or line.base != LineBase.SUBTOTAL:
        fraction = contingency_fraction(answer)
        _apply(line, LineChange(key=CONTINGENCY, base=LineBase.SUBTOTAL, fraction=fraction))
    line.save()
    recompute(draft)
    record_change(actor, "plan.contingency", draft, {"kind": kind})
    return draft
