"""Writes of power, energy and emissions: deliveries, closing hours, a site's factors. The doors."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Final
from uuid import UUID

import numpy as np
from django.db import connection, transaction
from django.utils import timezone
from django.utils.text import slugify
from django.utils.translation import gettext as _

from carbon.adapters.power_texts import PowerTextError, Readings
from carbon.attribution import instant_of, microsecond_of
from carbon.closing import close_site
from carbon.deliveries import PowerFile, PowerFileError, readings_of, receive_file
from carbon.intake import Intake, lock_site, store_readings
from carbon.metering import HOUR_MICROSECOND
from carbon.models import EnergyHour, PowerDelivery
from carbon.records import DEFAULT_MAX_GAP_S, PowerReport
from carbon.restating import repost_site
from carbon.site_factors import (
    FactorError,
    NewFactor,
    dated_factors,
    load_shipped_factors,
    set_factor,
    withdraw_factor,
)
from formulae.units import MICROSECOND_PER_S, S_PER_HOUR, kwh_from_millijoule
from jobs import services as jobs
from jobs.records import JobContext, PermanentJobError
from projects.access import system_actor
from projects.records import Actor
from runs.records import SiteRecord
from runs.selectors import site_by_id, sites
from runs.services import ensure_site

__all__ = [
    "FactorError",
    "NewFactor",
    "PowerFileError",
    "PowerTextError",
    "close_hours",
    "close_hours_job",
    "enqueue_closing",
    "enqueue_delivery",
    "import_power",
    "load_shipped_factors",
    "repost_site",
    "set_site_factors",
    "store_batch",
    "store_power_delivery",
    "withdraw_site_factor",
]

API_ROWS: Final = 100_000


def named_site(actor: Actor, name: str) -> SiteRecord:
    """The site of this name or slug, created bare when there is none."""
    slug = slugify(name)[:80]
    if not slug:
        raise PowerFileError(_("The site %(name)r has no letters or digits.") % {"name": name})
    return ensure_site(actor, slug=slug, name=name)


def import_power(
    actor: Actor, *, site_name: str, paths: Sequence[Path], now: datetime | None = None
) -> PowerReport:
    """Import files of power samples or energy intervals as one delivery, and close their hours.

    All of it is known from `now` on; None: from when it is stored.

    Raises:
        PowerFileError: a file cannot be read; nothing of the delivery is stored.
    """
    files = [receive_file(path) for path in paths]
    with transaction.atomic():
        site = named_site(actor, site_name)
        received_at = now or timezone.now()
        intake, extra, notes = _store_files(actor, site, files, now=received_at, context=None)
    close_site(site, now=now)
    return _report(site, intake, extra, notes)


def enqueue_delivery(actor: Actor, site: SiteRecord, files: Sequence[PowerFile]) -> UUID:
    """Ask a worker to store uploaded files; gives the job."""
    names = ", ".join(file.name for file in files)
    with transaction.atomic():
        return jobs.enqueue(
            organisation_id=actor.organisation_id,
            kind="carbon.store_power_delivery",
            scope="organisation",
            payload={
                "site_id": str(site.site_id),
                "files": [{"name": file.name, "sha256": file.sha256} for file in files],
                "label": actor.label,
            },
            title=_("Power: %(names)s") % {"names": names[:150]},
            created_by_user_id=actor.user_id,
        ).pk


def store_power_delivery(context: JobContext) -> dict[str, Any]:
    """Job: store uploaded files and close the hours that they touch."""
    site = _site_of_job(context)
    actor = system_actor(context.organisation_id, context.payload["label"])
    files = [PowerFile(**file) for file in context.payload["files"]]
    now = timezone.now()
    try:
        with transaction.atomic():
            intake, extra, notes = _store_files(actor, site, files, now=now, context=context)
            context.assert_still_mine()
    except PowerFileError as error:
        raise PermanentJobError(str(error)) from error
    close_site(site, now=None, before_commit=context.assert_still_mine)
    return _report(site, intake, extra, notes).as_json()


def _site_of_job(context: JobContext) -> SiteRecord:
    site = site_by_id(context.organisation_id, UUID(context.payload["site_id"]))
    if site is None:
        raise PermanentJobError(_("The site is gone."))
    return site


def _store_files(
    actor: Actor,
    site: SiteRecord,
    files: Sequence[PowerFile],
    *,
    now: datetime,
    context: JobContext | None,
) -> tuple[Intake, tuple[str, ...], tuple[str, ...]]:
    """Store the readings of files, in the caller's transaction."""
    lock_site(site.site_id)
    whole, extra, notes = Intake(), dict[str, None](), dict[str, None]()
    for file in files:
        of_file = Intake()
        for batch in readings_of(file, time_zone=site.time_zone):
            extra.update(dict.fromkeys(batch.unknown_columns))
            notes.update(dict.fromkeys(batch.notes))
            notes.update(dict.fromkeys(_learn_max_gap(actor, site, batch.readings, now=now)))
            of_file.add(store_readings(site, batch.readings, received_at=now))
            if context is not None:
                context.report(of_file.rows, batch.rows, file.name)
        PowerDelivery.objects.get_or_create(
            site_id=site.site_id,
            kind=PowerDelivery.Kind.FILE,
            name=file.name,
            sha256=file.sha256,
            defaults={
                "organisation_id": site.organisation_id,
                "job_id": context.job_id if context else None,
                "received_at": now,
                "received_by": actor.label,
                **_counts(of_file),
            },
        )
        whole.add(of_file)
    return whole, tuple(extra), tuple(notes)


