"""Asks sources of grid intensity: what is new, what was revised, what lies before. The jobs."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from carbon.adapters.intensity_csv import CsvReading, read_csv
from carbon.adapters.intensity_points import (
    HOUR,
    Check,
    IntensityError,
    Provider,
    Window,
    floor_hour,
)
from carbon.intensity import AVERAGE
from carbon.intensity_sources import CSV, SourceError, provider_of
from carbon.intensity_store import Stored, store_points
from carbon.models import EnergyHour, HourlyIntensity, IntensitySource, SiteZone
from jobs import services as jobs
from jobs.records import JobContext, PermanentJobError
from projects.access import require_organisation_role
from projects.records import Actor
from projects.trail import note

RECENT: Final = timedelta(days=10)  # a hole or an estimate this young is asked for again
ALWAYS_AGAIN: Final = timedelta(hours=23)  # what a service's history holds; often revised
BACKFILL_STEP: Final = timedelta(days=30)
SHORTEST_WAIT: Final = timedelta(minutes=5)
LONGEST_WAIT: Final = timedelta(hours=6)
THROTTLED_WAIT_S: Final = 900.0
MOST_CHECKED: Final = 4
_STOPS: Final = ("unauthorised", "throttled", "address", "no_service")
_NO_PAST: Final = ("unauthorised", "forbidden", "refused", "no_access")


def _nothing(*_args: object) -> None:
    """For a pull that nobody watches."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Watch:
    """Who watches a pull: progress, and whether it is still ours to do."""

    report: Callable[[int, str], None] = _nothing
    assert_still_mine: Callable[[], None] = _nothing


@dataclass(slots=True, kw_only=True)
class Pulled:
    """What a pull of one source brought."""

    source: str
    stored: Stored = field(default_factory=Stored)
    zones: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    errors: dict[str, str] = field(default_factory=dict)
    retry_after_s: float | None = None
    is_permanent: bool = False

    def document(self) -> dict[str, Any]:
        """As jobs and commands show it."""
        return {
            "source": self.source,
            "zones": self.zones,
            **self.stored.document(),
            "notes": list(dict.fromkeys(self.notes)),
            "errors": self.errors,
        }


def pull_source(
    source: IntensitySource,
    *,
    now: datetime,
    span: tuple[datetime, datetime] | None = None,
    watch: Watch | None = None,
) -> Pulled:
    """Ask a source for its zones: what is recent, then what lies before; or the hours of `span`.

    Each zone is stored as it comes. What a zone's service refuses is kept beside the source.
    """
    watch = watch or Watch()
    pulled = Pulled(source=source.name)
    try:
        provider = provider_of(source)
    except IntensityError as error:
        _fail(pulled, source.name, error)
        _remember(source, pulled, now=now)
        return pulled
    zones = SiteZone.objects.filter(source=source).order_by("zone").values_list("zone", flat=True)
    for zone in dict.fromkeys(zones):
        task = _Zone(source=source, zone=zone, provider=provider, now=now, watch=watch)
        try:
            _pull_zone(task, pulled, span)
            pulled.zones.append(zone)
        except IntensityError as error:
            _fail(pulled, zone, error)
            if error.code in _STOPS:
                break
    _remember(source, pulled, now=now)
    return pulled


@dataclass(frozen=True, slots=True, kw_only=True)
class _Zone:
    """One zone of one source, being asked for."""

    source: IntensitySource
    zone: str
    provider: Provider
    now: datetime
    watch: Watch

    def ask(self, start: datetime, end: datetime, pulled: Pulled) -> None:
        """Ask for the hours [start, end) and store what was told."""
        window = Window(zone=self.zone, start=start, end=end, now=self.now)
        told = self.provider.pull(window)
        pulled.notes += told.notes
        with transaction.atomic():
            self.watch.assert_still_mine()
            pulled.stored.add(store_points(self.source, told.points, known_at=self.now))
        self.watch.report(pulled.stored.new + pulled.stored.revised, f"{self.zone} {start:%Y-%m}")


