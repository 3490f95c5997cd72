"""Books what doors stored: waiting bodies become readings, all of one round in one transaction.

A repeat changes nothing, what cannot be true or contradicts is set aside, and the bodies go in the
transaction that stores their readings: one that fails leaves everything as it was.
"""

import gc
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final
from uuid import UUID

import structlog
from django.db import DataError, IntegrityError, connection, transaction
from django.db.models import Max
from django.utils import timezone
from django.utils.translation import gettext as _

from carbon.booked_rows import Round, checked, mark_contradictions
from carbon.device_now import keep_newest, newest_known
from carbon.doors import BOOKING, enqueue_booking
from carbon.intake import lock_site
from carbon.metering import Ints
from carbon.models import IntakeBody
from carbon.reopening import reopen
from carbon.sender_counts import count as count_senders
from carbon.sender_counts import note_unreadable
from carbon.sightings import end_silent_jobs, note_jobs
from carbon.storing import COUNTERS, NODES, POWER, USE, Columns, Table, store
from carbon.waiting import Waiting, read_waiting, waiting_bodies
from jobs import services as jobs
from jobs.records import JobContext, PermanentJobError
from runs.records import SiteRecord
from runs.selectors import site_by_id

log = structlog.get_logger(__name__)
LIMIT_ROWS: Final = 800_000  # of one transaction: some seconds, some 200 MB
LONGEST_JOB_S: Final = 120.0  # then another job goes on, so that nobody else starves
BY_ONE: Final = 200  # bodies that are tried each on its own before rounds go on
# What one body may bring on everybody: values that a table refuses. A database that is down is not.
UNBOOKABLE: Final = (DataError, IntegrityError, ValueError, OverflowError, LookupError)
TIDY_EVERY_S: Final = 60.0
_tidied: dict[UUID, float] = {}
TABLES: Final = (("power", POWER), ("counters", COUNTERS), ("use", USE), ("nodes", NODES))


@dataclass(slots=True)
class Booked:
    """What a round has done."""

    bodies: int = 0
    rows: int = 0
    stored: int = 0
    rejected: int = 0
    last_id: int = 0
    reasons: dict[str, int] = field(default_factory=dict)

    def add(self, other: "Booked") -> None:
        """Count another round."""
        self.bodies += other.bodies
        self.rows += other.rows
        self.stored += other.stored
        self.rejected += other.rejected
        self.last_id = other.last_id
        for reason, rows in other.reasons.items():
            self.reasons[reason] = self.reasons.get(reason, 0) + rows


def book_site(
    site: SiteRecord,
    *,
    now: datetime,
    limit_rows: int = LIMIT_ROWS,
    after_id: int = 0,
    before_commit: Callable[[], None] | None = None,
) -> Booked:
    """Book the oldest bodies that wait at a site, about `limit_rows` readings, in one transaction.

    `before_commit` may refuse to publish. A body that cannot be read stays, and its sender says so.
    """
    with _no_cycles_sought(), transaction.atomic():
        lock_site(site.site_id)
        waiting = read_waiting(site.site_id, after_id=after_id, limit_rows=limit_rows)
        booked = _book(site, waiting, now=now)
        if before_commit is not None:
            before_commit()
    return booked


@contextmanager
def _no_cycles_sought() -> Iterator[None]:
    """A round makes many objects and no cycles: to look for some takes a tenth of its time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _book(site: SiteRecord, waiting: Waiting, *, now: datetime) -> Booked:
    """Store everything that one round holds, in the caller's transaction."""
    booked = Booked(last_id=waiting.last_id)
    round_ = checked(site, waiting) if waiting.body_ids else None
    if round_ is not None:
        newest = newest_known(round_.device_ids.tolist())
        for name, table in TABLES:
            _store(site, round_, (name, table), newest=newest)
        reopen(site, round_, now=now)
        keep_newest(site, round_)
        note_jobs(site, round_, now=now)
        round_.quarantine(received_at=now)
        booked.bodies, booked.rows = len(waiting.body_ids), sum(one.rows for one in waiting.senders)
        booked.stored = sum(sum(one.values()) for one in round_.new_by_sender.values())
        booked.reasons = round_.reasons()
        booked.rejected = sum(booked.reasons.values())
    count_senders(waiting, round_)
    _forget(waiting)
    return booked