def _counts(intake: Intake) -> dict[str, Any]:
    return {
        "rows": intake.rows,
        "rejected": intake.rejected,
        "duplicates": intake.duplicates,
        "reasons": intake.reasons,
    }


def _learn_max_gap(
    actor: Actor, site: SiteRecord, readings: Readings, *, now: datetime
) -> list[str]:
    """Set the longest gap of a site whose first samples come too slowly for the default.

    Once hours are on the books it is for people to change: that changes what they hold.
    """
    if not readings.is_samples or len(readings) < 2:
        return []
    order = np.lexsort((readings.start, readings.device))
    step = np.diff(readings.start[order])
    steps = step[(np.diff(readings.device[order]) == 0) & (step > 0)]
    if not len(steps):
        return []
    cadence_s = float(np.median(steps)) / MICROSECOND_PER_S
    known = any(one.kind == "max_gap_s" for one in dated_factors(site.site_id))
    known = known or EnergyHour.objects.filter(site_id=site.site_id).exists()
    if known or 2 * cadence_s <= DEFAULT_MAX_GAP_S:
        return []
    gap_s = min(2 * cadence_s, float(S_PER_HOUR))
    source = _("twice the distance of the first samples")
    set_factor(actor, site, NewFactor(kind="max_gap_s", value=gap_s, source=source), known_at=now)
    return [
        _("Samples come every %(cadence)g s: gaps of up to %(gap)g s are bridged at this site.")
        % {"cadence": cadence_s, "gap": gap_s}
    ]


def _report(
    site: SiteRecord, intake: Intake, extra: tuple[str, ...], notes: tuple[str, ...]
) -> PowerReport:
    """What became of a delivery; its energy is that of its devices in the hours it touches."""
    return PowerReport(
        site=site.slug,
        rows=intake.rows,
        rejected=intake.rejected,
        duplicates=intake.duplicates,
        devices=len(intake.device_ids),
        accelerator_energy_kwh=_energy_kwh(intake),
        reasons=intake.reasons,
        unknown_columns=extra,
        notes=notes,
    )


def _energy_kwh(intake: Intake) -> float | None:
    if intake.start is None or intake.end is None:
        return None
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT sum(measured_millijoule + spread_millijoule + estimated_millijoule) "
            "FROM carbon_energyhour WHERE device_id = ANY(%s) AND hour >= %s AND hour < %s "
            "AND superseded_at IS NULL",
            [
                sorted(intake.device_ids),
                instant_of(intake.start // HOUR_MICROSECOND * HOUR_MICROSECOND),
                instant_of(intake.end),
            ],
        )
        (energy_millijoule,) = cursor.fetchone()
    return None if energy_millijoule is None else kwh_from_millijoule(int(energy_millijoule))


def store_batch(
    actor: Actor, site: SiteRecord, batches: Sequence[Readings], *, now: datetime
) -> Intake:
    """Store what a sender posted; it is committed on return, its hours will be closed."""
    whole = Intake()
    with transaction.atomic():
        lock_site(site.site_id)
        for readings in batches:
            _learn_max_gap(actor, site, readings, now=now)
            whole.add(store_readings(site, readings, received_at=now))
        _count_api_day(actor, site, whole, now=now)
        if whole.opened is not None and whole.opened < hour_of(now):
            enqueue_closing(site)
    return whole


