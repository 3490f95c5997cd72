"""Jobs that senders saw on devices: one row from first to last sighting; named runs get devices.

An assignment by a person stands above what a sender saw and is never changed here.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from django.db import connection
from django.utils.translation import gettext as _

from carbon.adapters.binary_rows import listed
from carbon.attribution import instant_of, microsecond_of
from carbon.booked_rows import Round
from carbon.models import DeviceNow, JobSighting
from carbon.services import enqueue_closing, hour_of
from projects.access import system_actor
from projects.records import Actor
from runs.records import AssignmentRecord, RunRecord, SiteRecord
from runs.selectors import (
    assignments_of_devices,
    assignments_of_site,
    devices_of_run,
    runs_named,
)
from runs.services import assign_devices, end_assignments

JOB_GAP: Final = timedelta(minutes=15)  # unseen for longer: another life of the job
GAP_MICROSECOND: Final = JOB_GAP // timedelta(microseconds=1)
FOR_EVER: Final = datetime.max.replace(tzinfo=UTC)
KNOWN: Final = (
    "SELECT id, device_id, kind, job, run_name, (extract(epoch FROM first_at) * 1000000)::bigint, "
    "(extract(epoch FROM last_at) * 1000000)::bigint FROM carbon_jobsighting "
    "WHERE device_id = ANY(%s::bigint[]) AND last_at >= %s AND first_at <= %s"
)
EXTEND: Final = (
    "UPDATE carbon_jobsighting AS sighting SET first_at = least(sighting.first_at, "
    "timestamptz 'epoch' + seen.first_at * interval '1 microsecond'), "
    "last_at = greatest(sighting.last_at, "
    "timestamptz 'epoch' + seen.last_at * interval '1 microsecond'), "
    "run_name = coalesce(nullif(seen.run_name, ''), sighting.run_name) "
    "FROM unnest(%s::bigint[], %s::bigint[], %s::bigint[], %s::text[]) "
    "AS seen(id, first_at, last_at, run_name) WHERE sighting.id = seen.id"
)

Key = tuple[int, str, str]  # device, kind, job


@dataclass(slots=True)
class _Seen:
    """A job on a device from its first to its last sighting; `sighting_id` where a row holds it."""

    run_name: str
    first: int
    last: int
    sighting_id: int | None = None


def note_jobs(site: SiteRecord, round_: Round, *, now: datetime) -> None:
    """Keep the sightings of a round; runs that they name get the devices from the first on."""
    seen = _seen(round_)
    if not seen:
        return
    _join_known(seen)
    new = [(key, one) for key, spans in seen.items() for one in spans if one.sighting_id is None]
    old = [one for spans in seen.values() for one in spans if one.sighting_id is not None]
    JobSighting.objects.bulk_create(
        [
            JobSighting(
                organisation_id=site.organisation_id,
                device_id=device,
                kind=kind,
                job=job,
                run_name=one.run_name,
                first_at=instant_of(one.first),
                last_at=instant_of(one.last),
            )
            for (device, kind, job), one in new
        ],
        batch_size=2_000,
        ignore_conflicts=True,
    )
    with connection.cursor() as cursor:
        cursor.execute(
            EXTEND,
            [
                listed(one.sighting_id for one in old if one.sighting_id is not None),
                listed(one.first for one in old),
                listed(one.last for one in old),
                [one.run_name for one in old],
            ],
        )
    _assign_named(site, seen, now=now)


def _seen(round_: Round) -> dict[Key, list[_Seen]]:
    """The sightings of a round by device and job, those without a long pause as one."""
    seen: dict[Key, list[_Seen]] = {}
    for note in sorted(round_.waiting.jobs, key=lambda one: one.at):
        device = int(round_.device_ids[note.device])
        if device < 0:
            continue
        spans = seen.setdefault((device, note.kind, note.job), [])
        if spans and note.at - spans[-1].last <= GAP_MICROSECOND:
            spans[-1].last = note.at
            spans[-1].run_name = note.run_name or spans[-1].run_name
        else:
            spans.append(_Seen(run_name=note.run_name, first=note.at, last=note.at))
    return seen


def _join_known(seen: Mapping[Key, Sequence[_Seen]]) -> None:
    """Note which sightings go on from a stored one."""
    spans = [one for of_job in seen.values() for one in of_job]
    with connection.cursor() as cursor:
        cursor.execute(
            KNOWN,
            [
                listed({device for device, _kind, _job in seen}),
                instant_of(min(one.first for one in spans) - GAP_MICROSECOND),
                instant_of(max(one.last for one in spans) + GAP_MICROSECOND),
            ],
        )
        stored = cursor.fetchall()
    for sighting_id, device, kind, job, run_name, first, last in stored:
        for one in seen.get((device, kind, job), ()):
            near = one.first - last <= GAP_MICROSECOND and first - one.last <= GAP_MICROSECOND
            if near and one.sighting_id is None:
                one.sighting_id = sighting_id
                one.first, one.last = min(one.first, first), max(one.last, last)
                one.run_name = one.run_name or run_name


def _assign_named(site: SiteRecord, seen: Mapping[Key, Sequence[_Seen]], *, now: datetime) -> None:
    """Give the devices on which a named run was seen to that run, where nobody else has them."""
    by_run: dict[str, dict[int, int]] = {}
    for (device, _kind, _job), spans in seen.items():
        for one in spans:
            if one.run_name:
                firsts = by_run.setdefault(one.run_name, {})
                firsts[device] = min(one.first, firsts.get(device, one.first))
    runs = runs_named(site.organisation_id, by_run) if by_run else {}
    assigned: list[int] = []
    for name, run in runs.items():
        there = devices_of_run(run.run_id, by_run[name])
        wanted = {device: at for device, at in by_run[name].items() if device not in there}
        if wanted:
            assigned += _assign(site, run, wanted)
    if assigned and min(assigned) < hour_of(now):
        enqueue_closing(site, repost=True, start=instant_of(min(assigned)), end=now)


def _actor(site: SiteRecord) -> Actor:
    return system_actor(site.organisation_id, _("jobs seen at {site}").format(site=site.slug))


def _assign(site: SiteRecord, run: RunRecord, wanted: Mapping[int, int]) -> list[int]:
    """Assign devices to a run, each from its first sighting to whatever comes next; the starts."""
    taken: dict[int, list[AssignmentRecord]] = {}
    for one in assignments_of_devices(wanted):
        taken.setdefault(one.device_id, []).append(one)
    ours = _made_here([one for many in taken.values() for one in many])
    groups: dict[tuple[int, datetime | None], list[int]] = {}
    for device, first in wanted.items():
        at = instant_of(first)
        for one in taken.get(device, ()):
            if one.end is None and one.start < at and (device, one.start) in ours:
                end_assignments(_actor(site), device_ids=[device], at=at)
            elif one.start <= at and (one.end is None or one.end > at):
                break
        else:
            later = [one.start for one in taken.get(device, ()) if one.start > at]
            groups.setdefault((first, min(later, default=None)), []).append(device)
    for (first, end), devices in groups.items():
        assign_devices(
            _actor(site),
            device_ids=devices,
            project_id=run.project_id,
            run_id=run.run_id,
            start=instant_of(first),
            end=end,
        )
    return [first for first, _end in groups]


def _made_here(assignments: Iterable[AssignmentRecord]) -> set[tuple[int, datetime]]:
    """The assignments (device, start) that began with a sighting."""
    starts = {(one.device_id, one.start) for one in assignments if one.run_id is not None}
    sighted = JobSighting.objects.filter(
        device_id__in={device for device, _start in starts},
        first_at__in={start for _device, start in starts},
    ).exclude(run_name="")
    return starts & set(sighted.values_list("device_id", "first_at"))


def end_silent_jobs(site: SiteRecord, *, now: datetime) -> int:
    """End assignments made here whose job is gone while its device goes on; say how many."""
    open_ones = [one for one in assignments_of_site(site.site_id) if one.end is None]
    ours = _made_here(open_ones)
    if not ours:
        return 0
    newest = dict(DeviceNow.objects.filter(site_id=site.site_id).values_list("device_id", "at"))
    last_seen: dict[int, datetime] = {}
    sightings = JobSighting.objects.filter(device_id__in={device for device, _at in ours})
    for device, last_at in sightings.exclude(run_name="").values_list("device_id", "last_at"):
        last_seen[device] = max(last_at, last_seen.get(device, last_at))
    gone: dict[datetime, list[int]] = {}
    for device, start in ours:
        at = last_seen[device]
        if at > start and newest.get(device, at) - at > JOB_GAP:
            gone.setdefault(at, []).append(device)
    for at, devices in gone.items():
        end_assignments(_actor(site), device_ids=devices, at=at)
    if gone and microsecond_of(min(gone)) < hour_of(now):
        enqueue_closing(site, repost=True, start=min(gone), end=now)
    return sum(len(devices) for devices in gone.values())