def _pull_zone(task: _Zone, pulled: Pulled, span: tuple[datetime, datetime] | None) -> None:
    if span is not None:
        task.ask(*span, pulled)
        return
    end = floor_hour(task.now)
    start = recent_start(task.source, task.zone, now=task.now)
    task.ask(start, end, pulled)
    try:
        _backfill(task, start, pulled)
    except IntensityError as error:
        if error.code not in _NO_PAST:
            raise
        pulled.notes.append(_("Hours before could not be read: {why}").format(why=error.message))


def recent_start(source: IntensitySource, zone: str, *, now: datetime) -> datetime:
    """From which hour on a source is asked: a day back, or the first young hole or estimate."""
    end = floor_hour(now)
    usual = end - ALWAYS_AGAIN
    rows = HourlyIntensity.objects.filter(
        source=source,
        zone=zone,
        signal=AVERAGE,
        superseded_at__isnull=True,
        hour__gte=end - RECENT,
        hour__lt=usual,
    )
    told = dict(rows.order_by("hour").values_list("hour", "is_estimated"))
    if not told:
        return usual
    hour = min(told)
    while hour < usual:
        if told.get(hour, True):
            return hour
        hour += HOUR
    return usual


def _backfill(task: _Zone, start: datetime, pulled: Pulled) -> None:
    """Ask for what lies before, backwards to the first hour of energy, a month at a time."""
    links = list(SiteZone.objects.filter(source=task.source, zone=task.zone))
    firsts = [first for link in links if (first := first_energy_hour(link.site_id)) is not None]
    if not firsts:
        return
    first = min(firsts)
    asked = [link.backfilled_from for link in links]
    known = [at for at in asked if at is not None]
    done = max(known) if known and len(known) == len(asked) else start
    while done > first:
        low = max(first, done - BACKFILL_STEP)
        task.ask(low, done, pulled)
        SiteZone.objects.filter(pk__in=[link.pk for link in links]).update(backfilled_from=low)
        done = low


def first_energy_hour(site_id: UUID) -> datetime | None:
    """The first hour in which a site's energy is known."""
    rows = EnergyHour.objects.filter(site_id=site_id, superseded_at__isnull=True)
    return rows.order_by("hour").values_list("hour", flat=True).first()


def _fail(pulled: Pulled, zone: str, error: IntensityError) -> None:
    pulled.errors[zone] = error.message
    if error.code == "throttled":
        pulled.retry_after_s = error.retry_after_s or THROTTLED_WAIT_S
    elif error.retry_after_s:
        pulled.retry_after_s = max(pulled.retry_after_s or 0.0, error.retry_after_s)
    pulled.is_permanent = pulled.is_permanent or error.permanent


def _remember(source: IntensitySource, pulled: Pulled, *, now: datetime) -> None:
    """Keep beside the source how the pull went, and until when it rests."""
    changed: dict[str, Any] = {}
    if not pulled.errors:
        said = " ".join(dict.fromkeys(pulled.notes))[:400]
        changed = {"state": IntensitySource.State.OK, "not_before": None, "last_ok_at": now}
        changed |= {"last_error": said, "last_error_at": now if said else None}
    else:
        said = "; ".join(f"{zone}: {why}" for zone, why in pulled.errors.items())[:400]
        changed = {"state": IntensitySource.State.BROKEN, "last_error": said, "last_error_at": now}
        changed["not_before"] = now + _wait(source, pulled, now=now)
    IntensitySource.objects.filter(pk=source.pk).update(**changed)


def _wait(source: IntensitySource, pulled: Pulled, *, now: datetime) -> timedelta:
    """How long a source rests: as long as it asked; else half of the time that it has failed."""
    if pulled.retry_after_s is not None:
        return timedelta(seconds=min(max(pulled.retry_after_s, 1.0), 86_400.0))
    if pulled.zones:  # others of its zones answer
        return SHORTEST_WAIT
    if pulled.is_permanent:
        return LONGEST_WAIT
    failing = now - (source.last_ok_at or source.last_error_at or now)
    return min(max(failing / 2, SHORTEST_WAIT), LONGEST_WAIT)