def _count_api_day(actor: Actor, site: SiteRecord, intake: Intake, *, now: datetime) -> None:
    """Add to what this site sent today."""
    row, _created = PowerDelivery.objects.get_or_create(
        site_id=site.site_id,
        kind=PowerDelivery.Kind.API,
        name=now.date().isoformat(),
        sha256="",
        defaults={
            "organisation_id": site.organisation_id,
            "received_at": now,
            "received_by": actor.label,
        },
    )
    row = PowerDelivery.objects.select_for_update().get(pk=row.pk)
    row.rows += intake.rows
    row.rejected += intake.rejected
    row.duplicates += intake.duplicates
    row.reasons = {
        reason: row.reasons.get(reason, 0) + intake.reasons.get(reason, 0)
        for reason in {*row.reasons, *intake.reasons}
    }
    row.received_at = now
    row.save()


def hour_of(now: datetime) -> int:
    """The start of the running hour, microseconds."""
    return microsecond_of(now) // HOUR_MICROSECOND * HOUR_MICROSECOND


def enqueue_closing(
    site: SiteRecord,
    *,
    repost: bool = False,
    start: datetime | None = None,
    end: datetime | None = None,
    entries_only: bool = False,
) -> UUID:
    """Ask a worker to close the site's open hours, or (`repost`) to renew its entries.

    All of them, or with `start` and `end` those of the hours in between; `entries_only` where
    readings and assignments are as they were.
    """
    kind = ("entries" if entries_only else "repost") if repost else "close"
    window = {"start": start and start.isoformat(), "end": end and end.isoformat()}
    named = ":".join(at or "" for at in window.values()) if start or end else ""
    with transaction.atomic():
        return jobs.enqueue(
            organisation_id=site.organisation_id,
            kind="carbon.close_hours",
            scope="organisation",
            payload={
                "site_id": str(site.site_id),
                "repost": repost,
                "entries_only": entries_only,
                **window,
            },
            dedupe_key=f"{site.site_id}:{kind}{named and ':' + named}",
            title=_("Energy of %(site)s") % {"site": site.name},
        ).pk


def close_hours(organisation_id: UUID, *, now: datetime, site_id: UUID | None = None) -> int:
    """Close the open hours that are over, of all sites or of one; say how many changed."""
    wanted = [one for one in sites(organisation_id) if site_id in (None, one.site_id)]
    return sum(close_site(site, now=now, until=now) for site in wanted)


def close_hours_job(context: JobContext) -> dict[str, Any]:
    """Job: close a site's hours that are over; on request bring all its entries up to date."""
    site = _site_of_job(context)
    changed = close_site(
        site,
        now=None,
        until=timezone.now(),
        on_window=lambda done, total: context.report(done, total, site.name),
        before_commit=context.assert_still_mine,
    )
    posted = 0
    if context.payload.get("repost"):
        start, end = (context.payload.get(name) for name in ("start", "end"))
        posted = repost_site(
            site,
            now=None,
            context=context,
            start=datetime.fromisoformat(start) if start else None,
            end=datetime.fromisoformat(end) if end else None,
            entries_only=bool(context.payload.get("entries_only")),
        )
    return {"device_hours": changed, "entries": posted}


def set_site_factors(
    actor: Actor, site: SiteRecord, factors: Sequence[NewFactor], *, now: datetime
) -> bool:
    """Set factors of a site; when one changed, a worker brings its entries up to date."""
    with transaction.atomic():
        changed = [set_factor(actor, site, one, known_at=now) for one in factors]
        if any(changed):
            enqueue_closing(site, repost=True)
    return any(changed)


def withdraw_site_factor(actor: Actor, site: SiteRecord, factor_id: UUID, *, now: datetime) -> None:
    """Withdraw a factor of a site; a worker brings its entries up to date."""
    with transaction.atomic():
        withdraw_factor(actor, site, factor_id, known_at=now)
        enqueue_closing(site, repost=True)


def enqueue_all_open(marked: Mapping[UUID, UUID]) -> int:
    """Ask workers to close the open hours of these sites (site by organisation)."""
    count = 0
    for site_id, organisation_id in marked.items():
        site = site_by_id(organisation_id, site_id)
        if site is not None:
            enqueue_closing(site)
            count += 1
    return count
