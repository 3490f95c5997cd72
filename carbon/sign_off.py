"""Prepares, approves, reopens periods of the books, and releases what a lock holds back."""

import math
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction
from django.utils.translation import gettext as _

from carbon.attribution import microsecond_of
from carbon.instants import announce
from carbon.intake import lock_site
from carbon.locks import active_locks, allow_release, fingerprint, lock_books
from carbon.models import PeriodLock, Restatement
from carbon.posting import Release, post_hours
from carbon.selectors import emissions_summary
from carbon.services import enqueue_closing
from projects import trail
from projects.records import Actor
from runs.records import SiteRecord
from runs.selectors import site_by_id, sites

SIGNED_FIGURES = (
    "accelerator_energy_kwh",
    "it_energy_kwh",
    "facility_energy_kwh",
    "scope_2_location_kgco2e",
    "scope_2_market_kgco2e",
    "scope_2_market_hourly_kgco2e",
    "contracted_kwh",
    "upstream_kgco2e",
    "embodied_kgco2e",
    "water_on_site_l",
    "water_source_l",
    "coverage_fraction",
    "measured_fraction",
    "estimated_fraction",
)


class LockError(ValueError):
    """A period that cannot be signed off or changed; the message is for people."""


def figures(organisation_id: UUID, start: datetime, end: datetime) -> dict[str, Any]:
    """What the books say of a period now, all sites and owners."""
    summary = emissions_summary(
        organisation_id, None, start_on=start.date(), end_on=end.date()
    ).as_json()
    return {name: summary[name] for name in SIGNED_FIGURES}


@transaction.atomic
def prepare_period(actor: Actor, start: datetime, end: datetime, *, now: datetime) -> UUID:
    """Take the totals of a period down for somebody else to approve.

    Raises:
        LockError: the period is not over, not whole days, touches a locked one, or is empty.
    """
    is_midnight = all(
        (at.hour, at.minute, at.second, at.microsecond) == (0, 0, 0, 0) for at in (start, end)
    )
    if not start < end or not is_midnight:
        raise LockError(_("A period holds whole UTC days, its first before its last."))
    if end > now:
        raise LockError(_("The period is not over yet."))
    _hold_the_books(actor.organisation_id)
    touching = active_locks(actor.organisation_id).filter(start__lt=end, end__gt=start).first()
    if touching is not None:
        raise LockError(_("The period {period} is locked already.").format(period=touching))
    signed = fingerprint(actor.organisation_id, start, end)
    if not signed.entries:
        raise LockError(_("There is nothing on the books in this period."))
    waiting = PeriodLock.objects.filter(
        organisation_id=actor.organisation_id,
        approved_at__isnull=True,
        start=start,
        end=end,
    )
    waiting.delete()
    totals = {**figures(actor.organisation_id, start, end), "entries": signed.entries}
    row = PeriodLock.objects.create(
        organisation_id=actor.organisation_id,
        start=start,
        end=end,
        totals=totals,
        digest=signed.digest,
        prepared_by=actor.label,
        prepared_at=now,
    )
    _note(actor, row, "period.prepared", after=totals)
    return row.pk


@transaction.atomic
def approve_period(actor: Actor, lock_id: UUID, *, now: datetime) -> None:
    """Sign a prepared period off; from then on its entries hold.

    Raises:
        LockError: the same person prepared it, the books changed since, or it is locked already.
    """
    _hold_the_books(actor.organisation_id)
    row = _row(actor, lock_id)
    if row.approved_at is not None:
        raise LockError(_("This period is signed off already."))
    if row.prepared_by.casefold() == actor.label.casefold():
        raise LockError(_("Somebody else must approve what you prepared."))
    touching = active_locks(actor.organisation_id).filter(start__lt=row.end, end__gt=row.start)
    if touching.exists():
        raise LockError(_("A part of this period is locked already."))
    if not _is_as_prepared(row):
        raise LockError(_("The books changed since this was prepared: prepare the period again."))
    row.approved_by, row.approved_at = actor.label, now
    row.save(update_fields=["approved_by", "approved_at"])
    _note(actor, row, "period.locked", after=row.totals)