def _store(site: SiteRecord, round_: Round, kind: tuple[str, Table], *, newest: Ints) -> None:
    """Store one kind of readings, mark what contradicts; `newest` is what is known by device."""
    name, table = kind
    good, columns = round_.to_store(name)
    device = round_.columns(name)["device"][good]
    unseen = columns["at"] > newest[device] if "device_id" in table.keys else None
    kinds: Columns = {key: columns[key] for key in (*table.keys, *table.values)}
    stored = store(table, kinds, site=site, received_at=columns["received_at"], unseen=unseen)
    round_.new_by_sender[name] = stored.new_by_sender
    mark_contradictions(round_, name, good[stored.contradicting])


def _forget(waiting: Waiting) -> None:
    """Delete the booked bodies; a plain statement, they are many."""
    if waiting.body_ids:
        with connection.cursor() as cursor:
            cursor.execute(
                "DELETE FROM carbon_intakebody WHERE id = ANY(%s)", [list(waiting.body_ids)]
            )


def book_readings_job(context: JobContext) -> dict[str, Any]:
    """Job: book what waits at a site when it begins, round after round.

    What arrives meanwhile is for the next ring: each round looks at every device of the site, so
    that rounds in close succession would cost more than the readings.
    """
    site = site_by_id(context.organisation_id, UUID(context.payload["site_id"]))
    if site is None:
        raise PermanentJobError(_("The site is gone."))
    whole, until_s = Booked(), time.monotonic() + LONGEST_JOB_S
    waiting = IntakeBody.objects.filter(site_id=site.site_id)
    newest_id: int = waiting.aggregate(newest=Max("id"))["newest"] or 0
    while whole.last_id < newest_id and time.monotonic() < until_s:
        before = whole.last_id
        whole.add(_book_around(site, after_id=before, before_commit=context.assert_still_mine))
        context.report(whole.rows, None, site.name)
        if whole.last_id == before:
            break
    _tidy(site)
    jobs.forget_succeeded(
        organisation_id=context.organisation_id,
        kind=BOOKING,
        dedupe_key=f"{site.site_id}:book",
    )
    return {
        "bodies": whole.bodies,
        "rows": whole.rows,
        "stored": whole.stored,
        "rejected": whole.rejected,
        "reasons": whole.reasons,
    }


def _book_around(site: SiteRecord, *, after_id: int, before_commit: Callable[[], None]) -> Booked:
    """Book a round; where one body cannot be booked at all, the others, and leave that one."""
    try:
        return book_site(site, now=timezone.now(), after_id=after_id, before_commit=before_commit)
    except UNBOOKABLE:
        log.exception("round not booked, trying body by body", site=str(site.site_id))
    whole = Booked(last_id=after_id)
    for body_id, sender_id in waiting_bodies(site.site_id, after_id=after_id, limit=BY_ONE):
        try:
            one = book_site(
                site,
                now=timezone.now(),
                after_id=body_id - 1,
                limit_rows=1,
                before_commit=before_commit,
            )
            whole.add(one)
        except UNBOOKABLE as error:
            log.exception("a body cannot be booked and stays", body=body_id, sender=sender_id)
            note_unreadable({sender_id: type(error).__name__})
        whole.last_id = body_id
    return whole


def _tidy(site: SiteRecord) -> None:
    """Now and then, end what a sender has stopped seeing."""
    now_s = time.monotonic()
    if now_s - _tidied.get(site.site_id, -TIDY_EVERY_S) >= TIDY_EVERY_S:
        _tidied[site.site_id] = now_s
        end_silent_jobs(site, now=timezone.now())


def enqueue_all_waiting() -> int:
    """Ask workers to book what waits, at every site at which something does; say how many."""
    found = IntakeBody.objects.order_by().values_list("site_id", "organisation_id").distinct()
    count = 0
    for site_id, organisation_id in found:
        site = site_by_id(organisation_id, site_id)
        if site is not None:
            enqueue_booking(site)
            count += 1
    return count