def ask_for_pull(source: IntensitySource, *, user_id: int | None = None) -> UUID:
    """Ask a worker to pull a source; one that waits already is that job."""
    with transaction.atomic():
        return jobs.enqueue(
            organisation_id=source.organisation_id,
            kind="carbon.pull_intensity",
            scope="organisation",
            payload={"source_id": str(source.pk)},
            dedupe_key=f"intensity:{source.pk}",
            title=_("Grid intensity of {source}").format(source=source.name),
            created_by_user_id=user_id,
        ).pk


def ask_for_backfill(actor: Actor, source: IntensitySource) -> UUID:
    """Ask again for every hour back to the sites' first energy: holes, and revisions."""
    require_organisation_role(actor, write=True)
    with transaction.atomic():
        SiteZone.objects.filter(source=source).update(backfilled_from=None)
        IntensitySource.objects.filter(pk=source.pk).update(not_before=None)
        note(actor, "intensity_source.backfill", subject=("intensity_source", source.pk))
        return ask_for_pull(source, user_id=actor.user_id)


def ask_for_due_pulls(now: datetime) -> int:
    """Ask workers to pull every source whose time has come; say how many."""
    rows = IntensitySource.objects.filter(enabled=True, zones__isnull=False).exclude(provider=CSV)
    due = [one for one in rows.distinct() if one.not_before is None or one.not_before <= now]
    for source in due:
        ask_for_pull(source)
    return len(due)


def pull_intensity(context: JobContext) -> dict[str, Any]:
    """Job: pull one source. Retries of a question are the client's; the schedule asks again.

    Raises:
        PermanentJobError: the source is gone, or no zone of it could be read.
    """
    source = IntensitySource.objects.filter(
        pk=context.payload["source_id"], organisation_id=context.organisation_id
    ).first()
    if source is None or not source.enabled:
        raise PermanentJobError(_("This source is not asked any more."))
    watch = Watch(
        report=lambda done, words: context.report(done, None, words),
        assert_still_mine=context.assert_still_mine,
    )
    pulled = pull_source(source, now=timezone.now(), watch=watch)
    if pulled.errors and not pulled.zones:
        raise PermanentJobError("; ".join(f"{k}: {why}" for k, why in pulled.errors.items()))
    return pulled.document()


def check_source(actor: Actor, source: IntensitySource, *, now: datetime) -> list[Check]:
    """Try a source's connection, and say of each step what is wrong."""
    require_organisation_role(actor, write=True)
    try:
        provider = provider_of(source)
    except IntensityError as error:
        return [Check(about=source.name, ok=False, message=error.message)]
    zones = list(SiteZone.objects.filter(source=source).values_list("zone", flat=True).distinct())
    if not zones:
        words = _("No site has a zone of this source: give one below.")
        return [Check(about=source.name, ok=False, message=words)]
    steps = provider.check(sorted(zones)[:MOST_CHECKED], now=now)
    if all(step.ok for step in steps):
        IntensitySource.objects.filter(pk=source.pk).update(not_before=None)
    return steps


def import_intensity(actor: Actor, source: IntensitySource, data: bytes, how: CsvReading) -> Stored:
    """Store the hours of a CSV under a source that files fill, all of them or none.

    Raises:
        IntensityFileError: the file cannot be taken; it says where and why.
        SourceError: a service fills this source.
    """
    require_organisation_role(actor, write=True)
    if source.provider != CSV:
        raise SourceError(_("A service fills this source; connect one of files for this."))
    points = read_csv(data, how)
    with transaction.atomic():
        stored = store_points(source, points, known_at=how.now)
        IntensitySource.objects.filter(pk=source.pk).update(
            state=IntensitySource.State.OK, last_ok_at=how.now, last_error="", last_error_at=None
        )
        note(
            actor,
            "intensity_source.import",
            subject=("intensity_source", source.pk),
            after={"file": how.file, **stored.document()},
        )
    return stored