@transaction.atomic
def reopen_period(actor: Actor, lock_id: UUID, *, reason: str, now: datetime) -> None:
    """Let a locked period change again; what it held back is posted by a worker.

    Raises:
        LockError: it is not locked, or the reason is missing.
    """
    lock_books(actor.organisation_id)
    row = _locked_row(actor, lock_id)
    row.reopened_by, row.reopened_at = actor.label, now
    row.reason = _stated(reason)
    row.save(update_fields=["reopened_by", "reopened_at", "reason"])
    _note(actor, row, "period.reopened", reason=reason)
    for site in sites(actor.organisation_id):
        enqueue_closing(site, repost=True, start=row.start, end=row.end)


@transaction.atomic
def discard_period(actor: Actor, lock_id: UUID) -> None:
    """Drop a period that was prepared and never approved.

    Raises:
        LockError: it was approved.
    """
    lock_books(actor.organisation_id)
    row = _row(actor, lock_id)
    if row.approved_at is not None:
        raise LockError(_("A period that was signed off is reopened, not dropped."))
    _note(actor, row, "period.dropped")
    row.delete()


@transaction.atomic
def release_changes(
    actor: Actor, lock_id: UUID, *, reason: str, now: datetime | None = None
) -> int:
    """Post what a locked period holds back, with a reason; says how many entries are new.

    Known from `now` on; None: from the database's clock. The totals that were signed off stay as
    they are, beside the new ones.

    Raises:
        LockError: it is not locked, the reason is missing, or nothing waits.
    """
    lock_books(actor.organisation_id)
    row = _locked_row(actor, lock_id)
    release = Release(decided_by=actor.label, reason=_stated(reason))
    held = held_changes(actor.organisation_id).filter(start__lt=row.end, end__gt=row.start)
    site_ids = sorted(set(held.values_list("site_id", flat=True)))
    if not site_ids:
        raise LockError(_("Nothing waits in this period."))
    posted = 0
    for site in _sites(actor.organisation_id, site_ids):
        lock_site(site.site_id)
        posted += post_hours(
            site,
            start=microsecond_of(row.start),
            end=microsecond_of(row.end),
            posted_at=announce(now),
            release=release,
        )
    after = fingerprint(actor.organisation_id, row.start, row.end)
    row.totals = {**row.totals, "released": {"digest": after.digest, "entries": after.entries}}
    allow_release(True)
    row.save(update_fields=["totals"])
    allow_release(False)
    _note(actor, row, "period.released", after={"entries": posted}, reason=reason)
    return posted


def held_changes(organisation_id: UUID) -> Any:
    """Changes that wait for a release."""
    return Restatement.objects.filter(organisation_id=organisation_id, state=Restatement.State.HELD)


def _hold_the_books(organisation_id: UUID) -> None:
    """Whoever signs or posts ends first; whoever comes later finds what was signed."""
    lock_books(organisation_id)
    for site_id in sorted(site.site_id for site in sites(organisation_id)):
        lock_site(site_id)


def _is_as_prepared(row: PeriodLock) -> bool:
    """Whether the entries, and what contracts make of them, are those that were prepared."""
    if fingerprint(row.organisation_id, row.start, row.end).digest != row.digest:
        return False
    now = figures(row.organisation_id, row.start, row.end)
    return all(_alike(row.totals.get(name), value) for name, value in now.items())


def _alike(prepared: float | None, now: float | None) -> bool:
    if prepared is None or now is None:
        return prepared is now
    return math.isclose(prepared, now, rel_tol=1e-9)


def _sites(organisation_id: UUID, site_ids: list[UUID]) -> list[SiteRecord]:
    found = [site_by_id(organisation_id, one) for one in site_ids]
    return [one for one in found if one is not None]


def _row(actor: Actor, lock_id: UUID) -> PeriodLock:
    row = (
        PeriodLock.objects.select_for_update()
        .filter(pk=lock_id, organisation_id=actor.organisation_id)
        .first()
    )
    if row is None:
        raise LockError(_("No such period; reload the page."))
    return row


def _locked_row(actor: Actor, lock_id: UUID) -> PeriodLock:
    row = _row(actor, lock_id)
    if row.approved_at is None or row.reopened_at is not None:
        raise LockError(_("This period is not locked."))
    return row


def _stated(reason: str) -> str:
    text = reason.strip()
    if not text:
        raise LockError(_("Give a reason: whoever checks the books will ask for it."))
    return text[:400]


def _note(
    actor: Actor,
    row: PeriodLock,
    action: str,
    *,
    after: dict[str, Any] | None = None,
    reason: str = "",
) -> None:
    trail.note(
        actor,
        action,
        subject=("period", row.pk),
        after={"start": row.start, "end": row.end, **(after or {})},
        reason=reason,
    )
